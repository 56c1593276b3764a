"""Hit rates by hand: the toy cases of the protocol, undefined rates, and where positives were lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from wsigym.scoring.hit_rates import (
    LevelCounts,
    Losses,
    carried_over,
    conditional_rate,
    level_counts,
    losses,
    micro_difference,
    micro_rate,
    recall_at_k,
    slide_rate,
    tile_auroc,
    unconditional_rate,
)


def tiles(*rows: str) -> np.ndarray:
    """Rows of "x" and "." as bool."""
    return np.array([[cell == "x" for cell in row] for row in rows])


def test_two_slides_four_positives_two_reached_one_kept() -> None:
    counts = [LevelCounts(4, 2, 1), LevelCounts(0, 0, 0)]
    assert conditional_rate(counts) == 0.5
    assert unconditional_rate(counts) == 0.25


def test_rates_are_micro_over_slides() -> None:
    counts = [LevelCounts(9, 9, 9), LevelCounts(1, 1, 0)]
    assert conditional_rate(counts) == unconditional_rate(counts) == 0.9


def test_an_empty_denominator_is_undefined_and_such_a_slide_still_counts_elsewhere() -> None:
    unreached = LevelCounts(3, 0, 0)
    assert conditional_rate([unreached]) is None
    assert unconditional_rate([unreached]) == 0
    assert conditional_rate([]) is unconditional_rate([LevelCounts(0, 0, 0)]) is None
    assert unconditional_rate([unreached, LevelCounts(1, 1, 1)]) == 0.25


# A slide of 2 x 2 tiles, each of 2 x 2 children.
POSITIVES = (tiles("xx", ".."), tiles("xx.x", ".x..", "....", "x..."))
RETAINED = (tiles("x.", "x."), tiles("x...", ".x..", "....", "...."))
RATIOS = (2,)


def test_counts_of_a_slide_by_hand() -> None:
    # At the second level five are positive; under kept parents lie (0, 0), (0, 1), (1, 1) and (3, 0); two are kept.
    assert level_counts(POSITIVES, RETAINED, RATIOS) == (LevelCounts(2, 2, 1), LevelCounts(5, 4, 2))


def test_the_rate_of_a_slide_is_the_mean_over_levels_that_have_positives() -> None:
    assert slide_rate(level_counts(POSITIVES, RETAINED, RATIOS)) == pytest.approx((1 / 2 + 2 / 5) / 2)
    assert slide_rate([LevelCounts(0, 0, 0), LevelCounts(4, 2, 1)]) == 0.25
    assert slide_rate([LevelCounts(0, 0, 0)]) is None


def test_what_is_left_of_a_rate_at_the_next_magnification() -> None:
    assert carried_over([0.5, 0.25, 0.0, 0.1]) == (0.5, 0.0, None)
    assert carried_over([None, 0.5, None]) == (None, None)
    assert carried_over([0.3]) == ()


def test_losses_by_hand() -> None:
    scored = (tiles("xx", "xx"), tiles("xx..", "xx..", "....", "...."))
    said_yes = (tiles("x.", "xx"), tiles("xx..", ".x..", "....", "...."))
    first, second = losses(POSITIVES, RETAINED, scored, said_yes, RATIOS)
    assert first == Losses(pruned=(), not_shown=0, said_no=1, outranked=0)
    # (0, 1) was a Yes but outranked, (3, 0) was never shown, (0, 3) hung on the tile that got a No.
    assert second == Losses(pruned=(1,), not_shown=1, said_no=0, outranked=1)


def test_an_ancestor_is_pruned_at_the_level_where_the_branch_ended() -> None:
    positives = (tiles("x"), tiles("xx", "xx"), np.ones((4, 4), bool))
    kept = (tiles("x"), tiles("x.", ".."), np.zeros((4, 4), bool))
    scored = (tiles("x"), tiles("xx", "xx"), tiles("xx..", "xx..", "....", "...."))
    no = tuple(np.zeros_like(level) for level in scored)
    assert losses(positives, kept, scored, no, (2, 2))[2] == Losses((0, 12), not_shown=0, said_no=4, outranked=0)
    none_kept = (tiles("."), tiles("..", ".."), np.zeros((4, 4), bool))
    assert losses(positives, none_kept, scored, no, (2, 2))[2].pruned == (16, 0)


@st.composite
def cascades(draw: st.DrawFn) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Positives, kept, scored and Yes tiles of a 3-level tree of odd size, kept only under kept."""
    shapes, ratios = [(2, 3), (3, 5), (6, 9)], (2, 2)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    positives = [rng.random(shape) < 0.4 for shape in shapes]
    scored, yes, kept = [], [], []
    for level, shape in enumerate(shapes):
        row, column = np.indices(shape)
        reached = kept[-1][row // ratios[level - 1], column // ratios[level - 1]] if level else np.ones(shape, bool)
        scored.append(reached & (rng.random(shape) < 0.9))
        yes.append(scored[-1] & (rng.random(shape) < 0.7))
        kept.append(yes[-1] & (rng.random(shape) < 0.7))
    return positives, kept, scored, yes


@given(cascades())
def test_identities(cascade: tuple[list[np.ndarray], ...]) -> None:
    positives, kept, scored, yes = cascade
    counts = level_counts(positives, kept, (2, 2))
    for level, (count, lost) in enumerate(zip(counts, losses(positives, kept, scored, yes, (2, 2)), strict=True)):
        conditional, unconditional = conditional_rate([count]), unconditional_rate([count])
        if level == 0:
            assert conditional == unconditional
        if conditional is not None:
            assert unconditional is not None
            assert unconditional <= conditional
            assert unconditional == pytest.approx(conditional * count.reached / count.positives)
        assert count.retained + sum(lost.pruned) + lost.not_shown + lost.said_no + lost.outranked == count.positives
        assert sum(lost.pruned) == count.positives - count.reached


def test_auroc_by_hand() -> None:
    assert tile_auroc(np.array([0.1, 0.9]), np.array([False, True])) == 1
    assert tile_auroc(np.array([0.9, 0.1]), np.array([False, True])) == 0
    assert tile_auroc(np.array([0.5, 0.5]), np.array([False, True])) == 0.5
    assert tile_auroc(np.array([0.5]), np.array([True])) is None


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans()), min_size=2, max_size=30))
def test_auroc_agrees_with_sklearn(pairs: list[tuple[float, bool]]) -> None:
    scores, positive = (np.array(column) for column in zip(*pairs, strict=True))
    if positive.all() or not positive.any():
        assert tile_auroc(scores, positive) is None
    else:
        assert tile_auroc(scores, positive) == pytest.approx(roc_auc_score(positive, scores))


def test_recall_at_k_takes_the_first_of_equals_and_ignores_the_verdict() -> None:
    first = np.array([0.2, 0.4, 0.4, 0.1]), np.array([True, True, False, False])
    second = np.array([0.0, 0.0]), np.array([False, True])
    assert recall_at_k([first], 1) == (1, 2)
    assert recall_at_k([first], 2) == (1, 2)
    assert recall_at_k([first], 3) == (2, 2)
    assert recall_at_k([first, second], 1) == (1, 3)
    assert recall_at_k([first, second], 9) == (3, 3)


def test_micro_rate_weighs_slides_by_their_positives() -> None:
    estimate = micro_rate([9, 0, 3], [9, 1, 0], ["a", "b", "c"])
    assert (estimate.value, estimate.n, estimate.units) == (0.9, 2, 2)
    assert estimate.low is None
    assert micro_rate([0], [0], ["a"]).value is None


def test_the_interval_of_a_micro_rate_holds_it_and_is_over_patients() -> None:
    rng = np.random.default_rng(0)
    wholes = rng.integers(1, 30, 40)
    parts = rng.binomial(wholes, 0.3)
    alone = micro_rate(parts.tolist(), wholes.tolist(), list(range(40)))
    assert alone.low is not None
    assert alone.high is not None
    assert alone.low < parts.sum() / wholes.sum() == alone.value < alone.high
    # Each slide counted twice under its patient says no more than once.
    doubled = micro_rate([*parts, *parts], [*wholes, *wholes], [*range(40), *range(40)])
    assert (doubled.low, doubled.high, doubled.units) == (alone.low, alone.high, 40)


def test_a_difference_of_micro_rates_is_paired() -> None:
    """On every slide the first keeps one tile more, so that whoever is drawn, the difference is the same."""
    wholes, parts, units = [10, 10, 10, 10, 10, 10], [1, 9, 4, 7, 0, 5], list("abcdef")
    gain = micro_difference(([part + 1 for part in parts], wholes), (parts, wholes), units)
    assert (gain.value, gain.low, gain.high) == pytest.approx((0.1, 0.1, 0.1))
    assert gain.excludes_zero
    none = micro_difference((parts, wholes), (parts, wholes), units)
    assert (none.value, none.low, none.high) == (0, 0, 0)


def test_each_of_two_micro_rates_has_its_own_wholes() -> None:
    found = micro_difference(([1, 2, 0], [2, 2, 0]), ([3, 0, 0], [4, 0, 0]), ["a", "b", "c"])
    assert (found.value, found.n, found.units) == (0, 2, 2)
    assert micro_difference(([1], [2]), ([0], [0]), ["a"]).value is None
    assert micro_difference(([], []), ([], []), []).n == 0
