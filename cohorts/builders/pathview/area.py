"""How much of a picture's tissue an area occupies, on a grid of its macro view."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image

from wsigym.slides.tissue import tissue_mask, tissue_mask_of

from ...cohort import Cohort
from ...transparency import on_white
from .marks import Outline
from .sources import Picture

__all__ = ["fraction_of", "tissue_of"]

GRID_PX = 1024
"""Longest side of the grid: finer than the answers, which are quarters."""


def tissue_of(cohort: Cohort, picture: Picture) -> npt.NDArray[np.bool_]:
    """bool (rows, columns): which cells of an even grid over the picture are tissue (`wsigym.slides.tissue`).

    Raises `SlideReadError`, or `OSError` where a file cannot be read.
    """
    if picture.image.slide_id is None:
        with Image.open(cohort.root / str(picture.image.file)) as image:
            image.thumbnail((GRID_PX, GRID_PX))
            return tissue_mask_of(np.asarray(on_white(image)))
    slide = cohort.open(picture.image.slide_id)
    assert picture.image.magnification is not None
    mapped = tissue_mask(slide, picture.image.magnification)
    step_x, step_y = mapped.step
    left, top, width, height = picture.box
    rows = slice(int(top // step_y), max(int(top // step_y) + 1, round((top + height) / step_y)))
    columns = slice(int(left // step_x), max(int(left // step_x) + 1, round((left + width) / step_x)))
    cells: npt.NDArray[np.bool_] = mapped.values[rows, columns]
    return cells


def fraction_of(tissue: npt.NDArray[np.bool_], outlines: Sequence[Outline], size: tuple[float, float]) -> float | None:
    """The share of the tissue within the union of areas whose points are pixels of a picture of (width, height).

    None where there is no tissue. Areas are drawn on a grid of `GRID_PX` or more, as cells on their rims count.
    """
    finer = -(-GRID_PX // max(tissue.shape))
    tissue = tissue.repeat(finer, axis=0).repeat(finer, axis=1)
    total = int(tissue.sum())
    if not total:
        return None
    covered = np.zeros(tissue.shape, np.uint8)
    scale = np.array([tissue.shape[1] / size[0], tissue.shape[0] / size[1]])
    for outline in outlines:
        for polygon in outline:
            one = np.zeros(tissue.shape, np.uint8)
            rings = [np.rint(np.asarray(ring, np.float64) * scale - 0.5).astype(np.int32) for ring in polygon]
            cv2.fillPoly(one, rings, 1)
            covered |= one
    return float((tissue & (covered > 0)).sum() / total)
