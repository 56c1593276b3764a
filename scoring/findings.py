"""Statements that are to be told true or false (CaseScope R1).

Chance: a coin is right on half of the statements and on 2^-k of the items of k statements (6.25 % for four); the
answer "all true" on half of the statements (exactly half are true) and on no item.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

__all__ = ["item_accuracy", "right_statements", "statement_accuracy"]


def right_statements(
    answers: Sequence[Sequence[bool] | None], truths: Sequence[Sequence[bool]]
) -> npt.NDArray[np.bool_]:
    """Whether each statement was told right: (items, statements). An item without an answer has all wrong.

    Raises `InvalidArgumentError` where the numbers of items or of their statements differ.
    """
    if len(answers) != len(truths):
        raise InvalidArgumentError(f"{len(answers)} answers and {len(truths)} truths; each item needs both.")
    counts = {len(truth) for truth in truths} | {len(answer) for answer in answers if answer is not None}
    if len(counts) > 1:
        raise InvalidArgumentError(f"items have {sorted(counts)} statements; all need the same number.")
    width = max(counts, default=0)
    right = [
        [False] * width if answer is None else [told == true for told, true in zip(answer, truth, strict=True)]
        for answer, truth in zip(answers, truths, strict=True)
    ]
    return np.array(right, dtype=np.bool_).reshape(len(truths), width)


def statement_accuracy(right: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Each item's share of statements told right, (items,) in 0..1; its mean is the paper's statement accuracy."""
    return np.asarray(right.mean(axis=1), dtype=np.float64)


def item_accuracy(right: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Whether all statements of each item were told right, (items,); its mean is the paper's item accuracy."""
    return np.asarray(right.all(axis=1), dtype=np.bool_)
