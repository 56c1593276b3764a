"""F1 averaged over classes (PathView-Bench DLO and ARE, PathLang T1).

F1 of a class is 2 TP / (2 TP + FP + FN). The averages differ in the classes: `union` takes every class that
occurs among truths or answers, which agrees with PathView's control rows; `truth_only` those among the truths;
`macro_f1_estimate` with `classes` all there are, 0 for one that never occurs, as PathLang's constant cells allow (they
don't tell it from the union, as each class has slides).
A reply that named no class is a miss of its truth, and no class of its own.

Chance of a uniform guesser over k options, for a balanced truth of c of them: union 2 c / (k (c + k)) (0.178 for five
options of which one, insufficiency, is never true), truth-only 2 / (c + k) (0.222). Who always gives one of the c
classes: 2 / (c (c + 1)) in both (0.1 for four). Over all of C classes: who always gives one that a share p of the
truths are has 2 p / (1 + p) / C; a uniform guesser 1 / C where they are balanced.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

from .intervals import Estimate, statistic_estimate

__all__ = ["MacroF1", "macro_f1", "macro_f1_estimate"]


@dataclass(frozen=True)
class MacroF1:
    """Both averages in 0..1, None without items; `coverage` is the share of replies that named a class."""

    union: float | None
    truth_only: float | None
    coverage: float | None


def macro_f1(truths: npt.NDArray[np.integer], answers: npt.NDArray[np.integer]) -> MacroF1:
    """Macro-F1 of classes (n,) counted from 0; -1 for a reply that named none."""
    _check(truths, answers)
    if not len(truths):
        return MacroF1(None, None, None)
    from sklearn.metrics import f1_score

    classes = np.unique(truths)
    f1 = {
        name: float(f1_score(truths, answers, labels=labels, average="macro", zero_division=0))
        for name, labels in (("union", np.union1d(classes, answers[answers >= 0])), ("truth_only", classes))
    }
    return MacroF1(f1["union"], f1["truth_only"], float((answers >= 0).mean()))


def macro_f1_estimate(
    truths: npt.NDArray[np.integer],
    answers: npt.NDArray[np.integer],
    units: Sequence[Hashable],
    *,
    classes: int | None = None,
) -> Estimate:
    """The union form with its 95 % interval, resampling `units`. A draw averages over the classes that it holds.

    With `classes`, their number, a draw averages over all of them. Truths and answers must be below it.
    """
    _check(truths, answers)
    seen = int(max(truths.max(initial=-1), answers.max(initial=-1))) + 1
    if classes is not None and classes < seen:
        raise InvalidArgumentError(f"{classes} classes, and class {seen - 1} occurs; classes count from 0.")
    is_truth, is_answer = truths[:, None] == np.arange(seen), answers[:, None] == np.arange(seen)
    rows = np.concatenate([is_truth & is_answer, is_truth, is_answer], axis=1).astype(np.float64)

    def f1(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        both, truth, answer = np.split(sums, 3, axis=1)
        number = classes or (truth + answer > 0).sum(axis=1)
        mean: npt.NDArray[np.float64] = (2 * both / np.maximum(truth + answer, 1)).sum(axis=1) / number
        return mean

    return statistic_estimate(rows, units, f1)


def _check(truths: npt.NDArray[np.integer], answers: npt.NDArray[np.integer]) -> None:
    if len(truths) != len(answers):
        raise InvalidArgumentError(f"{len(truths)} truths and {len(answers)} answers; an item needs both.")
    if (truths < 0).any():
        raise InvalidArgumentError("a truth is negative; classes count from 0, and only an answer may be missing (-1).")
