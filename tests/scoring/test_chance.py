"""Exact binomial tests against chance, by sums of binomial terms; accuracy above chance, by hand."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.chance import (
    CHANCE_P,
    chance_adjusted,
    chance_discounted,
    chance_p_value,
    is_at_chance,
    mean_chance,
)


def test_known_values() -> None:
    # Ten of ten coins: both tails, 2 / 1024.
    assert chance_p_value(10, 10, 0.5) == pytest.approx(2 / 1024)
    assert chance_p_value(5, 10, 0.5) == pytest.approx(1)
    # Two of two four-option items: no count on the other side is as unlikely, 1 / 16.
    assert chance_p_value(2, 2, 0.25) == pytest.approx(1 / 16)


@given(
    st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.1, 0.25, 0.5])
)
def test_it_sums_the_counts_that_are_as_unlikely(counts: tuple[int, int], chance: float) -> None:
    right, answers = counts
    terms = [comb(answers, k) * chance**k * (1 - chance) ** (answers - k) for k in range(answers + 1)]
    expected = sum(term for term in terms if term <= terms[right] * (1 + 1e-7))
    assert chance_p_value(right, answers, chance) == pytest.approx(min(1, expected))


def test_certain_and_impossible_chances() -> None:
    assert chance_p_value(7, 7, 1.0) == 1
    assert chance_p_value(1, 7, 0.0) == 0


def test_at_chance_is_strict() -> None:
    assert is_at_chance(250, 1000, 0.25)
    assert not is_at_chance(310, 1000, 0.25)
    assert not is_at_chance(190, 1000, 0.25)
    # The outermost counts of ten coins have p = 2 / 1024 > 0.001, of eleven 2 / 2048 < 0.001.
    assert CHANCE_P == 0.001
    assert is_at_chance(0, 10, 0.5)
    assert not is_at_chance(0, 11, 0.5)


def test_without_answers_it_is_undefined() -> None:
    assert chance_p_value(0, 0, 0.25) is None
    assert is_at_chance(0, 0, 0.25) is None


@pytest.mark.parametrize(("right", "answers", "chance"), [(-1, 3, 0.5), (4, 3, 0.5), (1, 3, 1.5), (1, 3, float("nan"))])
def test_numbers_that_do_not_fit_are_refused(right: int, answers: int, chance: float) -> None:
    with pytest.raises(InvalidArgumentError):
        chance_p_value(right, answers, chance)


def test_chance_adjusted() -> None:
    assert chance_adjusted(1, 0.25) == 1
    assert chance_adjusted(0.25, 0.25) == 0
    assert chance_adjusted(0, 0.25) == pytest.approx(-1 / 3)
    with pytest.raises(InvalidArgumentError, match="one option"):
        chance_adjusted(1, 1)


def test_mean_chance_is_over_items() -> None:
    assert mean_chance([2, 4]) == pytest.approx(3 / 8)
    assert mean_chance([]) is None
    for few in (1, 0, -2):
        with pytest.raises(InvalidArgumentError, match=f"an item has {few} options"):
            mean_chance([4, few])


def test_chance_discounted_by_hand() -> None:
    # Level a: three of four right, chance 1/2, so 1/2; b: none of two, chance 1/4 and 1/2, so -3/8 / (5/8).
    levels, units = ["a", "b", "a", "a", "b", "a"], list("pqrstu")
    right, options = [1, 0, 1, 1, 0, 0], [2, 4, 2, 2, 2, 2]
    estimate = chance_discounted(right, options, levels, units)
    assert estimate.value == pytest.approx((1 / 2 - 3 / 5) / 2)
    assert (estimate.n, estimate.units) == (6, 6)
    assert chance_discounted([], [], [], []).value is None
    with pytest.raises(InvalidArgumentError, match="at least two"):
        chance_discounted([1], [1], ["a"], ["p"])
    with pytest.raises(InvalidArgumentError, match="need equal"):
        chance_discounted([1], [2], ["a", "b"], ["p"])


@settings(max_examples=40)
@given(st.lists(st.tuples(st.booleans(), st.integers(2, 6), st.sampled_from("abc")), min_size=1, max_size=30))
def test_chance_discounted_is_the_mean_of_adjusted_accuracies(items: list[tuple[bool, int, str]]) -> None:
    right, options, levels = zip(*items, strict=True)
    by_level = []
    for level in sorted(set(levels)):
        hits, counts = zip(*[(hit, count) for hit, count, of in items if of == level], strict=True)
        by_level.append(chance_adjusted(sum(hits) / len(hits), mean_chance(counts) or 0))
    estimate = chance_discounted(right, options, levels, ["one"] * len(items))
    assert estimate.value == pytest.approx(sum(by_level) / len(by_level), abs=1e-12)


def test_chance_discounted_resamples_units_and_is_zero_for_a_guesser() -> None:
    rng = np.random.default_rng(0)
    options = np.tile([2, 3, 5, 6], 400)
    right = rng.random(1600) < 1 / options
    levels, units = np.repeat(["L1", "L2"], 800).tolist(), (np.arange(1600) // 4).tolist()
    guesser = chance_discounted(right, options, levels, units)
    assert guesser.units == 400
    assert not guesser.excludes_zero
    assert guesser.value == pytest.approx(0, abs=0.06)
    # The same items again are no more evidence.
    often = chance_discounted(np.tile(right, 3), np.tile(options, 3), levels * 3, units * 3)
    assert (often.low, often.high) == (pytest.approx(guesser.low), pytest.approx(guesser.high))
