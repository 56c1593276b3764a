"""Is the right option the longest, or the shortest?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..choices import Choices
from .rule import Rule

__all__ = ["LONGEST", "SHORTEST"]


def _lengths(choices: Choices) -> npt.NDArray[np.float64]:
    return np.array([len(text) for text in choices.texts], dtype=np.float64)


LONGEST = Rule("longest", "the longest option, in characters", _lengths)
SHORTEST = Rule("shortest", "the shortest option, in characters", lambda choices: -_lengths(choices))
