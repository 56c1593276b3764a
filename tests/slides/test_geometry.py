"""Boxes: arithmetic with known answers, and laws that hold for all boxes."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsigym.errors import InvalidArgumentError
from wsigym.slides.geometry import (
    Box,
    box_from_unit,
    box_to_unit,
    fitted_size,
    magnification_from_mpp,
    mpp_from_magnification,
    shown_magnification,
)

coordinates = st.integers(-(2**31), 2**31)
sizes = st.integers(0, 2**31)
boxes = st.builds(Box, coordinates, coordinates, sizes, sizes)
search_boxes = st.builds(Box, coordinates, coordinates, st.integers(1, 2**22), st.integers(1, 2**22))


def test_known_answers() -> None:
    box = Box(10, 20, 30, 40)
    assert (box.right, box.bottom, box.area, box.centre) == (40, 60, 1200, (25.0, 40.0))
    assert box.to_list() == [10, 20, 30, 40]
    assert box.intersection(Box(0, 0, 15, 25)) == Box(10, 20, 5, 5)
    assert box.intersection(Box(100, 100, 5, 5)).is_empty
    assert box.contains(Box(10, 20, 30, 40))
    assert not box.contains(Box(9, 20, 30, 40))
    assert box.contains_point(10, 60)
    assert not box.contains_point(math.nan, 30)
    assert box.centred_on(0, 0) == Box(-15, -20, 30, 40)
    assert Box(-5, 7, 10, 10).shifted_inside(Box(0, 0, 100, 12)) == Box(0, 2, 10, 10)
    assert Box(3, 3, 50, 50).shifted_inside(Box(1, 1, 10, 10)) == Box(1, 1, 50, 50)


def test_box_takes_whole_floats_and_numpy_numbers() -> None:
    box = Box(1.0, np.int64(2), np.float32(3), 4)  # type: ignore[arg-type]
    assert box == Box(1, 2, 3, 4)
    assert all(type(value) is int for value in box.to_list())


@pytest.mark.parametrize("value", [0.5, math.nan, math.inf, "3", None, b"1"])
def test_box_refuses_what_is_no_whole_number(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"Box\.x"):
        Box(value, 0, 1, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [(-1, 1), (1, -1)])
def test_box_refuses_negative_sizes(size: tuple[int, int]) -> None:
    with pytest.raises(InvalidArgumentError, match="0 or more"):
        Box(0, 0, *size)


@pytest.mark.parametrize("values", [[], [1, 2, 3], [1, 2, 3, 4, 5]])
def test_box_of_needs_four_numbers(values: list[float]) -> None:
    with pytest.raises(InvalidArgumentError, match=f"found {len(values)} numbers"):
        Box.of(values)


@given(boxes)
def test_box_survives_lists_and_pickling(box: Box) -> None:
    assert Box.of(box.to_list()) == box
    assert pickle.loads(pickle.dumps(box)) == box


@given(boxes, boxes)
def test_intersection_lies_in_both_and_commutes(a: Box, b: Box) -> None:
    common = a.intersection(b)
    assert common.area == b.intersection(a).area
    if not common.is_empty:
        assert a.contains(common)
        assert b.contains(common)
    assert a.intersection(a) == a


@given(boxes, boxes)
def test_shifted_inside_keeps_the_size_and_lies_inside_where_it_fits(box: Box, outer: Box) -> None:
    shifted = box.shifted_inside(outer)
    assert (shifted.width, shifted.height) == (box.width, box.height)
    if box.width <= outer.width and box.height <= outer.height:
        assert outer.contains(shifted)
    assert shifted.shifted_inside(outer) == shifted
    if outer.contains(box):
        assert shifted == box


@given(
    st.builds(Box, *[st.integers(-(2**20), 2**20)] * 2, *[st.integers(0, 2**20)] * 2),
    st.floats(-1e6, 1e6),
    st.floats(-1e6, 1e6),
)
def test_centred_on_is_within_half_a_pixel(box: Box, x: float, y: float) -> None:
    centre_x, centre_y = box.centred_on(x, y).centre
    assert abs(centre_x - x) <= 0.5 + 1e-9
    assert abs(centre_y - y) <= 0.5 + 1e-9


@given(search_boxes, st.data())
def test_unit_boxes_are_a_round_trip(search_box: Box, data: st.DataObject) -> None:
    width = data.draw(st.integers(0, search_box.width))
    height = data.draw(st.integers(0, search_box.height))
    x = data.draw(st.integers(search_box.x, search_box.right - width))
    y = data.draw(st.integers(search_box.y, search_box.bottom - height))
    box = Box(x, y, width, height)
    unit = box_to_unit(box, search_box)
    assert unit.dtype == np.float32
    assert unit.shape == (4,)
    assert ((unit >= 0) & (unit <= 1)).all()
    assert box_from_unit(unit, search_box) == box


def test_box_from_unit_known_answers() -> None:
    search_box = Box(100, 200, 1000, 2000)
    assert box_from_unit([0.25, 0.5, 0.1, 0.1], search_box) == Box(350, 1200, 100, 200)
    assert box_from_unit([0, 0, 1, 1], search_box) == search_box
    assert box_from_unit([-0.1, 1.5, -1, 0.0004], search_box) == Box(0, 3200, 0, 1)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_box_from_unit_needs_finite_numbers(bad: float) -> None:
    with pytest.raises(InvalidArgumentError, match="finite"):
        box_from_unit([0, 0, bad, 1], Box(0, 0, 10, 10))


def test_box_to_unit_needs_a_search_box() -> None:
    with pytest.raises(InvalidArgumentError, match="empty"):
        box_to_unit(Box(0, 0, 1, 1), Box(5, 5, 0, 3))


@pytest.mark.parametrize(("mpp", "magnification"), [(0.25, 40.0), (0.5, 20.0), (0.499, 10 / 0.499), (1.0, 10.0)])
def test_magnification_is_ten_over_mpp(mpp: float, magnification: float) -> None:
    assert magnification_from_mpp(mpp) == pytest.approx(magnification)
    assert mpp_from_magnification(magnification) == pytest.approx(mpp)


def test_fitted_size_known_answers() -> None:
    assert fitted_size(Box(0, 0, 896, 448), 10, 0.25) == (224, 112)
    assert fitted_size(Box(0, 0, 896, 448), 40, 0.25) == (896, 448)
    assert fitted_size(Box(0, 0, 2, 1000), 2.5, 0.25) == (1, 63)  # 62.5 rounds up; never below one pixel


def test_shown_magnification_known_answers() -> None:
    assert shown_magnification(Box(0, 0, 1000, 500), 250, 0.25, cap=40) == 10.0
    assert shown_magnification(Box(0, 0, 100, 50), 250, 0.25, cap=20) == 20
