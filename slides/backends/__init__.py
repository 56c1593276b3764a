"""Backends: the libraries that turn a file into level pixels, behind one protocol.

A backend is a class in one file here and a line in `BACKENDS`. It answers for a single open file in a single
process, and does the minimum: levels, properties, and rectangles of level pixels. Everything that a user sees of
geometry, scale, resampling and padding is `Slide`'s, once for all backends.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from wsigym.errors import UnknownNameError

__all__ = ["BACKENDS", "Backend", "BackendClass", "backend_class"]


class Backend(Protocol):
    """One open slide file. `read_level` may be called from several threads at once."""

    level_dimensions: tuple[tuple[int, int], ...]
    """(width, height) of each level, level 0 first, in that level's pixels."""

    properties: Mapping[str, str]
    """What the file says of itself, under OpenSlide's names ("openslide.mpp-x", ...)."""

    background: tuple[int, int, int]
    """RGB of what was never scanned."""

    icc_profile: bytes | None
    associated_names: tuple[str, ...]

    shrinks: tuple[int, ...]
    """Factors by which it shrinks a level for less than full decoding costs, largest first."""

    def tile_size(self, level: int) -> tuple[int, int]:
        """(width, height): the parts in which the file stores a level."""

    def read_level(self, level: int, x: int, y: int, width: int, height: int, shrink: int = 1) -> npt.NDArray[np.uint8]:
        """uint8 (height, width, 3): a rectangle in pixels of `level`, wholly inside it, never-scanned parts filled.

        With one of `shrinks` the pixels are those of the level shrunk by it, its last row and column rounded up. The
        array may be part of a tile that others use: it is not to be written to.

        Raises `SlideReadError`, after which other rectangles still read; `BadTileError` where a tile is to blame.
        """

    def read_associated(self, name: str) -> npt.NDArray[np.uint8]:
        """uint8 (height, width, 3): the label, macro or thumbnail of that name."""

    def close(self) -> None:
        """Free the file. Harmless when repeated."""


class BackendClass(Protocol):
    """What a backend's class offers before a file is open."""

    def __call__(self, location: str) -> Backend:
        """Open an absolute path or a URL. Raises `SlideOpenError`; reads no tile."""

    def recognises(self, location: str) -> bool:
        """Whether this backend reads files of this kind. Looks at the file's head only."""


BACKENDS = {
    "tiles": "tiles:TilesBackend",
    "openslide": "openslide:OpenSlideBackend",
    "tiffslide": "tiffslide:TiffSlideBackend",
    "image": "image:ImageBackend",
}
"""Name to "module:class" here, in the order in which `backend="auto"` asks them."""


def backend_class(name: str) -> BackendClass:
    """The class of the backend called `name`. Raises `UnknownNameError`."""
    if name not in BACKENDS:
        raise UnknownNameError("slide backend", name, ("auto", *BACKENDS))
    module, _, attribute = BACKENDS[name].partition(":")
    return cast(BackendClass, getattr(import_module(f"{__name__}.{module}"), attribute))
