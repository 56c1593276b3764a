"""JPEG streams of TIFF tiles made whole, checked before a decoder sees them, and decoded by libjpeg-turbo.

A tile's stream may leave its tables to the file (JPEGTables, TIFF Technical Note 2), and what its colours are is said
by the TIFF tag, not by the stream: libjpeg would guess from JFIF and Adobe markers, and guess wrong for RGB without
one. So these markers are replaced by one Adobe marker that agrees with the tag, as libtiff and OpenSlide have it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import simplejpeg

__all__ = ["Completer", "JpegError", "JpegKind", "OtherJpegError", "checked_tables", "decode"]

_START, _END = b"\xff\xd8", b"\xff\xd9"
_SOF0, _SOF1, _SOS, _APP0, _APP14 = 0xC0, 0xC1, 0xDA, 0xE0, 0xEE
_FRAMES = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_SCAN = b"\xff\xda"
_ADOBE = b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00"
"""An Adobe marker without its last byte, the transform: 0 is RGB, 1 YCbCr (Adobe Technical Note 5116, section 18)."""

_COLOUR = {"rgb": _ADOBE + b"\0", "ycbcr": _ADOBE + b"\1", "grey": b""}
_LUMA_SAMPLING = {0x11, 0x12, 0x21, 0x22, 0x41, 0x14}
"""Sampling factors (horizontal, vertical) of luma that libjpeg-turbo's interface knows, 4:4:4 to 4:1:1."""

CHECK_SHRINK = 8
"""By how much a tile is shrunk that is decoded only to see whether it is sound."""

OFF_ALIGNMENT = 8
"""Where in the memory allocated, which begins at a multiple of 16 bytes, a decoded tile begins. On multiples of 16 or
32 libjpeg-turbo's colour conversion (SSE2, AVX2) writes past the processor's caches, which costs a tenth or more of a
tile's time, since it is read again at once."""


class JpegError(ValueError):
    """A stream that is broken, or of a kind that the decoder is not to see."""


class OtherJpegError(JpegError):
    """A stream that may be sound, but of a kind that is not decoded here."""


@dataclass(frozen=True, slots=True)
class JpegKind:
    """What a level's tiles are: `colour` is "rgb", "ycbcr" or "grey"; `tables` are segments to put before each."""

    width: int
    height: int
    colour: str
    tables: bytes


def checked_tables(tables: bytes | None) -> bytes:
    """The segments of a JPEGTables tag, without its start and end markers and without words on colour."""
    if tables is None:
        return b""
    kept, end = _segments(tables, frame=None)
    if tables[end : end + 2] != _END:
        raise JpegError("the JPEG tables do not end")
    return kept


class Completer:
    """Makes the streams of one level's tiles whole, and checks them: baseline, 8-bit, and of the tile's size.

    Decoders allocate what the frame header claims, and work through as many scans as there are. The size is bounded by
    the tile's; after a scan of all components libjpeg takes no other, and where each has its own they are counted.
    """

    def __init__(self, kind: JpegKind) -> None:
        self._kind = kind
        # The header of the last tile, what it should be, and how many scans may follow. As a rule all tiles have the
        # same. It is replaced in one assignment, so that threads may share this.
        self._last = b"", b"", 1

    def whole(self, data: bytes) -> bytes:
        """The tile's stream with tables and colour. Raises `JpegError`."""
        before, after, scans = self._last
        if not before or not data.startswith(before):
            before, after, scans = self._last = self._header(data)
        if scans > 1 and data.count(_SCAN, len(before)) >= scans:
            raise JpegError("the JPEG stream has more scans than components")
        return after + data[len(before) :]

    def _header(self, data: bytes) -> tuple[bytes, bytes, int]:
        """What comes before the first scan's data, as it is and as it should be, and the number of scans allowed."""
        kept, scan = _segments(data, self._kind)
        end = scan + 5
        if data[scan : scan + 2] != _SCAN or len(data) < end:
            raise JpegError("the JPEG stream has no scan")
        components = 1 if self._kind.colour == "grey" else 3
        scans = 1 if data[scan + 4] == components else components
        parts = (_START, _COLOUR[self._kind.colour], self._kind.tables, kept, data[scan:end])
        return data[:end], b"".join(parts), scans


def decode(stream: bytes, kind: JpegKind, factor: int = 1) -> npt.NDArray[np.uint8]:
    """uint8 (height / factor, width / factor, 3) of a whole stream, shrunk inside the DCT by 1, 2, 4 or 8.

    The tile's sides are whole multiples of the factor. Raises `JpegError` if anything of the stream is amiss.
    """
    width, height = kind.width // factor, kind.height // factor
    memory = np.empty(OFF_ALIGNMENT + 3 * width * height, np.uint8)[OFF_ALIGNMENT:]
    try:
        # simplejpeg takes the strongest DCT scaling whose result is at least so large, which is the factor exactly.
        pixels: npt.NDArray[np.uint8] = simplejpeg.decode_jpeg(
            stream, "RGB", min_height=height, min_width=width, buffer=memory
        )
    except (ValueError, RuntimeError) as error:
        raise JpegError(str(error)) from error
    assert pixels.shape == (height, width, 3), (pixels.shape, kind, factor)
    return pixels


def _segments(data: bytes, frame: JpegKind | None) -> tuple[bytes, int]:
    """The header's segments, without those on colour, and where the scan or the end marker after them begins."""
    if data[:2] != _START:
        raise JpegError("the JPEG stream does not begin as one")
    kept, at, framed = [], 2, False
    try:
        while True:
            if data[at] != 0xFF:
                raise JpegError("the JPEG header is broken")
            marker = data[at + 1]
            if marker == 0xFF:  # a fill byte
                at += 1
                continue
            if marker in (_SOS, 0xD9):
                break
            after = at + 2 + (data[at + 2] << 8 | data[at + 3])
            if marker in _FRAMES:
                if frame is None or framed:
                    raise JpegError("the JPEG stream has a frame too many")
                _check_frame(data[at:after], frame)
                framed = True
            if marker not in (_APP0, _APP14):
                kept.append(data[at:after])
            at = after
    except IndexError:
        raise JpegError("the JPEG header ends early") from None
    if frame is not None and not framed:
        raise JpegError("the JPEG stream has no frame")
    return b"".join(kept), at


def _check_frame(segment: bytes, kind: JpegKind) -> None:
    height, width = segment[5] << 8 | segment[6], segment[7] << 8 | segment[8]
    if (width, height) != (kind.width, kind.height):
        raise JpegError(f"the JPEG stream is {width} x {height} px, the tile {kind.width} x {kind.height}")
    components = segment[9]
    if components != (1 if kind.colour == "grey" else 3):
        raise JpegError(f"the JPEG stream has {components} components")
    if segment[1] not in (_SOF0, _SOF1) or segment[4] != 8:
        raise OtherJpegError("the JPEG stream is not 8-bit baseline")
    sampling = [segment[11 + 3 * component] for component in range(components)]
    if components == 3 and (sampling[0] not in _LUMA_SAMPLING or sampling[1:] != [0x11, 0x11]):
        raise OtherJpegError("the JPEG stream has an unusual subsampling")
