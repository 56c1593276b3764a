"""Is the right option one that negates?"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from ..choices import Choices
from .rule import Rule

__all__ = ["NEGATION"]

NEGATES = re.compile(
    r"\b(?:no|not|non|none|never|nor|neither|without|absent|absence|lacks?|lacking|negative|cannot|free of|devoid)\b"
)


def _negates(choices: Choices) -> npt.NDArray[np.float64]:
    return np.array([bool(NEGATES.search(text)) for text in choices.texts], dtype=np.float64)


NEGATION = Rule("negation", "an option with a negation", _negates)
