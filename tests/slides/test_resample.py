"""Resampling a level: which of its pixels are read, and that how they are read changes nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slides_builder import noise

from wsigym.slides import resample as module
from wsigym.slides.resample import Edges, Plane, resample, resize

LEVEL = noise(160, 160)
TILE_ROWS = 16


def _plane(tile_rows: int) -> tuple[Plane, list[tuple[int, int]]]:
    """The level as a plane, and the rows (first, last + 1) of each of its reads."""
    rows: list[tuple[int, int]] = []

    def read(x: int, y: int, width: int, height: int, shrink: int) -> npt.NDArray[np.uint8]:
        assert shrink == 1
        rows.append((y, y + height))
        return LEVEL[y : y + height, x : x + width]

    return Plane(160, 160, (255, 255, 255), read, tile_rows=tile_rows), rows


@given(
    corner=st.tuples(st.integers(0, 60), st.integers(0, 60)),
    times=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    size=st.tuples(st.integers(1, 100), st.integers(1, 100)),
)
def test_bands_are_the_whole_without_a_difference(
    corner: tuple[int, int], times: tuple[int, int], size: tuple[int, int]
) -> None:
    width, height = (min(count, (160 - start) // by) for count, start, by in zip(size, corner, times, strict=True))
    (x, y), (across, down) = corner, times
    edges = Edges(x, y, x + width * across, y + height * down)
    plane, rows = _plane(TILE_ROWS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BAND_PX", 0)
        shown = resample(plane, edges, width, height)
    exact = resize(LEVEL[y : y + height * down, x : x + width * across], width, height)
    np.testing.assert_array_equal(shown, exact)
    if down > 1:
        assert [low for low, _ in rows[1:]] == [high for _, high in rows[:-1]]  # no row twice, none left out
        assert all(low // TILE_ROWS == (high - 1) // TILE_ROWS for low, high in rows)


@pytest.mark.parametrize(
    ("edges", "size", "tile_rows", "nearest"),
    [
        (Edges(0, 0, 99, 100), (50, 50), TILE_ROWS, False),  # parts of pixels
        (Edges(0, 0, 100, 100), (100, 100), TILE_ROWS, False),  # nothing to shrink
        (Edges(-1, 0, 99, 100), (50, 50), TILE_ROWS, False),  # beyond the level
        (Edges(0, 0, 100, 100), (50, 50), TILE_ROWS, True),
        (Edges(0, 0, 100, 100), (50, 50), 0, False),  # a backend that is asked once
    ],
)
def test_other_regions_are_read_at_once(
    monkeypatch: pytest.MonkeyPatch, edges: Edges, size: tuple[int, int], tile_rows: int, nearest: bool
) -> None:
    monkeypatch.setattr(module, "BAND_PX", 0)
    plane, rows = _plane(tile_rows)
    assert resample(plane, edges, *size, nearest=nearest).shape == (size[1], size[0], 3)
    assert len(rows) == 1
    small, rows = _plane(TILE_ROWS)
    monkeypatch.undo()
    resample(small, Edges(0, 0, 100, 100), 50, 50)
    assert len(rows) == 1
