"""wsigym's own reader of JPEG tiles: OpenSlide's pixels, decoded and shrunk by itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest
import tifffile
from hypothesis import example, given
from hypothesis import strategies as st
from slides_builder import gradient, noise, write_abbreviated, write_slide

from wsigym.errors import SlideOpenError
from wsigym.slides import Box, Slide, cache_info, open_slide
from wsigym.slides.backends._jpeg import OFF_ALIGNMENT
from wsigym.slides.backends._tiff import MAX_TILE_PX
from wsigym.slides.resample import resize

PSNR_WHOLE, PSNR_PARTS = {2: 43.0, 4: 45.0, 8: 50.0}, {2: 38.0, 4: 36.0, 8: 34.0}
"""Mean dB on tissue between reads shrunk in the DCT, by a factor, and the exact area mean, at least: where each pixel
shown covers whole shrunk pixels, and where it covers two or more and parts."""

PSNR_WHOLE_UNEVEN = {2: 43.0, 4: 36.0, 8: 33.0}
"""The same for whole shrunk pixels where chroma is coarser on one axis only: libjpeg then shrinks it with luma."""


def _psnr(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]) -> float:
    error = np.mean((one.astype(float) - other) ** 2)
    return 99.0 if error == 0 else float(10 * np.log10(255**2 / error))


def _coded(folder: Path) -> Iterator[Path]:
    """Every coding of JPEG tiles, of 300 x 200 px with tiles of 64 px, so that tiles at the edges are cut."""
    pixels = noise(300, 200)
    for number, subsampling in enumerate([(1, 1), (2, 1), (2, 2), (4, 1)]):
        yield write_slide(folder / f"ycbcr{number}.tif", pixels, compression="jpeg", subsampling=subsampling)
    yield write_slide(folder / "big.tif", pixels, compression="jpeg", bigtiff=True)
    yield write_slide(folder / "aperio.svs", pixels, compression="jpeg", aperio="|AppMag = 40|MPP = 0.25")
    yield write_slide(folder / "rgb.tif", pixels, compression="jpeg", rgb=True)
    yield write_slide(folder / "grey.tif", pixels[..., 0].copy(), compression="jpeg")
    yield write_abbreviated(folder / "abbreviated.tif", pixels, rgb=False)
    yield write_abbreviated(folder / "abbreviated-rgb.tif", pixels, rgb=True)


def test_pixels_on_the_grid_are_openslides(tmp_path: Path) -> None:
    for path in _coded(tmp_path):
        with open_slide(path) as ours, open_slide(path, backend="openslide") as other:
            assert ours.backend == "tiles"
            assert ours.level_dimensions == other.level_dimensions
            assert ours.resolution.mpp == other.resolution.mpp
            assert ours.background == other.background
            for (width, height), downsample in zip(ours.level_dimensions, (1, 4, 16), strict=False):
                np.testing.assert_array_equal(
                    ours.read(ours.box, (width, height)), other.read(other.box, (width, height)), err_msg=path.name
                )
                box = Box(16 * 3, 16 * 2, 16 * 8, 16 * 5)
                size = box.width // downsample, box.height // downsample
                np.testing.assert_array_equal(ours.read(box, size), other.read(box, size), err_msg=path.name)


def test_pixels_on_the_grid_are_openslides_on_real_files(shared_data: Path) -> None:
    path = shared_data / "cmu-1-small-region" / "CMU-1-Small-Region.svs"
    with open_slide(path) as ours, open_slide(path, backend="openslide") as other:
        assert ours.backend == "tiles"
        np.testing.assert_array_equal(ours.read(ours.box), other.read(other.box))
        assert ours.resolution == other.resolution
        assert ours.icc_profile == other.icc_profile
        for name, value in other.properties.items():
            if name.startswith("aperio.") or name in ("openslide.vendor", "openslide.mpp-x", "tiff.ImageDescription"):
                assert ours.properties[name] == value
        assert set(ours.associated_images) == set(other.associated_images)
        for name, image in other.associated_images.items():
            np.testing.assert_array_equal(ours.associated_images[name], image)


# -- shrunk while decoded ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tissue(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Slide, npt.NDArray[np.uint8]]:
    """A real region as a slide of one level with 4:2:0 chroma, and its level 0."""
    with open_slide(shared_data / "cmu-1-small-region" / "CMU-1-Small-Region.svs") as real:
        pixels = real.read(Box(0, 0, 2219, 2500))  # its tiles at the right edge are cut within a DCT block
    path = tmp_path_factory.mktemp("tissue") / "tissue.tif"
    slide = open_slide(write_slide(path, pixels, downsamples=(1,), tile_px=256, compression="jpeg", subsampling=(2, 2)))
    assert slide.backend == "tiles"
    return slide, slide.read(slide.box)


def test_shrinking_in_the_decoder_is_near_the_area_mean(tissue: tuple[Slide, npt.NDArray[np.uint8]]) -> None:
    slide, level_0 = tissue
    rng = np.random.default_rng(0)
    for shrink in (2, 4, 8):
        for times in (1, 2, 2.3, 3, 3.9):
            least = (PSNR_WHOLE if times == 1 else PSNR_PARTS)[shrink]
            px = 224 if shrink * times * 224 < 2000 else 60
            side = round(px * shrink * times)
            found = []
            for _ in range(8):
                x, y = (int(value) for value in rng.integers(0, (2219 - side, 2500 - side)))
                if times == 1:
                    x, y = x // shrink * shrink, y // shrink * shrink
                assert _shrink_used(slide, Box(x, y, side, side), px) >= shrink
                shown = slide.read(Box(x, y, side, side), (px, px))
                exact = cv2.resize(level_0[y : y + side, x : x + side], (px, px), interpolation=cv2.INTER_AREA)
                found.append(_psnr(shown, exact))  # type: ignore[arg-type]
            assert np.mean(found) >= least, (shrink, times, found)


@pytest.mark.parametrize("subsampling", [(2, 1), (4, 1)])
def test_shrinking_uneven_chroma_is_near_the_area_mean(
    tissue: tuple[Slide, npt.NDArray[np.uint8]], subsampling: tuple[int, int], tmp_path: Path
) -> None:
    pixels = tissue[1][:1280, :1280]
    path = write_slide(
        tmp_path / "uneven.tif", pixels, downsamples=(1,), tile_px=256, compression="jpeg", subsampling=subsampling
    )
    rng = np.random.default_rng(0)
    with open_slide(path) as slide:
        assert slide.backend == "tiles"
        level_0 = slide.read(slide.box)
        for shrink, (times, least) in itertools.product(
            (2, 4, 8), ((1, PSNR_WHOLE_UNEVEN), (2, PSNR_PARTS), (2.3, PSNR_PARTS))
        ):
            side = round(60 * shrink * times)
            found = []
            for _ in range(12):
                x, y = (int(value) for value in rng.integers(0, 1280 - side, 2))
                if times == 1:
                    x, y = x // shrink * shrink, y // shrink * shrink
                shown = slide.read(Box(x, y, side, side), (60, 60))
                exact = cv2.resize(level_0[y : y + side, x : x + side], (60, 60), interpolation=cv2.INTER_AREA)
                found.append(_psnr(shown, exact))  # type: ignore[arg-type]
            assert np.mean(found) >= least[shrink], (shrink, times, found)


def _shrink_used(slide: Slide, box: Box, px: int) -> int:
    """By how much the decoder shrinks for a read."""
    used = []
    backend = slide._backend()
    read_level = backend.read_level
    try:
        backend.read_level = lambda *args: (used.append(args[-1]), read_level(*args))[1]  # type: ignore[method-assign]
        slide.read(box, (px, px))
    finally:
        del backend.read_level
    return max(used)


def test_a_whole_slide_shrunk_in_the_decoder_has_clean_edges(tissue: tuple[Slide, npt.NDArray[np.uint8]]) -> None:
    """What encoders put behind the edge of the last tiles does not show."""
    slide, level_0 = tissue
    for size in ((277, 312), (138, 156), (1109, 1250)):
        shown = slide.read(slide.box, size)
        exact = resize(level_0, *size)
        for edge in (np.s_[:, -2:], np.s_[-2:, :], np.s_[:2, :], np.s_[:, :2]):
            assert np.abs(shown[edge].astype(int) - exact[edge]).mean() < 4, (size, edge)


@pytest.fixture(scope="module")
def ramp(tmp_path_factory: pytest.TempPathFactory) -> Slide:
    """250 x 250 px whose colours are their place, nearly without loss."""
    path = tmp_path_factory.mktemp("ramp") / "ramp.tif"
    return open_slide(write_slide(path, gradient(250, 250), downsamples=(1,), compression="jpeg", rgb=True, quality=99))


@example(x=0, y=0, width=16, height=98, times=16.0)  # where OpenCV would copy instead of scaling by nearly 1
@given(
    x=st.integers(0, 90),
    y=st.integers(0, 90),
    width=st.integers(8, 150),
    height=st.integers(8, 150),
    times=st.floats(1, 20),
)
def test_nothing_drifts(ramp: Slide, x: int, y: int, width: int, height: int, times: float) -> None:
    """At any shrinking, what is shown is where it should be, to half a level pixel and three roundings."""
    size = max(1, round(width / times)), max(1, round(height / times))
    level_0 = ramp.read(Box(x, y, width, height)).astype(np.float32)
    exact = cv2.resize(level_0, size, interpolation=cv2.INTER_AREA)  # a level-0 pixel is one grey level
    off = ramp.read(Box(x, y, width, height), size).astype(np.float32) - exact
    assert np.abs(off[..., :2].mean(axis=(0, 1))).max() <= 0.5 + 1.0
    assert np.abs(off[..., :2]).max() <= 0.5 + 1.5


@pytest.mark.parametrize("shrink", [1, 2, 4, 8])
def test_decoded_tiles_lie_off_the_alignment_of_wide_registers(tmp_path: Path, shrink: int) -> None:
    """On it, libjpeg-turbo writes past the processor's caches, and what reads the tile next waits for memory."""
    backend = open_slide(write_slide(tmp_path / "off.tif", noise(64, 64), compression="jpeg"))._backend()
    tile = backend._tile(0, 0, 0, shrink)  # type: ignore[attr-defined]
    assert tile.ctypes.data % 16 == 8


# -- what is not of this kind ------------------------------------------------------------------------------------------


def test_other_files_are_openslides(tmp_path: Path) -> None:
    pixels = noise(128, 128)
    for path in (
        write_slide(tmp_path / "deflate.tif", pixels),
        write_slide(tmp_path / "raw.tif", pixels, compression="none"),
        write_slide(tmp_path / "lzw.tif", pixels, compression="lzw"),
    ):
        with pytest.raises(SlideOpenError, match=r"'tiles' does not know its format; backend='auto'"):
            open_slide(path, backend="tiles")
        with open_slide(path) as slide:
            assert slide.backend in ("openslide", "tiffslide")


def test_an_svs_with_gaps_in_an_upper_level_is_openslides(tmp_path: Path) -> None:
    """OpenSlide fills them from the level below."""
    path = write_slide(
        tmp_path / "gap.svs", noise(512, 512), downsamples=(1, 2), compression="jpeg", aperio="|AppMag = 40|MPP = 0.25"
    )
    assert open_slide(path).backend == "tiles"
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        counts = tiff.pages[1].tags["TileByteCounts"]
        counts.overwrite([0, *counts.value[1:]])
    with open_slide(path) as slide:
        assert slide.backend == "openslide"
        assert not (slide.read(Box(0, 0, 64, 64), (32, 32)) == 255).all()


@pytest.mark.parametrize("backend", ["auto", "tiles", "openslide", "tiffslide"])
@pytest.mark.parametrize(("tag", "value"), [("TileWidth", 2**20), ("TileLength", 0), ("ImageWidth", 2**31 - 1)])
def test_sizes_that_a_header_claims_are_bounded(tmp_path: Path, backend: str, tag: str, value: int) -> None:
    for compression in ("jpeg", "deflate"):
        path = write_slide(tmp_path / f"{compression}.tif", noise(128, 128), downsamples=(1,), compression=compression)
        with tifffile.TiffFile(path, mode="r+b") as tiff:
            tiff.pages[0].tags[tag].overwrite(value)
        with pytest.raises(SlideOpenError) as caught:
            open_slide(path, backend=backend)
        assert str(path) in str(caught.value)
    assert MAX_TILE_PX * 3 <= 64 * 2**20


def test_a_stream_of_another_size_than_its_tile_is_a_bad_tile(tmp_path: Path) -> None:
    path = write_slide(tmp_path / "size.tif", noise(128, 128), downsamples=(1,), compression="jpeg")
    data = bytearray(path.read_bytes())
    with tifffile.TiffFile(path) as tiff:
        offset = tiff.pages[0].dataoffsets[1]
    frame = data.index(b"\xff\xc0", offset)
    data[frame + 5 : frame + 9] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    with open_slide(path, on_bad_tile="background") as slide:
        assert slide.backend == "tiles"
        pixels = slide.read(slide.box)
        assert (pixels[:64, 64:] == 255).all()
        assert slide.bad_tiles == 1


def test_decoded_tiles_are_shared_by_slides_of_a_file(tmp_path: Path) -> None:
    path = write_slide(tmp_path / "shared.tif", noise(128, 128), downsamples=(1,), compression="jpeg")
    one, two = open_slide(path), open_slide(path)
    before = cache_info()
    one.read(one.box)
    between = cache_info()
    two.read(two.box)
    after = cache_info()
    assert between.misses - before.misses == 4
    assert after.misses == between.misses
    assert after.hits - between.hits == 4


@pytest.mark.parametrize("rect", [(0, 0, 128, 128), (5, 5, 20, 20), (64, 0, 64, 64)])
def test_what_is_read_is_the_callers_own(tmp_path: Path, rect: tuple[int, int, int, int]) -> None:
    slide = open_slide(write_slide(tmp_path / "own.tif", noise(128, 128), downsamples=(1,), compression="jpeg"))
    first = slide.read(Box(*rect))
    kept = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(slide.read(Box(*rect)), kept)


def test_tiles_at_the_edge_keep_no_larger_array_alive(tmp_path: Path) -> None:
    backend = open_slide(write_slide(tmp_path / "edge.tif", noise(100, 72), compression="jpeg"))._backend()
    for shrink in (1, 2, 4, 8):
        for column, row in ((0, 0), (1, 0), (0, 1), (1, 1)):
            tile = backend._tile(0, column, row, shrink)  # type: ignore[attr-defined]
            while tile.base is not None and isinstance(tile.base, np.ndarray):
                assert tile.base.nbytes <= tile.nbytes + OFF_ALIGNMENT
                tile = tile.base


def test_views_beyond_the_edge_are_not_shrunk_in_the_decoder(ramp: Slide) -> None:
    """Where the slide ends within a shrunk pixel, its neighbour would show beyond the edge."""
    shown = ramp.read(Box(-150, -150, 600, 600), (75, 75)).astype(float)
    level_0 = np.full((600, 600, 3), 255, np.float32)
    level_0[150:400, 150:400] = ramp.read(ramp.box)
    exact = cv2.resize(level_0, (75, 75), interpolation=cv2.INTER_AREA)
    assert np.abs(shown - exact).max() <= 1


def test_every_shrink_of_every_level_has_its_size(tmp_path: Path) -> None:
    path = write_slide(tmp_path / "sizes.tif", noise(301, 203), compression="jpeg", tile_px=64)
    backend = open_slide(path)._backend()
    for (level, (width, height)), shrink in itertools.product(enumerate(backend.level_dimensions), (1, 2, 4, 8)):
        size = -(-width // shrink), -(-height // shrink)
        assert backend.read_level(level, 0, 0, *size, shrink).shape == (size[1], size[0], 3)
