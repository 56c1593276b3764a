"""Is a count of right answers what guessing would give? An exact binomial test (Clopper and Pearson 1934)."""

from __future__ import annotations

from wsigym.errors import InvalidArgumentError

__all__ = ["CHANCE_P", "chance_adjusted", "chance_p_value", "is_at_chance"]

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

    BrainTRACE's chance-discounted score is 100 times this, chance being the mean of 1 / options over the items
    answered. Raises `InvalidArgumentError` where chance is 1 or outside 0..1.
    """
    if not 0 <= chance < 1:
        raise InvalidArgumentError(
            f"chance is {chance}; allowed is 0 to below 1, as one option leaves nothing to tell."
        )
    return (accuracy - chance) / (1 - chance)
