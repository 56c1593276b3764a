"""Exact binomial tests against chance, by sums of binomial terms."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.chance import CHANCE_P, chance_adjusted, chance_p_value, is_at_chance


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


@pytest.mark.parametrize(
    ("accuracy", "chance", "published"),
    [(45.6, 36.78, 14.0), (32.85, 23.48, 12.2), (33.0, 36.78, -6.0), (1.68, 33.16, -47.1)],
)
def test_chance_discounted_scores_of_braintrace(accuracy: float, chance: float, published: float) -> None:
    assert 100 * chance_adjusted(accuracy / 100, chance / 100) == pytest.approx(published, abs=0.1)
