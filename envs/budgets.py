"""How many regions of interest (ROIs) a query may look at: 0 to 10,000.

    preset   below 5x   5x to below 20x   20x and above
    tight        5             4               3           this project's
    base        10             7               5           the paper's, for queries at 2.5x, 10x and 40x
    loose       20            14              10           this project's

EviPathBench states (10, 7, 5) and sweeps a tight and a loose budget without giving their values.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import SupportsIndex

from wsigym.errors import InvalidArgumentError, UnknownNameError

__all__ = ["MAX_ROIS", "PRESETS", "RoiBudget"]

MAX_ROIS = 10_000
"""More than anyone looks at, and as many as observations tell (`rois_left`); an episode of them takes a minute."""

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
            return cls._by_magnification(value)
        if isinstance(value, str):
            return cls._parse(value.strip())
        count = _count(value)
        return cls(str(count), preset=(count, count, count))

    @classmethod
    def _by_magnification(cls, value: Mapping[float, int]) -> RoiBudget:
        try:
            rois = {float(magnification): _count(count) for magnification, count in value.items()}
        except (TypeError, ValueError):
            rois = {}
        if not rois or len(rois) < len(value) or any(not (math.isfinite(key) and key > 0) for key in rois):
            raise InvalidArgumentError(
                f"budget {value!r}: one number of ROIs for each magnification is needed, such as {{10: 7, 40: 5}}; "
                "magnifications are above 0, each given once."
            )
        ordered = tuple(sorted(rois.items()))
        return cls(",".join(f"{key:g}={count}" for key, count in ordered), by_magnification=ordered)

    @classmethod
    def _parse(cls, text: str) -> RoiBudget:
        if text in PRESETS:
            return cls(text, preset=PRESETS[text])
        try:
            if "=" not in text:
                return cls.of(int(text))
            pairs = [tuple(part.split("=")) for part in text.split(",")]
            rois = {float(magnification): int(count) for magnification, count in pairs}
        except ValueError:
            if "=" not in text:
                raise UnknownNameError("budget", text, PRESETS) from None
            raise InvalidArgumentError(f"budget {text!r} cannot be read; allowed is {FORMS}.") from None
        if len(rois) < len(pairs):
            raise InvalidArgumentError(f"budget {text!r} gives one magnification twice; allowed is {FORMS}.")
        return cls.of(rois)

    @property
    def most(self) -> int:
        """The most ROIs that any query may look at."""
        return max(self.preset or (count for _, count in self.by_magnification))

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


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or not 0 <= operator.index(value) <= MAX_ROIS:
        raise InvalidArgumentError(f"a budget of {value!r} ROIs: allowed are 0 to {MAX_ROIS:,}. A budget is {FORMS}.")
    return operator.index(value)
