"""Does the stated confidence know which answers are right?

Five views of pairs (confidence in 0..1, right or wrong): AUROC (does a right answer get more confidence than a wrong
one), Brier score (Brier 1950: mean squared distance of confidence and truth), the expected calibration error (is the
confidence the share of right answers; Naeini et al. 2015, in bins of equal mass), and the risk-coverage curve (Geifman
and El-Yaniv 2017: the share of errors when only the most confident answers are kept) with the area under it and the
accuracy at 80 % coverage. An answer without a confidence is counted and left out, never imputed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

__all__ = [
    "BINS",
    "COVERAGE",
    "ConfidenceReport",
    "auroc",
    "brier_score",
    "calibration_error",
    "confidence_report",
    "risk_coverage",
]

BINS = 10
"""Bins of equal mass of the expected calibration error."""

COVERAGE = 0.8
"""Share of the answers kept for `accuracy_at_coverage`."""


@dataclass(frozen=True)
class ConfidenceReport:
    """`n` answers with a confidence, `missing` without. A number is None where it is undefined.

    `accuracy` is the share of right answers among the n. `risk_coverage_area` is in 0..1, lower is better; a
    confidence that says nothing has an expected area of 1 - accuracy.
    """

    n: int
    missing: int
    accuracy: float | None
    mean_confidence: float | None
    auroc: float | None
    brier: float | None
    calibration_error: float | None
    risk_coverage_area: float | None
    accuracy_at_coverage: float | None


def confidence_report(confidences: Sequence[float | None], right: Sequence[bool]) -> ConfidenceReport:
    """Everything about `confidences` (n,), None where none was stated, and whether each answer was `right` (n,).

    Raises `InvalidArgumentError` where the lengths differ or a confidence lies outside 0..1.
    """
    if len(confidences) != len(right):
        raise InvalidArgumentError(f"{len(confidences)} confidences and {len(right)} answers; each needs the other.")
    stated = [(confidence, hit) for confidence, hit in zip(confidences, right, strict=True) if confidence is not None]
    missing = len(right) - len(stated)
    if not stated:
        return ConfidenceReport(0, missing, None, None, None, None, None, None, None)
    values = np.array([confidence for confidence, _ in stated], dtype=np.float64)
    hits = np.array([hit for _, hit in stated], dtype=bool)
    risks = risk_coverage(values, hits)
    kept = math.ceil(COVERAGE * len(risks))
    return ConfidenceReport(
        n=len(stated),
        missing=missing,
        accuracy=float(hits.mean()),
        mean_confidence=float(values.mean()),
        auroc=auroc(values, hits),
        brier=brier_score(values, hits),
        calibration_error=calibration_error(values, hits),
        risk_coverage_area=float(risks.mean()),
        accuracy_at_coverage=1 - float(risks[kept - 1]),
    )


def auroc(confidences: npt.NDArray[np.float64], right: npt.NDArray[np.bool_]) -> float | None:
    """Chance that a right answer has more confidence than a wrong one, ties half; None with one class only."""
    _check(confidences, right)
    if right.all() or not right.any():
        return None
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(right, confidences))


def brier_score(confidences: npt.NDArray[np.float64], right: npt.NDArray[np.bool_]) -> float | None:
    """Mean of (confidence - truth) squared, in 0..1, lower is better; None without answers."""
    _check(confidences, right)
    return float(np.mean((confidences - right) ** 2)) if len(right) else None


def calibration_error(
    confidences: npt.NDArray[np.float64], right: npt.NDArray[np.bool_], bins: int = BINS
) -> float | None:
    """Mean over bins of |mean confidence - share of right answers|, in 0..1, lower is better; None without answers.

    The bins have equal mass: the answers sorted by confidence, cut into `bins` parts whose sizes differ by at most
    one, weighted by their size. Answers of equal confidence count with their mean truth, so
    that their order changes nothing. Of few answers it is biased upwards: compare it at equal n. A guesser who states
    the chance level has 0.
    """
    _check(confidences, right)
    if not len(right):
        return None
    _, place = np.unique(confidences, return_inverse=True)
    share = np.bincount(place, weights=right) / np.bincount(place)
    gaps = np.sort(confidences) - share[np.sort(place)]
    parts = np.array_split(gaps, bins)
    return float(sum(abs(part.sum()) for part in parts) / len(gaps))


def risk_coverage(confidences: npt.NDArray[np.float64], right: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Share of errors (n,) among the k most confident answers, for k = 1 .. n; its mean is the area under the curve.

    Where k cuts through answers of equal confidence, the share is the expected one over their orders, so that it
    does not depend on the order in which they are given.
    """
    _check(confidences, right)
    levels, place = np.unique(-confidences, return_inverse=True)
    sizes = np.bincount(place, minlength=len(levels))
    errors = np.bincount(place, weights=~right, minlength=len(levels))
    kept = np.arange(1, len(right) + 1)
    expected: npt.NDArray[np.float64] = np.interp(kept, np.append(0, np.cumsum(sizes)), np.append(0, np.cumsum(errors)))
    return expected / kept


def _check(confidences: npt.NDArray[np.float64], right: npt.NDArray[np.bool_]) -> None:
    if confidences.shape != right.shape or confidences.ndim != 1:
        raise InvalidArgumentError(f"confidences have shape {confidences.shape}, answers {right.shape}; both are (n,).")
    outside = confidences[~((confidences >= 0) & (confidences <= 1))]
    if len(outside):
        raise InvalidArgumentError(f"a confidence is {outside[0]}; allowed is 0 to 1.")
