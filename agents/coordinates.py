"""Boxes in the convention that a model was told, and back.

    level0     level-0 pixels of the slide
    unit       0..1 of the frame
    permille   0..1000 of the frame
    view_px    pixels of the image as it was sent

The frame is a level-0 box that the model sees as one image: the search box with its overview, or an ROI. A box is
always x, y, w, h. What lies outside the convention's range is an error told to the model and never rescaled: a model
that answers in 0..1000 where 0..1 was asked for is not understood by luck.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from wsigym.slides import Box

from .endpoints import Coordinates as Convention

__all__ = ["CONVENTIONS", "BoxNumbers", "Convention", "Coordinates"]

CONVENTIONS: tuple[Convention, ...] = get_args(Convention)

BoxNumbers = tuple[float, float, float, float]
"""x, y, w, h; any floats, NaN and infinities included."""

DECIMALS = {"level0": 0, "unit": 4, "permille": 0, "view_px": 1}
"""Decimals of numbers told to the model: a ten-thousandth of a side, a thousandth, a tenth of a pixel."""


@dataclass(frozen=True)
class Coordinates:
    """One convention in one frame. `image_size` is (width, height) of the frame's image as sent."""

    convention: Convention
    frame: Box
    image_size: tuple[int, int]

    @property
    def limits(self) -> tuple[float, float, float, float]:
        """(x_min, y_min, x_max, y_max): the frame's edges in the convention."""
        if self.convention == "level0":
            return self.frame.x, self.frame.y, self.frame.right, self.frame.bottom
        width, height = {"unit": (1, 1), "permille": (1000, 1000), "view_px": self.image_size}[self.convention]
        return 0, 0, width, height

    @property
    def meaning(self) -> str:
        """The convention in words for a model."""
        x_min, y_min, x_max, y_max = self.limits
        what = {
            "level0": "level-0 pixels of the slide; the image shows",
            "unit": "fractions of the image, from 0 to 1;",
            "permille": "thousandths of the image, from 0 to 1000;",
            "view_px": "pixels of the image as you were sent it;",
        }[self.convention]
        return f"{what} x from {x_min} (left) to {x_max} (right), y from {y_min} (top) to {y_max} (bottom)"

    def facts(self) -> dict[str, Any]:
        """For a tool's result: convention, x_min, y_min, x_max, y_max and the meaning in words."""
        names = ("x_min", "y_min", "x_max", "y_max")
        return {
            "convention": self.convention,
            **dict(zip(names, self.limits, strict=True)),
            "meaning": f"A box is x, y, w, h: its top left corner, width and height, in {self.meaning}.",
        }

    def beyond(self, numbers: Sequence[float]) -> str | None:
        """What is wrong with x, y, w, h, or None where they can be taken.

        All must be finite, and each inside the convention's range; in level0 any finite number is taken, as a box may
        reach beyond its frame. A box of which a part leaves the frame (x + w above x_max) is no error here.
        """
        _, _, x_max, y_max = self.limits
        for name, value, most in zip("xywh", numbers, (x_max, y_max, x_max, y_max), strict=True):
            if not math.isfinite(value):
                return f"{name} is {value}, which is not a finite number"
            if self.convention != "level0" and not 0 <= value <= most:
                return f"{name} is {value:g}; allowed is 0 to {most:g} ({self.convention})"
        return None

    def to_unit(self, numbers: Sequence[float]) -> BoxNumbers:
        """x, y, w, h as fractions of the frame (`box_unit`), beyond 0..1 where they lie outside."""
        x_min, y_min, x_max, y_max = self.limits
        x, y, w, h = numbers
        width, height = x_max - x_min, y_max - y_min
        return (x - x_min) / width, (y - y_min) / height, w / width, h / height

    def from_box(self, box: Box) -> list[float]:
        """A level-0 box as the convention writes it, rounded to what a model can use; whole numbers are ints."""
        x_min, y_min, x_max, y_max = self.limits
        scale_x, scale_y = (x_max - x_min) / self.frame.width, (y_max - y_min) / self.frame.height
        numbers = (
            x_min + (box.x - self.frame.x) * scale_x,
            y_min + (box.y - self.frame.y) * scale_y,
            box.width * scale_x,
            box.height * scale_y,
        )
        decimals = DECIMALS[self.convention]
        return [round(number, decimals) if decimals else round(number) for number in numbers]
