"""What can be known of a TIFF file from its tags, before any pixel is decoded. Shared by the backends."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tifffile

from wsigym.errors import SlideOpenError, UnsupportedSlideError

from ._ifd import MAX_TAG_BYTES

__all__ = ["MAX_TILE_PX", "check_tiff", "check_tiff_file", "is_tiff", "is_tiled_tiff"]

# tifffile logs what it finds wrong in a file; without a handler Python prints that to stderr, beside our own error.
logging.getLogger("tifffile").addHandler(logging.NullHandler())

_MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
"""Classic and BigTIFF, little- and big-endian (TIFF 6.0 section 2; BigTIFF)."""

MAX_TILE_PX = 2**24
"""Pixels of a tile (48 MiB decoded). Scanners write 256 to 2,048 px a side; a header that claims more is taken for
broken before a decoder allocates what it says."""

_BRIGHTFIELD = {"MINISBLACK", "MINISWHITE", "RGB", "YCBCR"}


def is_tiff(location: str) -> bool:
    """Whether the local file begins as a TIFF file does."""
    with Path(location).open("rb") as file:
        return file.read(4) in _MAGIC


def is_tiled_tiff(location: str) -> bool:
    """Whether the local file is a TIFF file whose first image is tiled."""
    if not is_tiff(location):
        return False
    try:
        with tifffile.TiffFile(location) as tiff:
            return bool(tiff.pages) and tiff.pages.first.is_tiled
    except Exception:  # a broken header can raise anything; whatever it is, this is no tiled TIFF
        return False


def check_tiff_file(location: str) -> None:
    """`check_tiff` on a local file; nothing if it is no TIFF file."""
    if not is_tiff(location):
        return
    try:
        tiff = tifffile.TiffFile(location)
    except Exception as error:  # a broken header can raise anything
        raise SlideOpenError(f"{location}: its TIFF header cannot be read ({error}).") from error
    with tiff:
        check_tiff(tiff, location)


def check_tiff(tiff: tifffile.TiffFile, location: str) -> None:
    """Raise unless the file holds every tile that it lists, and its pixels are 8-bit RGB or grey brightfield.

    `SlideOpenError` if it is truncated or its index is broken, `UnsupportedSlideError` for other pixels.
    """
    try:
        if not tiff.pages:
            raise SlideOpenError(f"{location}: the TIFF file holds no image.")
        _check_extents(tiff, location)
        _check_pixels(tiff, location)
    except SlideOpenError:
        raise
    except Exception as error:  # a broken index can raise anything
        raise SlideOpenError(f"{location}: its TIFF index cannot be read ({type(error).__name__}: {error}).") from error


def _images(tiff: tifffile.TiffFile, location: str) -> Iterator[tifffile.TiffPage | tifffile.TiffFrame]:
    seen = set()
    for image in _images_as_listed(tiff):
        if image.offset in seen:  # tifffile follows directories that point back for ever
            raise SlideOpenError(f"{location}: its TIFF directories go round in a circle. Its header is broken.")
        seen.add(image.offset)
        yield image


def _images_as_listed(tiff: tifffile.TiffFile) -> Iterator[tifffile.TiffPage | tifffile.TiffFrame]:
    for page in tiff.pages:
        yield page
        if isinstance(page, tifffile.TiffPage) and page.pages is not None:
            yield from page.pages


def _check_extents(tiff: tifffile.TiffFile, location: str) -> None:
    size = tiff.filehandle.size
    tag_bytes = 0
    for number, image in enumerate(_images(tiff, location)):
        if (page := image.keyframe) is not None and page.is_tiled:
            _check_grid(page, number, location)
        if isinstance(image, tifffile.TiffPage):
            tag_bytes += sum(tag.valuebytecount for tag in image.tags)
        if tag_bytes > max(MAX_TAG_BYTES, size):  # OpenSlide would read them all
            raise SlideOpenError(
                f"{location}: its tags claim {tag_bytes:,} bytes or more, and the file has {size:,}. "
                f"Its header is broken."
            )
        offsets = np.asarray(image.dataoffsets, dtype=np.uint64)
        counts = np.asarray(image.databytecounts, dtype=np.uint64)
        if len(offsets) != len(counts):
            raise SlideOpenError(
                f"{location}: image {number} lists {len(offsets)} tile offsets but {len(counts)} tile sizes."
            )
        # Each apart too: their sum might pass 2**64.
        beyond = np.flatnonzero((offsets > size) | (counts > size) | (offsets + counts > size))
        if len(beyond):
            needed = max(int(offsets[tile]) + int(counts[tile]) for tile in beyond)
            raise SlideOpenError(
                f"{location}: the file is truncated: {len(beyond)} of {len(offsets)} tiles of image {number} end after "
                f"the file's last byte (it has {size:,} bytes and needs {needed:,}). "
                f"Copy or download it again."
            )


def _check_grid(page: tifffile.TiffPage, number: int, location: str) -> None:
    """What a header claims is bounded before anything of that size is allocated."""
    width, height = page.tilewidth, page.tilelength
    if not 0 < width * height <= MAX_TILE_PX:
        raise SlideOpenError(
            f"{location}: the tiles of image {number} are {width} x {height} px; from 1 to {MAX_TILE_PX:,} px are "
            f"read at once. Its header is broken, or convert it to tiles of 512 x 512 px."
        )
    if 0 in (page.tags.valueof("ImageWidth"), page.tags.valueof("ImageLength")):  # tifffile makes one tile of it
        raise SlideOpenError(f"{location}: image {number} is 0 px wide or high. Its header is broken.")
    needed = -(-page.imagewidth // width) * -(-page.imagelength // height)
    if needed < 1 or len(page.dataoffsets) < needed:
        raise SlideOpenError(
            f"{location}: image {number} is {page.imagewidth} x {page.imagelength} px, which takes {needed:,} tiles of "
            f"{width} x {height} px, but {len(page.dataoffsets):,} are listed. Its header is broken."
        )


def _check_pixels(tiff: tifffile.TiffFile, location: str) -> None:
    page = tiff.pages.first
    photometric = getattr(page.photometric, "name", str(page.photometric))
    channels, planes = page.samplesperpixel, 1
    if channels == 1:  # fluorescence has its channels in images of their own
        planes = tiff.series[0].size // (page.imagewidth * page.imagelength)
    if page.dtype == np.uint8 and channels in (1, 3, 4) and planes == 1 and photometric in _BRIGHTFIELD:
        return
    raise UnsupportedSlideError(
        f"{location}: pixels are {channels * planes} channel(s) of {page.dtype}, photometric {photometric}; "
        f"wsigym reads 8-bit RGB or grey brightfield images. Convert the slide to 8-bit RGB first."
    )
