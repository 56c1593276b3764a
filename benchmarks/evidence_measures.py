"""What the tables of evidence tasks measure: each a column that is computed from records, never from references.

A suite adds its own beside these, in its task's file. Those of options read the metrics `right`, `letter`, `chosen` and
`options` of an episode (`evidence_task`). Formulas and chance levels: `wsigym.scoring.circular`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from wsigym.cohorts.items import letter
from wsigym.scoring.circular import UNPARSED, RotationScores, circular_chance, rotation_scores, top_letter
from wsigym.scoring.intervals import SEED, Estimate, mean_estimate

from .records import EpisodeRecord
from .rows import mean_of, scored, unit_of
from .tables import Cell

__all__ = [
    "ACCURACY",
    "ACCURACY_BY_ITEM",
    "CHANCE",
    "CIRCULAR",
    "CIRCULAR_BY_ITEM",
    "CIRCULAR_CHANCE",
    "CONSISTENT",
    "MEAN_SCORE",
    "SCORE_BY_ITEM",
    "TOP_LETTER",
    "ByItem",
    "Measure",
    "accuracy",
    "chance",
    "right",
]


@dataclass(frozen=True)
class Measure:
    """A column: its `key` in JSON and CSV, its `label`, and `of`, the cell of a row's episodes, which all have a score.

    Values are shown times `scale` with `digits` decimals. `split` shows it by the task's `split_by` too. Of one that is
    `averaged` a note tells the mean over models.
    """

    key: str
    label: str
    of: Callable[[Sequence[EpisodeRecord]], Cell]
    scale: float = 100
    digits: int = 1
    split: bool = False
    averaged: bool = False


@dataclass(frozen=True)
class ByItem:
    """What two amounts of evidence are compared by: a value in 0..1 for each item, with its unit, of their episodes."""

    key: str
    label: str
    of: Callable[[Sequence[EpisodeRecord]], dict[str, tuple[float, tuple[str, str]]]]


def right(record: EpisodeRecord) -> float | None:
    """1 for a right answer, else 0; None after an infrastructure error."""
    return None if record.score is None else float(record.score == 1)


def accuracy(records: Sequence[EpisodeRecord]) -> Estimate:
    """Vanilla accuracy: the mean over items of the share of their episodes (rotations, seeds) that are right."""
    values = _by_item(records, lambda record: record.score == 1).values()
    return mean_estimate([value for value, _ in values], [unit for _, unit in values], seed=SEED)


def _by_item(
    records: Sequence[EpisodeRecord], value: Callable[[EpisodeRecord], float | None]
) -> dict[str, tuple[float, tuple[str, str]]]:
    """Of each item the mean over its episodes that have a score, and its unit."""
    values: dict[str, list[float]] = {}
    units: dict[str, tuple[str, str]] = {}
    for record in scored(records):
        values.setdefault(record.item, []).append(float(value(record) or 0))
        units[record.item] = unit_of(record)
    return {item: (sum(each) / len(each), units[item]) for item, each in values.items()}


def chance(records: Sequence[EpisodeRecord]) -> float | None:
    """The accuracy of uniform guesses: the mean over items of 1 / options; None where there are no options."""
    counts = {record.item: int(record.metrics["options"] or 0) for record in records}
    return sum(1 / count for count in counts.values()) / len(counts) if counts and all(counts.values()) else None


def _circular_chance(records: Sequence[EpisodeRecord]) -> float | None:
    counts = {record.item: int(record.metrics["options"] or 0) for record in records}
    return sum(map(circular_chance, counts.values())) / len(counts) if counts and all(counts.values()) else None


def _rotations(records: Sequence[EpisodeRecord]) -> tuple[RotationScores, list[EpisodeRecord]]:
    """The scores of the items asked in all their rotations, and a record of each. Each seed asks an item anew."""
    records = scored(records)
    chosen = np.array([_place(record, "chosen") for record in records], np.intp)
    keys = np.where([record.score == 1 for record in records], chosen, UNPARSED - 1)
    items = [(record.item, record.seed) for record in records]
    rotations = np.array([record.rotation for record in records], np.intp)
    options = np.array([record.metrics["options"] for record in records], np.intp)
    scores = rotation_scores(chosen, keys, items, rotations, options)
    return scores, [records[row] for row in scores.first_rows]


def _circular(records: Sequence[EpisodeRecord]) -> Estimate:
    scores, of_items = _rotations(records)
    return mean_estimate(scores.circular.astype(float), [unit_of(record) for record in of_items], seed=SEED)


def _circular_by_item(records: Sequence[EpisodeRecord]) -> dict[str, tuple[float, tuple[str, str]]]:
    scores, of_items = _rotations(records)
    circular: dict[str, list[bool]] = {}
    for record, value in zip(of_items, scores.circular.tolist(), strict=True):
        circular.setdefault(record.item, []).append(value)
    units = {record.item: unit_of(record) for record in of_items}
    return {item: (sum(each) / len(each), units[item]) for item, each in circular.items()}


def _consistent(records: Sequence[EpisodeRecord]) -> Estimate:
    scores, of_items = _rotations(records)
    return mean_estimate(scores.consistent.astype(float), [unit_of(record) for record in of_items], seed=SEED)


def _top_letter(records: Sequence[EpisodeRecord]) -> str | None:
    places = np.array([_place(record, "letter") for record in scored(records)], np.intp)
    top = top_letter(places, max((int(record.metrics["options"] or 0) for record in records), default=0))
    return None if top is None else f"{letter(top[0])} {100 * top[1]:.1f}"


def _place(record: EpisodeRecord, name: str) -> int:
    place = record.metrics.get(name)
    return place if isinstance(place, int) else UNPARSED


ACCURACY = Measure("accuracy", "accuracy", accuracy, split=True)
CHANCE = Measure("chance", "chance", chance)
CIRCULAR = Measure("circular", "circular", _circular)
CIRCULAR_CHANCE = Measure("circular_chance", "circular\nchance", _circular_chance, digits=2)
CONSISTENT = Measure("consistent", "same\nin all", _consistent)
TOP_LETTER = Measure("top_letter", "top\nletter, %", _top_letter)
MEAN_SCORE = Measure(
    "score", "mean score", lambda records: mean_of(records, lambda record: record.score), scale=1, digits=3
)

ACCURACY_BY_ITEM = ByItem("accuracy", "accuracy", lambda records: _by_item(records, lambda record: record.score == 1))
SCORE_BY_ITEM = ByItem("score", "mean score", lambda records: _by_item(records, lambda record: record.score))
CIRCULAR_BY_ITEM = ByItem("circular", "circular", _circular_by_item)
