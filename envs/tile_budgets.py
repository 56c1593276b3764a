"""How many tiles a search of the tile tree keeps, or how many it may view.

    preset   K at 2.5x, 10x and 40x    source
    tight    3, 2, 1                   the sweep of EviPathBench
    base     6, 3, 2                   its protocol
    loose    10, 5, 3                  its sweep

K is for a slide at the first magnification and for a parent below it. `K=all` keeps every tile whatever was said of
it, so that all tiles with tissue are scored.

For `schedule="free"`, `tiles=N` is a number of viewed tiles in all, and `tiles=6,3,2` as many as the cascade with these
K views on the slide, with the same scorer; `tiles=all` sets no limit. These budgets are of looks alone: a search keeps
36 tiles at the end, whatever it may view.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wsigym.errors import InvalidArgumentError, UnknownNameError

__all__ = ["KEEP_PRESETS", "KEPT_AT_THE_END", "PAPER_KEEP", "TileBudget"]

PAPER_KEEP = (6, 3, 2)
KEPT_AT_THE_END = 36
"""Tiles that a search in the free schedule keeps at the last magnification: as many as the paper's cascade keeps at
most, 6 * 3 * 2. It is one number for all searches and budgets, so that their hit rates differ by what was looked at."""

KEEP_PRESETS: Mapping[str, tuple[int, ...]] = {"tight": (3, 2, 1), "base": PAPER_KEEP, "loose": (10, 5, 3)}

FORMS = (
    "a preset (tight, base, loose), K=6,3,2 with one number for each magnification, K=all, tiles=N, or tiles=6,3,2: "
    "what K=6,3,2 views"
)


@dataclass(frozen=True)
class TileBudget:
    """`keep` is K for each magnification (None with K=all and tiles=N), `tiles` how many may be viewed, where that is
    said by a number. `free` is True for the forms that only `schedule="free"` takes. `label` is its one spelling."""

    label: str
    keep: tuple[int, ...] | None = None
    tiles: int | None = None
    free: bool = False

    @classmethod
    def of(cls, value: str | Sequence[int] | TileBudget) -> TileBudget:
        """Any way to say a budget, as one type. Raises `UnknownNameError` or `InvalidArgumentError`."""
        if isinstance(value, TileBudget):
            return value
        if not isinstance(value, str):
            if not isinstance(value, Sequence):
                raise InvalidArgumentError(f"budget {value!r} is a {type(value).__name__}; allowed is {FORMS}.")
            return cls._keeping([_count(number, repr(value)) for number in value], repr(value))
        text = value.strip()
        if text in KEEP_PRESETS:
            return cls._keeping(KEEP_PRESETS[text], text)
        kind, equals, numbers = text.partition("=")
        if not equals:
            raise UnknownNameError("budget", text, [*KEEP_PRESETS, "K=6,3,2", "K=all", "tiles=N", "tiles=6,3,2"])
        if numbers == "all" and kind in ("K", "tiles"):
            return cls(text, free=kind == "tiles")
        if kind == "K":
            return cls._keeping([_count(number, text) for number in numbers.split(",")], text)
        if kind == "tiles":
            counts = tuple(_count(number, text) for number in numbers.split(","))
            label = "tiles=" + ",".join(map(str, counts))
            return cls(label, tiles=counts[0], free=True) if len(counts) == 1 else cls(label, keep=counts, free=True)
        raise InvalidArgumentError(f"budget {text!r} cannot be read; allowed is {FORMS}.")

    @classmethod
    def _keeping(cls, keep: Sequence[int], text: str) -> TileBudget:
        if not keep:
            raise InvalidArgumentError(f"budget {text} keeps nothing; allowed is {FORMS}.")
        return cls("K=" + ",".join(map(str, keep)), keep=tuple(keep))

    @property
    def freed(self) -> TileBudget:
        """The same for `schedule="free"`: K=6,3,2 becomes tiles=6,3,2, and K=all tiles=all."""
        return TileBudget.of(self.label.replace("K=", "tiles="))


def _count(value: str | int, text: str) -> int:
    try:
        count = int(value)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"budget {text}: {value!r} is no whole number; allowed is {FORMS}.") from None
    if isinstance(value, bool) or count != (int(value) if isinstance(value, str) else value) or count < 1:
        raise InvalidArgumentError(f"budget {text}: {value!r} must be a whole number of 1 or more.")
    return count
