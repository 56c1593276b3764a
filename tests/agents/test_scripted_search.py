"""The scripted model's search, on images whose densest field is known."""

from __future__ import annotations

from itertools import islice

import numpy as np
import numpy.typing as npt
import pytest

from wsigym.agents.scripted_search import Field, Search, densest, density_map, field_shares, ranked

PINK, NUCLEAR, INK = (235, 170, 200), (80, 50, 130), (40, 60, 160)
QUARTER = (0.25, 0.25)


def painted(width: int, height: int, *blocks: tuple[int, int, int, int, tuple[int, int, int]]) -> npt.NDArray[np.uint8]:
    pixels = np.full((height, width, 3), PINK, np.uint8)
    for x, y, w, h, colour in blocks:
        pixels[y : y + h, x : x + w] = colour
    return pixels


def test_the_densest_field_lies_on_the_block() -> None:
    field = densest(density_map(painted(200, 100, (120, 40, 50, 25, NUCLEAR))), QUARTER)
    assert field.box == pytest.approx((0.6, 0.4, 0.25, 0.25), abs=0.02)
    assert field.density > 0.9


def test_a_map_is_averaged_over_cells_and_keeps_the_aspect() -> None:
    density = density_map(painted(1000, 500, (0, 0, 500, 500, NUCLEAR)))
    assert density.shape == (96, 192)
    assert float(density.mean()) == pytest.approx(float(density[:, 0].mean()) / 2, abs=0.01)


def test_ink_is_not_nuclear() -> None:
    assert densest(density_map(painted(200, 200, (20, 20, 100, 100, INK))), QUARTER).density == 0


def test_fields_are_ranked_and_apart() -> None:
    density = density_map(painted(200, 200, (10, 10, 50, 50, NUCLEAR), (140, 140, 50, 25, NUCLEAR)))
    first, second, third = islice(ranked(density, QUARTER), 3)
    assert first.box[:2] == pytest.approx((0.05, 0.05), abs=0.02)
    assert second.box[0] == pytest.approx(0.7, abs=0.02)
    assert first.density > second.density > third.density
    fields = list(ranked(density, QUARTER))
    assert all(a.apart_from(b) for i, a in enumerate(fields) for b in fields[:i])


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (300, 1), (2, 3)])
def test_the_smallest_images_have_a_densest_field(shape: tuple[int, int]) -> None:
    field = densest(density_map(np.full((*shape, 3), NUCLEAR, np.uint8)), QUARTER)
    x, y, w, h = field.box
    assert min(x, y) >= 0
    assert max(x + w, y + h) <= 1
    assert field.density > 0.9


def test_a_field_is_a_view_at_the_target_magnification_or_a_quarter_of_the_search_box() -> None:
    assert field_shares((0, 0, 10_000, 5_000), mpp=0.25, magnification=40) == pytest.approx((0.0224, 0.0448))
    assert field_shares((0, 0, 1_000, 20_000), mpp=0.25, magnification=10) == pytest.approx((0.25, 0.0448))


@pytest.mark.parametrize("corner", [(0.0, 0.0), (0.75, 0.75), (0.3, 0.0)])
def test_a_look_shows_its_field_and_stays_inside(corner: tuple[float, float]) -> None:
    x, y, w, h = Field((*corner, 0.25, 0.25), 1.0).look_box
    assert (w, h) == (0.375, 0.375)
    assert 0 <= x <= corner[0]
    assert 0 <= y <= corner[1]
    assert x + w <= 1
    assert y + h <= 1
    assert x + w >= corner[0] + 0.25 - 1e-9


def search(looks: list[Field], seen: list[Field], budget: int = 5) -> Search:
    """Two dense blocks in the overview: the denser at the top left, the other at the bottom right."""
    overview = density_map(painted(200, 200, (10, 10, 50, 50, NUCLEAR), (140, 140, 50, 40, NUCLEAR)))
    return Search(QUARTER, overview, [field.look_box for field in looks], seen, budget)


TOP_LEFT, BOTTOM_RIGHT = Field((0.05, 0.05, 0.25, 0.25), 0.9), Field((0.7, 0.68, 0.25, 0.25), 0.7)


def test_the_search_goes_from_promise_to_promise_and_stops_where_none_is_left() -> None:
    first = search([], []).next_look()
    assert first is not None
    assert first[0].box[:2] == pytest.approx((0.05, 0.05), abs=0.02)
    second = search([TOP_LEFT], [TOP_LEFT]).next_look()
    assert second is not None
    assert second[0].box[0] == pytest.approx(0.7, abs=0.02)
    assert search([TOP_LEFT, BOTTOM_RIGHT], [TOP_LEFT, BOTTOM_RIGHT]).next_look() is None


def test_a_field_at_the_edge_of_its_look_is_looked_at_again() -> None:
    moved = Field((0.175, 0.175, 0.25, 0.25), 0.9)
    again = search([TOP_LEFT, BOTTOM_RIGHT], [moved, BOTTOM_RIGHT]).next_look()
    assert again is not None
    assert again[0] == moved


def test_it_explores_first_and_refines_after() -> None:
    """After one look at the top left, whose densest field reaches the edge of the look."""
    moved = Field((0.175, 0.175, 0.25, 0.25), 0.9)
    exploring, refining = (search([TOP_LEFT], [moved], budget).next_look() for budget in (5, 1))
    assert exploring is not None
    assert exploring[0].box[0] == pytest.approx(0.7, abs=0.02)
    assert refining is not None
    assert refining[0] == moved


def test_the_answer_is_the_densest_field_seen_and_its_share_the_confidence() -> None:
    better = Field(BOTTOM_RIGHT.box, 0.95)
    assert search([TOP_LEFT, BOTTOM_RIGHT], [TOP_LEFT, better]).answer() == (better, pytest.approx(0.95 / 1.85))
    assert search([], []).answer()[0].box[:2] == pytest.approx((0.05, 0.05), abs=0.02)
    assert search([TOP_LEFT], [TOP_LEFT]).answer() == (TOP_LEFT, 1.0)


def test_on_glass_every_field_is_equal_and_something_is_answered() -> None:
    glass = Search(QUARTER, density_map(np.full((50, 50, 3), 245, np.uint8)), [], [], 5)
    field, confidence = glass.answer()
    assert field.density == 0
    assert confidence == 0.5
