"""Reading pixels: slides and their backends, geometry, tissue and stain maps.

Importing this package is light. The names below load on first use (PEP 562), so that `from wsigym.slides import Box`
imports neither OpenSlide nor OpenCV.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .geometry import (
    Box,
    box_from_unit,
    box_to_unit,
    fitted_size,
    magnification_from_mpp,
    mpp_from_magnification,
    shown_magnification,
)

if TYPE_CHECKING:
    from .cache import CacheInfo, cache_info, set_cache_size
    from .opening import open_slide
    from .resolution import Resolution
    from .slide import Slide
    from .stain import StainMap, haematoxylin_density, haematoxylin_of, nuclear_density_of
    from .tissue import TissueMap, tissue_mask, tissue_mask_of

__all__ = [
    "Box",
    "CacheInfo",
    "Resolution",
    "Slide",
    "StainMap",
    "TissueMap",
    "box_from_unit",
    "box_to_unit",
    "cache_info",
    "fitted_size",
    "haematoxylin_density",
    "haematoxylin_of",
    "magnification_from_mpp",
    "mpp_from_magnification",
    "nuclear_density_of",
    "open_slide",
    "set_cache_size",
    "shown_magnification",
    "tissue_mask",
    "tissue_mask_of",
]

_HOME_OF = {
    "CacheInfo": "cache",
    "Resolution": "resolution",
    "Slide": "slide",
    "StainMap": "stain",
    "TissueMap": "tissue",
    "cache_info": "cache",
    "haematoxylin_density": "stain",
    "haematoxylin_of": "stain",
    "nuclear_density_of": "stain",
    "open_slide": "opening",
    "set_cache_size": "cache",
    "tissue_mask": "tissue",
    "tissue_mask_of": "tissue",
}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
