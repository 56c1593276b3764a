"""Maps: one number for each small square of a slide, and the frame that ties them to level-0 pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

from .geometry import Box, fitted_size
from .slide import Slide

__all__ = ["MAP_MAGNIFICATION", "SlideMap", "overview"]

MAP_MAGNIFICATION = 1.25
"""Where maps are made unless told otherwise: 8 um a cell, about a nucleus."""

MAP_MAX_PX = 4096
"""Longest side of a map; a larger slide is mapped at a lower magnification."""

UNSCALED_MAX_PX = 1024
"""Longest side of a map of a slide whose scale is unknown."""


@dataclass(frozen=True, eq=False, slots=True)
class SlideMap:
    """`values` (height, width) cover `box` (level-0 pixels) evenly: cell [row, column] covers `box_of(row, column)`."""

    values: npt.NDArray[Any]
    box: Box

    @property
    def step(self) -> tuple[float, float]:
        """(x, y): level-0 pixels from one cell to the next."""
        return self.box.width / self.values.shape[1], self.box.height / self.values.shape[0]

    def box_of(self, row: int, column: int) -> Box:
        """The level-0 box of one cell, its edges rounded."""
        step_x, step_y = self.step
        x0, x1 = (self.box.x + round(step_x * edge) for edge in (column, column + 1))
        y0, y1 = (self.box.y + round(step_y * edge) for edge in (row, row + 1))
        return Box(x0, y0, x1 - x0, y1 - y0)

    def mean(self, box: Box) -> float:
        """Mean of the cells that a level-0 `box` touches; 0 where it touches none."""
        inside = box.intersection(self.box)
        if inside.is_empty:
            return 0.0
        step_x, step_y = self.step
        rows = slice(math.floor((inside.y - self.box.y) / step_y), math.ceil((inside.bottom - self.box.y) / step_y))
        columns = slice(math.floor((inside.x - self.box.x) / step_x), math.ceil((inside.right - self.box.x) / step_x))
        return float(self.values[rows, columns].mean())


def overview(slide: Slide, magnification: float) -> npt.NDArray[np.uint8]:
    """uint8 (height, width, 3): the whole slide at `magnification`, never enlarged, at most 4,096 px a side.

    A slide of unknown scale is shown at 1,024 px at most, whatever the magnification.
    """
    if not (math.isfinite(magnification) and magnification > 0):
        raise InvalidArgumentError(f"magnification is {magnification!r}; it must be a number above 0, such as 1.25.")
    if slide.mpp is None:
        return slide.thumbnail(UNSCALED_MAX_PX)
    return slide.thumbnail(min(MAP_MAX_PX, max(fitted_size(slide.box, magnification, slide.mpp))))
