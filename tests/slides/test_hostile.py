"""Files and arguments that were made to mislead: a typed error, in time, whatever the backend."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import tifffile
from slides_builder import noise, write_abbreviated, write_slide

from wsigym.errors import BadTileError, InvalidArgumentError, SlideOpenError, SlideReadError
from wsigym.slides import Box, open_slide
from wsigym.slides.backends._ifd import OddTiffError, read_directories

BACKENDS = ("auto", "openslide", "tiffslide")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_slide(tmp_path / "slide.tif", noise(256, 192), downsamples=(1, 4), compression="jpeg")


# -- directories -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("target", [0, 1])
def test_directories_that_go_round_in_a_circle(path: Path, backend: str, target: int) -> None:
    """tifffile would follow them for ever."""
    with tifffile.TiffFile(path) as tiff:
        last, offset = tiff.pages[1], tiff.pages[target].offset
        link = last.offset + 2 + 12 * len(last.tags)
    data = bytearray(path.read_bytes())
    assert struct.unpack_from("<I", data, link) == (0,)
    struct.pack_into("<I", data, link, offset)
    path.write_bytes(data)
    with pytest.raises(SlideOpenError, match="circle") as caught:
        open_slide(path, backend=backend)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_subdirectory_at_no_place(tmp_path: Path, backend: str) -> None:
    pixels = noise(128, 128)
    path = write_slide(
        tmp_path / "sub.tif", pixels, downsamples=(1,), compression="jpeg", extratags=[(329, "I", 1, 0, True)]
    )
    written, misread = (struct.pack("<HHII", code, 4, 1, 0) for code in (329, 330))
    data = path.read_bytes()
    assert data.count(written) == 1
    path.write_bytes(data.replace(written, misread))
    with open_slide(path, backend=backend) as slide:
        assert np.abs(slide.read(slide.box).astype(int) - pixels).mean() < 8


@pytest.mark.parametrize("backend", BACKENDS)
def test_tags_that_claim_the_file_again_and_again(path: Path, backend: str) -> None:
    """Each fits into the file; together they would take memory without end, in OpenSlide too."""
    count = 200
    size = 2**27 // count + 1
    data = bytearray(path.read_bytes()) + bytes(size)
    (first,) = struct.unpack_from("<I", data, 4)
    (tags,) = struct.unpack_from("<H", data, first)
    struct.pack_into("<I", data, 4, len(data))
    data += struct.pack("<H", tags + count) + data[first + 2 : first + 2 + 12 * tags]
    data += b"".join(struct.pack("<HHII", 40000 + number, 7, size, 8) for number in range(count))
    path.write_bytes(data + bytes(4))
    with path.open("rb") as file, pytest.raises(OddTiffError, match="too many bytes"):
        read_directories(file.fileno())
    with pytest.raises(SlideOpenError, match="tags"):
        open_slide(path, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("tags", [("ImageWidth",), ("ImageLength",), ("ImageWidth", "ImageLength")])
def test_an_image_without_extent(path: Path, backend: str, tags: tuple[str, ...]) -> None:
    """tifffile takes such an image for one tile."""
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        for tag in tags:
            tiff.pages[0].tags[tag].overwrite(0)
    with pytest.raises(SlideOpenError):
        open_slide(path, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_offsets_whose_ends_pass_the_largest_number(tmp_path: Path, backend: str) -> None:
    path = write_slide(tmp_path / "big.tif", noise(256, 192), downsamples=(1,), compression="jpeg", bigtiff=True)
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        tiff.pages[0].tags["TileOffsets"].overwrite([2**64 - 1] * 12)
    with pytest.raises(SlideOpenError, match="truncated"):
        open_slide(path, backend=backend)


# -- JPEG streams ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_tiles_of_another_size_than_their_streams(tmp_path: Path, backend: str) -> None:
    """tifffile spreads the pixels that there are over the tile that is claimed."""
    path = write_slide(tmp_path / "wide.tif", noise(256, 192), downsamples=(1,), compression="jpeg")
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        for tag, value in (("TileWidth", 2**16), ("TileLength", 256)):
            tiff.pages[0].tags[tag].overwrite(value)
    with open_slide(path, backend=backend) as slide, pytest.raises(BadTileError):
        slide.read(Box(0, 0, 64, 64))


@pytest.mark.parametrize("backend", BACKENDS)
def test_jpeg_tables_that_are_cut(tmp_path: Path, backend: str) -> None:
    """What is missing, decoders take from elsewhere, and show wrong colours."""
    path = write_abbreviated(tmp_path / "tables.tif", noise(128, 128), rgb=False)
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        tables = tiff.pages[0].tags["JPEGTables"]
        tables.overwrite(tables.value[:100] + b"\xff\xd9")
    with open_slide(path, backend=backend) as slide, pytest.raises(BadTileError):
        slide.read(slide.box)


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "box", [(0, 0, 10**10, 10), (5, 5, 2**31, 1), (3, -(2**31), 1, 2**32), (-(2**50), -(2**50), 2**51, 2**51)]
)
@pytest.mark.parametrize("size", [(8, 8), (1, 1)])
def test_boxes_far_larger_than_the_slide(path: Path, box: tuple[int, int, int, int], size: tuple[int, int]) -> None:
    with open_slide(path) as slide:
        slide.read(Box(0, 0, 8, 8))
        assert slide.read(Box(*box), size).shape == (size[1], size[0], 3)


def test_a_large_box_shown_as_one_pixel_is_the_mean_of_all_of_it(path: Path) -> None:
    with open_slide(path) as slide:
        ours = slide.read(Box(0, 0, 2**18, 192), (1, 1))[0, 0].astype(float)
        inside = 255 - slide.read(slide.box).mean(axis=(0, 1))
        assert ours == pytest.approx(255 - inside * 256 / 2**18, abs=1)


@pytest.mark.parametrize("box", [(10**300, 0, 5, 5), (-(10**400), 0, 5, 5), (0, 0, 5, 10**5000), (2**53, 0, 1, 1)])
def test_boxes_beyond_any_number_that_can_be_told_apart(path: Path, box: tuple[int, int, int, int]) -> None:
    with open_slide(path) as slide, pytest.raises(InvalidArgumentError, match=r"2\*\*53"):
        slide.read(Box(*box), (8, 8))


def test_a_box_is_a_box(path: Path) -> None:
    with open_slide(path) as slide, pytest.raises(InvalidArgumentError, match=r"Box\(x, y, width, height\)"):
        slide.read((0, 0, 5, 5))  # type: ignore[arg-type]


def test_a_thumbnail_of_no_number(path: Path) -> None:
    with open_slide(path) as slide, pytest.raises(InvalidArgumentError, match="max_px is nan"):
        slide.thumbnail(float("nan"))  # type: ignore[arg-type]


# -- files that change while they are read ----------------------------------------------------------------------------


@pytest.mark.parametrize("on_bad_tile", ["raise", "background"])
def test_a_file_replaced_during_a_read_is_no_bad_tile(
    path: Path, on_bad_tile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_slide(path, on_bad_tile=on_bad_tile) as slide:

        def fail(*_: object) -> None:
            path.write_bytes(path.read_bytes() + b" ")
            raise BadTileError("a tile is damaged")

        monkeypatch.setattr(slide._backend(), "read_level", fail)
        with pytest.raises(SlideReadError, match=r"replaced.*Open it again") as caught:
            slide.read(slide.box)
        assert not isinstance(caught.value, BadTileError)
        assert slide.bad_tiles == 0


def test_a_file_replaced_while_it_is_opened_anew_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slide = open_slide(path)
    slide.close()
    opened = slide._open

    def open_another(location: str) -> object:
        write_slide(path, noise(256, 192, 1), downsamples=(1, 4), compression="jpeg")
        return opened(location)

    monkeypatch.setattr(slide, "_open", open_another)
    with pytest.raises(SlideReadError, match="replaced"):
        slide.read(slide.box)
