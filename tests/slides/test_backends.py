"""What every backend owes: the same pixels as the others, and the same errors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import openslide
import pytest
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st
from openslide import OpenSlide
from slides_builder import gradient, noise, write_slide

from wsigym.errors import SlideReadError
from wsigym.slides import Box, Slide, open_slide
from wsigym.slides.backends import BACKENDS, backend_class
from wsigym.slides.backends._pixels import background_from, over_background

BOTH = ("openslide", "tiffslide")

MEAN_DIFFERENCE = 2.0
"""Grey levels, mean over a read, by which backends may differ off the grid of a level whose downsample is not whole."""


def _pairs(paths: list[Path]) -> Iterator[tuple[Slide, Slide]]:
    for path in paths:
        with open_slide(path, backend="openslide") as one, open_slide(path, backend="tiffslide") as two:
            yield one, two


def _coded(folder: Path) -> list[Path]:
    """The same pixels in each coding that scanners use."""
    pixels = noise(300, 200)
    return [
        write_slide(folder / "deflate.tif", pixels),
        write_slide(folder / "lzw.tif", pixels, compression="lzw"),
        write_slide(folder / "raw.tif", pixels, compression="none"),
        write_slide(folder / "jpeg.tif", pixels, compression="jpeg"),
        write_slide(folder / "jpeg420.tif", pixels, compression="jpeg", subsampling=(2, 2)),
        write_slide(folder / "aperio.svs", pixels, compression="jpeg", aperio="|AppMag = 40|MPP = 0.25"),
        write_slide(folder / "bigtiff.tif", pixels, compression="jpeg", bigtiff=True),
        write_slide(folder / "grey.tif", pixels[..., 0].copy()),
        write_slide(folder / "inverted.tif", pixels[..., 0].copy(), photometric="miniswhite"),
        write_slide(folder / "rgba.tif", np.dstack([pixels, np.full((200, 300), 255, np.uint8)]), extrasamples=[2]),
    ]


def test_openslide_and_tiffslide_agree_on_every_coding(tmp_path: Path) -> None:
    for one, two in _pairs(_coded(tmp_path)):
        assert one.level_dimensions == two.level_dimensions, one.path
        assert one.mpp == two.mpp
        assert one.background == two.background
        np.testing.assert_array_equal(one.read(one.box), two.read(two.box), err_msg=one.path)
        for width, height in one.level_dimensions:
            np.testing.assert_array_equal(one.read(one.box, (width, height)), two.read(two.box, (width, height)))


def test_they_agree_on_the_real_files(shared_data: Path) -> None:
    paths = [
        shared_data / "cmu-1-small-region" / "CMU-1-Small-Region.svs",
        shared_data / "openslide_small.svs",
        shared_data / "boxes.tiff",
    ]
    rng = np.random.default_rng(0)
    for one, two in _pairs(paths):
        assert one.level_dimensions == two.level_dimensions
        assert one.mpp == two.mpp
        assert one.icc_profile == two.icc_profile
        np.testing.assert_array_equal(one.read(one.box), two.read(two.box))
        assert set(one.associated_images) == set(two.associated_images)
        for name, image in one.associated_images.items():
            assert np.abs(image.astype(int) - two.associated_images[name]).mean() < 1, name
        for _ in range(12):
            box, size = _random_read(one, rng)
            difference = np.abs(one.read(box, size).astype(int) - two.read(box, size))
            assert difference.mean() <= MEAN_DIFFERENCE


def _random_read(slide: Slide, rng: np.random.Generator) -> tuple[Box, tuple[int, int]]:
    side = int(rng.integers(1, 2 * max(slide.dimensions)))
    x, y = (int(rng.integers(-side // 2, limit)) for limit in slide.dimensions)
    return Box(x, y, side, side), (int(rng.integers(1, 100)),) * 2


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Slide, Slide]]:
    """Levels of 1003 x 757, 250 x 189 and 62 x 47 px: downsamples of 4.01 and 16.1."""
    path = write_slide(tmp_path_factory.mktemp("uneven") / "uneven.tif", noise(1003, 757, seed=3))
    yield from _pairs([path])


@settings(max_examples=60, deadline=None)
@given(x=st.integers(-200, 1100), y=st.integers(-200, 800), side=st.integers(1, 1200), px=st.integers(1, 120))
def test_they_stay_close_where_a_downsample_is_not_whole(
    uneven: tuple[Slide, Slide], x: int, y: int, side: int, px: int
) -> None:
    one, two = (slide.read(Box(x, y, side, side), (px, px)) for slide in uneven)
    assert np.abs(one.astype(int) - two).mean() <= 10  # of noise; on tissue MEAN_DIFFERENCE holds


@pytest.mark.parametrize("backend", BOTH)
def test_tiles_never_scanned_are_background(tmp_path: Path, backend: str) -> None:
    path = write_slide(tmp_path / "sparse.tif", noise(128, 128), downsamples=(1,))
    _empty_tile(path, 1)
    with open_slide(path, backend=backend) as slide:
        pixels = slide.read(slide.box)
        assert (pixels[:64, 64:] == 255).all()
        np.testing.assert_array_equal(pixels[64:], noise(128, 128)[64:])


def _empty_tile(path: Path, index: int) -> None:
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        counts = tiff.pages.first.tags["TileByteCounts"]
        offsets = tiff.pages.first.tags["TileOffsets"]
        for tag in (counts, offsets):
            tag.overwrite([0 if number == index else value for number, value in enumerate(tag.value)])


def _damaged(path: Path, index: int, how: str, compression: str) -> Path:
    """A 256 x 256 px slide of 16 tiles of which one is broken."""
    write_slide(path, noise(256, 256), downsamples=(1,), compression=compression)
    with tifffile.TiffFile(path) as tiff:
        offset, count = tiff.pages.first.dataoffsets[index], tiff.pages.first.databytecounts[index]
    data = bytearray(path.read_bytes())
    if how == "overwritten":
        data[offset : offset + count] = bytes(count)
        path.write_bytes(data)
    else:
        with tifffile.TiffFile(path, mode="r+b") as tiff:
            counts = tiff.pages.first.tags["TileByteCounts"]
            counts.overwrite([count // 2 if number == index else value for number, value in enumerate(counts.value)])
    return path


@pytest.mark.parametrize("backend", BOTH)
@pytest.mark.parametrize("compression", ["jpeg", "deflate"])
@pytest.mark.parametrize("how", ["overwritten", "cut"])
def test_a_bad_tile_raises_and_the_others_still_read(tmp_path: Path, backend: str, compression: str, how: str) -> None:
    path = _damaged(tmp_path / "bad.tif", 5, how, compression)
    tile = {index: Box(index % 4 * 64, index // 4 * 64, 64, 64) for index in range(16)}
    with open_slide(path, backend=backend) as slide:
        good = {index: slide.read(box) for index, box in tile.items() if index != 5}
        for _ in range(3):
            with pytest.raises(SlideReadError, match="level 0") as caught:
                slide.read(tile[5])
            assert str(path) in str(caught.value)
            for index, pixels in good.items():
                np.testing.assert_array_equal(slide.read(tile[index]), pixels)


def test_a_dead_openslide_handle_is_replaced_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _damaged(tmp_path / "bad.tif", 5, "overwritten", "deflate")  # JPEG tiles are checked before OpenSlide reads
    with open_slide(path, backend="openslide") as slide:
        opened: list[str] = []
        monkeypatch.setattr(openslide, "OpenSlide", lambda name: (opened.append(name), OpenSlide(name))[1])
        with pytest.raises(SlideReadError):
            slide.read(Box(64, 64, 64, 64))
        for _ in range(5):
            slide.read(Box(0, 0, 64, 64))
    assert len(opened) == 2  # one that the bad tile killed too, one that still reads


@pytest.mark.parametrize("backend", BOTH)
@pytest.mark.parametrize("compression", ["jpeg", "deflate"])
def test_a_bad_tile_in_one_thread_hurts_no_other(tmp_path: Path, backend: str, compression: str) -> None:
    path = _damaged(tmp_path / "bad.tif", 5, "overwritten", compression)
    tile = {index: Box(index % 4 * 64, index // 4 * 64, 64, 64) for index in range(16)}
    with open_slide(path, backend=backend) as slide:
        good = {index: slide.read(box) for index, box in tile.items() if index != 5}
        start = threading.Barrier(4)

        def work(seed: int) -> int:
            rng = np.random.default_rng(seed)
            start.wait()
            wrong = 0
            for index in rng.integers(0, 16, 60).tolist():
                try:
                    wrong += not np.array_equal(slide.read(tile[index]), good[index])
                except SlideReadError:
                    wrong += index != 5
            return wrong

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(work, range(4))) == 0


def test_auto_asks_the_backends_in_the_order_of_the_table() -> None:
    assert list(BACKENDS) == ["tiles", "openslide", "tiffslide", "image"]
    for name in BACKENDS:
        assert backend_class(name).recognises(__file__) is False


@pytest.mark.parametrize(
    ("text", "colour"),
    [
        ("FFFFFF", (255, 255, 255)),
        ("f0E1d2", (240, 225, 210)),
        ("#000000", (0, 0, 0)),
        ("", (255, 255, 255)),
        ("white", (255, 255, 255)),
    ],
)
def test_background_colour(text: str, colour: tuple[int, int, int]) -> None:
    assert background_from({"openslide.background-color": text}) == colour
    assert background_from({}) == (255, 255, 255)


def test_transparent_pixels_show_the_background() -> None:
    rgba = np.array([[[10, 20, 30, 255], [10, 20, 30, 0], [0, 0, 0, 128]]], dtype=np.uint8)
    shown = over_background(rgba, (200, 100, 0))
    assert shown.dtype == np.uint8
    assert shown.tolist() == [[[10, 20, 30], [200, 100, 0], [100, 50, 0]]]


def test_a_background_colour_in_the_file_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No TIFF file can say one, so the backend is told that this one does."""
    from wsigym.slides.backends import tiffslide

    path = write_slide(tmp_path / "sparse.tif", gradient(128, 64), downsamples=(1,))
    _empty_tile(path, 1)
    told: dict[str, str] = {"openslide.background-color": "0A141E"}
    monkeypatch.setattr(tiffslide, "_properties", lambda slide, location: told)
    with open_slide(path, backend="tiffslide") as slide:
        assert slide.background == (10, 20, 30)
        shown: npt.NDArray[np.uint8] = slide.read(Box(60, 0, 80, 64))
        assert (shown[:, 4:] == (10, 20, 30)).all()
        assert (shown[:, 3] == gradient(128, 64)[:, 63]).all()
