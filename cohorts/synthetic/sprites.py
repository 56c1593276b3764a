"""Nuclei and their cytoplasm as small ready-made pictures, made once a process from a fixed seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

__all__ = ["KINDS", "ROTATIONS", "VARIANTS", "Kind", "Sprite", "kind_index", "sprites"]

ROTATIONS = 16
VARIANTS = 12


@dataclass(frozen=True)
class Kind:
    """A kind of nucleus. Lengths are level-0 pixels (0.25 um); stain amounts are 0..255 of their plane."""

    name: str
    length: float
    width: float
    dark: float
    """Haematoxylin of the body."""
    rim: float = 20
    """Extra haematoxylin along the nuclear membrane."""
    clump: float = 16
    """Contrast of the chromatin."""
    clump_px: float = 2.2
    irregular: float = 0.06
    spread: float = 0.10
    """How much the size differs from one nucleus to another (relative standard deviation)."""
    nucleoli: int = 0
    cell: float = 0
    """Radius of the cell body; 0 where the cytoplasm does not show."""
    cell_eosin: float = 0


KINDS = (
    Kind("lymphocyte", 26, 24, 178, rim=14, clump=24, clump_px=2.6),
    Kind("spindle", 50, 9, 138, rim=8, clump=10, irregular=0.10, spread=0.22),
    Kind("columnar", 36, 19, 130),
    Kind("cuboidal", 30, 27, 122, nucleoli=1),
    Kind("hepatocyte", 30, 29, 112, rim=28, clump=14, nucleoli=1, cell=46, cell_eosin=116),
    Kind("squamous", 38, 29, 112, nucleoli=1, cell=38, cell_eosin=98),
    Kind("plasma", 26, 23, 150, clump=28, clump_px=3, cell=22, cell_eosin=84),
    Kind("bland", 34, 30, 120, rim=16, clump=12, cell=34, cell_eosin=70),
    Kind("atypical", 46, 35, 134, rim=26, clump=24, irregular=0.10, spread=0.16, nucleoli=1, cell=40, cell_eosin=78),
    Kind("stratified", 52, 23, 144, rim=22, clump=22, irregular=0.08, spread=0.14),
    Kind(
        "pleomorphic",
        64,
        47,
        158,
        rim=34,
        clump=36,
        clump_px=3.2,
        irregular=0.17,
        spread=0.24,
        nucleoli=2,
        cell=46,
        cell_eosin=84,
    ),
    Kind(
        "vesicular",
        54,
        46,
        92,
        rim=66,
        clump=26,
        clump_px=3,
        irregular=0.08,
        spread=0.14,
        nucleoli=2,
        cell=46,
        cell_eosin=84,
    ),
    Kind("giant", 104, 80, 166, rim=30, clump=38, clump_px=4, irregular=0.22, spread=0.18, nucleoli=4),
    Kind("mitosis", 46, 15, 235, rim=0, clump=12, irregular=0.26, spread=0.12),
    Kind("debris", 13, 11, 205, rim=0, clump=10, irregular=0.2, spread=0.35),
    Kind("histiocyte", 44, 24, 84, rim=30, clump=12, nucleoli=1, cell=40, cell_eosin=92),
    Kind("goblet", 0, 0, 0),
)

_INDEX = {kind.name: i for i, kind in enumerate(KINDS)}


def kind_index(name: str) -> int:
    """Where the kind `name` stands in `KINDS`."""
    return _INDEX[name]


@dataclass(frozen=True)
class Sprite:
    """One nucleus to stamp, and its cytoplasm's eosin where that shows; square uint8 arrays of odd sides."""

    nucleus: NDArray[np.uint8]
    cell: NDArray[np.uint8] | None


@lru_cache(maxsize=1)
def sprites() -> tuple[Sprite, ...]:
    """All sprites; that of kind k, variant v and rotation r is number (k * VARIANTS + v) * ROTATIONS + r."""
    rng = np.random.default_rng(20240301)
    out: list[Sprite] = []
    for kind in KINDS:
        for _ in range(VARIANTS):
            nucleus = _nucleus(rng, kind)
            cell = _cell(rng, kind) if kind.cell else None
            out.extend(
                Sprite(_turned(nucleus, r), None if cell is None else _turned(cell, r)) for r in range(ROTATIONS)
            )
    return tuple(out)


def _turned(image: NDArray[np.float32], rotation: int) -> NDArray[np.uint8]:
    side = image.shape[0]
    turn = cv2.getRotationMatrix2D((side // 2, side // 2), -360.0 * rotation / ROTATIONS, 1.0)
    return np.clip(cv2.warpAffine(image, turn, (side, side), flags=cv2.INTER_LINEAR), 0, 255).astype(np.uint8)


def _polar(side: int, length: float, width: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Distance (1 on the ellipse) and angle of each pixel from the centre."""
    half = side // 2
    rows, columns = np.mgrid[-half : half + 1, -half : half + 1].astype(np.float32)
    u, v = columns / (length / 2), rows / (width / 2)
    return np.hypot(u, v), np.arctan2(v, u)


def _outline(rng: np.random.Generator, theta: NDArray[np.float32], irregular: float) -> NDArray[np.float32]:
    radius = np.ones_like(theta)
    for wave in range(2, 6):
        radius += irregular * rng.normal(0, 0.6) * np.cos(wave * theta + rng.uniform(0, 2 * np.pi))
    return np.clip(radius, 0.55, 1.5)


def _noise(rng: np.random.Generator, side: int, sigma: float) -> NDArray[np.float32]:
    noise = cv2.GaussianBlur(rng.standard_normal((side, side)).astype(np.float32), (0, 0), sigma)
    return np.asarray(noise / (noise.std() + 1e-6), dtype=np.float32)


def _nucleus(rng: np.random.Generator, kind: Kind) -> NDArray[np.float32]:
    if not kind.length:
        return np.zeros((1, 1), np.float32)
    scale = float(np.clip(1 + kind.spread * rng.standard_normal(), 0.6, 1.6))
    stretch = float(np.clip(1 + 0.08 * rng.standard_normal(), 0.8, 1.25))
    length, width = kind.length * scale * stretch, kind.width * scale / stretch
    side = 2 * int(length * 0.72 + 4) + 1
    distance, theta = _polar(side, length, width)
    distance = distance / _outline(rng, theta, kind.irregular)
    edge = np.clip((1 - distance) * width / 2 / 1.6 + 0.5, 0, 1)
    value = kind.dark + kind.clump * _noise(rng, side, kind.clump_px)
    value += kind.rim * np.exp(-(((distance - 0.9) / 0.10) ** 2))
    value += rng.normal(0, 9)
    half = side // 2
    rows, columns = np.mgrid[-half : half + 1, -half : half + 1].astype(np.float32)
    for _ in range(kind.nucleoli):
        x, y = rng.uniform(-0.25, 0.25, 2) * (length, width)
        size = rng.uniform(1.6, 2.8) * (1.4 if kind.name in {"vesicular", "pleomorphic", "giant"} else 1.0)
        value += 75 * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * size**2))
    return np.asarray(np.clip(value, 0, 255) * edge, dtype=np.float32)


def _cell(rng: np.random.Generator, kind: Kind) -> NDArray[np.float32]:
    radius = kind.cell * float(np.clip(1 + 0.1 * rng.standard_normal(), 0.7, 1.3))
    side = 2 * int(radius * 1.15 + 3) + 1
    distance, theta = _polar(side, 2 * radius * rng.uniform(1.0, 1.15), 2 * radius)
    distance = distance / _outline(rng, theta, 0.10)
    edge = np.clip((1 - distance) * radius / 3 + 0.5, 0, 1)
    value = kind.cell_eosin * (1 + 0.10 * rng.standard_normal()) + 7 * _noise(rng, side, 2.5)
    return np.asarray(np.clip(value, 0, 255) * edge, dtype=np.float32)
