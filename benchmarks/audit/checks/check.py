"""What a check of an audit sees, and what it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wsigym.cohorts import Asked, Cohort

from ..pictures import Pictures
from ..results import Checked

__all__ = ["Audited", "Check", "named", "suite_of"]

SHOWN = 3
"""Items named with a finding; the others are counted."""


@dataclass(frozen=True)
class Audited:
    """The items under audit by task, the pictures that they show, and those of a corpus to hold them against.

    `not_in_corpus` are the corpus's files that are no pictures by name.
    """

    cohort: Cohort
    tasks: Mapping[str, Sequence[Asked]]
    pictures: Pictures
    corpus: Pictures | None = None
    not_in_corpus: Sequence[str] = field(default_factory=tuple)

    @property
    def root(self) -> Path:
        return self.cohort.root

    def suites(self) -> dict[str, list[Asked]]:
        """The items of each suite: tasks of a suite are learned from and tested on together."""
        found: dict[str, list[Asked]] = {}
        for name, asked in self.tasks.items():
            found.setdefault(suite_of(name), []).extend(asked)
        return found


Check = Callable[[Audited], Checked]


def suite_of(task: str) -> str:
    return task.partition("/")[0]


def named(things: Sequence[str]) -> str:
    """The first of several things, and how many more there are."""
    different = list(dict.fromkeys(things))
    more = f" and {len(different) - SHOWN:,} more" if len(different) > SHOWN else ""
    return ", ".join(different[:SHOWN]) + more
