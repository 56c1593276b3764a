"""The images of an item, read at the size that is asked for: files, boxes of slides, and numbered mosaics of both."""

from __future__ import annotations

import math
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image

from wsigym.cohorts import Cohort, ImageSpec
from wsigym.cohorts.item_files import NOT_AN_IMAGE
from wsigym.cohorts.transparency import on_white
from wsigym.errors import SlideReadError
from wsigym.slides import Box
from wsigym.slides.resample import filled, resize

from .views import View, unpadded_view_of

__all__ = ["WHITE", "item_image"]

WHITE = (255, 255, 255)

GAP_PX = 4
"""White between the tiles of a mosaic."""


def item_image(cohort: Cohort, spec: ImageSpec, side_px: int) -> View:
    """An image, its longer side `side_px` or less, never enlarged; a slide's box never above its magnification.

    The box of a file's view is the file in its own pixels; a mosaic's is the mosaic. The magnification of what has none
    is 0. A file is taken as its pixels lie, whatever its EXIF says, as boxes on it are. Raises `SlideError` where the
    file or the slide cannot be read.
    """
    if spec.tiles:
        return _mosaic([item_image(cohort, tile, _cell_px(len(spec.tiles), side_px)) for tile in spec.tiles], side_px)
    if spec.file is None:
        assert spec.slide_id is not None
        assert spec.box is not None
        assert spec.magnification is not None
        return unpadded_view_of(cohort.open(spec.slide_id), spec.box, side_px, spec.magnification)
    if outside := cohort.outside(spec.file):
        raise SlideReadError(f"{outside}.")
    pixels = _read(cohort.root / spec.file)
    height, width = pixels.shape[:2]
    scale = min(1, side_px / max(height, width))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    shown = pixels if size == (width, height) else resize(pixels, *size)
    return View(shown, Box(0, 0, width, height), (spec.magnification or 0) * scale, size)


def _read(path: Path) -> npt.NDArray[np.uint8]:
    try:
        with Image.open(path) as image:
            return np.array(on_white(image))
    except NOT_AN_IMAGE as error:
        raise SlideReadError(f"{path} cannot be read as an image ({error}); `wsigym cohort check` finds all.") from None


def _columns(count: int) -> int:
    return math.ceil(math.sqrt(count))


def _cell_px(count: int, side_px: int) -> int:
    return max(1, (side_px - GAP_PX * (_columns(count) - 1)) // _columns(count))


def _mosaic(views: list[View], side_px: int) -> View:
    """The views in reading order on white, each in the top left of its cell with its number in its corner."""
    cell, columns = _cell_px(len(views), side_px), _columns(len(views))
    rows = math.ceil(len(views) / columns)
    height, width = (min(side_px, count * (cell + GAP_PX) - GAP_PX) for count in (rows, columns))
    image = filled(width, height, WHITE)
    for place, view in enumerate(views):
        y, x = (index * (cell + GAP_PX) for index in divmod(place, columns))
        fits = view.image[: height - y, : width - x]
        image[y : y + fits.shape[0], x : x + fits.shape[1]] = fits
        _number(image, str(place + 1), x, y, cell)
    return View(image, Box(0, 0, width, height), 0.0, (width, height))


def _number(image: npt.NDArray[np.uint8], text: str, x: int, y: int, cell: int) -> None:
    """Black on a white plate, its height a tenth of the cell's but at least 12 pixels."""
    scale = max(12, cell / 10) / 22  # the font is 22 pixels high at scale 1
    (width, height), below = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, scale, 1)
    cv2.rectangle(image, (x, y), (x + width + 4, y + height + below + 2), WHITE, cv2.FILLED)
    cv2.putText(image, text, (x + 2, y + height + 2), cv2.FONT_HERSHEY_SIMPLEX, scale, (0, 0, 0), 1, cv2.LINE_AA)
