"""Boxes in each convention: what goes in and out, and what is refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsigym.agents.coordinates import CONVENTIONS, Convention, Coordinates
from wsigym.slides import Box, box_from_unit

FRAME, IMAGE = Box(1000, 2000, 4000, 2000), (800, 400)
QUARTER = Box(2000, 2500, 1000, 500)
"""A quarter of the frame's width and height, from a quarter on."""


@pytest.mark.parametrize(
    ("convention", "numbers", "limits"),
    [
        ("level0", [2000, 2500, 1000, 500], (1000, 2000, 5000, 4000)),
        ("unit", [0.25, 0.25, 0.25, 0.25], (0, 0, 1, 1)),
        ("permille", [250, 250, 250, 250], (0, 0, 1000, 1000)),
        ("view_px", [200, 100, 200, 100], (0, 0, 800, 400)),
    ],
)
def test_one_box_in_each_convention(
    convention: Convention, numbers: list[float], limits: tuple[float, float, float, float]
) -> None:
    coordinates = Coordinates(convention, FRAME, IMAGE)
    assert coordinates.limits == limits
    assert coordinates.from_box(QUARTER) == numbers
    assert coordinates.to_unit(numbers) == pytest.approx((0.25,) * 4)
    assert coordinates.beyond(numbers) is None
    facts = coordinates.facts()
    assert (facts["x_min"], facts["y_min"], facts["x_max"], facts["y_max"]) == limits
    assert facts["convention"] == convention
    assert f"x from {limits[0]} (left) to {limits[2]} (right)" in facts["meaning"]


sides = st.integers(1, 200_000)


@given(
    convention=st.sampled_from(CONVENTIONS),
    frame=st.builds(Box, st.integers(0, 10**6), st.integers(0, 10**6), sides, sides),
    image=st.tuples(st.integers(1, 4096), st.integers(1, 4096)),
    corner=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    share=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_there_and_back_within_what_the_model_is_told(
    convention: Convention,
    frame: Box,
    image: tuple[int, int],
    corner: tuple[float, float],
    share: tuple[float, float],
) -> None:
    """A box inside the frame is never beyond, and comes back within the rounding of what was told."""
    box = box_from_unit([*corner, *share], frame).intersection(frame)
    coordinates = Coordinates(convention, frame, image)
    numbers = coordinates.from_box(box)
    assert coordinates.beyond(numbers) is None
    back = box_from_unit(coordinates.to_unit(numbers), frame)
    step = {"level0": 0, "unit": 0.5e-4, "permille": 0.5e-3, "view_px": 0.05 / min(image)}[convention]
    for told, was, side in zip(back.to_list(), box.to_list(), (frame.width, frame.height) * 2, strict=True):
        assert abs(told - was) <= step * side + 1


@pytest.mark.parametrize(
    ("convention", "numbers", "words"),
    [
        ("unit", [250, 250, 250, 250], "x is 250; allowed is 0 to 1"),
        ("unit", [0.1, 0.1, 0.1, 1.1], "h is 1.1"),
        ("permille", [0, 1001, 1, 1], "y is 1001; allowed is 0 to 1000"),
        ("permille", [-1, 0, 1, 1], "x is -1"),
        ("view_px", [801, 0, 1, 1], "x is 801; allowed is 0 to 800"),
        ("view_px", [0, 401, 1, 1], "y is 401; allowed is 0 to 400"),
        ("level0", [0, math.nan, 1, 1], "y is nan"),
        ("unit", [0, 0, math.inf, 1], "w is inf"),
    ],
)
def test_what_is_beyond(convention: Convention, numbers: list[float], words: str) -> None:
    fault = Coordinates(convention, FRAME, IMAGE).beyond(numbers)
    assert fault is not None
    assert words in fault


def test_a_box_that_leaves_the_frame_is_the_environments_affair() -> None:
    assert Coordinates("unit", FRAME, IMAGE).beyond([0.9, 0.9, 0.5, 0.5]) is None
    assert Coordinates("level0", FRAME, IMAGE).beyond([-1e6, 0, 1e9, 1]) is None
