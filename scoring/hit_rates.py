"""How much of a tumour a search of the tile tree kept, and where it lost the rest (EviPathBench task 3, mode B).

With P the positive tiles of a magnification, R those of its tiles that were kept, and Q the positives whose parent
was kept at the magnification before (Q = P at the first), over all slides:

    conditional rate    sum |P and R| / sum |Q|
    unconditional rate  sum |P and R| / sum |P|

Both are micro averages: counts are added over slides first. A rate without a denominator is undefined (None), never
0. Arrays are bool (rows, columns), one for each magnification; a tile's parent stands at its row and column divided by
the ratio of the two magnifications.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from .intervals import Estimate, statistic_estimate

__all__ = [
    "LevelCounts",
    "Losses",
    "carried_over",
    "conditional_rate",
    "level_counts",
    "losses",
    "micro_difference",
    "micro_rate",
    "recall_at_k",
    "slide_rate",
    "tile_auroc",
    "unconditional_rate",
]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LevelCounts:
    """One slide at one magnification: |P|, |Q| and |P and R| of the module's docstring."""

    positives: int
    reached: int
    retained: int


def level_counts(
    positives: Sequence[BoolArray], retained: Sequence[BoolArray], ratios: Sequence[int]
) -> tuple[LevelCounts, ...]:
    """The counts of one slide, for each magnification. `ratios` has one number fewer than there are of them."""
    return tuple(
        LevelCounts(int(positive.sum()), int((positive & reached).sum()), int((positive & kept).sum()))
        for positive, kept, reached in zip(positives, retained, _reached(retained, ratios), strict=True)
    )


def conditional_rate(slides: Iterable[LevelCounts]) -> float | None:
    """Share of the positives under kept parents that were kept themselves, over the slides of one magnification."""
    counts = list(slides)
    return _share(sum(count.retained for count in counts), sum(count.reached for count in counts))


def unconditional_rate(slides: Iterable[LevelCounts]) -> float | None:
    """Share of all positives that were kept, over the slides of one magnification."""
    counts = list(slides)
    return _share(sum(count.retained for count in counts), sum(count.positives for count in counts))


def slide_rate(levels: Iterable[LevelCounts]) -> float | None:
    """One slide's unconditional rate, averaged over the magnifications that have positives; None without any."""
    rates = [count.retained / count.positives for count in levels if count.positives]
    return sum(rates) / len(rates) if rates else None


def carried_over(rates: Sequence[float | None]) -> tuple[float | None, ...]:
    """(n - 1,): how much of each magnification's rate is left at the next; None where there is nothing to divide."""
    return tuple(None if not low or high is None else high / low for low, high in pairwise(rates))


@dataclass(frozen=True, slots=True)
class Losses:
    """Why the positives of one magnification that were not kept were not.

    `pruned` has one number for each earlier magnification: positives whose ancestor there was not kept although
    that ancestor's own parent was. `not_shown`: the parent was kept, but the tile never came to a score (no tissue,
    or the search stopped before it). `said_no`: scored below Yes. `outranked`: a Yes beyond the best K.
    """

    pruned: tuple[int, ...]
    not_shown: int
    said_no: int
    outranked: int


def losses(
    positives: Sequence[BoolArray],
    retained: Sequence[BoolArray],
    scored: Sequence[BoolArray],
    said_yes: Sequence[BoolArray],
    ratios: Sequence[int],
) -> tuple[Losses, ...]:
    """The losses of one slide, for each magnification. They and the retained add up to the positives."""
    reached = _reached(retained, ratios)
    pruned_at = [under & ~kept for under, kept in zip(reached, retained, strict=True)]
    found = []
    for level, positive in enumerate(positives):
        lost = positive & ~retained[level]
        here = lost & reached[level]
        found.append(
            Losses(
                pruned=tuple(
                    int((lost & _spread(pruned_at[above], level, above, ratios, lost.shape)).sum())
                    for above in range(level)
                ),
                not_shown=int((here & ~scored[level]).sum()),
                said_no=int((here & scored[level] & ~said_yes[level]).sum()),
                outranked=int((here & scored[level] & said_yes[level]).sum()),
            )
        )
    return tuple(found)


def tile_auroc(scores: npt.NDArray[np.floating], positive: BoolArray) -> float | None:
    """Area under the ROC curve of tile scores (n,) against their labels (n,): ties count half.

    The chance that a positive tile outscores a negative one (Mann-Whitney). None where one kind is missing.
    """
    n_positive = int(positive.sum())
    n_negative = positive.size - n_positive
    if not n_positive or not n_negative:
        return None
    ranks = rankdata(scores)
    return float((ranks[positive].sum() - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))


def recall_at_k(groups: Iterable[tuple[npt.NDArray[np.floating], BoolArray]], k: int) -> tuple[int, int]:
    """(positives among the k best-scored of each group, positives in all groups), whatever was said Yes to.

    A group is the scores (n,) and labels (n,) of one parent's tiles, in raster order: of equal scores the first counts.
    """
    found = total = 0
    for scores, positive in groups:
        best = np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")[:k]
        found += int(positive[best].sum())
        total += int(positive.sum())
    return found, total


def micro_rate(parts: Sequence[float], wholes: Sequence[float], units: Sequence[Hashable]) -> Estimate:
    """sum(parts) / sum(wholes) over slides with its 95 % percentile interval, resampling `units` (patients).

    `parts`, `wholes` and `units` are (n,), one of each for a slide. Undefined where the wholes add up to 0. `n` and
    `units` of the estimate count the slides with a whole, and their patients.
    """
    rows = [(unit, part, whole) for unit, part, whole in zip(units, parts, wholes, strict=True) if whole]
    sums = np.array([(part, whole) for _, part, whole in rows], dtype=np.float64).reshape(-1, 2)
    return statistic_estimate(sums, [unit for unit, _, _ in rows], lambda totals: totals[:, 0] / totals[:, 1])


def micro_difference(
    first: tuple[Sequence[float], Sequence[float]],
    second: tuple[Sequence[float], Sequence[float]],
    units: Sequence[Hashable],
) -> Estimate:
    """The `micro_rate` of `first` minus that of `second` with its 95 % interval; they differ if 0 is excluded.

    Each is (parts, wholes), both (n,), of the same n slides in the same order; the wholes may differ, as those under a
    kept parent do. Both see the same resampled units. Undefined where the wholes of either add up to 0. `n` and `units`
    of the estimate count the slides where either has a whole, and their patients.
    """
    sums = np.array([*first, *second], dtype=np.float64).T.reshape(-1, 4)
    held = (sums[:, 1] > 0) | (sums[:, 3] > 0)
    return statistic_estimate(
        sums[held],
        [unit for unit, has in zip(units, held, strict=True) if has],
        lambda totals: totals[:, 0] / totals[:, 1] - totals[:, 2] / totals[:, 3],
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _reached(retained: Sequence[BoolArray], ratios: Sequence[int]) -> list[BoolArray]:
    """Whether the parent was kept, for every tile; at the first magnification all are reached."""
    reached = [np.ones(retained[0].shape, dtype=np.bool_)]
    for level in range(1, len(retained)):
        reached.append(_spread(retained[level - 1], level, level - 1, ratios, retained[level].shape))
    return reached


def _spread(values: BoolArray, level: int, above: int, ratios: Sequence[int], shape: tuple[int, ...]) -> BoolArray:
    """The value of its ancestor at level `above`, for every tile of a level."""
    scale = int(np.prod(ratios[above:level]))
    rows, columns = shape
    return values[np.ix_(np.arange(rows) // scale, np.arange(columns) // scale)]
