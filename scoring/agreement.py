"""How far two gradings of the same cases agree: of a model with the truth, of a judge with a reader.

Quadratic-weighted kappa (Cohen 1968; CaseScope task C): with O the counts of pairs of levels (i, j), E the counts
that independent gradings with the same margins would give, and w_ij = (i - j)^2,

    kappa = 1 - sum w_ij O_ij / sum w_ij E_ij

Chance: 0 for independent gradings; exactly 0 for who gives everything one level.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

from .intervals import Estimate, statistic_estimate

__all__ = ["Agreement", "agreement", "kappa_estimate", "quadratic_weighted_kappa"]


@dataclass(frozen=True)
class Agreement:
    """`exact` is the share of equal levels in 0..1, `kappa` the quadratic-weighted kappa, both over `n` pairs.

    `coverage` is n / all pairs: pairs with a missing level (below 0) are left out, as in the paper, so that kappa says
    nothing about replies without an answer. `exact` is None without pairs, `kappa` also where all levels are equal.
    """

    exact: float | None
    kappa: float | None
    n: int
    coverage: float | None
    mean_first: float | None
    mean_second: float | None


def agreement(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> Agreement:
    """Agreement of two gradings (n,) in whole levels from 0; a negative level is missing.

    Levels of different scales may be pooled, each counted from its scale's lowest (CaseScope pools its groups).
    """
    one, other = _both(first, second)
    n = len(one)
    return Agreement(
        exact=float((one == other).mean()) if n else None,
        kappa=quadratic_weighted_kappa(first, second),
        n=n,
        coverage=n / len(first) if len(first) else None,
        mean_first=float(one.mean()) if n else None,
        mean_second=float(other.mean()) if n else None,
    )


def quadratic_weighted_kappa(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> float | None:
    """Kappa in -1..1 of two gradings (n,), pairs with a negative level left out; None where it is undefined."""
    one, other = _both(first, second)
    if not len(one) or ((one == one[0]).all() and (other == one[0]).all()):
        return None
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score(one, other, labels=np.arange(max(one.max(), other.max()) + 1), weights="quadratic"))


def kappa_estimate(
    first: npt.NDArray[np.integer], second: npt.NDArray[np.integer], units: Sequence[Hashable]
) -> Estimate:
    """`quadratic_weighted_kappa` with its 95 % interval, resampling `units` (cases)."""
    present = (first >= 0) & (second >= 0)
    one, other = _both(first, second)
    # sum w O = sum (a - b)^2; n sum w E = sum over all pairs of (a - b)^2, which the sums of a, b and squares give.
    rows = np.stack([np.ones(len(one)), one, other, one.astype(np.float64) ** 2 + other**2, (one - other) ** 2], axis=1)
    return statistic_estimate(rows, [unit for unit, here in zip(units, present, strict=True) if here], _kappa)


def _kappa(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    n, first, second, squares, apart = sums.T
    kappa: npt.NDArray[np.float64] = 1 - apart / (squares - 2 * first * second / n)
    return kappa


def _both(
    first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]:
    if len(first) != len(second):
        raise InvalidArgumentError(f"{len(first)} and {len(second)} levels; a pair needs one of each.")
    present = (first >= 0) & (second >= 0)
    return first[present], second[present]
