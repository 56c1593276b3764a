"""What was said of a tile, a verdict and a score, as the one number that exploration takes; and back.

    suspicion(yes=True, score=0.8)      0.9
    verdict_of(0.9)                     Verdict(yes=True, score=0.8)

A suspicion of 0.5 and more is a Yes. Yes with score s is 0.5 + s / 2, No with score s just under s / 2, so that every
Yes is above every No, and among equals of one kind the score decides. A scorer that gives one number in 0..1 and no
verdict acts with that number, and `verdict_of` reads it in the same way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["YES", "Verdict", "suspicion", "verdict_of"]

YES = 0.5
"""A suspicion of at least this is a Yes."""

SCORE_DIGITS = 6
"""Actions may be float32, which tells scores apart to the seventh decimal."""


class Verdict(NamedTuple):
    """What was said of a tile: Yes or No, and how suspicious it is, 0..1, as it was stated beside the verdict."""

    yes: bool
    score: float


def suspicion(*, yes: bool, score: float) -> float:
    """The suspicion, 0..1, of a verdict and a score in 0..1; what it says holds in float32 too."""
    return float(YES + score / 2) if yes else float(max(0.0, np.nextafter(np.float32(score / 2), np.float32(-1))))


def verdict_of(suspicion: float) -> Verdict:
    """The verdict and the score of a suspicion in 0..1. The score is rounded to six decimals, up to which it is exact.

    That holds for a suspicion that went through float32 as well.
    """
    if suspicion >= YES:
        return Verdict(True, round(2 * (suspicion - YES), SCORE_DIGITS))
    return Verdict(False, round(2 * suspicion, SCORE_DIGITS))
