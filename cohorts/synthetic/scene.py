"""A slide before it has pixels: soft maps of the tissue, filled outlines in painting order, and nuclei."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from .shapes import Points, bounds
from .sprites import ROTATIONS, VARIANTS, kind_index
from .textures import BLOCK

__all__ = ["GRID", "MAP", "NORMAL", "Nuclei", "Scene", "Shape", "SoftMap", "Stain", "fractal"]

MAP = 16
"""Level-0 pixels per pixel of the soft maps."""

GRID = 8
"""Level-0 pixels per pixel of the owner map."""

NORMAL = 1
"""Owner of normal tissue; 0 is glass, each region of a lesion or decoy has a number of its own from 2 on."""


SoftMap = NDArray[np.float32]
"""A value (side / MAP, side / MAP) that varies smoothly over the slide."""


@dataclass(frozen=True)
class Shape:
    """A filled outline: stain amounts 0..255 that replace what lies below; `rim` draws its edge in eosin."""

    outline: Points
    eosin: int
    haematoxylin: int
    rim_eosin: int = 0
    rim_px: int = 0


@dataclass(frozen=True)
class Stain:
    """Stain vectors (optical density per unit, R G B) and strengths of one laboratory."""

    haematoxylin: tuple[float, float, float]
    eosin: tuple[float, float, float]
    glass: tuple[int, int, int]


@dataclass(frozen=True)
class Nuclei:
    """Where to stamp which sprite, sorted by y. Level-0 pixels."""

    x: NDArray[np.int32]
    y: NDArray[np.int32]
    sprite: NDArray[np.int32]


def fractal(rng: np.random.Generator, side: int, feature: float, octaves: int = 4) -> NDArray[np.float32]:
    """Smooth noise (side, side) of unit variance whose largest features are about `feature` px."""
    out = np.zeros((side, side), np.float32)
    for octave in range(octaves):
        cellsize = feature / 2**octave
        if cellsize < 2:
            break
        count = int(np.ceil(side / cellsize)) + 4
        coarse = rng.standard_normal((count, count)).astype(np.float32)
        extent = int(np.ceil(count * cellsize))
        fine = cv2.resize(coarse, (extent, extent), interpolation=cv2.INTER_CUBIC)
        shift = int(cellsize)
        out += 0.5**octave * np.asarray(fine[shift : shift + side, shift : shift + side])
    return np.asarray((out - out.mean()) / (out.std() + 1e-6), dtype=np.float32)


class Scene:
    """The drawing board of one slide. `side` is `size` rounded up to whole blocks; maps cover `side`."""

    def __init__(self, size: int, rng: np.random.Generator, stain: Stain) -> None:
        self.size = size
        self.rng = rng
        self.stain = stain
        self.side = -(-size // BLOCK) * BLOCK
        n = self.side // MAP
        self.tissue = np.zeros((n, n), np.float32)
        """Above 0 is tissue, about -1..1 near the edge."""
        self.eosin = np.full((n, n), 100, np.float32)
        self.haematoxylin = np.zeros((n, n), np.float32)
        self.angle = np.zeros((n, n), np.float32)
        """Direction of the fibres in radians."""
        self.fold = np.zeros((n, n), np.float32)
        """0..1, how much the tissue lies double."""
        self.smear = np.zeros((n, n), np.float32)
        """Haematoxylin of crushed, smeared nuclei."""
        self.owner = np.zeros((self.side // GRID, self.side // GRID), np.uint8)
        self.taken = np.zeros_like(self.owner)
        """1 where stroma nuclei must not lie: glands, lumens, vacuoles."""
        self.shapes: list[Shape] = []
        self.ink: list[tuple[Points, int]] = []
        """Pen strokes: a line and its width in px."""
        self.ink_colour: tuple[int, int, int] = (40, 60, 150)
        self._owners = NORMAL
        self._x: list[NDArray[np.float32]] = []
        self._y: list[NDArray[np.float32]] = []
        self._sprite: list[NDArray[np.int32]] = []

    def paint(self, outline: Points, eosin: float, haematoxylin: float = 0) -> None:
        """Paint an outline that nuclei will be added to."""
        self.shapes.append(Shape(outline, int(eosin), int(haematoxylin)))

    def fill(
        self, outline: Points, eosin: float, haematoxylin: float = 0, *, rim_eosin: float = 0, rim_px: int = 0
    ) -> None:
        """Paint an outline, and keep stroma nuclei out of it."""
        self.shapes.append(Shape(outline, int(eosin), int(haematoxylin), int(rim_eosin), rim_px))
        self.take(outline)

    def take(self, outline: Points) -> None:
        """Keep stroma nuclei out of an outline."""
        cv2.fillPoly(self.taken, [np.round(outline / GRID).astype(np.int32)], 1)

    def new_owner(self, outline: Points) -> int:
        """Give an outline to an owner of its own."""
        self._owners += 1
        assert self._owners < 250, "the numbers above are the organs' own"
        self.claim(outline, self._owners)
        return self._owners

    def claim(self, outline: Points, number: int) -> None:
        """Make `number` the owner of all within an outline."""
        cv2.fillPoly(self.owner, [np.round(outline / GRID).astype(np.int32)], number)

    def owners(self, points: Points) -> NDArray[np.uint8]:
        """The owner at each point; 0 outside the slide."""
        return self._at(self.owner, points)

    def free(self, points: Points) -> NDArray[np.bool_]:
        """True where nothing is painted."""
        return np.asarray(self._at(self.taken, points) == 0)

    def _at(self, grid: NDArray[np.uint8], points: Points) -> NDArray[np.uint8]:
        column, row = (points / GRID).astype(np.int32).T
        n = grid.shape[0]
        ok = (column >= 0) & (row >= 0) & (column < n) & (row < n)
        return np.where(ok, grid[np.clip(row, 0, n - 1), np.clip(column, 0, n - 1)], 0).astype(np.uint8)

    def sample(self, values: SoftMap, points: Points) -> NDArray[np.float32]:
        """The soft map's value at each point (n, 2)."""
        n = values.shape[0]
        column, row = np.clip((points / MAP).astype(np.int32), 0, n - 1).T
        return np.asarray(values[row, column], dtype=np.float32)

    def within(self, outline: Points, number: int) -> bool:
        """True if the outline's corners and centre all belong to `number`."""
        probe = np.vstack([outline[:: max(1, len(outline) // 8)], outline.mean(0, keepdims=True)])
        return bool((self.owners(probe.astype(np.float32)) == number).all())

    def clear(self, outline: Points, number: int) -> bool:
        """True if the centre belongs to `number` and the corners to it or to glass: what may be cut by the edge."""
        owners = self.owners(outline[:: max(1, len(outline) // 8)])
        centre = self.owners(outline.mean(0, keepdims=True))
        return bool((centre == number).all() and np.isin(owners, (0, number)).all())

    def nuclei(self, kind: str, points: Points, angle: NDArray[np.float32] | None = None) -> None:
        """Add nuclei of `kind` at `points`, turned to `angle` (radians; random if None)."""
        count = len(points)
        if not count:
            return
        if angle is None:
            angle = self.rng.uniform(0, 2 * np.pi, count).astype(np.float32)
        turn = np.round(angle / (2 * np.pi) * ROTATIONS).astype(np.int64) % ROTATIONS
        variant = self.rng.integers(0, VARIANTS, count)
        self._x.append(points[:, 0])
        self._y.append(points[:, 1])
        self._sprite.append(((kind_index(kind) * VARIANTS + variant) * ROTATIONS + turn).astype(np.int32))

    def all_nuclei(self) -> Nuclei:
        """Every nucleus so far, sorted by y."""
        x = np.round(np.concatenate([*self._x, np.zeros(0, np.float32)])).astype(np.int32)
        y = np.round(np.concatenate([*self._y, np.zeros(0, np.float32)])).astype(np.int32)
        sprite = np.concatenate([*self._sprite, np.zeros(0, np.int32)])
        order = np.argsort(y, kind="stable")
        return Nuclei(x[order], y[order], sprite[order])

    def shapes_by_block(self) -> dict[tuple[int, int], list[Shape]]:
        """The shapes that touch each block (column, row), in painting order."""
        bins: dict[tuple[int, int], list[Shape]] = {}
        blocks = self.side // BLOCK
        for shape in self.shapes:
            left, top, right, bottom = bounds(shape.outline)
            pad = 24 + shape.rim_px
            for row in range(max(0, int((top - pad) // BLOCK)), min(blocks - 1, int((bottom + pad) // BLOCK)) + 1):
                for column in range(
                    max(0, int((left - pad) // BLOCK)), min(blocks - 1, int((right + pad) // BLOCK)) + 1
                ):
                    bins.setdefault((column, row), []).append(shape)
        return bins
