"""Small slides, made once for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from slides_builder import gradient, noise, write_slide

from wsigym.slides import Slide, open_slide

BACKENDS = ("openslide", "tiffslide")


@pytest.fixture(scope="session")
def gradient_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """251 x 211 px whose colours are their place; levels of 251, 62 and 15 px, none a whole multiple of another."""
    return write_slide(tmp_path_factory.mktemp("slides") / "gradient.tif", gradient(251, 211), tile_px=16)


@pytest.fixture(scope="session")
def noise_pixels() -> npt.NDArray[np.uint8]:
    return noise(512, 384)


@pytest.fixture(scope="session")
def noise_path(tmp_path_factory: pytest.TempPathFactory, noise_pixels: npt.NDArray[np.uint8]) -> Path:
    """512 x 384 px of smooth noise, levels 1, 4 and 16, lossless, 0.25 um/px."""
    return write_slide(tmp_path_factory.mktemp("slides") / "noise.tif", noise_pixels)


@pytest.fixture(params=BACKENDS)
def noise_slide(request: pytest.FixtureRequest, noise_path: Path) -> Iterator[Slide]:
    with open_slide(noise_path, backend=request.param) as slide:
        yield slide
