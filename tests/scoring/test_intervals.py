"""Bootstrap intervals over units, against a plain bootstrap written as a loop, and against theory."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.intervals import (
    DRAWS,
    MIN_UNITS,
    SEED,
    Estimate,
    group_estimates,
    mean_estimate,
    paired_difference,
    statistic_estimate,
    unit_weights,
)


def uneven_episodes(seed: int = 0, units: int = 12) -> tuple[list[float], list[str]]:
    """Units with one to four episodes each, whose means differ."""
    rng = np.random.default_rng(seed)
    names = [f"p{unit}" for unit in range(units) for _ in range(rng.integers(1, 5))]
    level = {name: rng.random() for name in names}
    return [level[name] + 0.1 * rng.standard_normal() for name in names], names


def looped_draws(columns: list[list[float]], names: list[str]) -> np.ndarray:
    """(draws, arms): each draw's mean over episodes of every arm, the same drawn units in all arms. Slow and plain."""
    units = sorted(set(names))
    rng = np.random.default_rng(SEED)
    means = []
    for drawn in rng.integers(len(units), size=(DRAWS, len(units))):
        picked = [i for unit in drawn for i, name in enumerate(names) if name == units[unit]]
        means.append([np.mean([column[i] for i in picked]) for column in columns])
    return np.array(means)


def test_it_is_the_mean_over_episodes_and_the_plain_bootstrap_over_units() -> None:
    values, names = uneven_episodes()
    estimate = mean_estimate(values, names)
    assert estimate.value == pytest.approx(np.mean(values))
    assert (estimate.n, estimate.units) == (len(values), 12)
    low, high = np.quantile(looped_draws([values], names)[:, 0], [0.025, 0.975])
    assert (estimate.low, estimate.high) == (pytest.approx(low), pytest.approx(high))


def test_a_unit_with_many_episodes_weighs_by_its_episodes() -> None:
    # The mean over episodes is 0.2, the mean of the units' means would be 0.5.
    assert mean_estimate([1, 0, 0, 0, 0], ["a", "b", "b", "b", "b"]).value == pytest.approx(0.2)


def test_episodes_of_one_unit_are_no_more_evidence_than_one() -> None:
    values, names = uneven_episodes()
    once, often = mean_estimate(values, names), mean_estimate(values * 10, names * 10)
    assert (often.low, often.high) == (pytest.approx(once.low), pytest.approx(once.high))


def test_paired_differences_are_the_two_armed_bootstrap_on_the_same_units() -> None:
    first, names = uneven_episodes(1)
    second = [value + 0.05 * i for i, value in enumerate(uneven_episodes(1)[0])]
    estimate = paired_difference(first, second, names)
    draws = looped_draws([first, second], names)
    low, high = np.quantile(draws[:, 0] - draws[:, 1], [0.025, 0.975])
    assert estimate.value == pytest.approx(np.mean(first) - np.mean(second))
    assert (estimate.low, estimate.high) == (pytest.approx(low), pytest.approx(high))


def test_a_constant_gain_excludes_zero_however_much_the_units_differ() -> None:
    values, names = uneven_episodes()
    gain = paired_difference([value + 0.01 for value in values], values, names)
    assert gain.excludes_zero
    assert (gain.low, gain.high) == (pytest.approx(0.01), pytest.approx(0.01))
    assert not paired_difference(values, values, names).excludes_zero


def test_under_five_units_there_is_a_mean_and_no_interval() -> None:
    for units in range(1, 7):
        estimate = mean_estimate([float(unit) for unit in range(units)], list(range(units)))
        assert estimate.value == pytest.approx((units - 1) / 2)
        assert (estimate.low is None) == (estimate.high is None) == (units < MIN_UNITS)
    assert not mean_estimate([1.0] * 4, list("abcd")).excludes_zero


def test_nothing_to_average() -> None:
    assert mean_estimate([], []) == Estimate(None, None, None, 0, 0)


def test_the_interval_covers_the_truth_about_95_times_in_100() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(200):
        estimate = mean_estimate(rng.normal(0.4, 0.2, size=40), list(range(40)))
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= 0.4 <= estimate.high
    # Binomial(200, 0.93) lies in 172..197 with probability above 0.999; percentile intervals are a little narrow.
    assert 172 <= covered <= 197


def test_the_same_seed_gives_the_same_interval_and_another_does_not() -> None:
    values, names = uneven_episodes()
    assert mean_estimate(values, names) == mean_estimate(values, names)
    assert mean_estimate(values, names, seed=1) != mean_estimate(values, names)


@given(st.permutations(range(30)))
@settings(max_examples=20)
def test_the_order_of_the_values_does_not_matter(order: list[int]) -> None:
    rng = np.random.default_rng(5)
    values, names = rng.random(30), [f"p{i // 3}" for i in range(30)]
    shuffled = mean_estimate(values[order], [names[i] for i in order])
    assert shuffled == mean_estimate(values, names)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9)), min_size=1, max_size=40))
@settings(max_examples=50)
def test_bounds_enclose_what_the_units_can_give(pairs: list[tuple[float, int]]) -> None:
    values, units = [value for value, _ in pairs], [unit for _, unit in pairs]
    estimate = mean_estimate(values, units)
    assert estimate.value is not None
    if estimate.low is not None and estimate.high is not None:
        tiny = 1e-12
        assert min(values) - tiny <= estimate.low <= estimate.high <= max(values) + tiny


@pytest.mark.parametrize(("units", "draws"), [(1, 3), (7, DRAWS), (5000, 1700)])
def test_weights_count_draws_with_replacement(units: int, draws: int) -> None:
    weights = np.concatenate(list(unit_weights(units, draws=draws)))
    assert weights.shape == (draws, units)
    assert (weights.sum(axis=1) == units).all()
    assert weights.mean() == 1


@pytest.mark.parametrize(
    ("values", "units"), [([0.5], ["a", "b"]), ([float("nan")], ["a"]), ([float("inf")], ["a"]), ([[0.5]], ["a"])]
)
def test_bad_values_are_refused(values: list[float], units: list[str]) -> None:
    with pytest.raises(InvalidArgumentError):
        mean_estimate(values, units)


def test_pairs_need_two() -> None:
    with pytest.raises(InvalidArgumentError, match="a pair needs one of each"):
        paired_difference([0.1, 0.2], [0.1], ["a", "b"])


def test_twenty_thousand_units_take_under_five_seconds() -> None:
    values = np.random.default_rng(0).random(20_000)
    start = time.perf_counter()
    mean_estimate(values, list(range(20_000)))
    assert time.perf_counter() - start < 5


def test_a_statistic_of_sums_is_bootstrapped_as_its_loop() -> None:
    rng = np.random.default_rng(2)
    rows, names = rng.random((30, 3)), [f"p{i // 3}" for i in range(30)]

    def statistic(sums: np.ndarray) -> np.ndarray:
        return sums[:, 0] * sums[:, 1] / sums[:, 2]

    estimate = statistic_estimate(rows, names, statistic)
    units = sorted(set(names))
    sums = np.array([rows[[name == unit for name in names]].sum(axis=0) for unit in units])
    drawn = np.random.default_rng(SEED).integers(len(units), size=(DRAWS, len(units)))
    looped = statistic(np.array([sums[row].sum(axis=0) for row in drawn]))
    assert estimate.value == pytest.approx(statistic(rows.sum(axis=0, keepdims=True))[0])
    assert (estimate.low, estimate.high) == (
        pytest.approx(np.quantile(looped, 0.025)),
        pytest.approx(np.quantile(looped, 0.975)),
    )


def test_draws_where_a_statistic_is_undefined_are_left_out() -> None:
    rows = np.array([[1.0, 1.0], *[[0.0, 0.0]] * 5])
    estimate = statistic_estimate(rows, list(range(6)), lambda sums: sums[:, 0] / sums[:, 1])
    assert (estimate.value, estimate.low, estimate.high) == (1, 1, 1)
    assert statistic_estimate(rows[1:], list(range(5)), lambda sums: sums[:, 0] / sums[:, 1]).value is None


def test_groups_are_means_of_their_own_in_sorted_order() -> None:
    values, groups, units = [1, 0, 1, 1, 0], ["lung", 40, 2.5, "lung", None], list("abcde")
    result = group_estimates(values, groups, units)
    assert list(result) == [2.5, 40, "lung"]
    assert result["lung"] == mean_estimate([1, 1], ["a", "d"])
    with pytest.raises(InvalidArgumentError, match="3 units"):
        group_estimates([1, 2], ["a", "b"], ["c", "d", "e"])


def test_twenty_thousand_items_take_seconds() -> None:
    rng = np.random.default_rng(0)
    values = (rng.random(20_000) < 0.4).astype(float)
    began = time.process_time()
    estimate = mean_estimate(values, [f"case {place}" for place in range(20_000)])
    # About 1 s.
    assert time.process_time() - began < 5
    assert estimate.high is not None
    assert estimate.low is not None
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * (0.24 / 20_000) ** 0.5, rel=0.06)
