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

__all__ = ["Edges", "Plane", "filled", "level_for", "resample", "resize"]

LEVEL_TOLERANCE = 1.01
"""A level 1 % coarser than asked for still serves: real pyramids have downsamples such as 4.0001."""

PIECE_PX = 2**24
"""Level pixels that are held at once (48 MiB); larger regions are read and shrunk piece by piece."""

BAND_PX = 2**19
"""Level pixels (1.5 MiB) that a processor core's own cache takes; larger regions are shrunk tile row by tile row."""


@dataclass(frozen=True, slots=True)
class Edges:
    """A rectangle in pixels of one level, as the fractions of them that a box's edges fall on."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Plane:
    """One level as an endless plane: `read(x, y, width, height, shrink)` in `width` x `height`, `background` around it.

    `shrinks` are the factors by which `read` can shrink, beside 1. A rectangle is then in pixels of the shrunk level.
    `tile_rows` is the height of its tiles where reading it tile row by tile row costs no more than at once, else 0.
    """

    width: int
    height: int
    background: tuple[int, int, int]
    read: Callable[[int, int, int, int, int], npt.NDArray[np.uint8]]
    shrinks: tuple[int, ...] = ()
    tile_rows: int = 0

    def misses(self, left: float, top: float, right: float, bottom: float) -> bool:
        """Whether a rectangle lies wholly in the background."""
        return right <= 0 or bottom <= 0 or left >= self.width or top >= self.height

    def contains(self, left: int, top: int, right: int, bottom: int) -> bool:
        return left >= 0 and top >= 0 and right <= self.width and bottom <= self.height

    def blank(self, width: int, height: int) -> npt.NDArray[np.uint8]:
        return filled(width, height, self.background)

    def pixels(self, left: int, top: int, right: int, bottom: int) -> npt.NDArray[np.uint8]:
        """uint8 (bottom - top, right - left, 3): a rectangle in level pixels, not to be written to."""
        if self.contains(left, top, right, bottom):
            return self.read(left, top, right - left, bottom - top, 1)
        pixels = self.blank(right - left, bottom - top)
        if not self.misses(left, top, right, bottom):
            x0, y0, x1, y1 = max(left, 0), max(top, 0), min(right, self.width), min(bottom, self.height)
            pixels[y0 - top : y1 - top, x0 - left : x1 - left] = self.read(x0, y0, x1 - x0, y1 - y0, 1)
        return pixels


def filled(width: int, height: int, colour: tuple[int, int, int]) -> npt.NDArray[np.uint8]:
    """uint8 (height, width, 3) of one colour. Row by row, which is ten times faster than pixel by pixel."""
    pixels = np.empty((height, width, 3), dtype=np.uint8)
    pixels[:1] = colour
    pixels[1:] = pixels[:1]
    return pixels


def level_for(downsamples: Sequence[tuple[float, float]], wanted: tuple[float, float]) -> int:
    """The coarsest level that is no coarser than `wanted` level-0 pixels per output pixel, within 1 %; else level 0.

    `wanted`, and the downsample of each level, are (x, y), since a level's size was rounded on each axis.
    """
    found, coarsest = 0, (0.0, 0.0)
    limit_x, limit_y = wanted[0] * LEVEL_TOLERANCE, wanted[1] * LEVEL_TOLERANCE
    for level, downsample in enumerate(downsamples):
        if downsample[0] <= limit_x and downsample[1] <= limit_y and downsample > coarsest:
            found, coarsest = level, downsample
    return found


def resample(plane: Plane, edges: Edges, width: int, height: int, *, nearest: bool = False) -> npt.NDArray[np.uint8]:
    """uint8 (height, width, 3): what lies between `edges`, each output pixel the mean of the area that it covers.

    With `nearest`, each output pixel is instead the level pixel under its middle, so that no value is made up.
    """
    left, top = _nearest(edges.left), _nearest(edges.top)
    right, bottom = max(left + 1, _nearest(edges.right)), max(top + 1, _nearest(edges.bottom))
    if plane.misses(left, top, right, bottom):
        return plane.blank(width, height)
    rect = left, top, right, bottom
    shrink = 1 if nearest else _shrink(plane, rect, width, height)
    if (right - left) * (bottom - top) <= PIECE_PX * shrink**2:
        if shrink > 1:
            return _resample_shrunk(plane, rect, shrink, width, height)
        if not nearest and _in_bands(plane, rect, width, height):
            return _mean_by_bands(plane, rect, width, height)
        return resize(plane.pixels(*rect), width, height, nearest=nearest)
    if width == height == 1:
        # In halves of the longer side: those of a side of one pixel would be that pixel again.
        halves = (2, 1) if right - left >= bottom - top else (1, 2)
        return resize(resample(plane, edges, *halves, nearest=nearest), 1, 1, nearest=nearest)
    if width >= height:
        first = width // 2
        cut = edges.left + (edges.right - edges.left) * first / width
        return np.concatenate(
            (
                resample(plane, replace(edges, right=cut), first, height, nearest=nearest),
                resample(plane, replace(edges, left=cut), width - first, height, nearest=nearest),
            ),
            axis=1,
        )
    first = height // 2
    cut = edges.top + (edges.bottom - edges.top) * first / height
    return np.concatenate(
        (
            resample(plane, replace(edges, bottom=cut), width, first, nearest=nearest),
            resample(plane, replace(edges, top=cut), width, height - first, nearest=nearest),
        ),
        axis=0,
    )


def _shrink(plane: Plane, rect: tuple[int, int, int, int], width: int, height: int) -> int:
    """The strongest shrinking that loses nothing to speak of; 1 where none does.

    Either an output pixel covers two shrunk pixels or more on both axes, so that where the rectangle begins within a
    shrunk pixel matters little, or it covers whole ones exactly.
    """
    left, top, right, bottom = rect
    if not plane.contains(*rect):
        return 1
    for shrink in plane.shrinks:
        if right - left >= 2 * shrink * width and bottom - top >= 2 * shrink * height:
            return shrink
        if left % shrink == top % shrink == 0 and right - left == shrink * width and bottom - top == shrink * height:
            return shrink
    return 1


def _resample_shrunk(
    plane: Plane, rect: tuple[int, int, int, int], shrink: int, width: int, height: int
) -> npt.NDArray[np.uint8]:
    """Like `resize(plane.pixels(*rect), width, height)`, from a level shrunk while it was decoded.

    The rectangle may begin and end within a shrunk pixel. What it begins with is moved to whole pixels by linear
    interpolation, and the scale is the rectangle's, so that nothing drifts.
    """
    left, top, right, bottom = rect
    x0, across, part_x, x1 = _span(left, right, shrink, plane.width)
    y0, down, part_y, y1 = _span(top, bottom, shrink, plane.height)
    pixels = plane.read(x0, y0, x1 - x0, y1 - y0, shrink)
    pixels = _moved(_moved(pixels, part_x, across, axis=1), part_y, down, axis=0)
    extent_x, extent_y = (right - left) / shrink, (bottom - top) / shrink
    return _owned(_shrunk_by_area(pixels, extent_x, extent_y, width, height))


def _in_bands(plane: Plane, rect: tuple[int, int, int, int], width: int, height: int) -> bool:
    """Whether a region is large, and each output pixel is the mean of whole level pixels, so that bands are exact."""
    left, top, right, bottom = rect
    return (
        plane.tile_rows > 0
        and (right - left) * (bottom - top) > BAND_PX
        and (right - left) % width == (bottom - top) % height == 0
        and bottom - top > height
        and plane.contains(*rect)
    )


def _mean_by_bands(plane: Plane, rect: tuple[int, int, int, int], width: int, height: int) -> npt.NDArray[np.uint8]:
    """Like `resize(plane.pixels(*rect), width, height)`: each row of tiles is shrunk while it is in the cache."""
    left, top, right, bottom = rect
    times = (bottom - top) // height
    shown = np.empty((height, width, 3), np.uint8)
    done = 0
    rest = shown[:0]  # the level's rows of an output row that goes on in the next band
    while top < bottom:
        low = min(bottom, (top // plane.tile_rows + 1) * plane.tile_rows)
        band = plane.read(left, top, right - left, low - top, 1)
        top = low
        if len(rest):
            missing = times - len(rest)
            rest, band = np.concatenate((rest, band[:missing])), band[missing:]
            if len(rest) < times:
                continue
            shown[done] = cv2.resize(rest, (width, 1), interpolation=cv2.INTER_AREA)
            done += 1
        count = len(band) // times
        if count:
            whole = shown[done : done + count]
            cv2.resize(band[: count * times], (width, count), dst=whole, interpolation=cv2.INTER_AREA)
            done += count
        rest = band[count * times :].copy()
        del band  # so that the next one gets its memory, which is in the cache
    return shown


def _whole_area(extent: float, count: int, available: int) -> int:
    """Into how many parts each of `count` pixels is cut so that they are about as large as those `available`."""
    parts = max(1, round(extent / count))
    if count * parts != extent and round(available * count * parts / extent) == available:
        parts += 1  # OpenCV copies where the number stays, whatever the factor
    return parts


def _moved(pixels: npt.NDArray[np.uint8], part: float, count: int, axis: int) -> npt.NDArray[np.uint8]:
    """`count` rows or columns that begin at a part of a pixel; the last is repeated where there are too few."""
    if part:
        before, after = (pixels[:, :-1], pixels[:, 1:]) if axis else (pixels[:-1], pixels[1:])
        if before.size:
            pixels = cv2.addWeighted(before, 1 - part, after, part, 0)  # type: ignore[assignment]
    missing = count - pixels.shape[axis]
    if missing > 0:
        below, right = (0, missing) if axis else (missing, 0)
        pixels = cv2.copyMakeBorder(pixels, 0, below, 0, right, cv2.BORDER_REPLICATE)  # type: ignore[assignment]
    if pixels.shape[axis] == count:
        return pixels
    return pixels[:, :count] if axis else pixels[:count]


def resize(pixels: npt.NDArray[np.uint8], width: int, height: int, *, nearest: bool = False) -> npt.NDArray[np.uint8]:
    """uint8 (height, width, 3), the caller's own: shrunk by area means, enlarged linearly, each axis as it needs.

    Areas that are no whole number of pixels are first brought to one linearly, which is three times faster than exact
    weights and within 40 dB of them on tissue. With `nearest`, the pixel under the middle of each new one.
    """
    if nearest and (width, height) != (pixels.shape[1], pixels.shape[0]):
        return cv2.resize(pixels, (width, height), interpolation=cv2.INTER_NEAREST_EXACT)  # type: ignore[return-value]
    return _owned(_shrunk_by_area(pixels, pixels.shape[1], pixels.shape[0], width, height))


def _span(low: int, high: int, shrink: int, limit: int) -> tuple[int, int, float, int]:
    """(first shrunk pixel, number of pixels needed from `low` on, part of the first before `low`, end of those to read)

    One more than needed is read where `low` lies within a shrunk pixel, unless the level ends there.
    """
    first, rest = divmod(low, shrink)
    count = -(-(high - low) // shrink)
    return first, count, rest / shrink, min(first + count + (rest > 0), -(-limit // shrink))


def _shrunk_by_area(
    pixels: npt.NDArray[np.uint8], extent_x: float, extent_y: float, width: int, height: int
) -> npt.NDArray[np.uint8]:
    """The first `extent_x` x `extent_y` pixels, whose last may be parts of one, at `width` x `height`."""
    across = _whole_area(extent_x, width, pixels.shape[1])
    down = _whole_area(extent_y, height, pixels.shape[0])
    whole = width * across, height * down
    if whole != (extent_x, extent_y):
        # Given factors and no size, OpenCV takes the factors as they are.
        scale_x, scale_y = whole[0] / extent_x, whole[1] / extent_y
        pixels = cv2.resize(pixels, None, fx=scale_x, fy=scale_y, interpolation=cv2.INTER_LINEAR)  # type: ignore[assignment]
    if pixels.shape[:2] != whole[::-1]:
        pixels = pixels[: whole[1], : whole[0]]
    if whole != (width, height):
        pixels = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)  # type: ignore[assignment]
    return pixels


def _owned(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The pixels in memory of their own, rather than a part of a tile that others read."""
    return pixels if pixels.flags.owndata and pixels.flags.writeable else pixels.copy()


def _nearest(edge: float) -> int:
    """The nearest whole number, halves up, so that a shift by whole pixels commutes with rounding."""
    return int(np.floor(edge + 0.5))
