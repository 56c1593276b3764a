"""Is one place right more often than others?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..choices import Choices
from .rule import Rule

__all__ = ["POSITION"]


def _frequent_places(choices: Choices) -> npt.NDArray[np.float64]:
    scores = np.zeros(len(choices.item_of))
    widest = int(choices.sizes.max())
    key = choices.sizes[choices.item_of] * widest + choices.place_of  # a place among as many options
    for learned, tried in choices.held_out():
        seen = np.bincount(key[choices.is_right & learned[choices.item_of]], minlength=(widest + 1) * widest)
        rows = tried[choices.item_of]
        scores[rows] = seen[key[rows]]
    return scores


POSITION = Rule(
    "position", "the place most often right elsewhere, as options stand in the file", _frequent_places, True
)
