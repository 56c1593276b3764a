"""What an audit finds: a row for each rule on each task, and what each check looked at and found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wsigym.scoring.intervals import Estimate

__all__ = ["Audit", "Checked", "Finding", "Guess"]


@dataclass(frozen=True)
class Guess:
    """How often a rule that sees no evidence is right on a task.

    `accuracy` holds the interval that the flag rests on; `flagged` says that it excludes `chance`. Where the rule could
    not be tried, `accuracy` is None or has no interval, and `why` says why; else `why` says what was left out.
    """

    task: str
    rule: str
    accuracy: Estimate | None = None
    chance: float | None = None
    flagged: bool = False
    why: str = ""


@dataclass(frozen=True)
class Finding:
    """One thing found: in which task (or suite) and items, and what it is."""

    task: str
    items: tuple[str, ...]
    what: str


@dataclass(frozen=True)
class Checked:
    """What a check looked at (`looked` things, named `things`), what it found, and what it could not look at."""

    check: str
    looked: int
    things: str
    findings: tuple[Finding, ...] = ()
    not_looked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Audit:
    """`confidence` is that of every interval of `guesses`."""

    cohort: str
    confidence: float
    guesses: Sequence[Guess] = field(default_factory=tuple)
    checks: Sequence[Checked] = field(default_factory=tuple)

    @property
    def flagged(self) -> int:
        """Rules flagged, and checks that found something."""
        return sum(guess.flagged for guess in self.guesses) + sum(bool(each.findings) for each in self.checks)
