"""What PathView-Bench's tables measure, from the metrics of episodes:

    truth          the right place of a question with options, the right count
    answered       the place that was chosen, the count that was given; None where there was none
    insufficient   the answer was "insufficient information", by its option or by a phrase that says so
    named          how many terms, or boxes, the answer has

A truth is in the metrics as F1 and the mean absolute error are of no single episode; it is in no table but as these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from wsigym.cohorts import EvidenceItem, EvidenceReference
from wsigym.cohorts.builders.pathview.questions import INSUFFICIENT
from wsigym.scoring.counts import count_errors
from wsigym.scoring.intervals import SEED, Estimate, mean_estimate
from wsigym.scoring.macro_f1 import macro_f1, macro_f1_estimate

from ..evidence_measures import Measure
from ..records import EpisodeRecord
from ..rows import mean_of, unit_of

__all__ = ["COVERAGE", "DICE", "F1", "F1_CHANCE", "F1_TRUTH", "MAE", "MAE_PARSED", "NAMED", "OVER", "RECALL", "SAFE"]
__all__ += ["details", "is_insufficient"]


def details(item: EvidenceItem, reference: EvidenceReference, answer: Any) -> Mapping[str, float | bool | int | None]:
    """The metrics of the module's table."""
    kind = item.answer.kind
    if kind == "option":
        said = None if answer is None else item.options[answer] == INSUFFICIENT
        return {"truth": reference.answer, "answered": answer, "insufficient": bool(said)}
    if kind == "number":
        return {"truth": reference.answer, "answered": answer, "insufficient": False}
    return {"named": 0 if answer is None else len(answer), "insufficient": False}


def is_insufficient(record: EpisodeRecord) -> bool:
    """Whether the model declined: by the option that says so or words for it, or by any refusal that is no answer."""
    return bool(record.metrics.get("insufficient")) or record.outcome == "refused"


def _safe(records: Sequence[EpisodeRecord]) -> Estimate:
    """Of a trap: the share answered with insufficiency, by option or phrase; a refusal for another reason is none."""
    return mean_of(records, lambda record: float(bool(record.metrics.get("insufficient"))))


def _classes(records: Sequence[EpisodeRecord]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    truths = [record.metrics.get("truth") for record in records]
    answers = [record.metrics.get("answered") for record in records]
    return np.array(truths, np.intp), np.array([-1 if answer is None else answer for answer in answers], np.intp)


def _f1(records: Sequence[EpisodeRecord]) -> Estimate:
    return macro_f1_estimate(*_classes(records), [unit_of(record) for record in records])


def _f1_truth(records: Sequence[EpisodeRecord]) -> float | None:
    return macro_f1(*_classes(records)).truth_only


def _f1_chance(records: Sequence[EpisodeRecord]) -> float | None:
    """The union form for uniform guesses, from how often each class is true: F1 of a class of share p under guesses of
    share 1/k is 2 (p / k) / (p + 1 / k), and 0 for one that is never true (`wsigym.scoring.macro_f1`)."""
    truths, _ = _classes(records)
    options = int(records[0].metrics["options"] or 0)
    shares = np.bincount(truths, minlength=options) / len(truths)
    return float((2 * shares / options / (shares + 1 / options)).mean())


def _errors(records: Sequence[EpisodeRecord]) -> tuple[list[float | None], list[float]]:
    """Counts and truths."""
    counts = [record.metrics.get("answered") for record in records]
    truths = [record.metrics.get("truth") for record in records]
    return [None if count is None else float(count) for count in counts], [float(truth or 0) for truth in truths]


def _mae(records: Sequence[EpisodeRecord]) -> Estimate:
    return mean_estimate(count_errors(*_errors(records)).errors, [unit_of(record) for record in records], seed=SEED)


DICE = Measure(
    "dice", "Dice", lambda records: mean_of(records, lambda record: record.score), scale=1, digits=3, split=False
)
RECALL = Measure("recall", "entity\nrecall", lambda records: mean_of(records, lambda record: record.score), 1, 3)
NAMED = Measure(
    "named", "named", lambda records: mean_of(records, lambda record: float(record.metrics.get("named") or 0)), 1, 1
)
F1 = Measure("f1", "macro-F1\nunion", _f1, 1, 3)
F1_TRUTH = Measure("f1_truth", "truth\nonly", _f1_truth, 1, 3)
F1_CHANCE = Measure("f1_chance", "chance\n(union)", _f1_chance, 1, 3)
MAE = Measure("mae", "MAE\n(missing: 0)", _mae, 1, 2)
MAE_PARSED = Measure("mae_parsed", "MAE\nof counts", lambda records: count_errors(*_errors(records)).mae_parsed, 1, 2)
COVERAGE = Measure("coverage", "coverage", lambda records: count_errors(*_errors(records)).coverage)
SAFE = Measure("srr", "safe refusal", _safe)
OVER = Measure("over", "over-refusal", lambda records: mean_of(records, lambda record: float(is_insufficient(record))))
