"""Does a ranking of models hold on other items, other prompts, another source? (CaseScope, PathLang, BrainTRACE.)

Spearman's rho with average ranks for ties. Chance: 0 for unrelated rankings. For n models without ties it takes the
values 1 - 6 d / (n (n^2 - 1)), d the sum of squared differences of ranks, which is even.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from wsigym.errors import InvalidArgumentError

from .intervals import COVERAGE, DRAWS, MIN_UNITS, SEED, Estimate

__all__ = ["MIN_MODELS", "rank_spreads", "rank_stability", "ranks", "spearman"]

FloatArray = npt.NDArray[np.float64]

MIN_MODELS = 3
"""Two rankings of two models agree or not, and rho says no more."""


def ranks(scores: FloatArray) -> FloatArray:
    """Ranks (models, axes) from 1, the highest score first, ties on their average; NaN where the score is NaN."""
    ranked: FloatArray = rankdata(-np.asarray(scores, dtype=np.float64), axis=0, nan_policy="omit")
    return ranked


def rank_spreads(scores: FloatArray) -> FloatArray:
    """The best and worst rank of each model (models, 2) over axes (models, axes); axes without its score don't count.

    BrainTRACE prints them as "best-worst". NaN for a model without any score.
    """
    ranked = ranks(scores)
    some = ~np.isnan(ranked).all(axis=1)
    spreads = np.full((len(ranked), 2), np.nan)
    spreads[some] = np.stack([np.nanmin(ranked[some], axis=1), np.nanmax(ranked[some], axis=1)], axis=1)
    return spreads


def spearman(first: FloatArray, second: FloatArray) -> float | None:
    """Rho of two lists of scores (models,), models that lack one left out; None under three, or without spread."""
    one, other = _both(first, second)
    if len(one) < MIN_MODELS or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    from scipy.stats import spearmanr

    return float(spearmanr(one, other).statistic)


def rank_stability(first: FloatArray, second: FloatArray, *, seed: int = SEED) -> Estimate:
    """Rho with its 95 % percentile interval, resampling models; `n` and `units` count the models.

    A draw without spread has no rho and is left out. No interval under `MIN_UNITS` models.
    """
    one, other = _both(first, second)
    rho = spearman(one, other)
    if rho is None or len(one) < MIN_UNITS:
        return Estimate(rho, None, None, len(one), len(one))
    drawn = np.random.default_rng(seed).integers(len(one), size=(DRAWS, len(one)))
    x, y = (rankdata(scores[drawn], axis=1) for scores in (one, other))
    x, y = (side - side.mean(axis=1, keepdims=True) for side in (x, y))
    spread = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    some = spread > 0
    low, high = np.quantile((x * y).sum(axis=1)[some] / spread[some], COVERAGE)
    return Estimate(rho, float(low), float(high), len(one), len(one))


def _both(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != other.shape or one.ndim != 1:
        raise InvalidArgumentError(f"scores of shapes {one.shape} and {other.shape}; each model needs one of each.")
    present = ~(np.isnan(one) | np.isnan(other))
    return one[present], other[present]
