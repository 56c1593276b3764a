"""Curves as a picture: axes, and points where they belong."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from wsigym.benchmarks.curves import COLOURS, LEFT, MARKS, TOP, Curve, _axis, _dashes, curves_picture
from wsigym.scoring.intervals import Estimate

SIZE = (500, 300)


def curve(*points: tuple[float, float]) -> Curve:
    return [(spent, Estimate(value, None, None, 9, 9)) for spent, value in points]


def columns_of_colour(picture: Image.Image, colour: tuple[int, int, int]) -> np.ndarray:
    """The columns, from the left of the plot area, in which a colour occurs inside it."""
    area = np.asarray(picture)[TOP : TOP + SIZE[1], LEFT : LEFT + SIZE[0]].astype(int)
    return np.flatnonzero((np.abs(area - colour).sum(axis=2) < 30).any(axis=0))


def test_budgets_that_all_curves_share_are_the_ticks() -> None:
    low, high, ticks = _axis([[4, 10, 20], [20, 4, 10]], 260)
    assert ticks == [4, 10, 20]
    assert low < 4
    assert high > 20


@pytest.mark.parametrize(
    ("spent", "px", "ticks"),
    [
        ([[93.4, 244.5], [117.3, 921.0]], 560, [0, 200, 400, 600, 800]),
        ([[10], [20]], 560, [0, 5, 10, 15, 20]),
        ([[0.4], [3, 7]], 260, [0, 2, 4, 6]),
    ],
)
def test_else_round_numbers_from_0_are(spent: list[list[float]], px: int, ticks: list[float]) -> None:
    low, high, found = _axis(spent, px)
    assert low == 0
    assert found == pytest.approx(ticks)
    assert max(map(max, spent)) < high


def test_points_stand_where_the_axis_says() -> None:
    curves = {"a": curve((100, 0.5)), "b": curve((400, 0.5))}
    picture = curves_picture("t", "tiles", [("", curves)], size=SIZE, scale=100)
    for colour, spent in ((COLOURS[0], 100), (COLOURS[1], 400)):
        assert columns_of_colour(picture, colour).mean() == pytest.approx(SIZE[0] * spent / 416, abs=1.5)


def test_curves_of_the_same_budgets_stand_beside_one_another_and_others_do_not_move() -> None:
    curves = {"a": curve((100, 0.5)), "b": curve((100, 0.5)), "c": curve((400, 0.5))}
    picture = curves_picture("t", "tiles", [("", curves)], size=SIZE)
    a, b, c = (columns_of_colour(picture, COLOURS[i]).mean() for i in range(3))
    assert b - a > 2
    assert c == pytest.approx(SIZE[0] * 400 / 416, abs=1.5)


def test_a_colour_that_returns_has_another_mark_and_a_broken_line() -> None:
    count = len(COLOURS) + 1
    curves = {str(i): curve((0, i / count), (100, i / count)) for i in range(count)}
    assert len(MARKS) % len(COLOURS)
    picture = np.asarray(curves_picture("t", "tiles", [("", curves)], size=SIZE, scale=100)).astype(int)
    first, last = (TOP + round(SIZE[1] * (1 - i / count / 0.9)) for i in (0, count - 1))
    middle = slice(LEFT + 150, LEFT + 350)

    def share(row: int) -> float:
        near = np.abs(picture[row - 2 : row + 3, middle] - COLOURS[0]).sum(axis=2) < 60
        return float(near.any(axis=0).mean())

    assert share(first) == 1
    assert 0.4 < share(last) < 0.8


def test_dashes_cover_the_line_in_order() -> None:
    pieces = _dashes([(0, 0), (25, 0), (25, 8)])
    assert pieces[0] == [(0, 0), (6, 0)]
    assert pieces[2] == [(20, 0), (25, 0)]  # the last one of a stretch ends with it
    assert pieces[-1] == [(25, 0), (25, 6)]
