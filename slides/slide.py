"""A slide: pixels of any box at any size, whatever file and library they come from."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType, TracebackType

import numpy as np
import numpy.typing as npt

from wsigym.errors import (
    BadTileError,
    InvalidArgumentError,
    MissingResolutionError,
    UnknownNameError,
    UpsamplingError,
)

from .backends import Backend, backend_class
from .files import FileState, check_unchanged, open_files
from .geometry import UPSAMPLING_TOLERANCE, Box, fitted_size, magnification_from_mpp
from .resample import Edges, Plane, filled, level_for, resample
from .resolution import PLAUSIBLE_MPP, Resolution

__all__ = ["MAX_OUTPUT_PX", "ON_BAD_TILE", "RESAMPLINGS", "Slide"]

ON_BAD_TILE = ("raise", "background")
RESAMPLINGS = ("area", "nearest")

MAX_PLACE = 2**53
"""How far from the origin a box may reach, in level-0 pixels: so far, floats tell pixels apart."""

MAX_OUTPUT_PX = 2**28
"""Pixels of one read (0.8 GB of RGB): more is refused before anything is allocated."""


class Slide:
    """A whole-slide image, made by `open_slide`. Boxes are level-0 pixels throughout.

    Safe under fork, spawn, threads and pickling: what is known of the file travels, and each process opens the file
    for itself when it first reads pixels. Open files and decoded tiles are the process's: any number of slides may be
    held, and slides of one file share them. `close()` frees the file; a later read opens it again. A file that was
    replaced or changed since is noticed (`SlideReadError`).

    Attributes: `path` (absolute path or URL), `backend` (its name), `width`, `height` (level-0 pixels),
    `level_dimensions` ((width, height) of each level), `level_downsamples` (mean of both axes, level 0 first),
    `properties` (what the file says, under OpenSlide's names), `resolution`, `background` (RGB), `icc_profile`
    (bytes or None; never applied), `associated_images` (name to uint8 (height, width, 3), read when asked for),
    `on_bad_tile` ("raise" or "background").
    """

    def __init__(
        self,
        path: str,
        backend: str,
        opened: Backend,
        resolution: Resolution,
        *,
        on_bad_tile: str = "raise",
        state: FileState | None = None,
    ) -> None:
        self.path = path
        self.backend = backend
        self.resolution = resolution
        self.on_bad_tile = on_bad_tile
        self._bad_tiles: set[tuple[int, int, int]] = set()
        self._state = state
        self.level_dimensions = opened.level_dimensions
        self.width, self.height = opened.level_dimensions[0]
        self._downsamples = tuple(
            (self.width / width, self.height / height) for width, height in opened.level_dimensions
        )
        self.level_downsamples = tuple((x + y) / 2 for x, y in self._downsamples)
        self.background = opened.background
        self.icc_profile = opened.icc_profile
        self._properties = dict(opened.properties)
        self._associated_names = opened.associated_names
        self._shrinks = opened.shrinks
        open_files().put(backend, path, state, opened)

    @property
    def box(self) -> Box:
        """The whole slide."""
        return Box(0, 0, self.width, self.height)

    @property
    def dimensions(self) -> tuple[int, int]:
        """(width, height) in level-0 pixels."""
        return self.width, self.height

    @property
    def mpp(self) -> float | None:
        """Microns per level-0 pixel; None if unknown."""
        return self.resolution.mpp

    @property
    def magnification(self) -> float | None:
        """Objective-equivalent magnification of level 0, 10 / mpp; None if unknown."""
        return None if self.mpp is None else magnification_from_mpp(self.mpp)

    @property
    def bad_tiles(self) -> int:
        """How many damaged tiles were met and shown as background; always 0 with `on_bad_tile="raise"`."""
        return len(self._bad_tiles)

    @property
    def properties(self) -> Mapping[str, str]:
        return MappingProxyType(self._properties)

    @property
    def associated_images(self) -> Mapping[str, npt.NDArray[np.uint8]]:
        return _AssociatedImages(self, self._associated_names)

    def read(self, box: Box, size: tuple[int, int] | None = None, *, resampling: str = "area") -> npt.NDArray[np.uint8]:
        """uint8 (height, width, 3): the pixels of `box`, shown at `size` = (width, height); its own size by default.

        The parts of `box` outside the slide, and those never scanned, are `background`. At its own size a box is cut
        out of level 0 exactly. A smaller size is the area mean of the coarsest level that is fine enough, within
        half a pixel of that level. A larger size is interpolated linearly. With `resampling="nearest"`, which is for
        labels and masks, each pixel is the level's pixel under its middle instead, and no value is made up.

        Raises `InvalidArgumentError` for an empty box or one beyond 2**53 px, a size below 1 px or above 2**28 px in
        all, `SlideReadError` if pixels of the file cannot be read or the file was replaced, and `BadTileError`, which
        is one, where a tile is damaged, unless `on_bad_tile="background"`.
        """
        width, height = self._checked_size(box, size)
        if resampling not in RESAMPLINGS:
            raise UnknownNameError("resampling", resampling, RESAMPLINGS)
        level = level_for(self._downsamples, (box.width / width, box.height / height))
        level_width, level_height = self.level_dimensions[level]
        edges = Edges(
            box.x * level_width / self.width,
            box.y * level_height / self.height,
            box.right * level_width / self.width,
            box.bottom * level_height / self.height,
        )
        backend = self._backend()
        read = backend.read_level if self.on_bad_tile == "raise" else partial(self._read_around_bad_tiles, backend)
        tile_rows = backend.tile_size(level)[1] if self._shrinks else 0  # OpenSlide composes, and is better asked once
        plane = Plane(level_width, level_height, self.background, partial(read, level), self._shrinks, tile_rows)
        try:
            return resample(plane, edges, width, height, nearest=resampling == "nearest")
        except BadTileError:
            check_unchanged(self.path, self._state)  # or it is another file's tile
            raise

    def read_at(self, box: Box, magnification: float, *, allow_upsampling: bool = False) -> npt.NDArray[np.uint8]:
        """uint8 (height, width, 3): the pixels of `box` at an objective-equivalent `magnification`.

        The size is `fitted_size(box, magnification, slide.mpp)`. A magnification up to 10 % above the scan's counts
        as native and is resampled; above that, `allow_upsampling` must be given.

        Raises `MissingResolutionError` if the slide's scale is unknown, `UpsamplingError`, and what `read` raises.
        """
        if not (math.isfinite(magnification) and magnification > 0):
            raise InvalidArgumentError(f"magnification is {magnification!r}; it must be a number above 0, such as 20.")
        if self.mpp is None:
            low, high = PLAUSIBLE_MPP
            raise MissingResolutionError(
                f"{self.path}: {magnification:g}x was asked for, but the slide's microns per pixel are unknown. "
                f"Found: {self.resolution.found}; usable is an mpp from {low} to {high:g} um/px or an objective power. "
                f"Give it: open_slide(..., mpp=0.25), or `mpp` of the slide in its cohort."
            )
        native = magnification_from_mpp(self.mpp)
        if magnification > native * UPSAMPLING_TOLERANCE and not allow_upsampling:
            raise UpsamplingError(
                f"{self.path}: {magnification:g}x was asked for, but the slide is scanned at {native:.4g}x "
                f"({self.mpp:g} um/px); up to {native * UPSAMPLING_TOLERANCE:.4g}x is allowed. Ask for less, or pass "
                f"allow_upsampling=True."
            )
        return self.read(box, fitted_size(box, magnification, self.mpp))

    def thumbnail(self, max_px: int) -> npt.NDArray[np.uint8]:
        """uint8 (height, width, 3): the whole slide with its long side at most `max_px` pixels, never enlarged."""
        if not max_px >= 1:  # NaN too
            raise InvalidArgumentError(f"max_px is {max_px}; a thumbnail has at least 1 px a side.")
        scale = min(1.0, max_px / max(self.width, self.height))
        return self.read(self.box, (max(1, round(self.width * scale)), max(1, round(self.height * scale))))

    def close(self) -> None:
        """Free the file. Harmless when repeated; a later read, of this or another slide of the file, opens it again."""
        open_files().drop(self.backend, self.path)

    def _checked_size(self, box: Box, size: tuple[int, int] | None) -> tuple[int, int]:
        if not isinstance(box, Box):
            raise InvalidArgumentError(
                f"{self.path}: the box is a {type(box).__name__}; give Box(x, y, width, height), in level-0 pixels."
            )
        if max(abs(box.x), abs(box.y), box.right, box.bottom) > MAX_PLACE:
            raise InvalidArgumentError(
                f"{self.path}: the box reaches further than 2**53 px from the slide's corner; the slide is "
                f"{self.width} x {self.height} px."
            )
        if box.is_empty:
            raise InvalidArgumentError(f"{self.path}: the box {box.to_list()} is empty; it needs at least 1 px a side.")
        if size is None:
            width, height = box.width, box.height
        else:
            try:
                width, height = (operator.index(side) for side in size)
            except (TypeError, ValueError):
                width = height = 0
        if width < 1 or height < 1:
            raise InvalidArgumentError(
                f"{self.path}: size is {size!r}; it is (width, height) in whole pixels, 1 or more each."
            )
        if width * height > MAX_OUTPUT_PX:
            raise InvalidArgumentError(
                f"{self.path}: {width} x {height} px were asked for in one read; at most {MAX_OUTPUT_PX:,} px are "
                f"allowed. Ask for a smaller size, or read the box in parts."
            )
        return width, height

    def _backend(self) -> Backend:
        check_unchanged(self.path, self._state)
        return open_files().get(self.backend, self.path, self._state, self._open)

    def _open(self, path: str) -> Backend:
        backend = backend_class(self.backend)(path)
        check_unchanged(path, self._state)  # it might have been replaced since the look before
        return backend

    def _read_around_bad_tiles(
        self, backend: Backend, level: int, x: int, y: int, width: int, height: int, shrink: int
    ) -> npt.NDArray[np.uint8]:
        """`Backend.read_level`, tile by tile where a tile is damaged, which is then background and is counted."""
        try:
            return backend.read_level(level, x, y, width, height, shrink)
        except BadTileError:
            check_unchanged(self.path, self._state)
        pixels = filled(width, height, self.background)
        tile_width, tile_height = (side // shrink for side in backend.tile_size(level))
        for row in range(y // tile_height, -(-(y + height) // tile_height)):
            y0, y1 = max(y, row * tile_height), min(y + height, (row + 1) * tile_height)
            for column in range(x // tile_width, -(-(x + width) // tile_width)):
                x0, x1 = max(x, column * tile_width), min(x + width, (column + 1) * tile_width)
                try:
                    tile = backend.read_level(level, x0, y0, x1 - x0, y1 - y0, shrink)
                except BadTileError:
                    self._bad_tiles.add((level, column, row))
                else:
                    pixels[y0 - y : y1 - y, x0 - x : x1 - x] = tile
        return pixels

    def __enter__(self) -> Slide:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        scale = "unknown scale" if self.mpp is None else f"{self.mpp:g} um/px"
        return f"<Slide {self.path!r}: {self.width} x {self.height} px, {scale}, {self.backend}>"


class _AssociatedImages(Mapping[str, npt.NDArray[np.uint8]]):
    """Label, macro, thumbnail: read when asked for."""

    def __init__(self, slide: Slide, names: tuple[str, ...]) -> None:
        self._slide = slide
        self._names = names

    def __getitem__(self, name: str) -> npt.NDArray[np.uint8]:
        if name not in self._names:
            raise KeyError(name)
        return self._slide._backend().read_associated(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
