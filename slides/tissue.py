"""Where the tissue is: Otsu's threshold on saturation, small objects removed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from skimage.filters import gaussian, threshold_otsu
from skimage.morphology import remove_small_objects

from .maps import MAP_MAGNIFICATION, SlideMap, overview
from .slide import Slide

__all__ = ["TissueMap", "tissue_mask", "tissue_mask_of"]

SATURATION_RANGE = (0.06, 0.2)
"""Otsu's threshold is kept within this range: an empty view would otherwise be split by its noise, and a view full of
tissue into stronger and paler tissue. Glass and JPEG noise stay below 0.05, stained tissue lies mostly above 0.2."""

SMALL_PX = 64
"""Objects of at most this many pixels, or 1/256 of a smaller image, are dust."""


class TissueMap(SlideMap):
    """`values` is bool (height, width): whether a cell is tissue. `mean(box)` is the share of tissue in a box."""


def tissue_mask(slide: Slide, magnification: float = MAP_MAGNIFICATION) -> TissueMap:
    """Tissue of the whole slide at `magnification` (at most 4,096 cells a side).

    A slide of unknown scale is mapped at 1,024 cells a side at most. Raises `SlideReadError`.
    """
    return TissueMap(tissue_mask_of(overview(slide, magnification)), slide.box)


def tissue_mask_of(rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """bool (height, width): which pixels of an RGB image (height, width, 3) are tissue. Empty on white and on grey.

    Otsu (IEEE Trans. SMC 9, 1979) on HSV saturation after a Gaussian blur of 1 px. Draws no random numbers.
    """
    brightest = rgb.max(axis=2).astype(np.float32)
    saturation = (brightest - rgb.min(axis=2)) / np.maximum(brightest, 1)
    smooth: npt.NDArray[Any] = gaussian(saturation, sigma=1)  # type: ignore[no-untyped-call]
    low, high = SATURATION_RANGE
    otsu = float(threshold_otsu(smooth))  # type: ignore[no-untyped-call]
    tissue = smooth > min(max(otsu, low), high)
    kept: npt.NDArray[np.bool_] = remove_small_objects(tissue, max_size=min(SMALL_PX, tissue.size // 256))
    return kept
