"""What every builder of items shares: how it is asked, and what it gives back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from wsigym.errors import UnknownNameError

from ..cohort import Cohort
from ..item_files import Asked
from .mining import THRESHOLD

__all__ = ["CELL_FIELDS", "Build", "Builder", "Built", "Evenly", "Reword"]

CELL_FIELDS = ("organ", "magnification")
"""Distractors come from one cell: EviPathBench's organ and magnification. A cell is always of one split: what stands in
an item of another split has been seen there."""

Reword = Callable[[list[Asked]], list[Asked]]
"""Puts the questions of items into other words, where it finds some, and changes nothing else."""


def _as_they_are(asked: list[Asked]) -> list[Asked]:
    return asked


@dataclass(frozen=True)
class Build:
    """How items are built.

    `encoder` as in `encoders.encode`; `cell` which of `CELL_FIELDS` distractors share with the key, beside the split;
    `seed` of the order of starts, options and lots; `threshold` of the largest cosine within a set; `reword` for the
    questions, which are templates.
    """

    encoder: str = "tfidf"
    cell: tuple[str, ...] = CELL_FIELDS
    seed: int = 0
    threshold: float = THRESHOLD
    reword: Reword = _as_they_are

    def __post_init__(self) -> None:
        for name in self.cell:
            if name not in CELL_FIELDS:
                raise UnknownNameError("cell field", name, CELL_FIELDS)

    def cell_of(self, values: Mapping[str, object]) -> tuple[object, ...]:
        """The cell of what has these values, its split first; a value that is unknown is a cell of its own."""
        return tuple(values.get(name) for name in ("split", *self.cell))


@dataclass
class Built:
    """Items with their references, and how many were dropped for each reason."""

    asked: list[Asked] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)


class Evenly:
    """Draws wrong options so that a text tells nothing by itself: each is wrong `count` times for every time that it is
    right, as near as can be. What is right oftener than one time in `count` + 1 cannot be wrong often enough."""

    def __init__(self) -> None:
        self._rights: Counter[str] = Counter()
        self._owed: Counter[str] = Counter()

    def seldom_right(self, texts: Sequence[str]) -> list[str]:
        """The texts, those that were right least often so far first, else as they are."""
        return sorted(texts, key=lambda text: self._rights[text])

    def draw(self, right: str, others: Sequence[str], count: int) -> list[str]:
        """`count` of the others, or all where there are fewer: those that are owed most, of equal ones the first."""
        self._rights[right] += 1
        self._owed[right] += count
        drawn = sorted(others, key=lambda other: -self._owed[other])[:count]
        self._owed.subtract(drawn)
        return drawn


Builder = Callable[[Cohort, Build], Built]
