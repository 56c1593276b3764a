"""Boxes and the arithmetic on them. All conversions between coordinate conventions live here.

Frames, named wherever a number crosses a boundary:

    box          integer level-0 pixels, origin at the top left of level 0
    box_unit     0..1 of a search box: (x, y, width, height), origin at the search box's top left
    box_view_px  pixels of an image as shown

`magnification` is objective-equivalent: 40x is 0.25 um/px, so magnification = 10 / mpp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

__all__ = [
    "UPSAMPLING_TOLERANCE",
    "Box",
    "box_from_unit",
    "box_to_unit",
    "fitted_size",
    "magnification_from_mpp",
    "mpp_from_magnification",
    "shown_magnification",
]

UM_PER_PX_AT_1X = 10.0
"""Microns per pixel at 1x, by the convention that 40x is 0.25 um/px."""

UPSAMPLING_TOLERANCE = 1.1
"""A magnification up to this factor above the scan's counts as native: scans called 40x vary around 0.25 um/px."""


@dataclass(frozen=True, slots=True, order=True)
class Box:
    """A rectangle in integer level-0 pixels: `x` and `y` are its top left corner.

    Any integers are allowed for the corner; `width` and `height` are at least 0. A box of width or height 0
    is empty. Floats with an integer value are taken as integers; others raise `InvalidArgumentError`.
    """

    x: int
    y: int
    width: int
    height: int

    def __post_init__(self) -> None:
        for name in ("x", "y", "width", "height"):
            value = getattr(self, name)
            try:
                whole = int(value)
                same = whole == value
            except (TypeError, ValueError, OverflowError):
                same = False
            if not same or isinstance(value, (str, bytes)):
                raise InvalidArgumentError(
                    f"Box.{name} is {value!r}; boxes are whole level-0 pixels. Round the value first."
                )
            object.__setattr__(self, name, whole)
        if self.width < 0 or self.height < 0:
            raise InvalidArgumentError(f"Box has width {self.width} and height {self.height}; both must be 0 or more.")

    @classmethod
    def of(cls, values: Sequence[float]) -> Box:
        """The box of `[x, y, width, height]`, as files and records write it."""
        if len(values) != 4:
            raise InvalidArgumentError(f"a box is [x, y, width, height]; found {len(values)} numbers: {values!r}.")
        x, y, width, height = values
        return cls(x, y, width, height)  # type: ignore[arg-type]  # checked and narrowed in __post_init__

    @property
    def right(self) -> int:
        return self.x + self.width

    @property
    def bottom(self) -> int:
        return self.y + self.height

    @property
    def area(self) -> int:
        return self.width * self.height

    @property
    def centre(self) -> tuple[float, float]:
        """(x, y) of the middle, in level-0 pixels; halves are possible."""
        return self.x + self.width / 2, self.y + self.height / 2

    @property
    def is_empty(self) -> bool:
        return self.width == 0 or self.height == 0

    def to_list(self) -> list[int]:
        """`[x, y, width, height]`, as files and records write it."""
        return [self.x, self.y, self.width, self.height]

    def intersection(self, other: Box) -> Box:
        """The common part; where there is none, an empty box inside neither's interior."""
        x, y = max(self.x, other.x), max(self.y, other.y)
        return Box(x, y, max(0, min(self.right, other.right) - x), max(0, min(self.bottom, other.bottom) - y))

    def contains(self, other: Box) -> bool:
        """Whether `other` lies wholly inside, edges included."""
        return self.x <= other.x and self.y <= other.y and other.right <= self.right and other.bottom <= self.bottom

    def contains_point(self, x: float, y: float) -> bool:
        """Whether a level-0 point lies inside, edges included. NaN lies nowhere."""
        return self.x <= x <= self.right and self.y <= y <= self.bottom

    def centred_on(self, x: float, y: float) -> Box:
        """A box of this size whose centre is as near to (x, y) as whole pixels allow."""
        return Box(_round(x - self.width / 2), _round(y - self.height / 2), self.width, self.height)

    def shifted_inside(self, outer: Box) -> Box:
        """The nearest box of this size inside `outer`; where it is larger than `outer`, aligned to its top left."""
        x = max(outer.x, min(self.x, outer.right - self.width))
        y = max(outer.y, min(self.y, outer.bottom - self.height))
        return Box(x, y, self.width, self.height)


def _round(value: float) -> int:
    """Halves go up, at every sign, so that a shift by whole pixels commutes with rounding."""
    return math.floor(value + 0.5)


def box_from_unit(box_unit: Sequence[float] | npt.NDArray[np.floating], search_box: Box) -> Box:
    """The level-0 box of a `box_unit` (x, y, width, height in 0..1 of `search_box`), each number rounded.

    Numbers outside 0..1 are allowed (the box then lies partly outside). A negative size becomes 0.
    The four numbers must be finite: `InvalidArgumentError` otherwise.
    """
    x, y, width, height = (float(value) for value in box_unit)
    if not all(math.isfinite(value) for value in (x, y, width, height)):
        raise InvalidArgumentError(f"box_unit is {[x, y, width, height]}; all four numbers must be finite.")
    return Box(
        search_box.x + _round(x * search_box.width),
        search_box.y + _round(y * search_box.height),
        max(0, _round(width * search_box.width)),
        max(0, _round(height * search_box.height)),
    )


def box_to_unit(box: Box, search_box: Box) -> npt.NDArray[np.float32]:
    """float32 (4,): `box` as (x, y, width, height) in 0..1 of `search_box`; beyond 0..1 where it lies outside.

    `box_from_unit(box_to_unit(b, s), s) == b` for search boxes up to 2**22 pixels a side.
    """
    if search_box.is_empty:
        raise InvalidArgumentError(f"the search box {search_box.to_list()} is empty; it needs at least 1 px a side.")
    return np.array(
        [
            (box.x - search_box.x) / search_box.width,
            (box.y - search_box.y) / search_box.height,
            box.width / search_box.width,
            box.height / search_box.height,
        ],
        dtype=np.float32,
    )


def magnification_from_mpp(mpp: float) -> float:
    """Objective-equivalent magnification of `mpp` microns per pixel: 10 / mpp."""
    return UM_PER_PX_AT_1X / mpp


def mpp_from_magnification(magnification: float) -> float:
    """Microns per pixel at an objective-equivalent `magnification`: 10 / magnification."""
    return UM_PER_PX_AT_1X / magnification


def shown_magnification(box: Box, px: int, mpp: float, cap: float) -> float:
    """The magnification at which `box` fits into a `px` x `px` image without exceeding `cap`.

    `mpp` is the slide's at level 0.
    """
    return min(cap, magnification_from_mpp(mpp) * px / max(box.width, box.height, 1))


def fitted_size(box: Box, magnification: float, mpp: float) -> tuple[int, int]:
    """(width, height) in pixels of `box` shown at `magnification`: aspect kept, at least 1 px a side."""
    scale = magnification / magnification_from_mpp(mpp)
    return max(1, _round(box.width * scale)), max(1, _round(box.height * scale))
