"""Where we look: images of a slide's boxes as observations show them, and how they are drawn for people.

An image is read at its own size, and shown padded to a square with the slide's background on the right and below, so
that pixel (x, y) of the image lies at ((x + 0.5) / width, (y + 0.5) / height) of the box that it shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import cv2
import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError
from wsigym.slides import Box, Slide
from wsigym.slides.geometry import fitted_size, magnification_from_mpp, shown_magnification
from wsigym.slides.resample import filled

if TYPE_CHECKING:
    from wsigym.cohorts.feature_files import Numbers

__all__ = [
    "MAX_SIDE_PX",
    "FeatureSource",
    "Frame",
    "Image",
    "ImageSource",
    "View",
    "blank",
    "check_image",
    "context_view",
    "draw_boxes",
    "frame_of",
    "padded",
    "unpadded_view_of",
    "view_of",
]

MAX_SIDE_PX = 8192
"""Above this an image takes 200 MB."""

Image = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Frame:
    """How a box of the slide is shown: at which magnification, and (width, height) in how many pixels."""

    box: Box
    magnification: float
    size: tuple[int, int]


@dataclass(frozen=True)
class View:
    """A box of the slide as an image. `size` is (width, height) of the part of `image` that is not padding."""

    image: Image
    box: Box
    magnification: float
    size: tuple[int, int]


class ImageSource(Protocol):
    """The images that an episode has shown so far, by name, at whatever size is asked for."""

    def image(self, name: str, side_px: int) -> View:
        """The named image, uint8 (height, width, 3) without padding, its longer side `side_px` pixels or less.

        It never has more detail than the episode's own images may have. Names are the environment's; may be called
        from a thread while the episode waits for its next action. Raises `InvalidArgumentError` for a name that the
        episode has not shown, or a side outside 1 to 8,192.
        """

    def surroundings(self, share: float, px: int) -> Image:
        """Of Localization alone: uint8 (px, px, 3), what surrounds the last look's centre at `share`, 1 or less, of
        the query's magnification; background outside the search box, and before the first look."""


class FeatureSource(ImageSource, Protocol):
    """What a run gives to `see_images`: the images, and for models that read them the features."""

    def features(self) -> tuple[Numbers, Numbers] | None:
        """Of Evidence alone: the item's features (n, d) and the level-0 coordinates x, y (n, 2) of each, read anew;
        finite numbers of the files' own types. None where the item has none, and for a control without images."""


def check_image(name: str, side_px: int, shown: Iterable[str]) -> None:
    """Raises `InvalidArgumentError` where `name` is none of the images `shown`, or `side_px` is outside 1 to 8,192."""
    if name not in (names := tuple(shown)):
        raise InvalidArgumentError(f"image {name!r} was not shown; shown are {', '.join(names) or 'none'}.")
    if not 1 <= side_px <= MAX_SIDE_PX:
        raise InvalidArgumentError(f"side_px is {side_px}; allowed are 1 to {MAX_SIDE_PX:,} pixels.")


def blank(slide: Slide, px: int) -> Image:
    """uint8 (px, px, 3) of the slide's background colour."""
    return filled(px, px, slide.background)


def view_of(slide: Slide, box: Box, px: int, cap: float) -> View:
    """`box` shown in px x px pixels: shrunk to fit, never above the magnification `cap`, aspect kept, padded."""
    view = unpadded_view_of(slide, box, px, cap)
    return view if view.size == (px, px) else replace(view, image=padded(view.image, px, slide.background))


def unpadded_view_of(slide: Slide, box: Box, px: int, cap: float) -> View:
    """Like `view_of`, its image without the padding, which may be most of it."""
    frame = frame_of(slide, box, px, cap)
    return View(slide.read(box, frame.size), box, frame.magnification, frame.size)


def frame_of(slide: Slide, box: Box, px: int, cap: float) -> Frame:
    """How `view_of` shows `box`, without reading it."""
    mpp = _known_mpp(slide)
    magnification = shown_magnification(box, px, mpp, cap)
    width, height = (min(px, side) for side in fitted_size(box, magnification, mpp))
    return Frame(box, magnification, (width, height))


def padded(image: Image, px: int, colour: tuple[int, int, int]) -> Image:
    """uint8 (px, px, 3), in memory of its own: the image, and `colour` on its right and below."""
    height, width = image.shape[:2]
    return cv2.copyMakeBorder(image, 0, px - height, 0, px - width, cv2.BORDER_CONSTANT, value=colour)  # type: ignore[return-value]


def context_view(slide: Slide, centre: tuple[float, float], px: int, magnification: float, search_box: Box) -> Image:
    """uint8 (px, px, 3): what surrounds a level-0 point at `magnification`; background outside the search box.

    Only what lies inside is read: all of it exactly, or a part of it moved by half a level-0 pixel at most.
    """
    side = max(1, round(px * magnification_from_mpp(_known_mpp(slide)) / magnification))
    box = Box(0, 0, side, side).centred_on(*centre)
    rows = _pixels_inside(search_box.y, search_box.bottom, box.y, side / px, px)
    columns = _pixels_inside(search_box.x, search_box.right, box.x, side / px, px)
    if rows == columns == slice(0, px):
        return slide.read(box, (px, px))
    image = blank(slide, px)
    height, width = rows.stop - rows.start, columns.stop - columns.start
    if height > 0 and width > 0:
        left, right = (round(box.x + side / px * end) for end in (columns.start, columns.stop))
        top, bottom = (round(box.y + side / px * end) for end in (rows.start, rows.stop))
        inside = Box(left, top, max(1, right - left), max(1, bottom - top))
        image[rows, columns] = slide.read(inside, (width, height))
    return image


def _pixels_inside(low: int, high: int, start: int, scale: float, px: int) -> slice:
    """Which of `px` view pixels, of `scale` level-0 pixels each from `start` on, lie wholly inside low..high."""
    return slice(max(0, math.ceil((low - start) / scale)), min(px, math.floor((high - start) / scale)))


def _known_mpp(slide: Slide) -> float:
    """The slide's mpp; queries by magnification are checked before an episode starts."""
    assert slide.mpp is not None
    return slide.mpp


def draw_boxes(view: View, boxes: Iterable[Box], colour: tuple[int, int, int], thickness: int = 1) -> Image:
    """A copy of the view's image with level-0 boxes drawn on it."""
    image = view.image.copy()
    scale_x, scale_y = view.size[0] / view.box.width, view.size[1] / view.box.height
    for box in boxes:
        corner = (round((box.x - view.box.x) * scale_x), round((box.y - view.box.y) * scale_y))
        far = (round((box.right - view.box.x) * scale_x) - 1, round((box.bottom - view.box.y) * scale_y) - 1)
        cv2.rectangle(image, corner, far, colour, thickness)
    return image
