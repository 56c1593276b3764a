"""How many regions of interest (ROIs) a query may look at.

    preset   below 5x   5x to below 20x   20x and above
    tight        5             4               3           this project's
    base        10             7               5           the paper's, for queries at 2.5x, 10x and 40x
    loose       20            14              10           this project's

EviPathBench states (10, 7, 5) and sweeps a tight and a loose budget without giving their values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from wsigym.errors import InvalidArgumentError, UnknownNameError

__all__ = ["PRESETS", "RoiBudget"]

PRESETS: Mapping[str, tuple[int, int, int]] = {"tight": (5, 4, 3), "base": (10, 7, 5), "loose": (20, 14, 10)}

FORMS = "a preset (tight, base, loose), a whole number of ROIs, or one for each magnification such as 2.5=10,10=7,40=5"


@dataclass(frozen=True)
class RoiBudget:
    """ROIs by magnification. `label` is its one spelling, for records and tables."""

    label: str
    preset: tuple[int, int, int] | None = None
    by_magnification: tuple[tuple[float, int], ...] = ()

    @classmethod
    def of(cls, value: str | int | Mapping[float, int] | RoiBudget) -> RoiBudget:
        """Any way to say a budget, as one type. Raises `UnknownNameError` or `InvalidArgumentError`."""
        if isinstance(value, RoiBudget):
            return value
        if isinstance(value, Mapping):
            rois = {float(magnification): _count(count) for magnification, count in value.items()}
            if not rois or any(not (math.isfinite(key) and key > 0) for key in rois):
                raise InvalidArgumentError(f"budget {value!r}: magnifications are positive numbers, at least one.")
            ordered = tuple(sorted(rois.items()))
            return cls(",".join(f"{key:g}={count}" for key, count in ordered), by_magnification=ordered)
        if isinstance(value, int) and not isinstance(value, bool):
            count = _count(value)
            return cls(str(count), preset=(count, count, count))
        if not isinstance(value, str):
            raise InvalidArgumentError(f"budget {value!r} is a {type(value).__name__}; allowed is {FORMS}.")
        return cls._parse(value.strip())

    @classmethod
    def _parse(cls, text: str) -> RoiBudget:
        if text in PRESETS:
            return cls(text, preset=PRESETS[text])
        try:
            if "=" in text:
                pairs = (part.split("=") for part in text.split(","))
                return cls.of({float(magnification): int(count) for magnification, count in pairs})
            return cls.of(int(text))
        except ValueError:
            if "=" in text:
                raise InvalidArgumentError(f"budget {text!r} cannot be read; allowed is {FORMS}.") from None
            raise UnknownNameError("budget", text, PRESETS) from None

    def rois(self, magnification: float) -> int:
        """How many ROIs a query at `magnification` may look at."""
        if self.preset is not None:
            below_5x, below_20x, above = self.preset
            return below_5x if magnification < 5 else below_20x if magnification < 20 else above
        for key, count in self.by_magnification:
            if math.isclose(key, magnification, rel_tol=0.01):
                return count
        raise InvalidArgumentError(
            f"budget {self.label} says nothing for a query at {magnification:g}x; add {magnification:g}=N to it."
        )


def _count(value: int) -> int:
    if isinstance(value, bool) or value != int(value) or value < 0:
        raise InvalidArgumentError(f"a budget of {value!r} ROIs: a whole number of 0 or more is needed.")
    return int(value)
