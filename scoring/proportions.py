"""A share of right answers with an interval that is exact for independent answers and wider for those of few units.

Clopper and Pearson (1934) on the number of independent answers that the real ones are worth (Korn and Graubard 1998, as
the US National Center for Health Statistics publishes proportions with): answers of one patient are alike, and a
percentile bootstrap over few patients, or of a share near 0 or 1, is too narrow to raise an alarm on.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

from .intervals import MIN_UNITS, Estimate

__all__ = ["effective_number", "proportion_estimate"]


def proportion_estimate(
    shares: Sequence[float] | npt.NDArray[np.floating], units: Sequence[Hashable], confidence: float
) -> Estimate:
    """The mean of `shares` (n,) in 0..1 with its exact interval of the given confidence, such as 0.999.

    `units` (n,) says which answers belong together. Two-sided, each tail half of what is left. Without an interval
    under 5 units, without a value for no answer. Draws nothing. Raises `InvalidArgumentError` where lengths differ, a
    share is outside 0..1 or the confidence is not between 0 and 1.
    """
    values = np.asarray(shares, dtype=np.float64)
    if values.ndim != 1 or len(values) != len(units):
        raise InvalidArgumentError(f"{values.shape} shares and {len(units)} units; each share needs its unit.")
    if not np.all((values >= 0) & (values <= 1)):
        raise InvalidArgumentError("a share is outside 0 to 1.")
    if not 0 < confidence < 1:
        raise InvalidArgumentError(f"confidence is {confidence}; allowed is between 0 and 1, such as 0.999.")
    if not len(values):
        return Estimate(None, None, None, 0, 0)
    count, value = len(set(units)), float(values.mean())
    if count < MIN_UNITS:
        return Estimate(value, None, None, len(values), count)
    from scipy.stats import beta, t

    tail = (1 - confidence) / 2
    # The variance between units is itself estimated, on one degree of freedom less than there are units.
    worth = effective_number(values, units) * float(t.ppf(1 - tail, len(values) - 1) / t.ppf(1 - tail, count - 1)) ** 2
    right = value * worth
    low = float(beta.ppf(tail, right, worth - right + 1)) if right > 0 else 0.0
    high = float(beta.ppf(1 - tail, right + 1, worth - right)) if right < worth else 1.0
    return Estimate(value, low, high, len(values), count)


def effective_number(shares: npt.NDArray[np.floating], units: Sequence[Hashable]) -> float:
    """How many independent answers have a mean as uncertain as that of these: n over the design effect (Kish 1965).

    At most n. The number of units where every share is 0 or every share is 1, as there is no variance to go by, and
    the answers of one unit may be all the same.
    """
    value, number = float(shares.mean()), len(shares)
    places = {unit: place for place, unit in enumerate(dict.fromkeys(units))}
    place = np.fromiter((places[unit] for unit in units), dtype=np.intp, count=number)
    if value in (0.0, 1.0):
        return float(len(places))
    totals = np.bincount(place, weights=np.asarray(shares, np.float64) - value)
    between = len(places) / max(1, len(places) - 1) * float(totals @ totals) / number**2
    if between <= 0:
        return float(number)
    return min(float(number), number * value * (1 - value) / ((number - 1) * between))
