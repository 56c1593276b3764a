"""What a slide's properties say about its scale, and whether to believe it. Pure functions, no files.

mpp (microns per pixel at level 0) decides. If it is absent or implausible, the objective power gives 10 / power. If
that is absent or implausible too, the scale is unknown (None), and whoever asks for a magnification is told so:
there is no default.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from wsigym.errors import InvalidArgumentError

from .geometry import magnification_from_mpp, mpp_from_magnification

__all__ = ["PLAUSIBLE_MPP", "Resolution", "disagreement", "resolution_from"]

PLAUSIBLE_MPP = (0.05, 20.0)
"""Microns per pixel outside of which a figure is taken for a mistake, such as a 72 dpi tag (353 um/px)."""

DISAGREEMENT_RATIO = 1.1
"""mpp and 10 / objective power further apart than this are worth a warning."""

_MPP_KEYS = (("openslide.mpp-x", "openslide.mpp-y"), ("aperio.MPP", "aperio.MPP"))
_POWER_KEYS = ("openslide.objective-power", "aperio.AppMag")
_SHOWN_KEYS = (
    *(key for pair in _MPP_KEYS for key in dict.fromkeys(pair)),
    *_POWER_KEYS,
    "tiff.XResolution",
    "tiff.ResolutionUnit",
)

Source = Literal["given", "mpp", "objective power", "none"]


@dataclass(frozen=True, slots=True)
class Resolution:
    """The scale of level 0 and where it comes from.

    `mpp` is microns per pixel, None where unknown. `source` says what it was taken from: "given" (the caller),
    "mpp" or "objective power" (the file), "none". `objective_power` is the file's, where plausible. `found` lists
    what the file says, whatever came of it.
    """

    mpp: float | None
    source: Source
    objective_power: float | None
    found: str


def resolution_from(properties: Mapping[str, str], given_mpp: float | None = None) -> Resolution:
    """The scale that a slide's `properties` (OpenSlide's names) add up to; `given_mpp` overrides them.

    Raises `InvalidArgumentError` if `given_mpp` is not within 0.05 to 20 um/px.
    """
    found = _found(properties)
    power = next((value for key in _POWER_KEYS if (value := _power(properties.get(key))) is not None), None)
    if given_mpp is not None:
        return Resolution(checked_mpp(given_mpp), "given", power, found)
    for key_x, key_y in _MPP_KEYS:
        mpp = _mpp(properties.get(key_x), properties.get(key_y))
        if mpp is not None:
            return Resolution(mpp, "mpp", power, found)
    if power is not None:
        return Resolution(mpp_from_magnification(power), "objective power", power, found)
    return Resolution(None, "none", None, found)


def checked_mpp(mpp: float) -> float:
    """`mpp` as a float, or `InvalidArgumentError` if it is no plausible number of microns per pixel."""
    low, high = PLAUSIBLE_MPP
    if not isinstance(mpp, numbers.Real) or not low <= mpp <= high:
        raise InvalidArgumentError(f"mpp is {mpp!r}; microns per pixel must be a number from {low} to {high:g}.")
    return float(mpp)


def disagreement(resolution: Resolution) -> str | None:
    """What to warn of where the file's mpp and objective power differ by more than 10 %, else None."""
    if resolution.source != "mpp" or resolution.mpp is None or resolution.objective_power is None:
        return None
    derived = mpp_from_magnification(resolution.objective_power)
    if max(derived / resolution.mpp, resolution.mpp / derived) <= DISAGREEMENT_RATIO:
        return None
    return (
        f"the file's mpp {resolution.mpp:g} um/px means {magnification_from_mpp(resolution.mpp):.3g}x, but its "
        f"objective power is {resolution.objective_power:g}x; mpp is used. Give mpp= to settle it."
    )


def _mpp(text_x: str | None, text_y: str | None) -> float | None:
    """Mean of both axes if both are plausible and the pixels are square to within 10 %."""
    x, y = _number(text_x), _number(text_y)
    if x is None or y is None:
        return None
    low, high = PLAUSIBLE_MPP
    if not (low <= x <= high and low <= y <= high) or max(x / y, y / x) > DISAGREEMENT_RATIO:
        return None
    return (x + y) / 2


def _power(text: str | None) -> float | None:
    value = _number(re.sub(r"\s*[xX]\s*$", "", text) if text else None)
    low, high = PLAUSIBLE_MPP
    if value is None or value <= 0 or not low <= mpp_from_magnification(value) <= high:
        return None
    return value


def _number(text: str | None) -> float | None:
    """The finite number that `text` holds, with a point or (as some scanners' locales write it) a comma."""
    try:
        value = float((text or "").strip().replace(",", "."))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _found(properties: Mapping[str, str]) -> str:
    says = [f"{key} = {properties[key] or '(empty)'}" for key in _SHOWN_KEYS if key in properties]
    return ", ".join(says) or "nothing about its scale"
