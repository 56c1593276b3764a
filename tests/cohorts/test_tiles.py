"""The tile tree by hand, and overlaps against every tile cut on its own."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import MultiPolygon, Polygon, box
from slides_builder import gradient, write_slide

from wsigym.cohorts.tiles import POSITIVE_OVERLAP, WHOLE_SLIDE, Tile, TileGrid, overlap_shares, tile_ratios
from wsigym.errors import InvalidArgumentError, MissingResolutionError, UpsamplingError
from wsigym.slides import Box, open_slide


def grid_of(width: int, height: int, side: int, magnifications: tuple[float, ...] = (2.5, 10.0, 40.0)) -> TileGrid:
    ratios = tile_ratios(magnifications)
    sides = tuple(side * int(np.prod(ratios[level:])) for level in range(len(magnifications)))
    return TileGrid((width, height), magnifications, ratios, sides)


def brute_force(grid: TileGrid, area: Polygon | MultiPolygon) -> list[np.ndarray]:
    """Each tile cut out of the whole area on its own."""
    on_slide = area.intersection(box(0, 0, *grid.slide_size))
    shares = []
    for level, side in enumerate(grid.sides):
        rows, columns = grid.shape(level)
        shares.append(
            np.array(
                [
                    [
                        on_slide.intersection(box(c * side, r * side, (c + 1) * side, (r + 1) * side)).area / side**2
                        for c in range(columns)
                    ]
                    for r in range(rows)
                ]
            )
        )
    return shares


def test_ratios_of_magnifications() -> None:
    assert tile_ratios((2.5, 10, 40)) == (4, 4)
    assert tile_ratios((2.5, 10, 20)) == (4, 2)
    assert tile_ratios((40,)) == ()


@pytest.mark.parametrize(
    "wrong",
    [(2.5, 10, 25), (10, 2.5), (10, 10), (), (0, 10), (2.5, float("nan")), "abc", 10, (2.5, "10"), (True, 2), None],
)
def test_magnifications_that_are_no_whole_multiples_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="magnifications are"):
        tile_ratios(wrong)


def test_counts_are_rounded_up_and_edge_tiles_reach_beyond_the_slide() -> None:
    grid = grid_of(5000, 3000, 128)
    assert grid.sides == (2048, 512, 128)
    assert [grid.shape(level) for level in range(3)] == [(2, 3), (6, 10), (24, 40)]
    assert grid.box(Tile(0, 1, 2)) == Box(4096, 2048, 2048, 2048)


def test_a_slide_smaller_than_a_tile_has_one() -> None:
    grid = grid_of(100, 60, 128)
    assert [grid.shape(level) for level in range(3)] == [(1, 1), (1, 1), (1, 1)]
    assert grid.children(WHOLE_SLIDE) == (Tile(0, 0, 0),)
    assert grid.children(Tile(0, 0, 0)) == (Tile(1, 0, 0),)


def test_children_fill_their_parent_in_raster_order() -> None:
    grid = grid_of(8192, 8192, 128)
    children = grid.children(Tile(0, 1, 2))
    assert len(children) == 16
    assert children[:5] == (Tile(1, 4, 8), Tile(1, 4, 9), Tile(1, 4, 10), Tile(1, 4, 11), Tile(1, 5, 8))
    parent = grid.box(Tile(0, 1, 2))
    assert all(parent.contains(grid.box(child)) for child in children)
    assert sum(grid.box(child).area for child in children) == parent.area
    assert grid.children(Tile(2, 0, 0)) == ()


def test_children_beyond_the_slide_are_not_there() -> None:
    grid = grid_of(5000, 3000, 128)
    # The parent starts at x = 4096, y = 2048; 904 x 952 px of it are slide: 2 x 2 tiles of 512.
    assert grid.children(Tile(0, 1, 2)) == (Tile(1, 4, 8), Tile(1, 4, 9), Tile(1, 5, 8), Tile(1, 5, 9))


def test_ratio_two_has_four_children() -> None:
    assert len(grid_of(8192, 8192, 128, (2.5, 10, 20)).children(Tile(1, 0, 0))) == 4


def test_sides_follow_the_scan(tmp_path: Path) -> None:
    slide = open_slide(write_slide(tmp_path / "s.tiff", gradient(256, 256), mpp=0.2527))
    # 128 px at 40x are 128 * 0.25 / 0.2527 = 126.6 level-0 px, rounded; above it exactly 4 and 16 times that.
    assert TileGrid.of(slide, (2.5, 10, 40), 128).sides == (2032, 508, 127)
    slide.close()


def test_scans_below_the_last_magnification_or_of_unknown_scale_are_refused(tmp_path: Path) -> None:
    with open_slide(write_slide(tmp_path / "20x.tiff", gradient(256, 256), mpp=0.5)) as slide:
        assert TileGrid.of(slide, (2.5, 10, 20), 64).sides == (512, 128, 64)
        with pytest.raises(UpsamplingError, match=r"\(2.5, 10, 20\)"):
            TileGrid.of(slide, (2.5, 10, 40), 64)
        wrongs: tuple[Any, ...] = (0, 127.5, "128", True, None, float("nan"))
        for wrong in wrongs:
            with pytest.raises(InvalidArgumentError, match=f"tile_px is {wrong!r}; allowed are whole numbers from 16"):
                TileGrid.of(slide, (2.5, 10, 20), wrong)
    with (
        open_slide(write_slide(tmp_path / "none.tiff", gradient(256, 256), mpp=None)) as slide,
        pytest.raises(MissingResolutionError, match="mpp"),
    ):
        TileGrid.of(slide, (2.5, 10, 40), 64)


def test_overlaps_by_hand() -> None:
    grid = grid_of(64, 64, 4, (10.0, 40.0))  # tiles of 16 and 4 px
    first, second = overlap_shares(grid, box(8, 0, 20, 4))
    assert first[0].tolist() == [8 * 4 / 256, 4 * 4 / 256, 0, 0]
    assert not first[1:].any()
    assert second[0].tolist() == [0, 0, 1, 1, 1, *[0] * 11]


def test_five_percent_is_negative_and_more_is_positive() -> None:
    grid = grid_of(20, 20, 20, (40.0,))
    (exactly,) = overlap_shares(grid, box(0, 0, 5, 4))
    (above,) = overlap_shares(grid, box(0, 0, 5, 4.01))
    assert exactly[0, 0] == 0.05
    assert not exactly[0, 0] > POSITIVE_OVERLAP
    assert above[0, 0] > POSITIVE_OVERLAP


def test_an_edge_tile_counts_its_full_area_and_nothing_beyond_the_slide() -> None:
    grid = grid_of(10, 20, 20, (40.0,))
    (shares,) = overlap_shares(grid, box(-50, -50, 50, 50))
    assert shares.tolist() == [[0.5]]


def test_holes_do_not_count_and_no_area_is_all_zero() -> None:
    grid = grid_of(40, 40, 20, (40.0,))
    (shares,) = overlap_shares(grid, box(0, 0, 20, 20) - box(5, 5, 15, 15))
    assert shares.tolist() == [[0.75, 0], [0, 0]]
    (none,) = overlap_shares(grid, MultiPolygon())
    assert not none.any()


@st.composite
def areas(draw: st.DrawFn) -> Polygon | MultiPolygon:
    """Unions of rings around a point, some with a hole, partly beyond the slide of 300 x 200 px."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        x, y = draw(st.floats(-20, 320)), draw(st.floats(-20, 220))
        radii = np.array(draw(st.lists(st.floats(5, 90), min_size=5, max_size=9)))
        angle = np.linspace(0, 2 * np.pi, len(radii), endpoint=False)
        ring = Polygon(np.c_[x + radii * np.cos(angle), y + radii * np.sin(angle)]).buffer(0)
        parts.append(ring - ring.buffer(-15) if draw(st.booleans()) else ring)
    union = shapely.union_all(parts)
    return union if isinstance(union, Polygon | MultiPolygon) else MultiPolygon()


@settings(max_examples=40, deadline=None)
@given(areas(), st.sampled_from([(300, 200), (64, 64), (17, 250)]))
def test_overlaps_equal_those_of_every_tile_cut_on_its_own(area: Polygon | MultiPolygon, size: tuple[int, int]) -> None:
    grid = replace(grid_of(300, 200, 8, (10.0, 20.0, 40.0)), slide_size=size)
    for found, expected in zip(overlap_shares(grid, area), brute_force(grid, area), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_labelling_a_large_slide_is_quick() -> None:
    """100,000 px a side, tiles of 1,024 px at three magnifications, 50 polygons of 1,000 vertices: under 5 s."""
    rng = np.random.default_rng(0)
    angle = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    polygons = []
    for _ in range(50):
        radius = rng.uniform(1500, 5000) * (1 + 0.2 * np.sin(5 * angle) + 0.01 * rng.standard_normal(1000))
        x, y = rng.uniform(6000, 94000, 2)
        polygons.append(Polygon(np.c_[x + radius * np.cos(angle), y + radius * np.sin(angle)]).buffer(0))
    grid = grid_of(100_000, 100_000, 1024)
    started = time.process_time()
    area = shapely.union_all(polygons)
    shares = overlap_shares(grid, area)
    assert time.process_time() - started < 5
    assert [share.shape for share in shares] == [(7, 7), (25, 25), (98, 98)]
    for share, side in zip(shares, grid.sides, strict=True):
        assert share.sum() * side**2 == pytest.approx(area.area)
