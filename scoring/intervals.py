"""Means with their uncertainty: a percentile bootstrap over units.

A unit is what was sampled independently: a patient, or a slide where the patient is unknown. Episodes of one unit
(several queries, several seeds) are drawn together, so that many queries on few patients don't look like many
observations. A mean stays a mean over episodes: a draw's mean is the sum over the drawn units' episodes divided by
their number, not a mean of unit means.

Efron and Tibshirani, An Introduction to the Bootstrap (1993), sections 13.3 (percentile interval) and 8.6 (units).
2,000 draws as CaseScope reports; the thresholds on the number of units are this project's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

__all__ = [
    "DRAWS",
    "FEW_UNITS",
    "MIN_UNITS",
    "SEED",
    "Estimate",
    "group_estimates",
    "mean_estimate",
    "paired_difference",
    "statistic_estimate",
    "unit_weights",
]

DRAWS = 2000
"""Bootstrap draws of every interval."""

SEED = 0
"""Seed of every interval's own generator, so that a table printed twice is the same."""

MIN_UNITS = 5
"""Under this many units there is no interval: resampling four patients says nothing about the fifth."""

FEW_UNITS = 20
"""Under this many units an interval is rough, and tables say so."""

COVERAGE = (0.025, 0.975)
_WEIGHTS_A_CHUNK = 200_000
"""Weights made at once (1.6 MB): they stay in the processor's cache, which is three times as fast as 32 MB."""
_WEIGHTS_KEPT = 4_000_000
"""The most weights kept (32 MB), so that memory does not grow with the number of draws times units."""


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
    return statistic_estimate(np.stack([numbers, np.ones_like(numbers)], axis=1), units, _ratio, seed=seed)


def _ratio(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    ratios: npt.NDArray[np.float64] = sums[:, 0] / sums[:, 1]
    return ratios


def statistic_estimate(
    rows: npt.NDArray[np.floating] | npt.NDArray[np.bool_],
    units: Sequence[Hashable],
    statistic: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]],
    *,
    seed: int = SEED,
) -> Estimate:
    """A statistic of sums, such as a ratio or the F1 of counts, with its 95 % percentile interval.

    `rows` (n, k) are summed over the rows of the drawn units; `statistic` turns sums (draws, k) into values (draws,),
    NaN where undefined, and is called once for all draws. Undefined draws are left out; an undefined statistic has no
    value. Units, draws, order, errors as in `mean_estimate`.
    """
    if rows.ndim != 2 or len(rows) != len(units):
        raise InvalidArgumentError(f"{rows.shape} rows and {len(units)} units; each row needs its unit.")
    if not np.isfinite(rows).all():
        raise InvalidArgumentError("a value is not finite; leave missing values out before averaging.")
    if not len(rows):
        return Estimate(None, None, None, 0, 0)
    places = {unit: place for place, unit in enumerate(sorted(set(units), key=repr))}
    place = np.fromiter((places[unit] for unit in units), dtype=np.intp, count=len(units))
    # Sorted within each unit, so that the sums' last bits don't depend on the order of the rows either.
    columns = np.asarray(rows, dtype=np.float64).T
    order = np.lexsort((*columns[::-1], place))
    sums = np.stack([np.bincount(place[order], weights=column[order]) for column in columns], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = float(statistic(sums.sum(axis=0, keepdims=True))[0])
        if not np.isfinite(value):
            return Estimate(None, None, None, len(rows), len(places))
        if len(places) < MIN_UNITS:
            return Estimate(value, None, None, len(rows), len(places))
        drawn = statistic(np.concatenate([weights @ sums for weights in _weights(len(places), seed)]))
    low, high = np.quantile(drawn[np.isfinite(drawn)], COVERAGE)
    return Estimate(value, float(low), float(high), len(rows), len(places))


def group_estimates(
    values: Sequence[float] | npt.NDArray[np.floating],
    groups: Sequence[Hashable],
    units: Sequence[Hashable],
    *,
    seed: int = SEED,
) -> dict[Hashable, Estimate]:
    """`mean_estimate` within each of the `groups` (n,), such as organs or magnifications, in sorted order.

    A value whose group is None belongs to none, and is left out. A unit may have values in several groups.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if not len(numbers) == len(groups) == len(units):
        raise InvalidArgumentError(
            f"{len(numbers)} values, {len(groups)} groups, {len(units)} units; each needs all three."
        )
    members: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        if group is not None:
            members.setdefault(group, []).append(place)
    return {
        group: mean_estimate(numbers[places], [units[place] for place in places], seed=seed)
        for group, places in sorted(members.items(), key=lambda entry: _sortable(entry[0]))
    }


def _sortable(group: Hashable) -> tuple[bool, float, str]:
    return (False, float(group), "") if isinstance(group, int | float) else (True, 0.0, str(group))


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
    """As `unit_weights`; a few million are kept, as a table's cells rest on the same few numbers."""
    return _kept_weights(units, seed) if DRAWS * units <= _WEIGHTS_KEPT else unit_weights(units, seed)


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
