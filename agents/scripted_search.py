"""How the scripted model searches: where an overview or a look holds the most nuclear stain.

The overview promises: its fields are ranked by nuclear density, each apart from those before it. Three fifths of the
budget look at the best promised, with a margin, and find the densest field inside each look. The rest goes where the
densest field seen reached the margin, then to further promises. The answer is the densest field seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from wsigym.slides import nuclear_density_of
from wsigym.slides.geometry import magnification_from_mpp

__all__ = ["LOOK_SIDES", "Field", "Search", "densest", "density_map", "field_shares", "ranked"]

FIELD_PX = 224
"""Side of a field at the target magnification: about what one view shows."""

FIELD_SHARE = 0.25
"""A field is at most this share of the search box's sides. Found on synthetic cohorts, where 0.2 to 0.33 score alike
at 10x, and 0.25 best at 2.5x and 40x."""

LOOK_SIDES = 1.5
"""A look shows a field and a quarter of it on each side, so that the field can be placed better inside."""

EXPLORING_SHARE = 0.6
WORTH_LOOKING = 0.5
"""Promises below this share of the best one are looked at only when nothing else is left."""

MOVED = 0.125
"""A field nearer to the edge of its look than this share of it was cut off there: it is worth another look."""

MAP_CELLS = 192
"""Longest side of a density map. A field is 48 of them: places are found to a fiftieth of a field."""

Density = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Field:
    """A box as (x, y, w, h) in 0..1 of an image or of the search box, and its mean nuclear density in 0..1."""

    box: tuple[float, float, float, float]
    density: float

    @property
    def centre(self) -> tuple[float, float]:
        x, y, w, h = self.box
        return x + w / 2, y + h / 2

    @property
    def look_box(self) -> tuple[float, float, float, float]:
        """The ROI that shows a field with its margin, kept inside the search box."""
        (x, y), (w, h) = self.centre, (min(1.0, LOOK_SIDES * side) for side in self.box[2:])
        return min(max(0.0, x - w / 2), 1 - w), min(max(0.0, y - h / 2), 1 - h), w, h

    def inside(self, outer: Sequence[float]) -> Field:
        """The same field in the frame that `outer` (x, y, w, h) is given in, where it is a field of `outer`'s image."""
        x, y, w, h = self.box
        left, top, width, height = outer
        return Field((left + x * width, top + y * height, w * width, h * height), self.density)

    def apart_from(self, other: Field) -> bool:
        """Whether at most half of a side is shared, on x or on y."""
        return any(
            abs(a - b) >= side / 2 - 1e-9 for a, b, side in zip(self.centre, other.centre, self.box[2:], strict=True)
        )


def density_map(pixels: npt.NDArray[np.uint8]) -> Density:
    """float32 of at most 192 a side: nuclear density (0..1) of an RGB image, averaged over cells."""
    density = nuclear_density_of(pixels)
    height, width = density.shape
    shrink = MAP_CELLS / max(height, width)
    if shrink >= 1:
        return density
    size = max(1, round(width * shrink)), max(1, round(height * shrink))
    return np.asarray(cv2.resize(density, size, interpolation=cv2.INTER_AREA), np.float32)


def field_shares(search_box: Sequence[float], mpp: float, magnification: float) -> tuple[float, float]:
    """(width, height) of a field in 0..1 of the search box (level-0 pixels)."""
    side = FIELD_PX * magnification_from_mpp(mpp) / magnification
    return min(FIELD_SHARE, side / search_box[2]), min(FIELD_SHARE, side / search_box[3])


def ranked(density: Density, shares: tuple[float, float]) -> Iterator[Field]:
    """Fields of an image from the densest on, each apart from those before; the first in raster order among equals."""
    rows, columns = density.shape
    width, height = (max(1, min(n, round(share * n))) for share, n in zip(shares, (columns, rows), strict=True))
    sums = cv2.integral(density)
    left = sums[height:, width:] - sums[:-height, width:] - sums[height:, :-width] + sums[:-height, :-width]
    means = left / (width * height)
    while means.max() >= 0:
        row, column = np.unravel_index(int(means.argmax()), means.shape)
        box = (column / columns, row / rows, width / columns, height / rows)
        yield Field((float(box[0]), float(box[1]), box[2], box[3]), max(0.0, float(means[row, column])))
        near_x, near_y = math.ceil(width / 2), math.ceil(height / 2)
        means[max(0, row - near_y + 1) : row + near_y, max(0, column - near_x + 1) : column + near_x] = -1


def densest(density: Density, shares: tuple[float, float]) -> Field:
    """The densest field of an image."""
    return next(ranked(density, shares))


@dataclass(frozen=True)
class Search:
    """A search under way. Boxes are in 0..1 of the search box.

    `looks` are the ROIs that were answered; `seen` the densest field of each that is known; `budget` the ROIs at the
    start.
    """

    shares: tuple[float, float]
    overview: Density
    looks: Sequence[tuple[float, ...]]
    seen: Sequence[Field]
    budget: int

    def next_look(self) -> tuple[Field, str] | None:
        """The field to look at and why, or None where there is nothing left that is worth it."""
        promised = [field for field, _ in zip(ranked(self.overview, self.shares), range(4 * self.budget), strict=False)]
        unseen = [field for field in promised if not self._looked_at(field)]
        worth = [field for field in unseen if field.density >= WORTH_LOOKING * promised[0].density]
        exploring = len(self.looks) < math.ceil(EXPLORING_SHARE * self.budget)
        if exploring and worth:
            return worth[0], self._promise(worth[0])
        if self.seen:
            best = max(self.seen, key=lambda field: field.density)
            if not self._looked_at(best):
                return best, "the densest field so far reaches the edge of its look"
        if worth:
            return worth[0], self._promise(worth[0])
        return None

    def answer(self) -> tuple[Field, float]:
        """The densest field seen, or promised where none was, and the confidence: its share against the runner-up."""
        if not self.seen:
            return densest(self.overview, self.shares), 0.5
        best = max(self.seen, key=lambda field: field.density)
        others = [field.density for field in self.seen if field.apart_from(best)]
        runner_up = max(others, default=0.0)
        return best, best.density / (best.density + runner_up) if best.density else 0.5

    def _looked_at(self, field: Field) -> bool:
        """Whether a look shows the field with some of its surroundings, as far as the search box has any."""
        margin_x, margin_y = (MOVED * side for side in self.shares)
        x, y, w, h = field.box
        wanted = max(0.0, x - margin_x), max(0.0, y - margin_y), min(1.0, x + w + margin_x), min(1.0, y + h + margin_y)
        slack = 0.004  # conventions round to thousandths
        return any(
            left <= wanted[0] + slack
            and top <= wanted[1] + slack
            and left + width >= wanted[2] - slack
            and top + height >= wanted[3] - slack
            for left, top, width, height in self.looks
        )

    def _promise(self, field: Field) -> str:
        return f"the densest field left in the overview ({field.density:.3f})"
