"""`tissue-density` and `stain-density`: find the densest field by looking, coarse to fine.

The search box is tiled with fields, each about what one view shows at the target magnification. Three fifths of the
budget look at the fields that are densest in the overview. The rest refines: around the densest field seen so far,
half a field aside, then a quarter, then an eighth, wherever the overview promises more. The answer is the densest
field seen; with no budget it is the densest in the overview. EviPathBench announces density baselines without
describing them: these are this project's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from wsigym.envs.localization import extract_roi, finish_and_report
from wsigym.envs.policy import Info, Observation
from wsigym.slides import Box, haematoxylin_of, tissue_mask_of
from wsigym.slides.geometry import magnification_from_mpp

__all__ = ["DensitySearch", "stain_density", "tissue_density"]

FIELD_PX = 224
"""Side of a field at the target magnification: evidence is taken to fill about what one view shows."""

MAX_FIELD_SHARE = 0.5
"""A field is at most this share of the search box's sides, so that there is something to choose."""

EXPLORING_SHARE = 0.6
"""Share of the budget, rounded up, that explores; found on synthetic cohorts, where 0.5 to 0.7 score alike at base."""

NUCLEAR_OD = 0.3
"""Haematoxylin beyond this optical density counts as nuclear: smears and folds stay below it once they are resolved."""

STEPS = (1 / 2, 1 / 4, 1 / 8)
"""How far aside refinement looks, in fields, once nothing better is promised at the step before."""

ASIDE = [(dx, dy) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dx or dy]

Density = Callable[[npt.NDArray[np.uint8]], npt.NDArray[Any]]

Corner = tuple[float, float]
"""Top left of a field: (x, y) in 0..1 of the search box."""


class DensitySearch:
    """The search over any densities: functions from uint8 (h, w, 3) to an array (h, w) of 0 or more.

    `promised` reads the overview, `seen` a look, which resolves what the overview blurs; they need not share a scale.

    Draws no random numbers; of equally dense fields the first in raster order is taken. Its confidence is
    best / (best + runner-up), the runner-up being the densest field seen that does not overlap the best.
    """

    def __init__(self, promised: Density, seen: Density) -> None:
        self._promised_density, self._seen_density = promised, seen

    def reset(self, observation: Observation, info: Info) -> None:
        search_box = Box.of(info["search_box"])
        side = FIELD_PX * magnification_from_mpp(info["mpp"]) / info["magnification"]
        self._field = min(side / search_box.width, MAX_FIELD_SHARE), min(side / search_box.height, MAX_FIELD_SHARE)
        self._overview = self._promised_density(_without_padding(observation["overview"], info["overview_size"]))
        self._to_explore = sorted(self._tiles(), key=self._promise, reverse=True)
        self._explorations = math.ceil(EXPLORING_SHARE * info["rois_left"])
        self._seen: dict[Corner, float] = {}
        self._looking_at: Corner | None = None

    def act(self, observation: Observation, info: Info) -> dict[str, Any]:
        if self._looking_at is not None:
            view = _without_padding(observation["view"], info["view_size"])
            self._seen[self._looking_at] = float(self._seen_density(view).mean())
        self._looking_at = self._next() if info["rois_left"] > 0 else None
        if self._looking_at is not None:
            return extract_roi([*self._looking_at, *self._field])
        best = max(self._seen, key=self._seen.__getitem__) if self._seen else self._to_explore[0]
        return finish_and_report([*best, *self._field], self._confidence(best))

    def _next(self) -> Corner | None:
        """The next field to look at; None where there is none left."""
        unexplored = [corner for corner in self._to_explore if corner not in self._seen]
        if unexplored and len(self._seen) < self._explorations:
            return unexplored[0]
        best = max(self._seen, key=self._seen.__getitem__)
        for step in STEPS:
            aside = (self._aside(best, step, direction) for direction in ASIDE)
            promised = {corner: self._promise(corner) for corner in aside if corner not in self._seen}
            if promised:
                most = max(promised, key=promised.__getitem__)
                if promised[most] > self._promise(best):
                    return most
        return unexplored[0] if unexplored else None

    def _tiles(self) -> list[Corner]:
        """Fields that cover the search box, in raster order, evenly spaced from edge to edge."""
        xs, ys = (np.linspace(0, 1 - side, int(np.ceil(1 / side))) for side in self._field)
        return [(float(x), float(y)) for y in ys for x in xs]

    def _aside(self, corner: Corner, step: float, direction: tuple[int, int]) -> Corner:
        """The field `step` fields from `corner`, kept inside the search box."""
        x, y = (
            float(np.clip(start + step * side * sign, 0, 1 - side))
            for start, side, sign in zip(corner, self._field, direction, strict=True)
        )
        return x, y

    def _promise(self, corner: Corner) -> float:
        """Mean density of a field in the overview."""
        rows, columns = self._overview.shape
        left, right = _span(corner[0], self._field[0], columns)
        top, bottom = _span(corner[1], self._field[1], rows)
        return float(self._overview[top:bottom, left:right].mean())

    def _confidence(self, best: Corner) -> float | None:
        apart = [
            density
            for corner, density in self._seen.items()
            if any(abs(a - b) >= side for a, b, side in zip(corner, best, self._field, strict=True))
        ]
        top = self._seen.get(best, 0.0)
        return top / (top + max(apart)) if apart and top > 0 else None


def _without_padding(image: npt.NDArray[np.uint8], size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    width, height = size
    return np.ascontiguousarray(image[:height, :width])


def _span(start: float, length: float, cells: int) -> tuple[int, int]:
    """The cells that an interval in 0..1 covers, at least one."""
    first = min(cells - 1, round(start * cells))
    return first, max(first + 1, min(cells, round((start + length) * cells)))


def stain_density() -> DensitySearch:
    """`stain-density`: the field with the most nuclear haematoxylin."""
    return DensitySearch(haematoxylin_of, lambda view: np.maximum(haematoxylin_of(view) - NUCLEAR_OD, 0))


def tissue_density() -> DensitySearch:
    """`tissue-density`: the field with the most tissue."""
    return DensitySearch(tissue_mask_of, tissue_mask_of)
