"""Is an option right because of its text, whatever is asked?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..choices import Choices
from .rule import Rule

__all__ = ["PRIOR"]


def _frequent_texts(choices: Choices) -> npt.NDArray[np.float64]:
    """How often a text was right of the times it was offered, drawn to chance by one offer at chance."""
    codes: dict[str, int] = {}
    code = np.array([codes.setdefault(text, len(codes)) for text in choices.texts], dtype=np.intp)
    chance = choices.chances[choices.item_of]
    scores = np.zeros(len(code))
    for learned, tried in choices.held_out():
        seen = learned[choices.item_of]
        right = np.bincount(code[seen & choices.is_right], minlength=len(codes))
        offered = np.bincount(code[seen], minlength=len(codes))
        rows = tried[choices.item_of]
        scores[rows] = (right[code[rows]] + chance[rows]) / (offered[code[rows]] + 1)
    return scores


PRIOR = Rule("prior", "the option most often right elsewhere, by its text", _frequent_texts, True)
