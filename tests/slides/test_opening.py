"""Opening: which backend is taken, and what is said of files that are no slides."""

from __future__ import annotations

import shutil
import time
import warnings
from pathlib import Path

import cv2
import numpy as np
import pytest
import tifffile
from PIL import Image
from slides_builder import noise, write_slide

from wsigym.errors import (
    InvalidArgumentError,
    SlideOpenError,
    UnknownNameError,
    UnsupportedSlideError,
    WsigymWarning,
)
from wsigym.slides import open_slide

EVERY_BACKEND = ("auto", "openslide", "tiffslide")


@pytest.mark.parametrize("backend", [*EVERY_BACKEND, "image"])
@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("missing.svs", None, "no such file"),
        ("empty.svs", b"", r"empty \(0 bytes\)"),
        ("garbage.svs", bytes(range(3, 256)) * 8, "not a slide.* 03 04 05"),
        ("header.svs", b"II*\0\x08\0\0\0", "not a slide"),
        ("words.tif", b"MM\0*" + b"this is no TIFF file" * 100, "not a slide"),
    ],
)
def test_what_is_no_slide(tmp_path: Path, backend: str, name: str, content: bytes | None, reason: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    started = time.perf_counter()
    with pytest.raises(SlideOpenError, match=reason) as caught:
        open_slide(path, backend=backend)
    assert time.perf_counter() - started < 1
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_slide(tmp_path: Path) -> None:
    with pytest.raises(SlideOpenError, match="is a folder"):
        open_slide(tmp_path)


def test_a_path_that_no_system_has() -> None:
    with pytest.raises(SlideOpenError, match="cannot be opened"):
        open_slide("a\0b.svs")
    with pytest.raises(SlideOpenError, match=r"no such file|cannot be opened"):
        open_slide("x" * 5000 + ".svs")


def test_an_unknown_backend_is_named_with_the_known_ones(noise_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"Did you mean 'openslide'.*auto"):
        open_slide(noise_path, backend="openslid")


@pytest.mark.parametrize("mpp", [0, -0.25, 100, float("nan")])
def test_an_mpp_that_cannot_be(noise_path: Path, mpp: float) -> None:
    with pytest.raises(InvalidArgumentError, match="mpp is"):
        open_slide(noise_path, mpp=mpp)


def test_paths_of_every_kind(noise_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(noise_path.parent)
    for path in (noise_path, str(noise_path), noise_path.name, noise_path.as_uri()):
        with open_slide(path) as slide:
            assert slide.path == str(noise_path)
            assert slide.backend == "openslide"


def test_names_with_spaces_and_other_letters(noise_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "a b 我的 Ä%20#?.tif"
    shutil.copy(noise_path, path)
    for backend in ("openslide", "tiffslide"):
        for name in (path, path.as_uri()):
            with open_slide(name, backend=backend) as slide:
                assert slide.read(slide.box).shape == (384, 512, 3)


def test_auto_takes_tiffslide_where_openslide_knows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "big-endian.tif"
    pixels = noise(128, 128)
    with tifffile.TiffWriter(path, byteorder=">") as tiff:
        tiff.write(pixels, tile=(64, 64), photometric="rgb")
    with open_slide(path) as slide:
        assert slide.backend == "tiffslide"
        np.testing.assert_array_equal(slide.read(slide.box), pixels)
    with pytest.raises(SlideOpenError, match="'openslide' does not know its format; backend='auto'"):
        open_slide(path, backend="openslide")


@pytest.mark.parametrize(
    ("suffix", "mode"),
    [
        (suffix, mode)
        for suffix in (".png", ".jpg", ".tif")
        for mode in ("RGB", "L", "RGBA")
        if suffix + mode != ".jpgRGBA"
    ],
)
def test_a_flat_image_is_a_slide_of_one_level_once_its_mpp_is_given(tmp_path: Path, suffix: str, mode: str) -> None:
    pixels = noise(100, 60)
    path = tmp_path / f"flat{suffix}"
    image = Image.fromarray(pixels).convert(mode)
    if mode == "RGBA":
        image.putalpha(0)
        pixels = np.full_like(pixels, 255)  # what is transparent is background
    elif mode == "L":
        pixels = np.asarray(image.convert("RGB"))
    image.save(path)
    for backend in EVERY_BACKEND:
        with pytest.raises(SlideOpenError, match=r"flat image, not a tiled slide.*mpp=") as caught:
            open_slide(path, backend=backend)
        assert str(path) in str(caught.value)
    with open_slide(path, mpp=0.5) as slide:
        assert slide.backend == "image"
        assert slide.level_dimensions == ((100, 60),)
        assert (slide.mpp, slide.resolution.source) == (0.5, "given")
        shown = slide.read(slide.box)
        assert np.abs(shown.astype(int) - pixels).max() <= (0 if suffix != ".jpg" else 60)
        assert slide.read_at(slide.box, 10).shape == (30, 50, 3)
        assert (slide.read(slide.box)[0, 0] == shown[0, 0]).all()
    assert slide.read(slide.box).shape == (60, 100, 3)  # closed slides open again


def test_a_flat_image_too_large_for_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.png"
    Image.fromarray(noise(100, 60)).save(path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 4000)
    with pytest.raises(SlideOpenError, match="too large for a flat image"):
        open_slide(path, mpp=0.5)


@pytest.mark.parametrize("backend", EVERY_BACKEND)
@pytest.mark.parametrize("level", [0, 1])
def test_a_tile_that_ends_after_the_file_means_truncated(tmp_path: Path, backend: str, level: int) -> None:
    path = write_slide(tmp_path / "cut.tif", noise(256, 256), downsamples=(1, 4))
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        offsets = tiff.pages[level].tags["TileOffsets"]
        last = path.stat().st_size - 10
        offsets.overwrite(last if offsets.count == 1 else [*offsets.value[:-1], last])
    with pytest.raises(SlideOpenError, match=rf"truncated: 1 of {offsets.count} tiles of image {level}") as caught:
        open_slide(path, backend=backend)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("backend", EVERY_BACKEND)
@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.9, 0.999])
def test_a_file_cut_anywhere_does_not_open(tmp_path: Path, backend: str, share: float) -> None:
    whole = write_slide(tmp_path / "whole.tif", noise(256, 256)).read_bytes()
    path = tmp_path / "cut.tif"
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(SlideOpenError) as caught:
        open_slide(path, backend=backend)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("backend", EVERY_BACKEND)
@pytest.mark.parametrize(
    ("dtype", "photometric", "channels"),
    [
        ("float32", "minisblack", 1),
        ("uint16", "minisblack", 1),
        ("uint16", "rgb", 3),
        ("uint8", "separated", 4),
        ("uint8", "minisblack", 2),
    ],
)
def test_pixels_that_are_no_brightfield_are_refused(
    tmp_path: Path, backend: str, dtype: str, photometric: str, channels: int
) -> None:
    path = tmp_path / "other.tif"
    pixels = noise(64, 64).astype(dtype)[..., :1]
    pixels = np.repeat(pixels, channels, axis=-1).squeeze()
    with tifffile.TiffWriter(path) as tiff:
        tiff.write(pixels, tile=(64, 64), photometric=photometric, planarconfig="contig" if channels > 1 else None)
    with pytest.raises(UnsupportedSlideError, match=f"{channels} channel.* of {dtype}.*8-bit RGB"):
        open_slide(path, backend=backend)


@pytest.mark.parametrize("backend", EVERY_BACKEND)
def test_channels_in_pages_of_their_own_are_refused(tmp_path: Path, backend: str) -> None:
    path = tmp_path / "fluorescence.tif"
    tifffile.imwrite(path, np.moveaxis(noise(64, 64), -1, 0), tile=(64, 64), photometric="minisblack")
    with pytest.raises(UnsupportedSlideError, match="3 channel"):
        open_slide(path, backend=backend)


def test_scanners_whose_layout_tifffile_does_not_know_are_left_to_openslide(tmp_path: Path) -> None:
    path = write_slide(
        tmp_path / "philips.tif",
        noise(64, 64),
        downsamples=(1,),
        software="Philips DP v1.0",
        description="<?xml version='1.0'?><DataObject ObjectType='DPUfsImport'></DataObject>",
    )
    with tifffile.TiffFile(path) as tiff:
        assert tiff.is_philips
    with pytest.raises(UnsupportedSlideError, match="backend='openslide'"):
        open_slide(path, backend="tiffslide")


@pytest.mark.parametrize(("compression", "tag"), [("jpeg2000", 34712), ("webp", 50001), ("lzma", 34925)])
def test_what_openslide_recognises_but_does_not_open_is_tiffslides(tmp_path: Path, compression: str, tag: int) -> None:
    path = write_slide(tmp_path / "other.tif", noise(128, 128), downsamples=(1, 4), compression=compression)
    with tifffile.TiffFile(path) as tiff:
        assert tiff.pages.first.compression == tag
    with open_slide(path) as slide:
        assert slide.backend == "tiffslide"
        assert slide.level_dimensions == ((128, 128), (32, 32))
        np.testing.assert_array_equal(slide.read(slide.box), noise(128, 128))
    with pytest.raises(SlideOpenError, match=f"compression: {tag}"):
        open_slide(path, backend="openslide")


@pytest.mark.parametrize("mpp", [None, 0.25])
def test_what_no_backend_opens_is_told_by_the_first(tmp_path: Path, mpp: float | None) -> None:
    """A broken slide is not taken for a flat image either, when mpp is given: an MRXS file is a JPEG image too."""
    path = write_slide(tmp_path / "cut.tif", noise(128, 128), downsamples=(1,), compression="deflate")
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(SlideOpenError, match="truncated"):
        open_slide(path, mpp=mpp)
    mirax = tmp_path / "broken.mrxs"
    Image.fromarray(noise(64, 64)).save(mirax, "jpeg")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "Slidedat.ini").write_text("[GENERAL]\n")
    with pytest.raises(SlideOpenError, match="OpenSlide cannot open it"):
        open_slide(mirax, mpp=mpp)


@pytest.mark.parametrize("compression", ["deflate", "jpeg2000", 33003])
def test_colours_that_tifffile_leaves_as_they_are_stored_are_refused(tmp_path: Path, compression: str | int) -> None:
    """OpenSlide converts YCbCr that is not JPEG; where it does not open the file, nothing does."""
    luma = cv2.cvtColor(noise(64, 64), cv2.COLOR_RGB2YCrCb)[..., [0, 2, 1]].copy()
    path = tmp_path / "ycbcr.tif"
    tifffile.imwrite(
        path, luma, tile=(64, 64), compression=compression, photometric="ycbcr", subsampling=(1, 1), metadata=None
    )
    with pytest.raises(UnsupportedSlideError, match="YCbCr under compression"):
        open_slide(path, backend="tiffslide")
    if compression == "deflate":
        with open_slide(path) as slide:
            assert np.abs(slide.read(slide.box).astype(int) - noise(64, 64)).max() <= 2
    else:
        with pytest.raises(SlideOpenError, match="Unsupported TIFF compression"):
            open_slide(path)


@pytest.mark.parametrize("backend", EVERY_BACKEND)
def test_one_warning_where_mpp_and_power_disagree(tmp_path: Path, backend: str) -> None:
    path = write_slide(tmp_path / "two.svs", noise(64, 64), downsamples=(1,), aperio="|AppMag = 40|MPP = 0.5")
    with (
        pytest.warns(WsigymWarning, match=r"0\.5 um/px means 20x.* 40x.*mpp=") as caught,
        open_slide(path, backend=backend) as slide,
    ):
        assert slide.mpp == 0.5
    assert len(caught) == 1
    assert str(path) in str(caught[0].message)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with open_slide(path, backend=backend, mpp=0.25) as slide:
            assert slide.magnification == 40


@pytest.mark.parametrize("backend", ["openslide", "tiffslide"])
def test_an_embedded_profile_is_kept_as_bytes(tmp_path: Path, backend: str) -> None:
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    path = write_slide(tmp_path / "icc.tif", noise(64, 64), downsamples=(1,), iccprofile=profile)
    with open_slide(path, backend=backend) as slide:
        assert slide.icc_profile == profile
        np.testing.assert_array_equal(slide.read(slide.box), noise(64, 64))
