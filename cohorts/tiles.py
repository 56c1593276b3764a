"""The tile tree of a slide, and the share of every tile that an annotated area covers.

Square tiles of `tile_px` pixels stand on one grid at each magnification, from the slide's origin: ceil(slide / tile)
of them along each axis, so that those at the right and bottom edges reach beyond the slide, and a slide smaller than
a tile has one. With r the ratio of two successive magnifications, a tile has r x r children at the next one, fewer at
the slide's edge, where the others would hold no pixel of it.

A tile's side is a whole number of level-0 pixels at the last magnification, and r times the child's above it, so that
children fill their parent exactly; a tile is then shown within half a level-0 pixel a side of its magnification.

The overlaps are the hidden answer of an exploration (EviPathBench task 3, mode B).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt
import shapely
from shapely import MultiPolygon, Polygon

from wsigym.errors import InvalidArgumentError, MissingResolutionError, UpsamplingError
from wsigym.slides import Box, Slide
from wsigym.slides.geometry import UPSAMPLING_TOLERANCE, magnification_from_mpp

__all__ = [
    "POSITIVE_OVERLAP",
    "WHOLE_SLIDE",
    "Tile",
    "TileGrid",
    "check_tile_px",
    "is_number",
    "overlap_shares",
    "tile_ratios",
]

POSITIVE_OVERLAP = 0.05
"""A tile is positive when more than this share of it, strictly, lies inside the tumour (the paper's threshold)."""

MIN_TILE_PX, MAX_TILE_PX = 16, 8192

POLYGON_TYPE = 3
"""shapely's type id of a Polygon."""


class Tile(NamedTuple):
    """A tile by its magnification's place in the grid's list, and its row and column at that magnification."""

    level: int
    row: int
    column: int


WHOLE_SLIDE = Tile(-1, 0, 0)
"""The parent of the tiles of the first level."""


def tile_ratios(magnifications: Sequence[float]) -> tuple[int, ...]:
    """How many children side by side a tile has, for each step from one magnification to the next.

    Raises `InvalidArgumentError` where magnifications do not rise by whole factors of 2 or more.
    """
    listed = list(magnifications) if isinstance(magnifications, Iterable) else []
    if not listed or not all(is_number(value) and math.isfinite(value) and value > 0 for value in listed):
        raise InvalidArgumentError(
            f"magnifications are {magnifications!r}; allowed is a sequence of at least one, each a number above 0."
        )
    ratios = []
    for low, high in pairwise(listed):
        ratio = round(high / low)
        if ratio < 2 or not math.isclose(high / low, ratio, rel_tol=1e-6):
            raise InvalidArgumentError(
                f"magnifications are {listed}: {high:g} / {low:g} is {high / low:.4g}. Each must be a "
                "whole multiple, 2 or more, of the one before, such as (2.5, 10, 40) or (2.5, 10, 20)."
            )
        ratios.append(ratio)
    return tuple(ratios)


def check_tile_px(value: object) -> None:
    """Raises `InvalidArgumentError` for what is no side of a tile in pixels, 16 to 8,192."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not MIN_TILE_PX <= value <= MAX_TILE_PX:
        raise InvalidArgumentError(
            f"tile_px is {value!r}; allowed are whole numbers from {MIN_TILE_PX} to {MAX_TILE_PX} pixels."
        )


def is_number(value: object) -> TypeGuard[float]:
    """True for a real number, of numpy too; a bool and text are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class TileGrid:
    """The tiles of one slide at each magnification; a value, made by `TileGrid.of`.

    `slide_size` is (width, height), `sides` the tile's side at each magnification, both in level-0 pixels. `ratios`
    are those of `tile_ratios`. A tile's `level` counts magnifications from 0; slide levels play no part here.
    """

    slide_size: tuple[int, int]
    magnifications: tuple[float, ...]
    ratios: tuple[int, ...]
    sides: tuple[int, ...]

    @classmethod
    def of(cls, slide: Slide, magnifications: Sequence[float], tile_px: int) -> TileGrid:
        """The grid of `slide` with tiles of `tile_px` pixels (16 to 8,192) at each of the rising `magnifications`.

        Raises `InvalidArgumentError` (see `tile_ratios`), `MissingResolutionError` where the slide's scale is unknown,
        and `UpsamplingError` where the last magnification is more than 10 % above the scan's.
        """
        ratios = tile_ratios(magnifications)
        check_tile_px(tile_px)
        last = magnifications[-1]
        if slide.mpp is None:
            raise MissingResolutionError(
                f"{slide.path}: tiles at {last:g}x were asked for, but the microns per pixel are unknown "
                f"({slide.resolution.found}); give `mpp` of the slide in its cohort."
            )
        native = magnification_from_mpp(slide.mpp)
        if last > native * UPSAMPLING_TOLERANCE:
            raise UpsamplingError(
                f"{slide.path}: tiles at {last:g}x were asked for, but the slide is scanned at {native:.4g}x "
                f"({slide.mpp:g} um/px). Give magnifications up to that, such as (2.5, 10, 20) for a 20x scan."
            )
        sides = [max(1, math.floor(tile_px * native / last + 0.5))]
        for ratio in reversed(ratios):
            sides.append(sides[-1] * ratio)
        return cls(slide.dimensions, tuple(float(value) for value in magnifications), ratios, tuple(reversed(sides)))

    @property
    def levels(self) -> int:
        return len(self.magnifications)

    def shape(self, level: int) -> tuple[int, int]:
        """(rows, columns) of the tiles at one magnification."""
        width, height = self.slide_size
        return -(-height // self.sides[level]), -(-width // self.sides[level])

    def box(self, tile: Tile) -> Box:
        """The whole tile in level-0 pixels, beyond the slide too where it lies at an edge."""
        if tile == WHOLE_SLIDE:
            return Box(0, 0, *self.slide_size)
        side = self.sides[tile.level]
        return Box(tile.column * side, tile.row * side, side, side)

    def children(self, tile: Tile) -> tuple[Tile, ...]:
        """The tile's children in raster order (row, then column); of `WHOLE_SLIDE`, the tiles of the first level."""
        level = tile.level + 1
        if level == self.levels:
            return ()
        rows, columns = self.shape(level)
        if tile == WHOLE_SLIDE:
            return tuple(Tile(level, row, column) for row in range(rows) for column in range(columns))
        ratio = self.ratios[tile.level]
        return tuple(
            Tile(level, row, column)
            for row in range(tile.row * ratio, min((tile.row + 1) * ratio, rows))
            for column in range(tile.column * ratio, min((tile.column + 1) * ratio, columns))
        )


def overlap_shares(grid: TileGrid, area: Polygon | MultiPolygon) -> tuple[npt.NDArray[np.float64], ...]:
    """For each magnification float64 (rows, columns): the share of the full tile that `area` covers, in 0..1.

    `area` is a valid polygon in level-0 pixels; what lies outside the slide does not count. The shares are exact but
    for rounding. The area is cut into the first magnification's tiles, each piece into theirs, and so on, so that no
    tile is held against more of an outline than its parent sees.
    """
    covered = tuple(np.zeros(grid.shape(level)) for level in range(grid.levels))
    pieces = _polygons(shapely.intersection(area, shapely.box(0, 0, *grid.slide_size)))
    for level in range(grid.levels):
        pieces = [part for piece in pieces for part in _cut(grid, level, piece, covered)]
    return tuple(array / side**2 for array, side in zip(covered, grid.sides, strict=True))


def _cut(grid: TileGrid, level: int, piece: Polygon, covered: tuple[npt.NDArray[np.float64], ...]) -> Iterator[Polygon]:
    """Add one polygon's area to every tile of a level that it touches; what is left to cut for the next level.

    Tiles that lie wholly inside are settled here together with everything below them.
    """
    side, shape = grid.sides[level], grid.shape(level)
    left, top, right, bottom = piece.bounds
    rows, columns = _touched(top, bottom, side, shape[0]), _touched(left, right, side, shape[1])
    if len(rows) == len(columns) == 1:
        covered[level][rows[0], columns[0]] += piece.area
        yield piece
        return
    row, column = (index.ravel() for index in np.meshgrid(rows, columns, indexing="ij"))
    tiles = shapely.box(column * side, row * side, (column + 1) * side, (row + 1) * side)
    shapely.prepare(piece)
    inside = shapely.covers(piece, tiles)
    for r, c in zip(row[inside], column[inside], strict=True):
        _fill(grid, level, int(r), int(c), covered)
    crossed = ~inside & shapely.intersects(piece, tiles)
    parts = shapely.intersection(piece, tiles[crossed])
    covered[level][row[crossed], column[crossed]] += shapely.area(parts)
    yield from _polygons(parts)


def _touched(low: float, high: float, side: int, count: int) -> range:
    """The rows or columns that an interval lies in; a border alone does not count."""
    first = min(math.floor(low / side), count - 1)
    return range(first, max(first + 1, math.ceil(high / side)))


def _fill(grid: TileGrid, level: int, row: int, column: int, covered: tuple[npt.NDArray[np.float64], ...]) -> None:
    scale = 1
    for below in range(level, grid.levels):
        scale *= 1 if below == level else grid.ratios[below - 1]
        covered[below][row * scale : (row + 1) * scale, column * scale : (column + 1) * scale] = grid.sides[below] ** 2


def _polygons(geometries: object) -> list[Polygon]:
    """The polygons among geometries and their parts; points and lines have no area."""
    parts = shapely.get_parts(np.atleast_1d(np.asarray(geometries, dtype=object)))
    parts = shapely.get_parts(parts)  # a collection may hold multipolygons
    return list(parts[(shapely.get_type_id(parts) == POLYGON_TYPE) & (shapely.area(parts) > 0)])
