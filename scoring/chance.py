"""Is a count of right answers what guessing would give? An exact binomial test (Clopper and Pearson 1934).

And how far above guessing is it? Accuracy on a scale from 0 for a guesser to 1 (BrainTRACE's chance-discounted score).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

from .intervals import Estimate, statistic_estimate

__all__ = [
    "CHANCE_P",
    "chance_adjusted",
    "chance_discounted",
    "chance_p_value",
    "is_at_chance",
    "mean_chance",
]

CHANCE_P = 0.001
"""A count with a p-value above this agrees with chance. Strict, as many task and policy pairs are tested at once."""


def chance_p_value(right: int, answers: int, chance: float) -> float | None:
    """Two-sided exact p-value of `right` of `answers` when each is right with probability `chance`.

    None without answers. The answers must be independent: one rotation an item, one item a set of questions. Raises
    `InvalidArgumentError` where the numbers don't fit together.
    """
    if not 0 <= right <= answers:
        raise InvalidArgumentError(f"{right} right answers of {answers}; allowed is 0 to the number of answers.")
    if not 0 <= chance <= 1:
        raise InvalidArgumentError(f"chance is {chance}; allowed is 0 to 1.")
    if answers == 0:
        return None
    from scipy.stats import binomtest

    return float(binomtest(right, answers, chance).pvalue)


def is_at_chance(right: int, answers: int, chance: float) -> bool | None:
    """Whether the count agrees with guessing (p above 0.001); None without answers."""
    p_value = chance_p_value(right, answers, chance)
    return None if p_value is None else p_value > CHANCE_P


def chance_adjusted(accuracy: float, chance: float) -> float:
    """(accuracy - chance) / (1 - chance), both in 0..1: 1 for a perfect answerer, 0 for a guesser, negative below.

    BrainTRACE's chance-discounted score is 100 times this, chance being `mean_chance`. Raises `InvalidArgumentError`
    where chance is 1 or outside 0..1.
    """
    if not 0 <= chance < 1:
        raise InvalidArgumentError(
            f"chance is {chance}; allowed is 0 to below 1, as one option leaves nothing to tell."
        )
    return (accuracy - chance) / (1 - chance)


def mean_chance(options: Sequence[int] | npt.NDArray[np.integer]) -> float | None:
    """A uniform guesser's accuracy in 0..1: the mean of 1 / options over items, `options` (n,); None without items.

    Give the options of the items that were asked, not of a whole level: a model without images of some kind isn't
    asked all. Free answers have no number of options, and don't belong here. Raises `InvalidArgumentError` for an item
    of fewer than two options, as there is nothing to tell.
    """
    return float(_chances(options).mean()) if len(options) else None


def chance_discounted(
    right: Sequence[float] | npt.NDArray[np.bool_],
    options: Sequence[int] | npt.NDArray[np.integer],
    levels: Sequence[Hashable],
    units: Sequence[Hashable],
) -> Estimate:
    """`chance_adjusted` accuracy within each level, averaged over the levels, with its 95 % percentile interval.

    All are (n,), one an item: whether it was answered rightly (1 or 0), its number of options, its level, the patient
    to resample. Each level weighs the same, however many items it has; give one level's items alone for its own score.
    Two models compare only over the same levels. 0 for a guesser, 1 for all right; BrainTRACE's CDS is 100 times this,
    over its levels L1 to L4. No value without items; a draw that lacks a level is left out. Raises
    `InvalidArgumentError` where lengths differ or an item has fewer than two options.
    """
    if not len(right) == len(options) == len(levels):
        raise InvalidArgumentError(f"{len(right)} answers, {len(options)} options, {len(levels)} levels; need equal.")
    places = {level: place for place, level in enumerate(sorted(set(levels), key=repr))}
    place = np.fromiter((places[level] for level in levels), dtype=np.intp, count=len(levels))
    chances = _chances(options)
    rows = np.zeros((len(right), len(places), 2))
    rows[np.arange(len(right)), place] = np.stack([np.asarray(right, np.float64) - chances, 1 - chances], axis=1)

    def score(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        pairs = sums.reshape(len(sums), len(places), 2)
        mean: npt.NDArray[np.float64] = (pairs[..., 0] / pairs[..., 1]).mean(axis=1)
        return mean

    return statistic_estimate(rows.reshape(len(right), 2 * len(places)), units, score)


def _chances(options: Sequence[int] | npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    numbers = np.asarray(options, dtype=np.float64)
    few = numbers[~(numbers >= 2)]
    if len(few):
        raise InvalidArgumentError(f"an item has {few[0]:g} options; at least two leave something to tell.")
    return 1 / numbers
