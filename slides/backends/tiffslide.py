"""TiffSlide: tiled TIFF files, local or at any URL that fsspec knows.

TiffSlide opens the file and reads its properties. Levels and tiles are taken from the tifffile object that it stands
on: TiffSlide itself takes the second level of an SVS file without thumbnail for a thumbnail, fills tiles that were
never scanned with black, and reads truncated JPEG tiles as if they were whole.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import tifffile
from fsspec.core import url_to_fs

from wsigym.errors import BadTileError, SlideOpenError, SlideReadError, UnsupportedSlideError

from ..cache import next_token
from ..cache import tiles as tile_cache
from ._jpeg import CHECK_SHRINK, Completer, JpegError, JpegKind, OtherJpegError, checked_tables, decode
from ._pixels import background_from, over_background
from ._tiff import check_tiff, is_tiled_tiff

if TYPE_CHECKING:
    from tiffslide import TiffSlide

__all__ = ["TiffSlideBackend"]

_JPEG_END = b"\xff\xd9"

_JPEG_COLOURS = {
    (tifffile.PHOTOMETRIC.RGB, 3): "rgb",
    (tifffile.PHOTOMETRIC.YCBCR, 3): "ycbcr",
    (tifffile.PHOTOMETRIC.MINISBLACK, 1): "grey",
}

BLOCK_BYTES = 2**18
"""What is fetched from a URL at once, and kept (32 blocks): a few tiles. fsspec's 5 MiB would be mostly waste."""


class TiffSlideBackend:
    """One file, open in TiffSlide."""

    shrinks: tuple[int, ...] = ()

    def __init__(self, location: str) -> None:
        self._location = location
        self._token = next_token()
        self._lock = threading.Lock()  # the file's position is shared by all threads
        self._slide = _open(location)
        tiff = self._slide.ts_tifffile
        check_tiff(tiff, location)
        try:
            self._levels = _levels(tiff, location)
            in_pyramid = {page.offset for page in self._levels}
            self._associated = {
                series.name.lower(): series for series in tiff.series if series.keyframe.offset not in in_pyramid
            }
        except SlideOpenError:
            raise
        except Exception as error:  # tifffile puts images together as it finds them, and trusts what it finds
            raise SlideOpenError(
                f"{location}: its images do not fit together ({type(error).__name__}: {error})."
            ) from error
        self._checks = [_jpeg_check(page) for page in self._levels]
        self.properties = _properties(self._slide, location)
        self.background = background_from(self.properties)
        self.level_dimensions = tuple((page.imagewidth, page.imagelength) for page in self._levels)
        profile = self._levels[0].tags.valueof("InterColorProfile")
        self.icc_profile = profile if isinstance(profile, bytes) else None
        self.associated_names = tuple(self._associated)

    @classmethod
    def recognises(cls, location: str) -> bool:
        return "://" in location or is_tiled_tiff(location)

    def tile_size(self, level: int) -> tuple[int, int]:
        page = self._levels[level]
        return page.tilewidth, page.tilelength

    def read_level(self, level: int, x: int, y: int, width: int, height: int, shrink: int = 1) -> npt.NDArray[np.uint8]:
        page = self._levels[level]
        tile_width, tile_height = page.tilewidth, page.tilelength
        columns = -(-page.imagewidth // tile_width)
        pixels = np.empty((height, width, 3), dtype=np.uint8)
        for row in range(y // tile_height, -(-(y + height) // tile_height)):
            for column in range(x // tile_width, -(-(x + width) // tile_width)):
                tile = self._tile(level, row * columns + column)
                left, top = column * tile_width, row * tile_height
                x0, x1 = max(x, left), min(x + width, left + tile_width)
                y0, y1 = max(y, top), min(y + height, top + tile_height)
                pixels[y0 - y : y1 - y, x0 - x : x1 - x] = (
                    self.background if tile is None else tile[y0 - top : y1 - top, x0 - left : x1 - left]
                )
        return pixels

    def read_associated(self, name: str) -> npt.NDArray[np.uint8]:
        try:
            with self._lock:
                pixels = self._associated[name].asarray()
        except Exception as error:  # tifffile and its codecs raise many types
            raise SlideReadError(
                f"{self._location}: the associated image {name!r} cannot be read ({error})."
            ) from error
        return _rgb(np.atleast_3d(pixels), self.background)

    def close(self) -> None:
        self._slide.close()

    def __del__(self) -> None:
        if "_slide" in self.__dict__:  # it is absent where opening failed
            self.close()

    def _tile(self, level: int, index: int) -> npt.NDArray[np.uint8] | None:
        """uint8 (h, w, 3), read-only, cut to the image's edge; None if it was never scanned."""
        page = self._levels[level]
        if page.databytecounts[index] == 0:
            return None
        key = (self._token, level, index)
        tile = tile_cache().get(key)
        if tile is None:
            tile = self._decoded(level, index)
            if tile is not None:
                tile_cache().put(key, tile)
        return tile

    def _decoded(self, level: int, index: int) -> npt.NDArray[np.uint8] | None:
        page = self._levels[level]
        count = page.databytecounts[index]
        tile = f"tile {index} of level {level}"
        try:
            with self._lock:
                page.parent.filehandle.seek(page.dataoffsets[index])
                data = page.parent.filehandle.read(count)
        except Exception as error:  # every file system of fsspec raises its own errors
            raise SlideReadError(f"{self._location}: {tile} cannot be read ({error}).") from error
        if len(data) < count:
            raise SlideReadError(f"{self._location}: {tile} cannot be read ({len(data)} of {count} bytes came).")
        try:
            tables = {}
            if page.compression == tifffile.COMPRESSION.JPEG:
                # tifffile's decoder fills what is missing of a cut stream with grey and says nothing.
                if data.rfind(_JPEG_END) < 0:
                    raise ValueError("the JPEG stream ends early")
                if (check := self._checks[level]) is not None:
                    check(data)
                tables = {"jpegtables": page.jpegtables, "jpegheader": page.jpegheader}
            decoded = page.decode(data, index, **tables)[0]
        except Exception as error:  # the codecs' errors are of many types
            raise BadTileError(
                f"{self._location}: {tile} cannot be decoded ({error}). Other tiles still read."
            ) from error
        if decoded is None:
            return None
        if page.photometric == tifffile.PHOTOMETRIC.MINISWHITE:
            decoded = ~decoded
        return _rgb(decoded[0], self.background).copy()


def _open(location: str) -> TiffSlide:
    from tiffslide import TiffSlide  # costs 0.3 s, which files of other backends need not pay

    try:
        if "://" not in location:
            return TiffSlide(location)
        file_system, path = url_to_fs(location)
        file = file_system.open(path, block_size=BLOCK_BYTES, cache_type="blockcache")
        return TiffSlide(file, tifffile_options={"name": location})
    except FileNotFoundError as error:
        # fsspec says this of anything that goes wrong over HTTP, and has the truth as the cause.
        cause = error.__cause__
        reason = (
            "no such file" if cause is None or isinstance(cause, FileNotFoundError) else f"cannot be opened ({cause})"
        )
        raise SlideOpenError(f"{location}: {reason}.") from error
    except tifffile.TiffFileError as error:
        raise SlideOpenError(f"{location}: not a slide: TiffSlide reads TIFF files only ({error}).") from error
    except Exception as error:  # every file system of fsspec raises its own errors
        raise SlideOpenError(f"{location}: cannot be opened ({type(error).__name__}: {error}).") from error


def _levels(tiff: tifffile.TiffFile, location: str) -> list[tifffile.TiffPage]:
    """The pages of the pyramid, largest first: an SVS file's tiled pages, else the levels of the first series."""
    first = tiff.pages.first
    if not first.is_tiled:
        raise SlideOpenError(
            f"{location}: is a flat image, not a tiled slide. Give its microns per pixel to open a local copy "
            f"as a slide of one level: open_slide(..., mpp=0.5)."
        )
    if tiff.is_svs:
        levels = [page for page in tiff.pages if isinstance(page, tifffile.TiffPage) and page.is_tiled]
    else:
        levels = [level.keyframe for level in tiff.series[0].levels]
    # In these, tiles overlap, levels are padded, or several scans make one slide. OpenSlide knows how.
    composed = tiff.is_bif or tiff.is_ndpi or tiff.is_philips or tiff.is_scn
    if composed or levels[0].offset != first.offset or not all(_alike(level, first) for level in levels):
        raise UnsupportedSlideError(
            f"{location}: the backend 'tiffslide' reads one plain pyramid of tiles, as in SVS and generic TIFF files, "
            f"and this file holds something else. Open a local copy with backend='openslide'."
        )
    if any(_is_unconverted(level) for level in levels):
        raise UnsupportedSlideError(
            f"{location}: its colours are YCbCr under compression {int(first.compression)}, which the backend "
            f"'tiffslide' would show as if they were RGB. Open a local copy with backend='openslide', or convert it."
        )
    return levels


def _is_unconverted(page: tifffile.TiffPage) -> bool:
    """Whether tifffile leaves the page's colours as YCbCr: it converts those of JPEG only."""
    if page.compression == tifffile.COMPRESSION.APERIO_JP2000_YCBC:
        return True
    return page.photometric == tifffile.PHOTOMETRIC.YCBCR and page.compression != tifffile.COMPRESSION.JPEG


def _jpeg_check(page: tifffile.TiffPage) -> Callable[[bytes], None] | None:
    """What raises on a JPEG tile that is not of its size or does not decode to its end; None for pages of other kinds.

    tifffile takes pixels of another size as they come, and libjpeg tables of its own for those that are missing.
    """
    photometric, width, height = tifffile.PHOTOMETRIC(page.photometric), page.tilewidth, page.tilelength
    colour = _JPEG_COLOURS.get((photometric, page.samplesperpixel))
    if page.compression != tifffile.COMPRESSION.JPEG or colour is None or width % CHECK_SHRINK or height % CHECK_SHRINK:
        return None
    try:
        kind = JpegKind(width, height, colour, checked_tables(page.jpegtables))
    except JpegError as error:
        broken = error

        def refuse(data: bytes) -> None:
            raise broken

        return refuse
    completer = Completer(kind)

    def check(data: bytes) -> None:
        try:
            stream = completer.whole(data)
        except OtherJpegError:
            return  # progressive, say: tifffile knows more kinds
        decode(stream, kind, CHECK_SHRINK)

    return check


def _alike(level: tifffile.TiffPage, first: tifffile.TiffPage) -> bool:
    return (
        level.is_tiled
        and level.dtype == first.dtype
        and level.samplesperpixel == first.samplesperpixel
        and (level.samplesperpixel == 1 or level.planarconfig == tifffile.PLANARCONFIG.CONTIG)
    )


def _properties(slide: TiffSlide, location: str) -> dict[str, str]:
    """TiffSlide's properties as text, under OpenSlide's names, without those that it leaves empty."""
    try:
        properties = slide.properties
    except Exception as error:  # its parsers trust what they parse
        raise UnsupportedSlideError(
            f"{location}: TiffSlide does not know this kind of TIFF ({type(error).__name__}: {error})."
        ) from error
    return {
        key.replace("tiffslide.", "openslide.", 1): str(value) for key, value in properties.items() if value is not None
    }


def _rgb(pixels: npt.NDArray[np.uint8], background: tuple[int, int, int]) -> npt.NDArray[np.uint8]:
    """uint8 (h, w, 3) of grey, RGB or RGBA pixels (h, w, channels)."""
    if pixels.shape[-1] == 1:
        return np.repeat(pixels, 3, axis=-1)
    if pixels.shape[-1] == 4:
        return over_background(pixels, background)
    return pixels
