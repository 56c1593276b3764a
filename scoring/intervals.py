"""Means with their uncertainty: a percentile bootstrap over units.

A unit is what was sampled independently: a patient, or a slide where the patient is unknown. Episodes of one unit
(several queries, several seeds) are drawn together, so that many queries on few patients don't look like many
observations. A mean stays a mean over episodes: a draw's mean is the sum over the drawn units' episodes divided by
their number, not a mean of unit means.

Efron and Tibshirani, An Introduction to the Bootstrap (1993), sections 13.3 (percentile interval) and 8.6 (units).
2,000 draws as CaseScope reports; the thresholds on the number of units are this project's.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

__all__ = ["DRAWS", "FEW_UNITS", "MIN_UNITS", "SEED", "Estimate", "mean_estimate", "paired_difference", "unit_weights"]

DRAWS = 2000
"""Bootstrap draws of every interval."""

SEED = 0
"""Seed of every interval's own generator, so that a table printed twice is the same."""

MIN_UNITS = 5
"""Under this many units there is no interval: resampling four patients says nothing about the fifth."""

FEW_UNITS = 20
"""Under this many units an interval is rough, and tables say so."""

COVERAGE = (0.025, 0.975)
_WEIGHTS_A_CHUNK = 4_000_000
"""Weights held at once (32 MB), so that memory does not grow with the number of draws times units."""


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95 % interval.

    `value` is None where there was nothing to average, `low` and `high` where `units` is under 5. `n` counts the
    values averaged (episodes, or pairs), `units` the patients or slides that they come from.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    units: int

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval and 0 lies outside it."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def mean_estimate(
    values: Sequence[float] | npt.NDArray[np.floating], units: Sequence[Hashable], *, seed: int = SEED
) -> Estimate:
    """The mean of `values` (n,) with its 95 % percentile interval, resampling `units` (n,), the unit of each value.

    Does not depend on the order of the values. Draws from a generator of its own, seeded with `seed`. Raises
    `InvalidArgumentError` where the lengths differ or a value is not finite: what is missing must be left out by
    the caller, who knows whether it counts.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or len(numbers) != len(units):
        raise InvalidArgumentError(f"{numbers.shape} values and {len(units)} units; each value needs its unit.")
    if not np.isfinite(numbers).all():
        raise InvalidArgumentError("a value is not finite; leave missing values out before averaging.")
    if not len(numbers):
        return Estimate(None, None, None, 0, 0)
    places = {unit: place for place, unit in enumerate(sorted(set(units), key=repr))}
    place = np.fromiter((places[unit] for unit in units), dtype=np.intp, count=len(units))
    # Sorted within each unit, so that the sums' last bits don't depend on the order of the values either.
    order = np.lexsort((numbers, place))
    sums = np.bincount(place[order], weights=numbers[order])
    counts = np.bincount(place).astype(np.float64)
    value = float(sums.sum() / counts.sum())
    if len(places) < MIN_UNITS:
        return Estimate(value, None, None, len(numbers), len(places))
    totals = np.concatenate([weights @ np.stack([sums, counts], axis=1) for weights in _weights(len(places), seed)])
    low, high = np.quantile(totals[:, 0] / totals[:, 1], COVERAGE)
    return Estimate(value, float(low), float(high), len(numbers), len(places))


def paired_difference(
    first: Sequence[float] | npt.NDArray[np.floating],
    second: Sequence[float] | npt.NDArray[np.floating],
    units: Sequence[Hashable],
    *,
    seed: int = SEED,
) -> Estimate:
    """The mean of `first - second` (both (n,), item by item) with its 95 % interval; it differs if 0 is excluded.

    Both arms see the same resampled units. As they hold the same items, a draw's difference of means is the mean of
    its differences, so that this is `mean_estimate` of the differences.
    """
    if len(first) != len(second):
        raise InvalidArgumentError(f"{len(first)} and {len(second)} values; a pair needs one of each.")
    return mean_estimate(np.asarray(first, np.float64) - np.asarray(second, np.float64), units, seed=seed)


def _weights(units: int, seed: int) -> Iterable[npt.NDArray[np.float64]]:
    """As `unit_weights`; those that fit into one chunk are kept, as a table's cells rest on the same few numbers."""
    return _kept_weights(units, seed) if DRAWS * units <= _WEIGHTS_A_CHUNK else unit_weights(units, seed)


@lru_cache(maxsize=4)
def _kept_weights(units: int, seed: int) -> tuple[npt.NDArray[np.float64], ...]:
    return tuple(unit_weights(units, seed))


def unit_weights(units: int, seed: int = SEED, draws: int = DRAWS) -> Iterator[npt.NDArray[np.float64]]:
    """How often each unit is drawn: chunks of float64 (some draws, units), `draws` rows in all.

    Each row sums to `units`. For a statistic that is no mean: weight the units' sufficient statistics with each row.
    """
    rng = np.random.default_rng(seed)
    rows = max(1, _WEIGHTS_A_CHUNK // units)
    for start in range(0, draws, rows):
        count = min(rows, draws - start)
        drawn = rng.integers(units, size=(count, units)) + units * np.arange(count)[:, None]
        yield np.bincount(drawn.ravel(), minlength=count * units).reshape(count, units).astype(np.float64)
