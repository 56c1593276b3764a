"""Pictures that show the same: perceptual hashes find candidates, the correlation of pixels confirms them.

The hash is Zauner's pHash (2010) with 64 bits: the lowest 8 x 8 frequencies of a small grey picture, without the
constant one, each above their median or not. It does not change with scale, file format, brightness or contrast. The
eight rotations and flips are signs and a transposition of the same frequencies, so that they cost nothing to compare.
Not found: crops, and pictures of which a large part was painted over.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import cv2
import numpy as np
import numpy.typing as npt

__all__ = ["MIN_CORRELATION", "SIDE_PX", "alike", "flat"]

SIDE_PX = 48
"""Pictures are compared as grey squares of this side."""

MIN_CORRELATION = 0.97
"""Pearson's, of all pixels. A copy at JPEG quality 50 and half the size has 0.98 or more, another field far less."""

MIN_CONTRAST = 2.0
"""Standard deviation of grey levels, of 255, below which a picture is blank and resembles all others that are."""

MAX_BITS = 5
"""Bits by which hashes of candidates differ at most."""

BANDS = MAX_BITS + 1
"""Two hashes that differ in no more bits than `MAX_BITS` agree in one band at least."""

FREQUENCIES = 8

Grey = npt.NDArray[np.float32]


def flat(grey: Grey) -> bool:
    """Whether a picture is too blank to be told from other blank ones."""
    return float(grey.std()) < MIN_CONTRAST


def alike(pictures: Grey) -> Iterator[tuple[int, int]]:
    """The places of pictures that show the same, each with the first that does, of (n, side, side) grey pictures.

    None of them may be `flat`. Close to linear in n: what is compared shares bits of its hash.
    """
    count = len(pictures)
    if count < 2:
        return
    spectra = np.stack([cv2.dct(picture)[:FREQUENCIES, :FREQUENCIES] for picture in pictures])
    turned = [_bits(variant) for variant in _variants(spectra)]
    unit = pictures.reshape(count, -1) - pictures.reshape(count, -1).mean(axis=1, keepdims=True)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    seen = _Bands()
    for place in range(count):
        candidates = sorted({(other, way) for way in range(8) for other in seen.near(int(turned[way][place]))})
        for other, way in candidates:
            if float(unit[other] @ _turn(unit[place].reshape(pictures.shape[1:]), way).ravel()) >= MIN_CORRELATION:
                yield other, place
                break
        else:
            seen.add(int(turned[0][place]), place)


class _Bands:
    """Hashes found again by any of their bands. Pictures that are the same as an earlier one are not added."""

    def __init__(self) -> None:
        edges = [64 * band // BANDS for band in range(BANDS + 1)]
        self._bands = [(low, (1 << (high - low)) - 1) for low, high in pairwise(edges)]
        self._places: list[dict[int, list[tuple[int, int]]]] = [{} for _ in self._bands]

    def add(self, bits: int, place: int) -> None:
        for (low, mask), places in zip(self._bands, self._places, strict=True):
            places.setdefault(bits >> low & mask, []).append((bits, place))

    def near(self, bits: int) -> Iterator[int]:
        for (low, mask), places in zip(self._bands, self._places, strict=True):
            for other, place in places.get(bits >> low & mask, ()):
                if (other ^ bits).bit_count() <= MAX_BITS:
                    yield place


def _variants(spectra: npt.NDArray[np.float32]) -> Iterator[npt.NDArray[np.float32]]:
    """The spectra of the eight ways to lay a picture, numbered as in `_turn`."""
    signs = np.where(np.arange(FREQUENCIES) % 2, np.float32(-1), np.float32(1))
    for way in range(8):
        found = spectra.transpose(0, 2, 1) if way & 4 else spectra
        found = found * signs[None, None, :] if way & 1 else found
        yield found * signs[None, :, None] if way & 2 else found


def _turn(grey: Grey, way: int) -> Grey:
    """A picture laid another way: transposed (4), then top down (2), then left to right (1)."""
    grey = grey.T if way & 4 else grey
    return grey[:: -1 if way & 2 else 1, :: -1 if way & 1 else 1]


def _bits(spectra: npt.NDArray[np.float32]) -> npt.NDArray[np.uint64]:
    """(n,) 64 bits of each spectrum; the constant frequency's is 0."""
    flat_spectra = spectra.reshape(len(spectra), -1)
    above = flat_spectra > np.median(flat_spectra[:, 1:], axis=1, keepdims=True)
    above[:, 0] = False
    return np.packbits(above, axis=1).view(np.uint64).ravel()
