"""The budget curve as a picture: the right things in the right places."""

from __future__ import annotations

import numpy as np
from PIL import Image
from record_builder import patients

from wsigym.benchmarks.curves import COLOURS, LEFT, PANEL, TOP
from wsigym.benchmarks.evipath.localization_plot import budget_curve
from wsigym.benchmarks.records import EpisodeRecord


def sweep(**scores: float) -> list[EpisodeRecord]:
    """Six patients at 10x, an IoU for each budget."""
    return [entry for budget, score in scores.items() for entry in patients([score] * 6, budget=budget)]


def rows_of_colour(picture: Image.Image, colour: tuple[int, int, int], left: int, right: int) -> np.ndarray:
    """The rows of the plot area in which a colour occurs between two columns."""
    area = np.asarray(picture)[TOP : TOP + PANEL[1] + 1, left:right].astype(int)
    return np.flatnonzero((np.abs(area - colour).sum(axis=2) < 30).any(axis=1)) + TOP


def test_a_point_stands_at_its_height() -> None:
    picture = budget_curve(sweep(tight=0.2, loose=1.0))
    third = PANEL[0] // 3
    low = rows_of_colour(picture, COLOURS[0], LEFT, LEFT + third // 2)
    high = rows_of_colour(picture, COLOURS[0], LEFT + PANEL[0] - third // 2, LEFT + PANEL[0])
    assert abs(low.mean() - (TOP + PANEL[1] * 0.8)) < 10
    assert abs(high.min() - TOP) < 6


def test_one_magnification_is_one_panel_and_two_are_two_and_all() -> None:
    one = budget_curve(sweep(tight=0.2, loose=0.4))
    two = budget_curve(sweep(tight=0.2, loose=0.4) + patients([0.1] * 6, magnification=40.0, budget="tight"))
    assert two.width > one.width + 2 * PANEL[0]
    assert one.mode == "RGB"


def test_it_is_the_same_each_time() -> None:
    records = sweep(tight=0.2, base=0.3, loose=0.4)
    assert budget_curve(records).tobytes() == budget_curve(records).tobytes()


def test_odd_input_is_drawn_all_the_same() -> None:
    for records in (patients([0.0]), patients([None]), patients([1.0] * 6, budget="0"), patients([0.5, None])):
        assert budget_curve(records).height > PANEL[1]


def test_many_policies_share_the_legend_rows() -> None:
    few, many = (
        budget_curve([entry for i in range(count) for entry in patients([0.1 * i], policy=f"a long policy name {i}")])
        for count in (1, 9)
    )
    assert many.width == few.width
    assert many.height > few.height
