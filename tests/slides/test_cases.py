"""The slide files of ../shared/cases, each a fault that users of slide readers have reported, with the right answers.

The answers are those of EXPECTED.md beside the files. Files are grouped by kind: what holds for one holds for its kind.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from wsigym.errors import MissingResolutionError, SlideOpenError, SlideReadError, UnsupportedSlideError
from wsigym.slides import Box, Slide, open_slide, tissue_mask
from wsigym.slides.resample import resize

PLACES = {(0, 0): (206, 147, 219), (256, 256): (229, 216, 236)}
"""Mean RGB of two 256 x 256 px tiles of the control, to within 2."""

GREY = {(0, 0): (173, 173, 173), (256, 256): (222, 222, 222)}

BOTH = ("openslide", "tiffslide")
JPEG = ("tiles", *BOTH)
ANY = ("auto", *JPEG)

RESOLUTIONS: dict[str, tuple[float | None, str]] = {
    "ok_generic.tif": (0.25, "mpp"),
    "ok_aperio.svs": (0.25, "mpp"),
    "res_absent.tif": (None, "none"),
    "res_unit_none.tif": (None, "none"),
    "res_zero.tif": (None, "none"),
    "res_72dpi.tif": (None, "none"),
    "res_inch_100k.tif": (0.25, "mpp"),
    "aperio_nothing.svs": (None, "none"),
    "aperio_novalue.svs": (None, "none"),
    "aperio_nomag.svs": (0.25, "mpp"),
    "aperio_nompp.svs": (0.25, "objective power"),
    "aperio_mppnan.svs": (0.25, "objective power"),
    "aperio_mppzero.svs": (0.25, "objective power"),
    "aperio_comma.svs": (0.252, "mpp"),
    "aperio_magfloat.svs": (0.25, "mpp"),
}
"""Two levels (1 and 4) of the control, differing in what they say of their scale: (mpp, where it comes from)."""

OPENS = {
    "single_level.tif": JPEG,
    "bigtiff.tif": JPEG,
    "deflate.tif": BOTH,
    "lzw.tif": BOTH,
    "uncompressed.tif": BOTH,
    "jp2k_33005.svs": BOTH,
    "jpeg_ycbcr_420.tif": JPEG,
    "jpeg_ycbcr_422.tif": JPEG,
    "jpeg_ycbcr_444.tif": JPEG,
    "jpeg_rgb_noadobe.svs": JPEG,
    "icc_srgb.tif": JPEG,
    "ome_subifd.ome.tif": JPEG,
    "bigendian.tif": ("tiles", "tiffslide"),
    "noninteger_pyramid.svs": JPEG,
    "unicode 我的 Ä slide.svs": JPEG,
}
"""Other codings and layouts: the control's values, on each backend that opens them."""

OPENS_GREY = {"gray8_jpeg.tif": JPEG, "miniswhite.tif": BOTH}

UNSUPPORTED = ("float32.tif", "gray16.tif", "ome_5channel.ome.tif")
FLAT = ("stripped.tif", "png_named.svs", "jpeg_named.tif")
NO_SLIDE = ("zero_byte.svs", "header_only.svs", "garbage.svs")
BAD_TILE = ("tile_corrupt.tif", "tile_truncated.tif")
OTHERS = ("truncated_tiles.tif", "tile_sparse.tif", "all_white.tif", "tiny_7x5.tif")


def _opened(files: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(name, backend) for name, backends in files.items() for backend in ("auto", *backends)]


def _means(slide: Slide) -> dict[tuple[int, int], tuple[float, ...]]:
    return {(x, y): tuple(slide.read(Box(x, y, 256, 256)).mean(axis=(0, 1)).tolist()) for x, y in PLACES}


def _assert_control(slide: Slide, expected: dict[tuple[int, int], tuple[int, int, int]] = PLACES) -> None:
    for place, mean in _means(slide).items():
        assert mean == pytest.approx(expected[place], abs=2), place


def test_every_slide_file_is_tested(shared_cases: Path) -> None:
    names = {path.name for path in shared_cases.iterdir() if path.suffix in (".svs", ".tif")}
    tested = {*RESOLUTIONS, *OPENS, *OPENS_GREY, *UNSUPPORTED, *FLAT, *NO_SLIDE, *BAD_TILE, *OTHERS}
    assert names == tested


@pytest.mark.parametrize("backend", ANY)
@pytest.mark.parametrize("name", RESOLUTIONS)
def test_resolution(shared_cases: Path, name: str, backend: str) -> None:
    mpp, source = RESOLUTIONS[name]
    with open_slide(shared_cases / name, backend=backend) as slide:
        assert slide.mpp == pytest.approx(mpp)
        assert slide.magnification == (None if mpp is None else pytest.approx(10 / mpp))
        assert slide.resolution.source == source
        assert slide.level_dimensions == ((1024, 1024), (256, 256))
        _assert_control(slide)
        whole = slide.read(slide.box, (256, 256))
        assert whole[:64, :64].mean(axis=(0, 1)) == pytest.approx(PLACES[0, 0], abs=2)
        if mpp is None:
            with pytest.raises(MissingResolutionError, match="mpp=") as caught:
                slide.read_at(slide.box, 10)
            assert str(shared_cases / name) in str(caught.value)
        else:
            side = round(1024 * mpp)  # 10x is 1 um/px
            assert slide.read_at(slide.box, 10).shape == (side, side, 3)


@pytest.mark.parametrize("backend", ANY)
@pytest.mark.parametrize("name", [name for name, (mpp, _) in RESOLUTIONS.items() if mpp is None])
def test_a_given_mpp_makes_up_for_a_missing_one(shared_cases: Path, name: str, backend: str) -> None:
    with open_slide(shared_cases / name, mpp=0.25, backend=backend) as slide:
        assert slide.resolution.source == "given"
        assert slide.read_at(slide.box, 10).shape == (256, 256, 3)


@pytest.mark.parametrize("backend", ANY)
def test_an_implausible_value_is_named(shared_cases: Path, backend: str) -> None:
    slide = open_slide(shared_cases / "res_72dpi.tif", backend=backend)
    with slide, pytest.raises(MissingResolutionError, match=r"352\.7"):
        slide.read_at(slide.box, 10)


@pytest.mark.parametrize(("name", "backend"), _opened(OPENS))
def test_other_codings_have_the_values_of_the_control(shared_cases: Path, name: str, backend: str) -> None:
    with open_slide(shared_cases / name, backend=backend) as slide:
        assert slide.backend == (OPENS[name][0] if backend == "auto" else backend)
        assert slide.mpp == pytest.approx(0.25)
        _assert_control(slide)
        if name.startswith("unicode"):
            assert slide.level_dimensions == ((1024, 1024), (256, 256))


@pytest.mark.parametrize(("name", "backend"), _opened(OPENS_GREY))
def test_grey_has_the_same_value_in_all_channels(shared_cases: Path, name: str, backend: str) -> None:
    with open_slide(shared_cases / name, backend=backend) as slide:
        _assert_control(slide, GREY)
        pixels = slide.read(slide.box)
        assert (pixels[..., 0] == pixels[..., 1]).all()
        assert (pixels[..., 0] == pixels[..., 2]).all()


@pytest.mark.parametrize("backend", JPEG)
def test_a_profile_is_kept_and_not_applied(shared_cases: Path, backend: str) -> None:
    with open_slide(shared_cases / "icc_srgb.tif", backend=backend) as slide:
        assert slide.icc_profile is not None
        assert slide.icc_profile[36:40] == b"acsp"  # the signature of ICC profiles
        _assert_control(slide)


@pytest.mark.parametrize("backend", JPEG)
def test_a_pyramid_of_odd_sizes_does_not_drift(shared_cases: Path, backend: str) -> None:
    """Levels 1 and 2 against level 0, in each corner: the best shift between them is under half a level pixel."""
    with open_slide(shared_cases / "noninteger_pyramid.svs", backend=backend) as slide:
        assert slide.level_dimensions == ((1003, 757), (250, 189), (62, 47))
        for downsample in (4, 16):
            side = 16 * downsample
            steps = range(-downsample, downsample + 1, downsample // 4)
            for x in (0, 1003 - side):
                for y in (0, 757 - side):
                    shown = slide.read(Box(x, y, side, side), (16, 16)).astype(float)
                    difference = {}
                    for dx in steps:
                        for dy in steps:
                            level_0 = resize(slide.read(Box(x + dx, y + dy, side, side)), 16, 16)
                            difference[dx, dy] = np.abs(shown - level_0)[2:-2, 2:-2].mean()
                    dx, dy = min(difference, key=lambda shift: difference[shift])
                    assert max(abs(dx), abs(dy)) <= downsample / 2, (downsample, x, y)


@pytest.mark.parametrize("backend", ANY)
def test_the_level_for_10x_of_an_odd_pyramid_is_level_1(
    shared_cases: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_slide(shared_cases / "noninteger_pyramid.svs", backend=backend) as slide:
        opened = slide._backend()
        levels = []
        read_level = opened.read_level
        monkeypatch.setattr(
            opened, "read_level", lambda level, *rect: (levels.append(level), read_level(level, *rect))[1]
        )
        slide.read_at(slide.box, 10)
        slide.read(slide.box, (62, 47))
    assert levels == [1, 2]


@pytest.mark.parametrize("backend", ANY)
def test_smaller_than_any_view(shared_cases: Path, backend: str) -> None:
    with open_slide(shared_cases / "tiny_7x5.tif", backend=backend) as slide:
        assert slide.dimensions == (7, 5)
        pixels = slide.read(Box(-100, -100, 224, 224))
        assert pixels.shape == (224, 224, 3)
        assert not (pixels[100:105, 100:107] == 255).all()
        pixels[100:105, 100:107] = 255
        assert (pixels == 255).all()
        assert slide.thumbnail(256).shape == (5, 7, 3)
        assert tissue_mask(slide).values.shape == (1, 1)


@pytest.mark.parametrize("backend", ANY)
@pytest.mark.parametrize("name", UNSUPPORTED)
def test_no_brightfield(shared_cases: Path, name: str, backend: str) -> None:
    with pytest.raises(UnsupportedSlideError, match="8-bit RGB") as caught:
        open_slide(shared_cases / name, backend=backend)
    assert str(shared_cases / name) in str(caught.value)


@pytest.mark.parametrize("backend", ANY)
@pytest.mark.parametrize("name", FLAT)
def test_flat_images(shared_cases: Path, name: str, backend: str) -> None:
    path = shared_cases / name
    with pytest.raises(SlideOpenError, match=r"not a tiled slide.*mpp=") as caught:
        open_slide(path, backend=backend)
    assert str(path) in str(caught.value)
    with open_slide(path, mpp=0.25) as slide:
        assert len(slide.level_dimensions) == 1
        assert slide.mpp == 0.25
        assert slide.read(Box(0, 0, 256, 256)).mean(axis=(0, 1)) == pytest.approx(PLACES[0, 0], abs=2)


@pytest.mark.parametrize("backend", ANY)
@pytest.mark.parametrize("name", NO_SLIDE)
def test_no_slides(shared_cases: Path, name: str, backend: str) -> None:
    started = time.perf_counter()
    with pytest.raises(SlideOpenError, match=r"not a slide") as caught:
        open_slide(shared_cases / name, backend=backend)
    assert time.perf_counter() - started < 1
    assert str(shared_cases / name) in str(caught.value)


@pytest.mark.parametrize("backend", ANY)
def test_a_truncated_file(shared_cases: Path, backend: str) -> None:
    with pytest.raises(SlideOpenError, match=r"truncated.*207,303 bytes and needs"):
        open_slide(shared_cases / "truncated_tiles.tif", backend=backend)


@pytest.mark.parametrize("backend", ANY)
@pytest.mark.parametrize("name", BAD_TILE)
def test_one_bad_tile_leaves_the_others(shared_cases: Path, name: str, backend: str) -> None:
    with (
        open_slide(shared_cases / name, backend=backend) as slide,
        open_slide(shared_cases / "single_level.tif") as whole,
    ):
        bad = Box(256, 256, 256, 256)
        for _ in range(2):
            for x in range(0, 1024, 256):
                for y in range(0, 1024, 256):
                    box = Box(x, y, 256, 256)
                    if box == bad:
                        with pytest.raises(SlideReadError, match=name):
                            slide.read(box)
                    else:
                        np.testing.assert_array_equal(slide.read(box), whole.read(box))
        with pytest.raises(SlideReadError, match=name):
            slide.thumbnail(100)


@pytest.mark.parametrize("backend", ANY)
@pytest.mark.parametrize("name", BAD_TILE)
def test_one_bad_tile_is_background_where_that_is_asked_for(shared_cases: Path, name: str, backend: str) -> None:
    with (
        open_slide(shared_cases / name, backend=backend, on_bad_tile="background") as slide,
        open_slide(shared_cases / "single_level.tif") as whole,
    ):
        expected = whole.read(whole.box)
        expected[256:512, 256:512] = 255
        np.testing.assert_array_equal(slide.read(slide.box), expected)
        assert (slide.read(Box(256, 256, 256, 256), (32, 32)) == 255).all()
        assert slide.bad_tiles == 1
        slide.thumbnail(100)
        assert slide.bad_tiles == 1


@pytest.mark.parametrize("backend", ANY)
def test_a_tile_never_scanned_is_white(shared_cases: Path, backend: str) -> None:
    with open_slide(shared_cases / "tile_sparse.tif", backend=backend) as slide:
        assert (slide.read(Box(256, 256, 256, 256)) == 255).all()
        assert slide.read(Box(0, 0, 256, 256)).mean(axis=(0, 1)) == pytest.approx(PLACES[0, 0], abs=2)


@pytest.mark.parametrize("backend", ANY)
def test_no_tissue(shared_cases: Path, backend: str) -> None:
    with open_slide(shared_cases / "all_white.tif", backend=backend) as slide:
        mask = tissue_mask(slide)
        assert mask.values.dtype == bool
        assert not mask.values.any()
        assert not tissue_mask(slide, 40).values.any()


def test_opening_is_silent(shared_cases: Path) -> None:
    """Nothing on the terminal beside our own exception, whatever the libraries below think of the file.

    In a fresh interpreter, since pytest gives the logs of libraries somewhere to go.
    """
    code = """
import contextlib, pathlib, sys, warnings
warnings.simplefilter("error")
from wsigym.errors import SlideOpenError
from wsigym.slides import open_slide
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    if path.suffix in (".svs", ".tif"):
        for backend in ("auto", "openslide", "tiffslide"):
            with contextlib.suppress(SlideOpenError):
                open_slide(path, backend=backend).close()
"""
    done = subprocess.run([sys.executable, "-c", code, str(shared_cases)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
