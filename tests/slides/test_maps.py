"""Tissue and stain: on images whose answer is known, and as maps with a frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from slides_builder import write_slide

from wsigym.errors import InvalidArgumentError
from wsigym.slides import (
    Box,
    Slide,
    haematoxylin_density,
    haematoxylin_of,
    nuclear_density_of,
    open_slide,
    tissue_mask,
    tissue_mask_of,
)
from wsigym.slides.maps import SlideMap

WHITE, PINK, BLUE = (255, 255, 255), (235, 180, 210), (90, 60, 150)
"""Glass, eosin-stained stroma, haematoxylin-stained nuclei."""


def _painted(width: int, height: int, *patches: tuple[Box, tuple[int, int, int]]) -> npt.NDArray[np.uint8]:
    pixels = np.full((height, width, 3), WHITE, dtype=np.uint8)
    for box, colour in patches:
        pixels[box.y : box.bottom, box.x : box.right] = colour
    return pixels


def test_tissue_is_what_is_stained() -> None:
    pixels = _painted(200, 150, (Box(20, 30, 100, 80), PINK), (Box(60, 60, 20, 20), BLUE))
    mask = tissue_mask_of(pixels)
    assert mask.dtype == bool
    assert mask.shape == (150, 200)
    truth = (pixels != 255).any(axis=2)
    assert (mask & truth).sum() / (mask | truth).sum() > 0.95


@pytest.mark.parametrize("colour", [WHITE, (242, 240, 241), (128, 128, 128), (0, 0, 0), (240, 240, 247)])
def test_an_empty_image_has_no_tissue(colour: tuple[int, int, int]) -> None:
    pixels = np.full((100, 120, 3), colour, dtype=np.uint8)
    assert not tissue_mask_of(pixels).any()
    rng = np.random.default_rng(0)
    noisy = np.clip(pixels.astype(int) + rng.integers(-2, 3, pixels.shape), 0, 255).astype(np.uint8)
    if colour != (0, 0, 0):  # the hue of near-black noise is anything
        assert not tissue_mask_of(noisy).any()


def test_an_image_full_of_tissue_is_not_split() -> None:
    pixels = _painted(100, 100, (Box(0, 0, 100, 100), PINK), (Box(20, 20, 40, 40), BLUE))
    assert tissue_mask_of(pixels).all()


def test_dust_is_no_tissue() -> None:
    pixels = _painted(200, 200, (Box(10, 10, 5, 5), BLUE), (Box(100, 100, 50, 50), PINK))
    mask = tissue_mask_of(pixels)
    assert not mask[:50, :50].any()
    assert mask[105:145, 105:145].all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (7, 5)])
def test_the_smallest_images_have_a_mask_and_a_density(shape: tuple[int, int]) -> None:
    pixels = np.full((*shape, 3), BLUE, dtype=np.uint8)
    assert tissue_mask_of(pixels).shape == shape
    assert haematoxylin_of(pixels).shape == shape


def test_haematoxylin_is_the_blue_and_nothing_on_white() -> None:
    density = haematoxylin_of(np.array([[WHITE, PINK, BLUE]], dtype=np.uint8))
    assert density.dtype == np.float32
    white, pink, blue = density[0].tolist()
    assert white == 0
    assert 0 <= pink < 0.1
    assert blue > 0.3


def test_haematoxylin_is_an_optical_density() -> None:
    """Twice the stain, twice the density: Beer-Lambert along the haematoxylin vector of Ruifrok and Johnston."""
    vector = np.array([0.65, 0.70, 0.29])
    amounts = np.array([0.0, 0.25, 0.5, 1.0])
    pixels = np.rint(255 * 10 ** -(amounts[:, None] * vector)).astype(np.uint8)[None]
    assert haematoxylin_of(pixels)[0].tolist() == pytest.approx(amounts.tolist(), abs=0.02)


def test_nuclear_density_rises_from_pale_to_dense_and_is_0_on_pen() -> None:
    vector = np.array([0.65, 0.70, 0.29])
    stained = np.rint(255 * 10 ** -(np.array([[0.2], [0.45], [0.6], [0.9]]) * vector)).astype(np.uint8)
    pens = np.array([(52, 78, 176), (38, 118, 84), (58, 58, 58)], dtype=np.uint8)
    density = nuclear_density_of(np.concatenate([stained, pens])[None])
    assert density.dtype == np.float32
    assert density[0].tolist() == pytest.approx([0, 0.5, 1, 1, 0, 0, 0], abs=0.06)


def test_densities_of_two_views_compare() -> None:
    pixels = _painted(100, 100, (Box(0, 0, 100, 50), PINK), (Box(0, 50, 50, 50), BLUE))
    whole = haematoxylin_of(pixels)
    np.testing.assert_array_equal(whole[60:90, 20:70], haematoxylin_of(pixels[60:90, 20:70]))


@pytest.fixture(scope="module")
def slide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slide]:
    """3,000 x 2,000 px: tissue from (800, 400) to (2000, 1600), nuclei crowded from (1200, 800) to (1600, 1200)."""
    pixels = _painted(3000, 2000, (Box(800, 400, 1200, 1200), PINK), (Box(1200, 800, 400, 400), BLUE))
    path = write_slide(tmp_path_factory.mktemp("maps") / "painted.tif", pixels, tile_px=256)
    with open_slide(path) as slide:
        yield slide


def test_a_tissue_map_knows_its_frame(slide: Slide) -> None:
    tissue = tissue_mask(slide)
    assert tissue.values.shape == (63, 94)  # 1.25x of a 40x scan is a 32nd
    assert tissue.box == slide.box
    assert tissue.step == (3000 / 94, 2000 / 63)
    assert tissue.values.mean() == pytest.approx(1200 * 1200 / (3000 * 2000), rel=0.1)
    assert tissue.mean(Box(1000, 600, 500, 500)) == 1
    assert tissue.mean(Box(0, 0, 600, 300)) == 0
    assert 0.3 < tissue.mean(Box(500, 600, 600, 500)) < 0.7
    assert tissue.mean(Box(-500, -500, 100, 100)) == 0
    rows, columns = np.nonzero(tissue.values)
    first, last = tissue.box_of(rows.min(), columns.min()), tissue.box_of(rows.max(), columns.max())
    assert np.abs(np.array([first.x - 800, first.y - 400, last.right - 2000, last.bottom - 1600])).max() <= 40


def test_a_stain_map_knows_its_frame(slide: Slide) -> None:
    stain = haematoxylin_density(slide)
    assert stain.values.shape == (63, 94)
    assert stain.values.dtype == np.float32
    row, column = np.unravel_index(stain.values.argmax(), stain.values.shape)
    assert Box(1200, 800, 400, 400).contains_point(*stain.box_of(int(row), int(column)).centre)
    assert stain.mean(Box(1250, 850, 300, 300)) > 5 * stain.mean(Box(850, 450, 300, 300))


@pytest.mark.parametrize("magnification", [0.1, 1.25, 5, 40, 1000])
def test_the_magnification_sets_the_size(slide: Slide, magnification: float) -> None:
    tissue = tissue_mask(slide, magnification)
    assert tissue.values.shape[1] == min(3000, round(3000 * magnification / 40))  # never enlarged
    with pytest.raises(InvalidArgumentError, match="above 0"):
        haematoxylin_density(slide, 0)


def test_a_slide_without_scale_is_mapped_by_its_size(tmp_path: Path) -> None:
    pixels = _painted(2048, 1024, (Box(200, 100, 900, 700), PINK))
    with open_slide(write_slide(tmp_path / "unscaled.tif", pixels, mpp=None, tile_px=256)) as slide:
        tissue = tissue_mask(slide)
        assert tissue.values.shape == (512, 1024)
        assert tissue.values.mean() == pytest.approx(900 * 700 / (2048 * 1024), rel=0.05)
        assert haematoxylin_density(slide).values.shape == (512, 1024)


def test_the_cells_of_a_map_tile_its_box() -> None:
    cells = SlideMap(np.zeros((7, 13)), Box(10, 20, 1001, 503))
    area = sum(cells.box_of(row, column).area for row in range(7) for column in range(13))
    assert area == cells.box.area
    assert cells.box_of(0, 0).x == 10
    assert cells.box_of(6, 12).bottom == 523


def test_real_tissue(shared_data: Path) -> None:
    with open_slide(shared_data / "cmu-1-small-region" / "CMU-1-Small-Region.svs") as slide:
        tissue = tissue_mask(slide)
        stain = haematoxylin_density(slide)
    assert 0.3 < tissue.values.mean() < 0.95
    assert stain.values[tissue.values].mean() > 3 * stain.values[~tissue.values].mean()
