"""Transparent pixels are white, whatever lies under them, in every way that a file can say so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from wsigym.cohorts.transparency import on_white

PIXELS = np.full((4, 4, 4), (10, 20, 30, 255), np.uint8)
PIXELS[:2, :, 3] = 0
PIXELS[3, :, 3] = 51


def test_alpha_of_any_strength() -> None:
    shown = np.asarray(on_white(Image.fromarray(PIXELS)))
    assert shown.shape == (4, 4, 3)
    assert (shown[:2] == 255).all()
    assert (shown[2] == (10, 20, 30)).all()
    assert np.allclose(shown[3], 255 - np.subtract(255, (10, 20, 30)) / 5, atol=1)


@pytest.mark.parametrize("mode", ["P", "LA", "RGB"])
def test_files_of_other_modes(tmp_path: Path, mode: str) -> None:
    image = Image.new(mode, (2, 1), (0, 255) if mode == "LA" else 0)
    if mode == "P":
        image.putpalette([0, 0, 0, 200, 30, 40])
    image.putpixel((0, 0), {"P": 1, "LA": (0, 0), "RGB": (1, 2, 3)}[mode])
    image.save(tmp_path / "a.png", **({"LA": {}, "P": {"transparency": 1}, "RGB": {"transparency": (1, 2, 3)}}[mode]))
    with Image.open(tmp_path / "a.png") as opened:
        shown = np.asarray(on_white(opened))
    assert shown.tolist() == [[[255, 255, 255], [0, 0, 0]]]


def test_an_opaque_image_is_as_it_lies() -> None:
    opaque = Image.fromarray(PIXELS[..., :3])
    assert (np.asarray(on_white(opaque)) == PIXELS[..., :3]).all()
