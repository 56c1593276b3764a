"""From level pixels to an image of the size asked for: which level, which pixels, how to resize. Pure functions.

A level spans the whole slide: a level of width w covers level 0 of width w0 with pixels of w0 / w level-0 pixels, which
need not be a whole number. Edges are rounded to the nearest level pixel, so that a box aligned to the level's grid is
cut out exactly, and any other is shown at most half a level pixel off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
import numpy.typing as npt

__all__ = ["Edges", "Plane", "level_for", "resample", "resize"]

LEVEL_TOLERANCE = 1.01
"""A level 1 % coarser than asked for still serves: real pyramids have downsamples such as 4.0001."""

PIECE_PX = 2**24
"""Level pixels that are held at once (48 MiB); larger regions are read and shrunk piece by piece."""


@dataclass(frozen=True, slots=True)
class Edges:
    """A rectangle in pixels of one level, as the fractions of them that a box's edges fall on."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Plane:
    """One level as an endless plane: `read(x, y, width, height)` inside `width` x `height`, `background` around it."""

    width: int
    height: int
    background: tuple[int, int, int]
    read: Callable[[int, int, int, int], npt.NDArray[np.uint8]]

    def misses(self, left: float, top: float, right: float, bottom: float) -> bool:
        """Whether a rectangle lies wholly in the background."""
        return right <= 0 or bottom <= 0 or left >= self.width or top >= self.height

    def blank(self, width: int, height: int) -> npt.NDArray[np.uint8]:
        return np.full((height, width, 3), self.background, dtype=np.uint8)

    def pixels(self, left: int, top: int, right: int, bottom: int) -> npt.NDArray[np.uint8]:
        """uint8 (bottom - top, right - left, 3): a rectangle in level pixels."""
        inside = max(left, 0), max(top, 0), min(right, self.width), min(bottom, self.height)
        if inside == (left, top, right, bottom):
            return self.read(left, top, right - left, bottom - top)
        pixels = self.blank(right - left, bottom - top)
        if not self.misses(left, top, right, bottom):
            x0, y0, x1, y1 = inside
            pixels[y0 - top : y1 - top, x0 - left : x1 - left] = self.read(x0, y0, x1 - x0, y1 - y0)
        return pixels


def level_for(downsamples: Sequence[tuple[float, float]], wanted: tuple[float, float]) -> int:
    """The coarsest level that is no coarser than `wanted` level-0 pixels per output pixel, within 1 %; else level 0.

    `wanted`, and the downsample of each level, are (x, y), since a level's size was rounded on each axis.
    """
    serving = [
        level
        for level, downsample in enumerate(downsamples)
        if all(have <= want * LEVEL_TOLERANCE for have, want in zip(downsample, wanted, strict=True))
    ]
    return max(serving, key=lambda level: downsamples[level], default=0)


def resample(plane: Plane, edges: Edges, width: int, height: int) -> npt.NDArray[np.uint8]:
    """uint8 (height, width, 3): what lies between `edges`, each output pixel the mean of the area that it covers."""
    left, top = _nearest(edges.left), _nearest(edges.top)
    right, bottom = max(left + 1, _nearest(edges.right)), max(top + 1, _nearest(edges.bottom))
    if plane.misses(left, top, right, bottom):
        return plane.blank(width, height)
    if (right - left) * (bottom - top) <= PIECE_PX:
        return resize(plane.pixels(left, top, right, bottom), width, height)
    if width == height == 1:
        return resize(resample(plane, edges, 2, 2), 1, 1)
    if width >= height:
        first = width // 2
        cut = edges.left + (edges.right - edges.left) * first / width
        return np.concatenate(
            (
                resample(plane, replace(edges, right=cut), first, height),
                resample(plane, replace(edges, left=cut), width - first, height),
            ),
            axis=1,
        )
    first = height // 2
    cut = edges.top + (edges.bottom - edges.top) * first / height
    return np.concatenate(
        (
            resample(plane, replace(edges, bottom=cut), width, first),
            resample(plane, replace(edges, top=cut), width, height - first),
        ),
        axis=0,
    )


def resize(pixels: npt.NDArray[np.uint8], width: int, height: int) -> npt.NDArray[np.uint8]:
    """uint8 (height, width, 3): `pixels` shrunk by area means and enlarged linearly, each axis as it needs."""
    shrunk = min(width, pixels.shape[1]), min(height, pixels.shape[0])
    if shrunk != (pixels.shape[1], pixels.shape[0]):
        pixels = cv2.resize(pixels, shrunk, interpolation=cv2.INTER_AREA)  # type: ignore[assignment]
    if (width, height) != shrunk:
        pixels = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_LINEAR)  # type: ignore[assignment]
    return pixels


def _nearest(edge: float) -> int:
    """The nearest whole number, halves up, so that a shift by whole pixels commutes with rounding."""
    return int(np.floor(edge + 0.5))
