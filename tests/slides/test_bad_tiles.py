"""Damaged tiles: an error that names them, or background that is counted."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image
from slides_builder import noise, write_slide

from wsigym.errors import BadTileError, SlideReadError, UnknownNameError
from wsigym.slides import Box, open_slide

BACKENDS = ("tiles", "openslide", "tiffslide")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """256 x 256 px and a level of half that, 16 and 4 tiles of which tiles 5 and 2 are zeros."""
    path = write_slide(tmp_path / "bad.tif", noise(256, 256), downsamples=(1, 2), compression="jpeg")
    data = bytearray(path.read_bytes())
    with tifffile.TiffFile(path) as tiff:
        for level, tile in ((0, 5), (1, 2)):
            offset, count = tiff.pages[level].dataoffsets[tile], tiff.pages[level].databytecounts[tile]
            data[offset : offset + count] = bytes(count)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("backend", BACKENDS)
def test_bad_tiles_are_background_and_are_counted(path: Path, backend: str) -> None:
    whole = write_slide(path.with_name("whole.tif"), noise(256, 256), downsamples=(1, 2), compression="jpeg")
    with open_slide(path, backend=backend, on_bad_tile="background") as slide, open_slide(whole) as sound:
        assert slide.on_bad_tile == "background"
        assert slide.bad_tiles == 0
        for _ in range(2):
            expected = sound.read(sound.box)
            expected[64:128, 64:128] = 255
            np.testing.assert_array_equal(slide.read(slide.box), expected)
            assert slide.bad_tiles == 1
        part = slide.read(Box(60, 60, 80, 40))
        np.testing.assert_array_equal(part, expected[60:100, 60:140])
        half = sound.read(sound.box, (128, 128))
        half[64:, :64] = 255
        np.testing.assert_array_equal(slide.read(slide.box, (128, 128)), half)
        assert slide.bad_tiles == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_raising_is_the_default_and_other_reads_do_not_suffer(path: Path, backend: str) -> None:
    with open_slide(path, backend=backend) as slide:
        assert slide.on_bad_tile == "raise"
        for _ in range(2):
            with pytest.raises(BadTileError, match="level 0") as caught:
                slide.read(slide.box)
            assert str(path) in str(caught.value)
            slide.read(Box(0, 0, 64, 64))
        assert slide.bad_tiles == 0


def test_bad_tiles_of_a_shrunk_read_are_background(path: Path) -> None:
    with open_slide(path, on_bad_tile="background") as slide:
        assert slide.backend == "tiles"
        shown = slide.read(slide.box, (32, 32))
        assert (shown[16:, :16] == 255).all()
        assert not (shown[:16] == 255).all(axis=2).any()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("ends", [False, True])
def test_a_tile_whose_second_half_is_missing_is_bad(tmp_path: Path, backend: str, ends: bool) -> None:
    """OpenSlide and tifffile show what there is and say nothing. With `ends`, the stream still has its end marker."""
    path = write_slide(tmp_path / "half.tif", noise(128, 64), downsamples=(1,), compression="jpeg")
    data = bytearray(path.read_bytes())
    with tifffile.TiffFile(path) as tiff:
        offset, count = tiff.pages[0].dataoffsets[1], tiff.pages[0].databytecounts[1]
    first, last = offset + count * 2 // 3, offset + count - 2 * ends
    data[first:last] = bytes(last - first)
    path.write_bytes(data)
    with open_slide(path, backend=backend) as slide:
        for box in (slide.box, Box(64, 0, 1, 1), Box(127, 63, 1, 1), Box(63, 0, 2, 1)):
            with pytest.raises(BadTileError):
                slide.read(box)
        assert slide.read(Box(0, 0, 64, 64)).shape == (64, 64, 3)
    with open_slide(path, backend=backend, on_bad_tile="background") as slide:
        assert (slide.read(slide.box)[:, 64:] == 255).all()
        assert slide.bad_tiles == 1


def test_jpeg_of_kinds_that_are_not_checked_still_reads(tmp_path: Path) -> None:
    """Progressive tiles, which "tiles" does not take."""
    pixels = noise(128, 64)
    streams = []
    for left in (0, 64):
        buffer = io.BytesIO()
        Image.fromarray(pixels[:, left : left + 64]).save(buffer, "jpeg", progressive=True, subsampling=0)
        streams.append(buffer.getvalue())
    path = tmp_path / "progressive.tif"
    tifffile.imwrite(
        path, iter(streams), shape=pixels.shape, dtype=np.uint8, tile=(64, 64), compression="jpeg", photometric="ycbcr"
    )
    for backend in ("openslide", "tiffslide"):
        with open_slide(path, backend=backend) as slide:
            assert np.abs(slide.read(slide.box).astype(int) - pixels).mean() < 5


def test_a_file_that_cannot_be_read_is_no_bad_tile(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    with open_slide(path, on_bad_tile="background") as slide:
        monkeypatch.setattr("wsigym.slides.backends.tiles.os.pread", fail)
        with pytest.raises(SlideReadError, match="Input/output error") as caught:
            slide.read(slide.box)
        assert not isinstance(caught.value, BadTileError)
        assert slide.bad_tiles == 0


def test_there_are_two_answers(path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown on_bad_tile 'ignore'.*raise, background"):
        open_slide(path, on_bad_tile="ignore")
