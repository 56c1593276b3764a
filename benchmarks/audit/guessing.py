"""How often rules that see no evidence are right, and where that is not what guessing gives.

A row is flagged where its interval excludes chance. All intervals of an audit have one confidence: 1 - 1 % / rows tried
(Bonferroni), so that an audit of clean items flags anything at all once in a hundred times. A rule that is fixed in
advance is flagged on either side of chance, as "never the longest" tells as much; a learned one above it only, since
learning from other groups is below chance by itself where keys are spread evenly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsigym.cohorts import Asked
from wsigym.scoring.intervals import MIN_UNITS, Estimate
from wsigym.scoring.proportions import proportion_estimate

from .choices import Choices, choices_of, truths_of
from .constant import beyond_constant
from .results import Guess
from .rules import PRIOR, RULES, Rule

TOO_FEW = f"there are under {MIN_UNITS} groups to learn from and be tried on"

__all__ = ["FALSE_ALARMS", "guesses_of"]

FALSE_ALARMS = 0.01
"""The chance that an audit of clean items flags a rule."""


@dataclass(frozen=True)
class _Tried:
    task: str
    rule: str
    learned: bool
    shares: npt.NDArray[np.float64]
    chance: float
    units: Sequence[str]
    note: str


def guesses_of(tasks: Mapping[str, Sequence[Asked]]) -> tuple[float, list[Guess]]:
    """The confidence of the intervals, and a row for each rule on each task, also where it could not be tried."""
    rows = [row for name, asked in tasks.items() for row in _rows(name, asked)]
    tried = sum(isinstance(row, _Tried) for row in rows)
    confidence = 1 - FALSE_ALARMS / max(1, tried)
    return confidence, [row if isinstance(row, Guess) else _judged(row, confidence) for row in rows]


def _rows(task: str, asked: Sequence[Asked]) -> Iterator[_Tried | Guess]:
    choices = choices_of(asked)
    if isinstance(choices, str):
        yield from (Guess(task, rule.name, why=choices) for rule in RULES)
    else:
        yield from (_tried(task, rule.name, rule, choices) for rule in RULES)
    truths = truths_of(asked)
    if truths is not None:
        yield _tried(task, "true or false", PRIOR, truths)
    if isinstance(choices, str):
        found = beyond_constant(asked)
        if isinstance(found, str):
            yield Guess(task, "answer", why=found)
        else:
            yield _enough(_Tried(task, "answer", True, found.shares, 0.5, found.units, ""))


def _tried(task: str, name: str, rule: Rule, choices: Choices) -> _Tried | Guess:
    if rule.learned and choices.folds is None:
        return Guess(task, name, why=TOO_FEW)
    tells, shares = choices.chosen(rule.scores(choices))
    if not tells.any():
        return Guess(task, name, why="it tells no option from another")
    units = [unit for unit, told in zip(choices.units, tells, strict=True) if told]
    untold = len(tells) - int(tells.sum())
    notes = [choices.left_out, f"{untold:,} not told apart" if untold else ""]
    chance = float(choices.chances[tells].mean())
    return _enough(_Tried(task, name, rule.learned, shares[tells], chance, units, ", ".join(filter(None, notes))))


def _enough(row: _Tried) -> _Tried | Guess:
    if len(set(row.units)) >= MIN_UNITS:
        return row
    mean = Estimate(float(row.shares.mean()), None, None, len(row.shares), len(set(row.units)))
    return Guess(row.task, row.rule, mean, row.chance, why=f"under {MIN_UNITS} groups: no interval")


def _judged(row: _Tried, confidence: float) -> Guess:
    accuracy = proportion_estimate(row.shares, row.units, confidence)
    assert accuracy.low is not None
    assert accuracy.high is not None
    flagged = accuracy.low > row.chance or (accuracy.high < row.chance and not row.learned)
    return Guess(row.task, row.rule, accuracy, row.chance, flagged, row.note)
