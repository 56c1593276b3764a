"""Do the question's words tell which option is right?"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from ..choices import Choices
from ..words import MAX_LABELS, told_by, vectors_of
from .rule import Rule

__all__ = ["QUESTION"]


def _by_words(choices: Choices) -> npt.NDArray[np.float64]:
    """How much likelier a question's words are where a text was right, beyond the usual question's.

    Only in items whose options were each right more than once elsewhere: which texts are ever right is `prior`'s.
    """
    scores = np.zeros(len(choices.item_of))
    vectors = vectors_of(choices.questions)
    if vectors is None:
        return scores
    texts = np.array(choices.texts)
    for learned, tried in choices.held_out():
        right = choices.is_right & learned[choices.item_of]
        counts = Counter(texts[right].tolist()).most_common(MAX_LABELS)
        code = {text: place for place, text in enumerate(text for text, count in counts if count > 1)}
        if len(code) < 2:
            continue
        codes = np.array([code.get(text, -1) for text in choices.texts], dtype=np.intp)
        rows = np.flatnonzero(right & (codes >= 0))
        told = told_by(vectors[choices.item_of[rows]], codes[rows])
        # Without what the usual question tells, else a text would be chosen whatever is asked.
        usual = np.asarray(vectors[np.flatnonzero(learned)].mean(axis=0)) @ told.T
        known = np.logical_and.reduceat(codes >= 0, choices.starts)
        items = np.flatnonzero(tried & known)
        rows = np.flatnonzero((tried & known)[choices.item_of])
        scores[rows] = (vectors[items] @ told.T - usual)[np.searchsorted(items, choices.item_of[rows]), codes[rows]]
    return scores


QUESTION = Rule("question", "the option that the question's words told elsewhere, by a classifier", _by_words, True)
