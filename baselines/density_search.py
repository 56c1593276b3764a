"""`tissue-density` and `stain-density`: find the densest field by looking, coarse to fine.

One map of the search box holds what is believed of every place: at first the density of the overview, then, where an
ROI was looked at, the density at the target magnification, which resolves what the overview blurs. Each look goes to
the densest field not yet looked at; the answer is the densest field of those looked at (with no budget, of all).
EviPathBench announces density baselines without describing them: these are this project's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from wsigym.envs.localization import extract_roi, finish_and_report
from wsigym.envs.policy import Info, Observation
from wsigym.slides import Box, haematoxylin_of, tissue_mask_of
from wsigym.slides.geometry import magnification_from_mpp

__all__ = ["DensitySearch", "stain_density", "tissue_density"]

DensityMap = npt.NDArray[np.float32]

FIELD_PX = 224
"""Side of a field at the target magnification: evidence is taken to fill about what one view shows."""

MAX_FIELD_SHARE = 0.5
"""A field is at most this share of the search box's sides, so that there is something to choose."""

SEEN_ENOUGH = 0.5
"""A field counts as looked at once this share of it was inside an ROI."""


class DensitySearch:
    """The search over any density: a function from uint8 (h, w, 3) to float32 (h, w), 0 where there is nothing.

    Draws no random numbers; of equally dense fields the first in raster order is taken. Its confidence is
    best / (best + runner-up), the runner-up being the densest field that does not overlap the best.
    """

    def __init__(self, density: Callable[[npt.NDArray[np.uint8]], DensityMap]) -> None:
        self._density = density

    def reset(self, observation: Observation, info: Info) -> None:
        width, height = info["overview_size"]
        search_box = Box.of(info["search_box"])
        field = FIELD_PX * magnification_from_mpp(info["mpp"]) / info["magnification"]
        self._coarse = self._density(np.ascontiguousarray(observation["overview"][:height, :width]))
        self._fine = np.zeros_like(self._coarse)
        self._seen = np.zeros_like(self._coarse)
        self._field = (
            _cells(min(field / search_box.width, MAX_FIELD_SHARE), width),
            _cells(min(field / search_box.height, MAX_FIELD_SHARE), height),
        )
        self._waiting = False

    def act(self, observation: Observation, info: Info) -> dict[str, Any]:
        if self._waiting:
            self._take_in(observation, info)
        means = _window_means(self._belief(), self._field)
        seen = _window_means(self._seen, self._field) >= SEEN_ENOUGH
        self._waiting = info["rois_left"] > 0 and not seen.all()
        if self._waiting:
            return extract_roi(self._box_unit(_argmax(np.where(seen, -np.inf, means))))
        best = _argmax(np.where(seen, means, -np.inf) if seen.any() else means)
        return finish_and_report(self._box_unit(best), self._confidence(means, best))

    def _take_in(self, observation: Observation, info: Info) -> None:
        """Write what the last look showed into the fine map."""
        width, height = info["view_size"]
        shown = self._density(np.ascontiguousarray(observation["view"][:height, :width]))
        rows, columns = self._coarse.shape
        x, y, w, h = observation["view_box"]
        left, right = _span(x, w, columns)
        top, bottom = _span(y, h, rows)
        self._fine[top:bottom, left:right] = cv2.resize(
            shown, (right - left, bottom - top), interpolation=cv2.INTER_AREA
        )
        self._seen[top:bottom, left:right] = 1

    def _belief(self) -> DensityMap:
        """What was seen, and elsewhere the overview's density brought to the scale of what was seen."""
        overview_there = float((self._coarse * self._seen).sum())
        ratio = float(self._fine.sum()) / overview_there if overview_there > 0 else 1.0
        return np.where(self._seen > 0, self._fine, self._coarse * np.float32(ratio))

    def _box_unit(self, corner: tuple[int, int]) -> list[float]:
        """x, y, width, height in 0..1 of the search box, of the field whose top left cell is (row, column)."""
        rows, columns = self._coarse.shape
        width, height = self._field
        return [corner[1] / columns, corner[0] / rows, width / columns, height / rows]

    def _confidence(self, means: DensityMap, best: tuple[int, int]) -> float | None:
        width, height = self._field
        elsewhere = means.copy()
        elsewhere[max(0, best[0] - height + 1) : best[0] + height, max(0, best[1] - width + 1) : best[1] + width] = 0
        top, runner_up = float(means[best]), max(0.0, float(elsewhere.max()))
        return top / (top + runner_up) if top > 0 else None


def _cells(share: float, cells: int) -> int:
    return max(1, round(share * cells))


def _span(start: float, length: float, cells: int) -> tuple[int, int]:
    """The cells that an interval in 0..1 covers, at least one."""
    first = min(cells - 1, round(start * cells))
    return first, max(first + 1, min(cells, round((start + length) * cells)))


def _window_means(values: DensityMap, size: tuple[int, int]) -> DensityMap:
    """Mean over every window of `size` (width, height) that lies inside, by its top left cell."""
    width, height = size
    sums = cv2.integral(values, sdepth=cv2.CV_64F)
    windows = sums[height:, width:] - sums[:-height, width:] - sums[height:, :-width] + sums[:-height, :-width]
    return (windows / (width * height)).astype(np.float32)


def _argmax(values: DensityMap) -> tuple[int, int]:
    row, column = np.unravel_index(int(values.argmax()), values.shape)
    return int(row), int(column)


def stain_density() -> DensitySearch:
    """`stain-density`: the field with the most haematoxylin, which stains nuclei."""
    return DensitySearch(haematoxylin_of)


def tissue_density() -> DensitySearch:
    """`tissue-density`: the field with the most tissue."""
    return DensitySearch(lambda image: tissue_mask_of(image).astype(np.float32))
