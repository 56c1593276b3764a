"""Arithmetic on pixels that backends share."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

__all__ = ["WHITE", "background_from", "over_background"]

WHITE = (255, 255, 255)


def background_from(properties: Mapping[str, str]) -> tuple[int, int, int]:
    """RGB of "openslide.background-color" (six hex digits), white where the file does not say."""
    text = properties.get("openslide.background-color", "")
    if not re.fullmatch(r"#?[0-9a-fA-F]{6}", text):
        return WHITE
    red, green, blue = bytes.fromhex(text.removeprefix("#"))
    return red, green, blue


def over_background(rgba: npt.NDArray[np.uint8], background: tuple[int, int, int]) -> npt.NDArray[np.uint8]:
    """uint8 (h, w, 3): straight-alpha `rgba` (h, w, 4) laid over `background`."""
    alpha = rgba[..., 3:]
    rgb = np.ascontiguousarray(rgba[..., :3])
    if alpha.min(initial=255) == 255:
        return rgb
    opacity = alpha.astype(np.uint32)
    behind = np.array(background, dtype=np.uint32)
    return ((rgb * opacity + behind * (255 - opacity) + 127) // 255).astype(np.uint8)
