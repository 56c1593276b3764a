"""What a rule is that answers without looking at the evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..choices import Choices

__all__ = ["Rule", "Scores"]

Scores = Callable[[Choices], npt.NDArray[np.float64]]
"""A score of each option (rows,); the highest is chosen."""


@dataclass(frozen=True)
class Rule:
    """`says` is the rule in words. A `learned` rule scores each fold by what it saw in the others."""

    name: str
    says: str
    scores: Scores
    learned: bool = False
