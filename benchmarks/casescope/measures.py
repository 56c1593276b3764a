"""What CaseScope's tables measure, beside what every evidence task has. Each reads records, never references.

An option task is circular: each item is asked in all rotations of its options, and rates such as the critical miss pool
the rotations. Formulas, edge cases and chance levels: `wsigym.scoring.diagnosis`, `triage`, `agreement`, `look_alikes`,
`findings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from wsigym.cohorts.builders.casescope.distractors import DISTRACTORS
from wsigym.scoring.agreement import kappa_estimate
from wsigym.scoring.circular import retention
from wsigym.scoring.diagnosis import ERROR_CLASSES
from wsigym.scoring.intervals import SEED, Estimate, mean_estimate
from wsigym.scoring.triage import TriageErrors, triage_errors

from ..evidence_measures import ACCURACY, CIRCULAR, Measure
from ..records import EpisodeRecord
from ..rows import mean_of, unit_of
from ..tables import Cell

__all__ = [
    "CLASSES",
    "COVERAGE",
    "HDS",
    "ITEM_ACCURACY",
    "ITEM_CHANCE",
    "KAPPA",
    "LOOK_ALIKES",
    "LOOK_ALIKES_CHANCE",
    "MISS",
    "OVER_CALL",
    "RETENTION",
    "STATEMENTS",
    "STATEMENT_CHANCE",
    "TOP1",
    "TOP3",
    "UNMAPPED",
    "VANILLA",
]


def _value_of(key: str, record: EpisodeRecord) -> float | None:
    value = record.metrics.get(key)
    return None if value is None or isinstance(value, str) else float(value)


def _mean_of_metric(key: str, records: Sequence[EpisodeRecord]) -> Estimate:
    return mean_of(records, partial(_value_of, key))


def _coverage(records: Sequence[EpisodeRecord]) -> Estimate:
    return mean_of(records, lambda record: record.outcome == "scored")


def _score(records: Sequence[EpisodeRecord]) -> Estimate:
    return mean_of(records, lambda record: record.score)


def _retention(records: Sequence[EpisodeRecord]) -> Cell:
    circular, vanilla = CIRCULAR.of(records), ACCURACY.of(records)
    if not isinstance(circular, Estimate) or not isinstance(vanilla, Estimate):
        return None
    if circular.value is None or vanilla.value is None:
        return None
    return retention(np.array([circular.value]), np.array([vanilla.value]))


# -- A1 ---------------------------------------------------------------------------------------------------------------


def _share_of_class(name: str, records: Sequence[EpisodeRecord]) -> Estimate:
    return mean_of(records, lambda record: record.metrics["error"] == name)


# -- A2 ---------------------------------------------------------------------------------------------------------------


def _wrong(records: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
    """The wrong answers that named an option, of items that offer a look-alike."""
    return [
        record
        for record in records
        if record.metrics["look_alikes"] and record.metrics["chosen"] is not None and record.score != 1
    ]


def _look_alikes(records: Sequence[EpisodeRecord]) -> Estimate:
    return _mean_of_metric("look_alike", _wrong(records))


def _look_alikes_chance(records: Sequence[EpisodeRecord]) -> float | None:
    offered = {record.item: float(record.metrics["look_alikes"] or 0) for record in records}
    counts = [count for count in offered.values() if count]
    return sum(counts) / len(counts) / DISTRACTORS if counts else None


# -- B ----------------------------------------------------------------------------------------------------------------


def _triage(records: Sequence[EpisodeRecord]) -> TriageErrors:
    chosen = [record.metrics["chosen"] for record in records]
    return triage_errors(
        np.array([-1 if place is None else place for place in chosen], np.intp),
        np.array([record.metrics["behaviour"] for record in records], np.intp),
        np.array([record.metrics["in_situ"] for record in records], np.bool_),
    )


def _miss(records: Sequence[EpisodeRecord]) -> Estimate:
    critical = [record for record in records if record.metrics["behaviour"] == 3 or record.metrics["in_situ"]]
    return _rate(_triage(critical).missed, critical)


def _over_call(records: Sequence[EpisodeRecord]) -> Estimate:
    harmless = [record for record in records if record.metrics["behaviour"] in (0, 1)]
    return _rate(_triage(harmless).over_called, harmless)


def _rate(erred: np.ndarray[tuple[int], np.dtype[np.bool_]], records: Sequence[EpisodeRecord]) -> Estimate:
    return mean_estimate(erred.astype(float), [unit_of(record) for record in records], seed=SEED)


# -- C ----------------------------------------------------------------------------------------------------------------


def _kappa(records: Sequence[EpisodeRecord]) -> Estimate:
    first, second = (
        np.array([-1 if (level := record.metrics[key]) is None else level for record in records], np.intp)
        for key in ("level", "chosen")
    )
    return kappa_estimate(first, second, [unit_of(record) for record in records])


HDS = Measure("hds", "HDS-onto", _score, split=True)
TOP1 = Measure("top1", "Top-1", partial(_mean_of_metric, "right"))
TOP3 = Measure("top3", "Top-3", partial(_mean_of_metric, "top3"))
CLASSES = tuple(
    Measure(f"error_{name}", name, partial(_share_of_class, name)) for name in ERROR_CLASSES if name != "exact"
)
UNMAPPED = Measure("unmapped", "unmapped", partial(_mean_of_metric, "unmapped"))
VANILLA = Measure("accuracy", "vanilla", ACCURACY.of, split=True)
RETENTION = Measure("retention", "circular /\nvanilla", _retention, averaged=True)
COVERAGE = Measure("coverage", "parsed", _coverage)
LOOK_ALIKES = Measure("look_alikes", "wrong: a\nlook-alike", _look_alikes)
LOOK_ALIKES_CHANCE = Measure("look_alikes_chance", "if drawn\nuniformly", _look_alikes_chance)
MISS = Measure("miss", "critical\nmiss", _miss)
OVER_CALL = Measure("over_call", "over-call", _over_call)
KAPPA = Measure("kappa", "kappa", _kappa, scale=1, digits=2)
STATEMENTS = Measure("statements", "statements", _score, split=True)
ITEM_ACCURACY = Measure("accuracy", "all four", ACCURACY.of)


def _coin(records: Sequence[EpisodeRecord]) -> float:
    return 0.5


def _four_coins(records: Sequence[EpisodeRecord]) -> float:
    return 0.5**4


STATEMENT_CHANCE = Measure("statement_chance", "chance of\na coin", _coin)
ITEM_CHANCE = Measure("item_chance", "of four\ncoins", _four_coins, digits=2)
