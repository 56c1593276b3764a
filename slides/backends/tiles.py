"""The project's own reader of tiled 8-bit JPEG slides, SVS and plain TIFF: at the speed of the JPEG decoder.

The tile index is read once; a tile is one `pread` and one call of libjpeg-turbo, and goes into the process's cache.
Where a level is to be shrunk, the decoder shrinks by 2, 4 or 8 inside the DCT, which costs less than decoding.
Whatever is not exactly of this kind is not recognised, and OpenSlide reads it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import struct
import weakref
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from wsigym.errors import BadTileError, SlideOpenError, SlideReadError

from ..cache import next_token
from ..cache import tiles as tile_cache
from ..files import FileState, file_state
from ..resample import filled
from ._ifd import Directory, OddTiffError, read_directories
from ._jpeg import Completer, JpegError, JpegKind, checked_tables, decode
from ._pixels import WHITE
from ._tiff import MAX_TILE_PX

__all__ = ["TilesBackend", "forget_indexes"]

MAX_INDEXES = 64
"""Tile indexes kept: 16 bytes a tile, 2.5 MB for a slide of 100,000 px a side."""

_SUBFILE_TYPE, _WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC = 254, 256, 257, 258, 259, 262
_DESCRIPTION, _STRIP_OFFSETS, _SAMPLES, _STRIP_COUNTS, _X_RESOLUTION, _Y_RESOLUTION = 270, 273, 277, 279, 282, 283
_PLANAR, _RESOLUTION_UNIT, _SOFTWARE, _TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS = 284, 296, 305, 322, 323, 324
_TILE_COUNTS, _SAMPLE_FORMAT, _JPEG_TABLES, _XMP, _ICC, _NDPI = 325, 339, 347, 700, 34675, 65420

_JPEG = 7
_COLOURS = {(2, 3): "rgb", (6, 3): "ycbcr", (1, 1): "grey"}
"""Colour of a JPEG tile by photometric interpretation and samples a pixel."""

_UM_PER_UNIT = {2: ("inch", 25400.0), 3: ("centimeter", 10000.0)}


@dataclass(frozen=True, slots=True)
class _Level:
    width: int
    height: int
    columns: int
    offsets: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    kind: JpegKind
    completer: Completer


@dataclass(frozen=True, slots=True)
class _Index:
    """All that is known of a file; shared by every slide object on it, and `token` names it in the tile cache."""

    token: int
    levels: tuple[_Level, ...]
    properties: dict[str, str]
    icc_profile: bytes | None
    associated_names: tuple[str, ...]


class TilesBackend:
    """One file, open for reading at any place by any number of threads."""

    background = WHITE
    shrinks = (8, 4, 2)

    def __init__(self, location: str) -> None:
        self._location = location
        index = _index(location, file_state(location))
        if index is None:
            raise SlideOpenError(f"{location}: changed while it was opened; open it again.")
        self._index = index
        self._levels = index.levels
        self.level_dimensions = tuple((level.width, level.height) for level in index.levels)
        self.properties = index.properties
        self.icc_profile = index.icc_profile
        self.associated_names = index.associated_names
        self._descriptor = os.open(location, os.O_RDONLY | os.O_CLOEXEC)
        self._close = weakref.finalize(self, os.close, self._descriptor)
        self._close.atexit = False

    @classmethod
    def recognises(cls, location: str) -> bool:
        return "://" not in location and _index(location, file_state(location)) is not None

    def tile_size(self, level: int) -> tuple[int, int]:
        kind = self._levels[level].kind
        return kind.width, kind.height

    def read_level(self, level: int, x: int, y: int, width: int, height: int, shrink: int = 1) -> npt.NDArray[np.uint8]:
        kind = self._levels[level].kind
        tile_width, tile_height = kind.width // shrink, kind.height // shrink
        right, bottom = x + width, y + height
        first, last = x // tile_width, (right - 1) // tile_width
        top, low = y // tile_height, (bottom - 1) // tile_height
        if first == last and top == low:
            tile = self._tile(level, first, top, shrink)
            left, above = first * tile_width, top * tile_height
            return tile[y - above : bottom - above, x - left : right - left]
        pixels = np.empty((height, width, 3), dtype=np.uint8)
        for row in range(top, low + 1):
            above = row * tile_height
            y0, y1 = max(y, above), min(bottom, above + tile_height)
            for column in range(first, last + 1):
                left = column * tile_width
                x0, x1 = max(x, left), min(right, left + tile_width)
                tile = self._tile(level, column, row, shrink)
                pixels[y0 - y : y1 - y, x0 - x : x1 - x] = tile[y0 - above : y1 - above, x0 - left : x1 - left]
                del (
                    tile
                )  # where the cache did not keep it, the next is decoded into the same memory, which is still hot
        return pixels

    def read_associated(self, name: str) -> npt.NDArray[np.uint8]:
        from .openslide import OpenSlideBackend

        return OpenSlideBackend(self._location).read_associated(name)

    def close(self) -> None:
        self._close()

    def _tile(self, level: int, column: int, row: int, shrink: int) -> npt.NDArray[np.uint8]:
        """uint8 (h, w, 3), read-only: a tile as far as it lies in the level, a last part of a pixel counted whole."""
        grid = self._levels[level]
        number = row * grid.columns + column
        cache = tile_cache()
        key = (self._index.token, level, shrink, number)
        tile = cache.get(key)
        if tile is None:
            tile = self._decoded(level, grid, number, column, row, shrink)
            cache.put(key, tile)
        return tile

    def _decoded(
        self, level: int, grid: _Level, number: int, column: int, row: int, shrink: int
    ) -> npt.NDArray[np.uint8]:
        kind = grid.kind
        width = min(kind.width, grid.width - column * kind.width)
        height = min(kind.height, grid.height - row * kind.height)
        count = int(grid.counts[number])
        if count == 0:
            return filled(-(-width // shrink), -(-height // shrink), self.background)
        try:
            data = os.pread(self._descriptor, count, int(grid.offsets[number]))
        except OSError as error:
            raise SlideReadError(f"{self._location}: cannot be read ({error}).") from error
        # What lies beyond the level's edge must not bleed into it: a tile whose DCT blocks it cuts is decoded whole.
        shrink_in_decoder = shrink if (width % 8 == 0 and height % 8 == 0) else 1
        try:
            tile = decode(grid.completer.whole(data), kind, shrink_in_decoder)
        except JpegError as error:
            raise BadTileError(
                f"{self._location}: the tile in column {column}, row {row} of level {level} cannot be decoded "
                f"({error}). Other tiles still read."
            ) from error
        if shrink_in_decoder == shrink:
            width, height = width // shrink, height // shrink
            return tile if tile.shape[:2] == (height, width) else tile[:height, :width].copy()
        tile = cv2.copyMakeBorder(  # type: ignore[assignment]
            tile[:height, :width], 0, -height % shrink, 0, -width % shrink, cv2.BORDER_REPLICATE
        )
        size = tile.shape[1] // shrink, tile.shape[0] // shrink
        return cv2.resize(tile, size, interpolation=cv2.INTER_AREA)  # type: ignore[return-value]


@functools.lru_cache(maxsize=MAX_INDEXES)
def _index(location: str, state: FileState | None) -> _Index | None:
    """The index of a file in this state; None unless all of it is of the kind that is read here."""
    try:
        descriptor = os.open(location, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        size = os.fstat(descriptor).st_size
        directories, below = read_directories(descriptor)
        first = directories[0]
        aperio = first.text(_DESCRIPTION).startswith("Aperio")
        if not aperio and _is_other_vendor(first):
            return None
        for directory in (*directories, *itertools.chain.from_iterable(below.values())):
            _check_extents(directory, size)
        pyramid = _pyramid(directories, below, aperio=aperio)
        levels = tuple(_level(directory) for directory in pyramid)
        _check_order(levels)
        # OpenSlide fills what Aperio never scanned of an upper level from the level below. It alone does.
        if aperio and any((level.counts == 0).any() for level in levels[1:]):
            return None
        for level in levels:
            _check_a_tile(descriptor, level)
        names = _associated_names(directories) if aperio else ()
        properties = _properties(first, levels, aperio=aperio)
        return _Index(next_token(), levels, properties, first.bytes(_ICC), names)
    except (OddTiffError, JpegError, IndexError, OSError, struct.error):
        return None
    finally:
        os.close(descriptor)


def forget_indexes() -> None:
    """Read the index of each file anew when it is next opened, as a new process would."""
    _index.cache_clear()


def _is_other_vendor(first: Directory) -> bool:
    """Whether OpenSlide knows this TIFF file for one whose tiles overlap, are padded, or make several scans."""
    software, description = first.text(_SOFTWARE), first.text(_DESCRIPTION)
    return (
        _NDPI in first.tags
        or software.startswith(("Philips", "MedScan"))
        or "leica-microsystems.com/scn" in description
        or b"iScan" in (first.bytes(_XMP) or b"")
    )


def _check_extents(directory: Directory, size: int) -> None:
    for offsets_tag, counts_tag in ((_TILE_OFFSETS, _TILE_COUNTS), (_STRIP_OFFSETS, _STRIP_COUNTS)):
        offsets, counts = directory.numbers(offsets_tag), directory.numbers(counts_tag)
        if len(offsets) != len(counts):
            raise OddTiffError("as many offsets as sizes are needed")
        # Each apart first: their sum might pass 2**63.
        if len(offsets) and max(int(offsets.max()), int(counts.max()), int((offsets + counts).max())) > size:
            raise OddTiffError("tiles end after the file")


def _pyramid(directories: list[Directory], below: dict[int, list[Directory]], *, aperio: bool) -> list[Directory]:
    if aperio:
        return [directory for directory in directories if _TILE_WIDTH in directory.tags]
    reduced = below[0] if 0 in below else [each for each in directories[1:] if each.number(_SUBFILE_TYPE, 0) & 1]
    return [directories[0], *(directory for directory in reduced if _TILE_WIDTH in directory.tags)]


def _level(directory: Directory) -> _Level:
    samples = directory.number(_SAMPLES, 1)
    bits, formats = directory.numbers(_BITS), directory.numbers(_SAMPLE_FORMAT)
    colour = _COLOURS.get((directory.number(_PHOTOMETRIC), samples))
    if (
        directory.number(_COMPRESSION) != _JPEG
        or colour is None
        or directory.number(_PLANAR, 1) != 1
        or set(bits.tolist()) != {8}
        or set(formats.tolist()) - {1}
    ):
        raise OddTiffError("no 8-bit JPEG")
    width, height = directory.number(_WIDTH), directory.number(_HEIGHT)
    tile_width, tile_height = directory.number(_TILE_WIDTH), directory.number(_TILE_HEIGHT)
    if width < 1 or height < 1 or tile_width < 16 or tile_height < 16 or tile_width % 16 or tile_height % 16:
        raise OddTiffError("sizes that cannot be")
    if tile_width * tile_height > MAX_TILE_PX:
        raise OddTiffError("tiles too large to be decoded at once")
    columns, rows = -(-width // tile_width), -(-height // tile_height)
    offsets, counts = directory.numbers(_TILE_OFFSETS), directory.numbers(_TILE_COUNTS)
    if len(offsets) != columns * rows:
        raise OddTiffError("as many tiles as cover the image are needed")
    kind = JpegKind(tile_width, tile_height, colour, checked_tables(directory.bytes(_JPEG_TABLES)))
    return _Level(width, height, columns, offsets, counts, kind, Completer(kind))


def _check_order(levels: tuple[_Level, ...]) -> None:
    for finer, coarser in itertools.pairwise(levels):
        if not (coarser.width < finer.width and coarser.height <= finer.height):
            raise OddTiffError("levels that do not get smaller")


def _check_a_tile(descriptor: int, level: _Level) -> None:
    """The first tile that is there must begin as those do that are read here; if it is broken, so may the rest be."""
    scanned = np.flatnonzero(level.counts)
    if len(scanned):
        number = int(scanned[0])
        data = os.pread(descriptor, int(level.counts[number]), int(level.offsets[number]))
        level.completer.whole(data)


def _associated_names(directories: list[Directory]) -> tuple[str, ...]:
    """OpenSlide's names of an SVS file's flat images: the second image is the thumbnail, others say what they are."""
    names = []
    for number, directory in enumerate(directories):
        if _TILE_WIDTH in directory.tags:
            continue
        if number == 1:
            names.append("thumbnail")
            continue
        lines = directory.text(_DESCRIPTION).splitlines()
        if len(lines) > 1 and lines[1].split():
            names.append(lines[1].split()[0])
    return tuple(names)


def _properties(first: Directory, levels: tuple[_Level, ...], *, aperio: bool) -> dict[str, str]:
    """What the file says of itself, under OpenSlide's names."""
    properties = {
        "openslide.vendor": "aperio" if aperio else "generic-tiff",
        "openslide.level-count": str(len(levels)),
    }
    for number, level in enumerate(levels):
        properties[f"openslide.level[{number}].width"] = str(level.width)
        properties[f"openslide.level[{number}].height"] = str(level.height)
        properties[f"openslide.level[{number}].tile-width"] = str(level.kind.width)
        properties[f"openslide.level[{number}].tile-height"] = str(level.kind.height)
    description = first.text(_DESCRIPTION)
    if description:
        properties["openslide.comment"] = properties["tiff.ImageDescription"] = description
    unit, um_per_unit = _UM_PER_UNIT.get(first.number(_RESOLUTION_UNIT, 2), ("none", None))
    properties["tiff.ResolutionUnit"] = unit
    for axis, tag in (("X", _X_RESOLUTION), ("Y", _Y_RESOLUTION)):
        resolution = first.ratio(tag)
        if resolution is not None:
            properties[f"tiff.{axis}Resolution"] = f"{resolution:.10g}"
            if not aperio and um_per_unit is not None and resolution > 0:
                properties[f"openslide.mpp-{axis.lower()}"] = f"{um_per_unit / resolution:.10g}"
    if aperio:
        properties |= _aperio_properties(description)
    return properties


def _aperio_properties(description: str) -> dict[str, str]:
    """The "name = value" parts of an SVS file's description, and OpenSlide's own names for two of them."""
    properties = {}
    for part in description.split("|")[1:]:
        name, equals, value = part.partition("=")
        if equals:
            properties[f"aperio.{name.strip()}"] = value.strip()
    for source, name in (("aperio.MPP", "mpp-x"), ("aperio.MPP", "mpp-y"), ("aperio.AppMag", "objective-power")):
        # A number or nothing, as OpenSlide has it; some scanners' locales write a comma.
        with contextlib.suppress(KeyError, ValueError):
            properties[f"openslide.{name}"] = f"{float(properties[source].replace(',', '.')):.10g}"
    return properties
