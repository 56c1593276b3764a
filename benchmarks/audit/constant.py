"""Free answers (numbers, terms, texts, diagnoses): do the question's words tell more than the commonest answer does?

Guessing has no chance level there, so that a classifier on the question's words is held against always giving the
answer most frequent elsewhere. Of the items where just one of the two is right, either would have half by chance
(McNemar 1947).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsigym.cohorts import Asked
from wsigym.scoring.intervals import MIN_UNITS

from .choices import folds_of, unit_of, words_of
from .words import MAX_LABELS, told_by, vectors_of

__all__ = ["Beyond", "beyond_constant"]


@dataclass(frozen=True)
class Beyond:
    """Of the items where one of the two is right: `shares` is 1 for the classifier, 0 for the constant answer."""

    shares: npt.NDArray[np.float64]
    units: tuple[str, ...]


def beyond_constant(asked: Sequence[Asked]) -> Beyond | str:
    """The classifier against the constant answer, or why they cannot be compared."""
    items, answers = [each.item for each in asked], [_label(each.reference.answer) for each in asked]
    units = [unit_of(item) for item in items]
    folds, vectors = folds_of(items), vectors_of([words_of(item) for item in items])
    if len(set(answers)) == len(answers):
        return "no answer occurs twice"
    if vectors is None:
        return "the questions have the same words"
    if folds is None:
        return f"there are under {MIN_UNITS} groups to learn from and be tried on"
    classified, constant = (np.zeros(len(items), dtype=np.bool_) for _ in range(2))
    for fold in range(int(folds.max()) + 1):
        counts = Counter(answer for answer, of in zip(answers, folds, strict=True) if of != fold).most_common(
            MAX_LABELS
        )
        code = {answer: place for place, (answer, _) in enumerate(counts)}
        codes = np.array([code.get(answer, -1) for answer in answers], dtype=np.intp)
        learned, tried = np.flatnonzero((folds != fold) & (codes >= 0)), np.flatnonzero(folds == fold)
        scores = vectors[tried] @ told_by(vectors[learned], codes[learned]).T + np.log([count for _, count in counts])
        classified[tried] = scores.argmax(axis=1) == codes[tried]
        constant[tried] = codes[tried] == 0
    differ = np.flatnonzero(classified != constant)
    if not len(differ):
        return "the question's words tell no more than the commonest answer"
    return Beyond(classified[differ].astype(np.float64), tuple(f"{units[place]}\0{answers[place]}" for place in differ))


def _label(answer: object) -> str:
    return json.dumps(sorted(answer, key=repr) if isinstance(answer, list) else answer, sort_keys=True)
