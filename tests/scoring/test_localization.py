"""The size-constrained IoU of EviPathBench task 3, mode A, by known answers and by counting pixels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsigym.scoring.localization import HIT_IOU, best_box_iou, best_placed_iou, box_iou, placed_iou
from wsigym.slides import Box

SEARCH = Box(0, 0, 1000, 800)
VALID = Box(400, 300, 100, 60)


def moved(box: Box, dx: int, dy: int = 0) -> Box:
    return Box(box.x + dx, box.y + dy, box.width, box.height)


def test_identical_boxes_score_one() -> None:
    assert placed_iou(VALID, VALID, SEARCH) == 1
    assert box_iou(VALID, VALID) == 1


@pytest.mark.parametrize(("dx", "dy"), [(50, 0), (-50, 0), (0, 30), (0, -30)])
def test_a_shift_by_half_the_side_scores_a_third(dx: int, dy: int) -> None:
    assert placed_iou(moved(VALID, dx, dy), VALID, SEARCH) == pytest.approx(1 / 3)


@pytest.mark.parametrize(("dx", "dy"), [(100, 0), (0, 60), (-300, 0), (500, 400)])
def test_disjoint_and_touching_boxes_score_zero(dx: int, dy: int) -> None:
    assert placed_iou(moved(VALID, dx, dy), VALID, SEARCH) == 0
    assert box_iou(moved(VALID, dx, dy), VALID) == 0


def test_an_overlap_of_six_thirteenths_is_the_smallest_hit() -> None:
    valid = Box(500, 400, 13, 10)
    assert placed_iou(moved(valid, 7), valid, SEARCH) == HIT_IOU
    assert placed_iou(moved(valid, 8), valid, SEARCH) < HIT_IOU


def test_only_the_centre_of_the_prediction_counts() -> None:
    centre = VALID.centre
    for width, height in ((2, 2), (100, 60), (900, 700), (10, 500)):
        predicted = Box(0, 0, width, height).centred_on(*centre)
        assert predicted.centre == centre
        assert placed_iou(predicted, VALID, SEARCH) == 1
    assert box_iou(Box(0, 0, 900, 700).centred_on(*centre), VALID) == pytest.approx(6000 / 630000)


def test_a_prediction_over_the_edge_is_shifted_inside_the_search_box() -> None:
    corner = Box(0, 0, 100, 60)
    # Its centre is the corner itself; unshifted it would have a quarter inside and an IoU of 1/7.
    assert placed_iou(Box(0, 0, 1, 1), corner, SEARCH) == 1
    assert placed_iou(Box(999, 799, 1, 1), Box(900, 740, 100, 60), SEARCH) == 1
    deeper = Box(200, 100, 300, 300)
    assert placed_iou(Box(200, 100, 1, 1), Box(200, 100, 100, 60), deeper) == 1


def test_the_best_of_several_valid_boxes_counts_and_each_gives_its_own_size() -> None:
    small, large = Box(0, 0, 20, 20), Box(600, 400, 200, 200)
    predicted = Box(0, 0, 2, 2).centred_on(*large.centre)
    assert placed_iou(predicted, small, SEARCH) == 0
    assert best_placed_iou(predicted, [small, large], SEARCH) == 1
    assert best_placed_iou(predicted, [large, small], SEARCH) == 1
    assert best_box_iou(large, [small, large]) == 1


def test_an_empty_box_has_no_iou() -> None:
    empty = Box(400, 300, 0, 60)
    assert box_iou(empty, VALID) == 0
    assert box_iou(empty, empty) == 0


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Box, Box, Box]:
    """(predicted, valid, search box), the valid box inside the search box, the prediction anywhere."""
    search = Box(draw(st.integers(-5, 5)), draw(st.integers(-5, 5)), draw(st.integers(1, 14)), draw(st.integers(1, 14)))
    width, height = draw(st.integers(1, search.width)), draw(st.integers(1, search.height))
    x = search.x + draw(st.integers(0, search.width - width))
    y = search.y + draw(st.integers(0, search.height - height))
    predicted = Box(*(draw(st.integers(-20, 20)) for _ in range(2)), *(draw(st.integers(0, 12)) for _ in range(2)))
    return predicted, Box(x, y, width, height), search


def nearest_start(centre_twice: int, side: int, low: int, high: int) -> int:
    """Where an interval of `side` inside low..high starts, in half pixels, its middle nearest to the centre."""
    starts = range(2 * low, 2 * (high - side) + 1)
    return min(starts, key=lambda start: abs(start + side - centre_twice))


@given(scenes())
def test_counting_half_pixels_gives_the_same(scene: tuple[Box, Box, Box]) -> None:
    predicted, valid, search = scene
    x = nearest_start(2 * predicted.x + predicted.width, valid.width, search.x, search.right)
    y = nearest_start(2 * predicted.y + predicted.height, valid.height, search.y, search.bottom)
    placed, truth = np.zeros((80, 80), bool), np.zeros((80, 80), bool)
    placed[y + 20 : y + 20 + 2 * valid.height, x + 20 : x + 20 + 2 * valid.width] = True
    truth[2 * valid.y + 20 : 2 * valid.bottom + 20, 2 * valid.x + 20 : 2 * valid.right + 20] = True
    expected = (placed & truth).sum() / (placed | truth).sum()
    assert placed_iou(predicted, valid, search) == pytest.approx(expected)


@given(scenes())
def test_the_score_lies_in_0_to_1_and_is_1_only_at_the_place(scene: tuple[Box, Box, Box]) -> None:
    predicted, valid, search = scene
    score = placed_iou(predicted, valid, search)
    assert 0 <= score <= 1
    assert placed_iou(valid, valid, search) == 1


@given(scenes())
def test_plain_iou_counts_pixels(scene: tuple[Box, Box, Box]) -> None:
    first, second, _ = scene
    grid = np.zeros((2, 80, 80), bool)
    for layer, box in zip(grid, (first, second), strict=True):
        layer[box.y + 30 : box.bottom + 30, box.x + 30 : box.right + 30] = True
    assert box_iou(first, second) == pytest.approx((grid[0] & grid[1]).sum() / (grid[0] | grid[1]).sum())
    assert box_iou(first, second) == box_iou(second, first)
