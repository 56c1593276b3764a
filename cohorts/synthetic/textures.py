"""Tileable noise textures, made once a process from a fixed seed, that every slide shares.

A texture is uint8 with 128 standing for "times one". It repeats every `PERIOD` level-0 pixels, which is no multiple
of a block, and is stored padded by a block so that any block is one slice of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import fft

__all__ = ["BLOCK", "HALO", "ORIENTATIONS", "Textures", "textures"]

BLOCK = 1024
"""Side in level-0 pixels of the square that is rendered at a time; one level-1 tile of 256 px."""

HALO = 16
"""Pixels rendered around a block so that blurring has no seams."""

ORIENTATIONS = 4
"""Directions of the stroma fibres, evenly over half a turn."""

PERIOD = 1408

_SHRINK = 8
"""Coarse noise is made on a grid this much coarser."""


@dataclass(frozen=True)
class Textures:
    """Fibres of stroma by direction, coarse mottle and fine grain; uint8 arrays of one shape."""

    fibres: tuple[NDArray[np.uint8], ...]
    mottle: NDArray[np.uint8]
    grain: NDArray[np.uint8]

    @staticmethod
    def at(texture: NDArray[np.uint8], x: int, y: int, side: int) -> NDArray[np.uint8]:
        """The square of `texture` whose top left corner is level-0 (x, y)."""
        x, y = x % PERIOD, y % PERIOD
        return texture[y : y + side, x : x + side]


@lru_cache(maxsize=1)
def textures() -> Textures:
    """The shared textures; about half a second and 40 MB the first time."""
    rng = np.random.default_rng(20240229)
    fibres = tuple(_fibres(rng, np.pi * k / ORIENTATIONS) for k in range(ORIENTATIONS))
    mottle = 0.7 * _smooth(rng, 14) + 0.5 * _smooth(rng, 45)
    grain = 0.8 * _smooth(rng, 1.3) + 0.6 * _smooth(rng, 4)
    return Textures(
        fibres=fibres,
        mottle=_stored(128 + 40 * mottle),
        grain=_stored(128 + 13 * grain),
    )


def _filtered(rng: np.random.Generator, along: float, across: float, angle: float, period: int) -> NDArray[np.float32]:
    """Tileable noise of unit variance, blurred by `along` px in the direction `angle` and by `across` px across it."""
    fy = fft.fftfreq(period).astype(np.float32)[:, None]
    fx = fft.rfftfreq(period).astype(np.float32)[None, :]
    u = fx * np.cos(angle) + fy * np.sin(angle)
    v = fy * np.cos(angle) - fx * np.sin(angle)
    gain = np.exp((-2 * np.pi**2) * ((along * u) ** 2 + (across * v) ** 2), dtype=np.float32)
    spectrum = rng.standard_normal((*gain.shape, 2), dtype=np.float32).view(np.complex64)[..., 0] * gain
    spectrum[0, 0] = 0
    out = fft.irfft2(spectrum, s=(period, period)).astype(np.float32)
    return np.asarray(out / out.std(), dtype=np.float32)


def _smooth(rng: np.random.Generator, sigma: float) -> NDArray[np.float32]:
    """Noise without direction; coarse noise is made small and enlarged."""
    if sigma < 2 * _SHRINK:
        return _filtered(rng, sigma, sigma, 0, PERIOD)
    small = _filtered(rng, sigma / _SHRINK, sigma / _SHRINK, 0, PERIOD // _SHRINK)
    around = np.pad(small, 2, mode="wrap")
    big = cv2.resize(around, None, fx=_SHRINK, fy=_SHRINK, interpolation=cv2.INTER_CUBIC)
    edge = 2 * _SHRINK
    return np.asarray(big[edge : edge + PERIOD, edge : edge + PERIOD], dtype=np.float32)


def _fibres(rng: np.random.Generator, angle: float) -> NDArray[np.uint8]:
    """Wavy collagen: fibrils inside bundles, with pale clefts between the bundles."""
    bundles = _filtered(rng, 90, 9, angle, PERIOD)
    fibrils = _filtered(rng, 50, 1.8, angle, PERIOD)
    value = 1.0 + 0.16 * fibrils + 0.20 * bundles
    value -= 0.55 * np.clip(-bundles - 1.0, 0, 1.2)
    bend_x, bend_y = 26 * _smooth(rng, 70), 26 * _smooth(rng, 70)
    rows, columns = np.mgrid[0:PERIOD, 0:PERIOD].astype(np.float32)
    waved = cv2.remap(
        value.astype(np.float32), columns + bend_x, rows + bend_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP
    )
    return _stored(128 * np.asarray(waved, np.float32))


def _stored(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    tile = np.clip(values, 0, 255).astype(np.uint8)
    pad = BLOCK + 2 * HALO
    return np.pad(tile, ((0, pad), (0, pad)), mode="wrap")
