"""Rank stability: known values, the lattice of untied rankings, a looped bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.intervals import DRAWS, SEED
from wsigym.scoring.ranks import rank_spreads, rank_stability, ranks, spearman


def test_known_values() -> None:
    scores = np.arange(5.0)
    assert spearman(scores, scores**3) == pytest.approx(1)
    assert spearman(scores, -scores) == pytest.approx(-1)
    assert spearman(scores, np.array([0.0, 2, 1, 3, 4])) == pytest.approx(1 - 6 * 2 / 120)


@given(st.permutations(range(9)))
def test_untied_rankings_of_nine_lie_on_the_lattice(order: list[int]) -> None:
    rho = spearman(np.arange(9.0), np.array(order, float))
    assert rho is not None
    d = (1 - rho) * 120
    assert d == pytest.approx(2 * round(d / 2), abs=1e-6)


def test_ties_and_missing_scores() -> None:
    first, second = np.array([3.0, 1, 1, np.nan, 0]), np.array([2.0, 1, 0, 9, 0])
    assert spearman(first, second) == pytest.approx(spearmanr([3, 1, 1, 0], [2, 1, 0, 0]).statistic)
    assert spearman(np.array([1.0, 2]), np.array([1.0, 2])) is None
    assert spearman(np.ones(4), np.arange(4.0)) is None
    with pytest.raises(InvalidArgumentError, match="shapes"):
        spearman(np.ones(4), np.ones(3))


def test_ranks_from_the_highest_with_average_ties() -> None:
    scores = np.array([[9.0, 1], [5, np.nan], [5, 2], [1, 3]])
    assert ranks(scores)[:, 0].tolist() == [1, 2.5, 2.5, 4]
    spreads = rank_spreads(np.column_stack([scores, np.full(4, np.nan)]))
    assert spreads.tolist() == [[1, 3], [2.5, 2.5], [2, 2.5], [1, 4]]
    assert np.isnan(rank_spreads(np.array([[np.nan], [1.0]]))[0]).all()


def test_the_interval_is_the_looped_bootstrap_over_models() -> None:
    rng = np.random.default_rng(1)
    first = rng.random(12)
    second = first + 0.3 * rng.random(12)
    estimate = rank_stability(first, second)
    drawn = np.random.default_rng(SEED).integers(12, size=(DRAWS, 12))
    looped = [spearmanr(first[row], second[row]).statistic for row in drawn]
    low, high = np.quantile(looped, [0.025, 0.975])
    assert (estimate.low, estimate.high) == (pytest.approx(low), pytest.approx(high))
    assert estimate.value == pytest.approx(spearmanr(first, second).statistic)
    assert (estimate.n, estimate.units) == (12, 12)


def test_few_models_and_draws_without_spread() -> None:
    assert rank_stability(np.arange(4.0), np.arange(4.0)).low is None
    # Five models of which four tie: many draws hold one score only.
    estimate = rank_stability(np.array([1.0, 1, 1, 1, 2]), np.array([1.0, 1, 1, 1, 2]))
    assert (estimate.low, estimate.high) == (pytest.approx(1), pytest.approx(1))
