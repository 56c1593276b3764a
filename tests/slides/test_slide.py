"""Reading: the right pixels, in the right place, at the right size."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st
from slides_builder import gradient, noise, write_slide

from wsigym.errors import InvalidArgumentError, MissingResolutionError, UnknownNameError, UpsamplingError
from wsigym.slides import Box, Slide, open_slide
from wsigym.slides.resample import level_for


def test_what_is_known_of_a_slide(noise_slide: Slide, noise_path: Path) -> None:
    slide = noise_slide
    assert slide.path == str(noise_path)
    assert (slide.width, slide.height) == slide.dimensions == (512, 384)
    assert slide.box == Box(0, 0, 512, 384)
    assert slide.level_dimensions == ((512, 384), (128, 96), (32, 24))
    assert slide.level_downsamples == (1.0, 4.0, 16.0)
    assert slide.mpp == pytest.approx(0.25)
    assert slide.magnification == pytest.approx(40)
    assert slide.resolution.source == "mpp"
    assert slide.background == (255, 255, 255)
    assert slide.icc_profile is None
    assert dict(slide.associated_images) == {}
    assert slide.properties["openslide.mpp-x"] == "0.25"
    assert "512 x 384 px, 0.25 um/px" in repr(slide)
    with pytest.raises(TypeError):
        slide.properties["new"] = "value"  # type: ignore[index]
    with pytest.raises(KeyError):
        slide.associated_images["label"]


@pytest.mark.parametrize(
    "rect", [(0, 0, 512, 384), (0, 0, 1, 1), (63, 64, 65, 3), (500, 380, 12, 4), (17, 33, 200, 150)]
)
def test_at_its_own_size_a_box_is_cut_out_exactly(
    noise_slide: Slide, noise_pixels: npt.NDArray[np.uint8], rect: tuple[int, int, int, int]
) -> None:
    x, y, width, height = rect
    pixels = noise_slide.read(Box(*rect))
    assert pixels.dtype == np.uint8
    np.testing.assert_array_equal(pixels, noise_pixels[y : y + height, x : x + width])


def test_boxes_aligned_to_a_level_are_cut_out_of_it_exactly(noise_slide: Slide) -> None:
    level = noise_slide.read(noise_slide.box, (128, 96))
    np.testing.assert_array_equal(noise_slide.read(Box(64, 128, 80, 40), (20, 10)), level[32:42, 16:36])


def test_what_lies_outside_is_background(noise_slide: Slide, noise_pixels: npt.NDArray[np.uint8]) -> None:
    pixels = noise_slide.read(Box(-10, -20, 532, 424))
    np.testing.assert_array_equal(pixels[20:404, 10:522], noise_pixels)
    pixels[20:404, 10:522] = 255
    assert (pixels == 255).all()
    for box in (Box(512, 0, 50, 50), Box(-50, 0, 50, 50), Box(0, 384, 50, 50), Box(-(10**12), 10**12, 5, 5)):
        assert (noise_slide.read(box) == 255).all()
        assert (noise_slide.read(box, (7, 3)) == 255).all()


def test_a_slide_shown_in_a_far_larger_box_is_where_it_should_be(noise_slide: Slide) -> None:
    side = 2**24
    pixels = noise_slide.read(Box(-side // 2, -side // 2, side, side), (64, 64))
    assert pixels.shape == (64, 64, 3)
    dark = np.argwhere((pixels < 255).any(axis=2))
    assert dark.size == 0 or (dark >= 31).all()


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (-1, 5), (2.5, 5), (5,), (5, 5, 5), ("5", "5"), (math.nan, 5)])
def test_a_size_is_two_whole_numbers_above_zero(noise_slide: Slide, size: tuple[int, int]) -> None:
    with pytest.raises(InvalidArgumentError, match="whole pixels"):
        noise_slide.read(Box(0, 0, 10, 10), size)


@pytest.mark.parametrize("box", [Box(0, 0, 0, 5), Box(0, 0, 5, 0)])
def test_an_empty_box_has_no_pixels(noise_slide: Slide, box: Box) -> None:
    with pytest.raises(InvalidArgumentError, match="empty"):
        noise_slide.read(box)
    with pytest.raises(InvalidArgumentError, match="empty"):
        noise_slide.read_at(box, 10)


@pytest.mark.parametrize("size", [None, (10**6, 10**6), (1, 2**28 + 1)])
def test_a_huge_read_is_refused_before_anything_is_allocated(noise_slide: Slide, size: tuple[int, int] | None) -> None:
    with pytest.raises(InvalidArgumentError, match="at most 268,435,456"):
        noise_slide.read(Box(0, 0, 10**6, 10**6), size)


def test_numpy_numbers_are_a_size(noise_slide: Slide) -> None:
    assert noise_slide.read(Box(0, 0, 100, 50), (np.int64(10), np.int32(5))).shape == (5, 10, 3)  # type: ignore[arg-type]


boxes = st.builds(Box, st.integers(-300, 300), st.integers(-300, 300), st.integers(1, 600), st.integers(1, 600))
sizes = st.tuples(st.integers(1, 80), st.integers(1, 80))


@pytest.mark.parametrize("backend", ["openslide", "tiffslide"])
@settings(max_examples=150, deadline=None)
@given(box=boxes, size=sizes)
def test_every_pixel_is_in_its_place(backend: str, gradient_path: Path, box: Box, size: tuple[int, int]) -> None:
    """On a slide whose colours are places, a pixel shows the middle of what it covers, to half a level pixel."""
    slide = _gradient_slide(gradient_path, backend)
    pixels = slide.read(box, size)
    width, height = size
    assert pixels.shape == (height, width, 3)
    assert pixels.dtype == np.uint8
    level = level_for(slide._downsamples, (box.width / width, box.height / height))
    for axis, start, extent, count, limit in (
        (0, box.x, box.width, width, slide.width),
        (1, box.y, box.height, height, slide.height),
    ):
        level_px = slide.dimensions[axis] / slide.level_dimensions[level][axis]
        step = extent / count
        middle = start + (np.arange(count) + 0.5) * step
        reach = (
            max(step, level_px) / 2 + level_px
        )  # what a pixel shows may end in the background that far from its middle
        inside = (middle - reach >= 0) & (middle + reach <= limit)
        other = box.y if axis == 0 else box.x
        other_extent = box.height if axis == 0 else box.width
        other_limit = slide.height if axis == 0 else slide.width
        if other < 0 or other + other_extent > other_limit:
            continue  # background across the axis would be mixed in
        shown = pixels[height // 2, :, 0] if axis == 0 else pixels[:, width // 2, 1]
        # A level-0 pixel is one grey level. Rounding the level's pixels (or, at level 0, those between) and the shown
        # ones takes half of one each; OpenCV's linear weights of 11 bits take up to a quarter of one.
        tolerance = (0 if level == 0 and step >= 1 else level_px / 2) + 1.0 + 1 / 4
        np.testing.assert_array_less(np.abs(shown[inside] - (middle[inside] - 0.5)), tolerance + 1e-3)


_slides: dict[str, Slide] = {}


def _gradient_slide(path: Path, backend: str) -> Slide:
    if backend not in _slides:
        _slides[backend] = open_slide(path, backend=backend)
    return _slides[backend]


@pytest.mark.parametrize("downsample", [1.0, 2.5, 4.0, 8.0, 16.0, 32.0])
def test_shrinking_averages_the_area(noise_path: Path, noise_pixels: npt.NDArray[np.uint8], downsample: float) -> None:
    """Against exact means of level 0, where pixels shown are whole level pixels: no aliasing, no shift."""
    with open_slide(noise_path) as slide:
        size = round(512 / downsample), round(384 / downsample)
        shown = slide.read(slide.box, size).astype(float)
    expected = _area_mean(_area_mean(noise_pixels.astype(float), size[1]).transpose(1, 0, 2), size[0]).transpose(
        1, 0, 2
    )
    assert np.abs(shown - expected).mean() < 1.0


def _area_mean(pixels: npt.NDArray[np.float64], rows: int) -> npt.NDArray[np.float64]:
    edges = np.linspace(0, len(pixels), rows + 1)
    total = np.concatenate([np.zeros((1, *pixels.shape[1:])), pixels.cumsum(axis=0)])
    whole = np.minimum(edges.astype(int), len(pixels) - 1)
    at_edges = total[whole] + pixels[whole] * (edges - whole)[:, None, None]
    return np.diff(at_edges, axis=0) / (len(pixels) / rows)


def test_the_level_is_the_coarsest_that_is_fine_enough_within_one_percent() -> None:
    levels = ((1.0, 1.0), (4.0001, 4.0), (16.0, 16.05))
    wanted = (0.1, 1, 3.9, 3.97, 4, 15, 16, 1000)
    assert [level_for(levels, (each, each)) for each in wanted] == [0, 0, 0, 1, 1, 1, 2, 2]
    assert level_for(levels, (16, 3)) == level_for(levels, (3, 16)) == 0
    assert level_for(levels, (16, 4)) == 1


def test_large_regions_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch, noise_slide: Slide) -> None:
    whole = {
        size: noise_slide.read(noise_slide.box, size) for size in ((32, 24), (128, 96), (512, 384), (100, 7), (1, 1))
    }
    monkeypatch.setattr("wsigym.slides.resample.PIECE_PX", 500)
    for size, pixels in whole.items():
        pieces = noise_slide.read(noise_slide.box, size)
        assert pieces.shape == pixels.shape
        if size in ((32, 24), (128, 96), (512, 384)):  # output pixels are level pixels
            np.testing.assert_array_equal(pieces, pixels)
        assert np.abs(pieces.astype(int) - pixels).mean() < 3


def test_enlarging_has_no_steps(tmp_path: Path) -> None:
    pixels = np.zeros((1, 2, 3), dtype=np.uint8)
    pixels[0, 1] = 200
    with open_slide(write_slide(tmp_path / "edge.tif", pixels, downsamples=(1,), tile_px=16)) as slide:
        shown = slide.read(slide.box, (20, 1))[0, :, 0].astype(float)
    assert np.abs(shown - np.interp((np.arange(20) + 0.5) / 10 - 0.5, [0, 1], [0, 200])).max() <= 4


@pytest.mark.parametrize("backend", ["openslide", "tiffslide"])
def test_each_axis_has_its_own_scale(tmp_path: Path, backend: str) -> None:
    """255 x 19 px over 63 x 4 px: 4.05 and 4.75 level-0 pixels a level pixel."""
    with open_slide(write_slide(tmp_path / "flat.tif", gradient(255, 19), tile_px=16), backend=backend) as slide:
        assert slide.level_dimensions[1] == (63, 4)
        shown = slide.read(Box(200, 0, 40, 19), (9, 4))[1, :, 0]
    assert np.abs(shown - (199.5 + (np.arange(9) + 0.5) * 40 / 9)).max() <= 4.05 / 2 + 1


@pytest.mark.parametrize("backend", ["openslide", "tiffslide"])
def test_the_whole_slide_at_a_level_s_size_is_that_level(gradient_path: Path, backend: str) -> None:
    with open_slide(gradient_path, backend=backend) as slide, tifffile.TiffFile(gradient_path) as tiff:
        for number, size in enumerate(slide.level_dimensions):
            np.testing.assert_array_equal(slide.read(slide.box, size), tiff.pages[number].asarray())


def test_enlarging_is_linear_and_centred(gradient_path: Path) -> None:
    with open_slide(gradient_path) as slide:
        shown = slide.read(Box(100, 50, 20, 10), (200, 100)).astype(float)
    assert np.abs(shown[50, 10:-10, 0] - (100 + (np.arange(200)[10:-10] + 0.5) / 10 - 0.5)).max() <= 0.75


@pytest.mark.parametrize(
    ("magnification", "size"), [(40, (400, 200)), (20, (200, 100)), (10, (100, 50)), (2.5, (25, 13))]
)
def test_read_at_gives_the_size_of_the_magnification(
    noise_slide: Slide, magnification: float, size: tuple[int, int]
) -> None:
    box = Box(40, 40, 400, 200)
    pixels = noise_slide.read_at(box, magnification)
    assert pixels.shape == (size[1], size[0], 3)
    np.testing.assert_array_equal(pixels, noise_slide.read(box, size))


def test_up_to_ten_percent_above_the_scan_is_native(noise_path: Path) -> None:
    with open_slide(noise_path, mpp=0.2527) as slide:  # 39.57x, which everyone calls 40x
        assert slide.read_at(Box(0, 0, 224, 224), 40).shape == (226, 226, 3)
        assert slide.read_at(Box(0, 0, 100, 100), 43.5).shape == (110, 110, 3)
        with pytest.raises(
            UpsamplingError, match=r"44x .* scanned at 39\.57x .* up to 43\.53x .* allow_upsampling=True"
        ) as caught:
            slide.read_at(Box(0, 0, 100, 100), 44)
        assert slide.path in str(caught.value)
        assert slide.read_at(Box(0, 0, 100, 100), 80, allow_upsampling=True).shape == (202, 202, 3)


def test_a_magnification_needs_a_scale(tmp_path: Path) -> None:
    path = write_slide(tmp_path / "unscaled.tif", noise(64, 64), mpp=None)
    with open_slide(path) as slide:
        assert slide.mpp is None
        assert slide.magnification is None
        assert slide.read(slide.box).shape == (64, 64, 3)
        with pytest.raises(MissingResolutionError, match=r"20x was asked for.*mpp=0\.25.*cohort") as caught:
            slide.read_at(slide.box, 20)
        assert str(path) in str(caught.value)
    with open_slide(path, mpp=0.5) as slide:
        assert slide.read_at(slide.box, 10).shape == (32, 32, 3)


@pytest.mark.parametrize("magnification", [0, -10, math.nan, math.inf])
def test_a_magnification_is_a_number_above_zero(noise_slide: Slide, magnification: float) -> None:
    with pytest.raises(InvalidArgumentError, match="above 0"):
        noise_slide.read_at(noise_slide.box, magnification)


@pytest.mark.parametrize(("max_px", "size"), [(128, (128, 96)), (100, (100, 75)), (10**6, (512, 384)), (1, (1, 1))])
def test_thumbnail(noise_slide: Slide, max_px: int, size: tuple[int, int]) -> None:
    thumbnail = noise_slide.thumbnail(max_px)
    assert thumbnail.shape == (size[1], size[0], 3)
    np.testing.assert_array_equal(thumbnail, noise_slide.read(noise_slide.box, size))


def test_a_thumbnail_has_a_pixel(noise_slide: Slide) -> None:
    with pytest.raises(InvalidArgumentError, match="max_px is 0"):
        noise_slide.thumbnail(0)


def test_reads_do_not_share_memory(noise_slide: Slide) -> None:
    first = noise_slide.read(Box(0, 0, 64, 64))
    kept = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(noise_slide.read(Box(0, 0, 64, 64)), kept)


def test_closing_twice_is_harmless_and_reading_opens_again(noise_slide: Slide) -> None:
    before = noise_slide.read(Box(0, 0, 64, 64))
    noise_slide.close()
    noise_slide.close()
    np.testing.assert_array_equal(noise_slide.read(Box(0, 0, 64, 64)), before)


def test_a_copy_reads_on_its_own(noise_slide: Slide) -> None:
    other = copy.deepcopy(noise_slide)
    noise_slide.close()
    assert other.read(Box(0, 0, 64, 64)).shape == (64, 64, 3)
    other.close()


def test_a_slide_of_one_pixel(tmp_path: Path) -> None:
    path = write_slide(tmp_path / "dot.tif", gradient(1, 1), downsamples=(1,), tile_px=16)
    with open_slide(path) as slide:
        assert slide.read(Box(0, 0, 1, 1)).tolist() == [[[0, 0, 128]]]
        assert slide.read(Box(-1, -1, 3, 3))[1, 1].tolist() == [0, 0, 128]
        assert slide.thumbnail(100).shape == (1, 1, 3)


@pytest.mark.parametrize("backend", ["openslide", "tiffslide"])
def test_labels_are_read_with_nearest(tmp_path: Path, backend: str) -> None:
    """A mask of 0, 100 and 200 has no other values at any size, and each is the one under the pixel's middle."""
    labels = np.repeat(np.repeat(np.random.default_rng(0).integers(0, 3, (60, 80), dtype=np.uint8) * 100, 4, 0), 4, 1)
    path = write_slide(tmp_path / "mask.tif", labels, downsamples=(1,))
    with open_slide(path, backend=backend) as slide:
        for size in ((320, 240), (80, 60), (77, 31), (640, 480), (1000, 3)):
            shown = slide.read(slide.box, size, resampling="nearest")
            x, y = (np.arange(size[0]) + 0.5) * 320 / size[0], (np.arange(size[1]) + 0.5) * 240 / size[1]
            between = np.ix_(y % 1 != 0, x % 1 != 0)  # a middle that lies on an edge may take either side
            np.testing.assert_array_equal(shown[..., 0][between], labels[y.astype(int)][:, x.astype(int)][between])
        assert set(np.unique(slide.read(Box(-50, -50, 500, 400), (33, 44), resampling="nearest"))) == {0, 100, 200, 255}
        assert len(np.unique(slide.read(slide.box, (77, 31)))) > 3


def test_nearest_takes_the_level_of_the_size(noise_slide: Slide) -> None:
    level = noise_slide.read(noise_slide.box, (128, 96))
    np.testing.assert_array_equal(noise_slide.read(noise_slide.box, (128, 96), resampling="nearest"), level)


def test_nearest_never_shrinks_in_the_decoder(tmp_path: Path) -> None:
    path = write_slide(tmp_path / "mask.tif", noise(512, 512), downsamples=(1,), compression="jpeg")
    with open_slide(path) as slide:
        assert slide.backend == "tiles"
        every_eighth = slide.read(slide.box)[4::8, 4::8]
        np.testing.assert_array_equal(slide.read(slide.box, (64, 64), resampling="nearest"), every_eighth)


def test_there_are_two_resamplings(noise_slide: Slide) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown resampling 'nearst'. Did you mean 'nearest'"):
        noise_slide.read(noise_slide.box, (10, 10), resampling="nearst")
