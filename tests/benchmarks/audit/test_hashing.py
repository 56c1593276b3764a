from __future__ import annotations

import io

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from audit_builder import picture
from PIL import Image, ImageEnhance

from wsigym.benchmarks.audit.hashing import SIDE_PX, alike, flat


def grey(image: Image.Image) -> npt.NDArray[np.float32]:
    pixels = np.asarray(image.convert("L"), np.float32)
    return np.asarray(cv2.resize(pixels, (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_AREA), np.float32)


def jpeg(image: Image.Image, quality: int) -> Image.Image:
    written = io.BytesIO()
    image.save(written, "JPEG", quality=quality)
    return Image.open(written)


COPIES = {
    "quality 30": lambda image: jpeg(image, 30),
    "a third of the size": lambda image: image.resize((80, 80)),
    "brighter": lambda image: ImageEnhance.Brightness(image).enhance(0.8),
    "less contrast": lambda image: ImageEnhance.Contrast(image).enhance(0.5),
    "grey": lambda image: image.convert("L"),
    **{way.name.lower(): lambda image, way=way: image.transpose(way) for way in Image.Transpose},
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_is_found_among_others(name: str) -> None:
    pictures = [grey(picture(seed, 240)) for seed in range(40)]
    for original in (3, 17, 39):
        copied = [*pictures, grey(COPIES[name](picture(original, 240)))]
        assert list(alike(np.stack(copied))) == [(original, 40)]


def test_different_pictures_are_not_alike() -> None:
    assert list(alike(np.stack([grey(picture(seed)) for seed in range(400)]))) == []


def test_every_copy_is_told_with_the_first() -> None:
    pictures = [grey(picture(seed)) for seed in (1, 2, 1, 3, 2, 1)]
    assert list(alike(np.stack(pictures))) == [(0, 2), (1, 4), (0, 5)]
    assert list(alike(np.zeros((0, SIDE_PX, SIDE_PX), np.float32))) == []


def test_pictures_with_alike_hashes_are_told_apart_by_their_pixels() -> None:
    """The same low frequencies, and so the same hash, under another texture each."""
    base, rng = grey(picture(1)), np.random.default_rng(0)
    textured = []
    for _ in range(2):
        spectrum = rng.normal(0, 40, base.shape).astype(np.float32)
        spectrum[:8, :8] = 0
        textured.append(base + cv2.idct(spectrum))
    assert list(alike(np.stack(textured))) == []
    assert list(alike(np.stack([textured[0], textured[0]]))) == [(0, 1)]


def test_blank_pictures_are_flat() -> None:
    assert flat(grey(Image.new("RGB", (50, 50), "white")))
    assert not flat(grey(picture(0)))
