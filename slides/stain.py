"""How much haematoxylin there is: colour deconvolution."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from skimage.color import rgb2hed

from .maps import MAP_MAGNIFICATION, SlideMap, overview
from .slide import Slide

__all__ = ["StainMap", "haematoxylin_density", "haematoxylin_of", "nuclear_density_of"]

OPTICAL_DENSITY_PER_UNIT = 6.0
"""scikit-image divides logarithms by that of 1e-6; times 6 they are optical densities to base 10."""

NUCLEAR_OD, DENSE_OD = 0.3, 0.6
"""Haematoxylin from which on a pixel counts as nuclear, and from which on more does not make it more so: smears and
folds lie below the first once they are resolved, ink and pigment far above the second."""


class StainMap(SlideMap):
    """`values` is float32 (height, width): haematoxylin of a cell in optical density, 0 on white."""


def haematoxylin_density(slide: Slide, magnification: float = MAP_MAGNIFICATION) -> StainMap:
    """Haematoxylin of the whole slide at `magnification` (at most 4,096 cells a side).

    A slide of unknown scale is mapped at 1,024 cells a side at most. Raises `SlideReadError`.
    """
    return StainMap(haematoxylin_of(overview(slide, magnification)), slide.box)


def haematoxylin_of(rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """float32 (height, width): haematoxylin in optical density (base 10, 0 or more) of an RGB image (height, width, 3).

    0 on white. Nothing is normalised by image, so that two views can be compared: dense nuclei have 0.5 and more.
    Stain vectors of Ruifrok and Johnston (Anal. Quant. Cytol. Histol. 23, 2001), as scikit-image has them.
    """
    density: npt.NDArray[np.float32] = rgb2hed(rgb)[..., 0].astype(np.float32) * np.float32(OPTICAL_DENSITY_PER_UNIT)
    return density


def nuclear_density_of(rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """float32 (height, width) in 0..1: how nuclear each pixel of an RGB image (height, width, 3) is, 0 on white.

    Haematoxylin from 0.3 optical densities (0) to 0.6 (1). Pen is 0: what lets no more red through than green is not
    of these stains. Like `haematoxylin_of`, not normalised by image.
    """
    stain = haematoxylin_of(rgb)
    density: npt.NDArray[np.float32] = np.clip((stain - NUCLEAR_OD) / np.float32(DENSE_OD - NUCLEAR_OD), 0, 1)
    density[rgb[..., 1] >= rgb[..., 0]] = 0
    return density
