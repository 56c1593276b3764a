"""OpenSlide: every format that it reads, from local files."""

from __future__ import annotations

import contextlib
import os

import numpy as np
import numpy.typing as npt
import openslide

from wsigym.errors import BadTileError, SlideOpenError, SlideReadError

from ._jpeg import CHECK_SHRINK
from ._pixels import background_from, over_background
from ._tiff import check_tiff_file
from .tiles import TilesBackend

__all__ = ["OpenSlideBackend"]

CACHE_BYTES = 64 * 2**20
"""Decoded tiles kept by OpenSlide for all slides of the process together (its default is 32 MiB for each)."""

GRID_SEARCH_PX = 15
"""How many level pixels more may be read to begin on a level's grid."""

UNTILED_PX = 256
"""The parts in which a damaged region is read where OpenSlide does not say how the file stores it."""

_cache: openslide.OpenSlideCache | None = None
_inherited: list[openslide.OpenSlideCache] = []


def _shared_cache() -> openslide.OpenSlideCache:
    """The process's one cache."""
    global _cache
    if _cache is None:
        _cache = openslide.OpenSlideCache(CACHE_BYTES)
    return _cache


def _after_fork() -> None:
    """A child must not touch its parent's cache, whose lock may be held for ever; freeing it would take the lock."""
    global _cache
    if _cache is not None:
        _inherited.append(_cache)
        _cache = None


os.register_at_fork(after_in_child=_after_fork)


class OpenSlideBackend:
    """One file, open in OpenSlide. An OpenSlide handle is dead for good after its first error, so it is replaced."""

    shrinks: tuple[int, ...] = ()

    def __init__(self, location: str) -> None:
        check_tiff_file(location)
        self._location = location
        self._slide = self._open()
        self.properties = _properties(self._slide)
        self.background = background_from(self.properties)
        self.level_dimensions = tuple(self._slide.level_dimensions)
        self._downsamples = self._slide.level_downsamples
        self.icc_profile = _icc_profile(self._slide)
        self.associated_names = tuple(self._slide.associated_images)
        self._checker = _checker(location, self.level_dimensions)

    @classmethod
    def recognises(cls, location: str) -> bool:
        return "://" not in location and openslide.OpenSlide.detect_format(location) is not None

    def tile_size(self, level: int) -> tuple[int, int]:
        width, height = (
            int(self.properties.get(f"openslide.level[{level}].tile-{side}", 0)) for side in ("width", "height")
        )
        return (width, height) if width > 0 and height > 0 else (UNTILED_PX, UNTILED_PX)

    def read_level(self, level: int, x: int, y: int, width: int, height: int, shrink: int = 1) -> npt.NDArray[np.uint8]:
        if self._checker is not None:
            first_x, first_y = x // CHECK_SHRINK, y // CHECK_SHRINK
            count_x, count_y = -(-(x + width) // CHECK_SHRINK) - first_x, -(-(y + height) // CHECK_SHRINK) - first_y
            self._checker.read_level(level, first_x, first_y, count_x, count_y, CHECK_SHRINK)
        downsample = self._downsamples[level]
        (before_x, location_x), (before_y, location_y) = _on_grid(x, downsample), _on_grid(y, downsample)
        location, size = (location_x, location_y), (width + before_x, height + before_y)
        slide = self._slide
        try:
            region = slide.read_region(location, level, size)
        except openslide.OpenSlideError:
            # Perhaps a bad tile read before, or by another thread, killed the handle: a fresh one, that nobody else
            # has yet, tells. If this read kills it too, the next one gets here again.
            slide = self._open()
            try:
                region = slide.read_region(location, level, size)
            except openslide.OpenSlideError as error:
                raise BadTileError(
                    f"{self._location}: level {level} cannot be read at x {x}, y {y}, {width} x {height} level pixels "
                    f"({error}). A tile there is damaged; other tiles still read."
                ) from error
            finally:
                self._slide = slide
        return over_background(np.asarray(region)[before_y:, before_x:], self.background)

    def read_associated(self, name: str) -> npt.NDArray[np.uint8]:
        try:
            image = self._slide.associated_images[name]
        except openslide.OpenSlideError as error:
            self._slide = self._open()
            raise SlideReadError(
                f"{self._location}: the associated image {name!r} cannot be read ({error})."
            ) from error
        return over_background(np.asarray(image), self.background)

    def close(self) -> None:
        self._slide.close()
        if self._checker is not None:
            self._checker.close()

    def _open(self) -> openslide.OpenSlide:
        try:
            slide = openslide.OpenSlide(self._location)
        except openslide.OpenSlideError as error:
            raise SlideOpenError(f"{self._location}: OpenSlide cannot open it ({error}).") from error
        slide.set_cache(_shared_cache())
        return slide


def _checker(location: str, level_dimensions: tuple[tuple[int, int], ...]) -> TilesBackend | None:
    """Our own reader of the file's tiles, where it is of that reader's kind.

    OpenSlide shows what there is of a JPEG tile that is cut short, and grey behind, and says nothing. So each tile is
    first decoded at an eighth, once as long as the cache of tiles keeps that: 0.1 to 0.2 ms of the several that
    OpenSlide takes for a region.
    """
    if not TilesBackend.recognises(location):
        return None
    tiles = TilesBackend(location)
    return tiles if tiles.level_dimensions == level_dimensions else None


def _on_grid(place: int, downsample: float) -> tuple[int, int]:
    """(level pixels before `place`, level-0 pixel there) from where a read lies on the level's grid, or nearly.

    OpenSlide takes whole level-0 pixels and divides them by its downsample. Unless that is a whole number the quotient
    falls between level pixels, and OpenSlide blurs what it then moves. Of a few places before, one falls near enough.
    """
    before = min(range(min(place, GRID_SEARCH_PX) + 1), key=lambda steps: _off_grid((place - steps) * downsample))
    return before, round((place - before) * downsample)


def _off_grid(place_level_0: float) -> float:
    return abs(place_level_0 - round(place_level_0))


def _properties(slide: openslide.OpenSlide) -> dict[str, str]:
    """Its properties, without those whose name is broken: OpenSlide lists them and then does not know them."""
    properties = {}
    for name in slide.properties:
        with contextlib.suppress(KeyError):
            properties[name] = slide.properties[name]
    return properties


def _icc_profile(slide: openslide.OpenSlide) -> bytes | None:
    profile = slide.color_profile
    return None if profile is None else profile.tobytes()
