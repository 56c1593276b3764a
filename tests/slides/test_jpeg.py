"""Streams of JPEG tiles: made whole, and refused before a decoder sees them."""

from __future__ import annotations

import numpy as np
import pytest
import simplejpeg
from slides_builder import noise

from wsigym.slides.backends._jpeg import Completer, JpegError, JpegKind, checked_tables, decode

KIND = JpegKind(64, 64, "ycbcr", b"")
STREAM = simplejpeg.encode_jpeg(noise(64, 64), 90, "RGB", "420")
FRAME, SCAN = STREAM.index(b"\xff\xc0"), STREAM.index(b"\xff\xda")


def _with(place: int, *values: int) -> bytes:
    return STREAM[:place] + bytes(values) + STREAM[place + len(values) :]


def test_a_sound_stream_gives_its_pixels_at_every_scale() -> None:
    stream = Completer(KIND).whole(STREAM)
    np.testing.assert_array_equal(decode(stream, KIND), simplejpeg.decode_jpeg(STREAM))
    for factor in (2, 4, 8):
        assert decode(stream, KIND, factor).shape == (64 // factor, 64 // factor, 3)


def test_fill_bytes_between_segments_are_allowed() -> None:
    stream = STREAM[:FRAME] + b"\xff\xff" + STREAM[FRAME:]
    np.testing.assert_array_equal(decode(Completer(KIND).whole(stream), KIND), simplejpeg.decode_jpeg(STREAM))


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (b"", "does not begin"),
        (b"\xff\xd8", "ends early"),
        (STREAM[:FRAME], "ends early"),
        (STREAM[: FRAME + 6], "ends early"),
        (STREAM[: SCAN + 3], "no scan"),
        (b"\xff\xd8\xff\xd9", "no frame"),
        (STREAM[:FRAME] + STREAM[SCAN:], "no frame"),
        (STREAM[:SCAN] + STREAM[FRAME:], "frame too many"),
        (_with(FRAME + 1, 0xC2), "not 8-bit baseline"),
        (_with(FRAME + 4, 12), "not 8-bit baseline"),
        (_with(FRAME + 5, 0xFF, 0xFF, 0xFF, 0xFF), "65535 x 65535 px, the tile 64 x 64"),
        (_with(FRAME + 9, 4), "4 components"),
        (_with(FRAME + 11, 0x31), "unusual subsampling"),
        (_with(FRAME + 14, 0x21), "unusual subsampling"),
        (_with(2, 0), "header is broken"),
        (_with(4, 0xFF, 0xFF), "ends early"),
    ],
)
def test_what_is_not_of_the_tile_is_refused(stream: bytes, reason: str) -> None:
    with pytest.raises(JpegError, match=reason):
        Completer(KIND).whole(stream)


def test_more_scans_than_components_are_refused() -> None:
    """libjpeg would work through each of thousands that fit into a tile."""
    one_component = STREAM[:SCAN] + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00"
    completer = Completer(KIND)
    assert completer.whole(one_component * 1 + b"\x00\xff\xd9")
    scans = one_component[SCAN:] + b"\x00"
    assert completer.whole(STREAM[:SCAN] + scans * 3 + b"\xff\xd9")
    for stream in (STREAM[:SCAN] + scans * 4 + b"\xff\xd9", STREAM[:SCAN] + scans * 5000):
        with pytest.raises(JpegError, match="more scans than components"):
            completer.whole(stream)


def test_headers_are_compared_with_the_last_one() -> None:
    completer = Completer(KIND)
    other = simplejpeg.encode_jpeg(noise(64, 64, 1), 50, "RGB", "444")
    for stream in (STREAM, STREAM, other, STREAM):
        np.testing.assert_array_equal(decode(completer.whole(stream), KIND), simplejpeg.decode_jpeg(stream))
    with pytest.raises(JpegError):
        completer.whole(_with(FRAME + 5, 1, 0, 1, 0))


def test_a_cut_stream_is_refused_by_the_decoder() -> None:
    with pytest.raises(JpegError):
        decode(Completer(KIND).whole(STREAM[:-50]), KIND)


@pytest.mark.parametrize("tables", [b"", b"\xff\xd8", b"\xff\xd8\xff\xdb\x00\x40", STREAM])
def test_broken_tables_are_refused(tables: bytes) -> None:
    with pytest.raises(JpegError):
        checked_tables(tables)


def test_no_tables_are_none() -> None:
    assert checked_tables(None) == checked_tables(b"\xff\xd8\xff\xd9") == b""
