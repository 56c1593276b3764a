"""Pillow: flat images (PNG, JPEG, TIFF without tiles) as slides of one level, held in memory."""

from __future__ import annotations

import logging
import struct
import threading
import warnings

import numpy as np
import numpy.typing as npt
from PIL import Image

from wsigym.errors import BadTileError, SlideOpenError, UnsupportedSlideError

from ._pixels import WHITE, over_background
from ._tiff import check_tiff_file, is_tiled_tiff

__all__ = ["ImageBackend"]

# Pillow logs what it finds wrong in a file; without a handler Python prints that to stderr, beside our own error.
logging.getLogger("PIL").addHandler(logging.NullHandler())

_MODES = {"1", "L", "LA", "P", "PA", "RGB", "RGBA"}
"""Pillow's modes that turn into 8-bit RGB without loss."""


_NO_IMAGE = (OSError, ValueError, SyntaxError, KeyError, IndexError, TypeError, struct.error)
"""What Pillow's parsers are seen to raise on broken headers."""

_TOO_LARGE = (Image.DecompressionBombWarning, Image.DecompressionBombError)


class ImageBackend:
    """One flat image. Decoded on the first read, then kept."""

    background = WHITE
    associated_names: tuple[str, ...] = ()
    shrinks: tuple[int, ...] = ()

    def __init__(self, location: str) -> None:
        check_tiff_file(location)
        self._location = location
        self._lock = threading.Lock()
        self._pixels: npt.NDArray[np.uint8] | None = None
        try:
            image = _open_image(location)
        except _TOO_LARGE as error:
            raise SlideOpenError(
                f"{location}: too large for a flat image ({error}). Convert it to a tiled pyramidal TIFF."
            ) from error
        except _NO_IMAGE as error:
            raise SlideOpenError(f"{location}: cannot be opened as an image ({error}).") from error
        with image:
            if image.mode not in _MODES:
                raise UnsupportedSlideError(
                    f"{location}: the image's mode is {image.mode}; wsigym reads 8-bit RGB or grey images. "
                    f"Convert it first."
                )
            self.level_dimensions = (image.size,)
            self.icc_profile: bytes | None = image.info.get("icc_profile")
            self.properties = {"openslide.vendor": f"image ({image.format})"}

    @classmethod
    def recognises(cls, location: str) -> bool:
        if "://" in location or is_tiled_tiff(location):
            return False
        try:
            with _open_image(location):
                return True
        except _TOO_LARGE:
            return True
        except _NO_IMAGE:
            return False

    def tile_size(self, level: int) -> tuple[int, int]:
        return self.level_dimensions[0]

    def read_level(self, level: int, x: int, y: int, width: int, height: int, shrink: int = 1) -> npt.NDArray[np.uint8]:
        return self._decoded()[y : y + height, x : x + width]

    def read_associated(self, name: str) -> npt.NDArray[np.uint8]:
        raise KeyError(name)

    def close(self) -> None:
        self._pixels = None

    def _decoded(self) -> npt.NDArray[np.uint8]:
        with self._lock:
            if self._pixels is None:
                try:
                    with _open_image(self._location) as image:
                        rgba = np.asarray(image.convert("RGBA"))
                except _NO_IMAGE as error:
                    raise BadTileError(f"{self._location}: the image cannot be decoded ({error}).") from error
                self._pixels = over_background(rgba, WHITE)
            return self._pixels


def _open_image(location: str) -> Image.Image:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd metadata; broken pixels raise
        # Pillow warns above 89 megapixels and refuses above 179; for an array in memory the first is enough.
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        return Image.open(location)
