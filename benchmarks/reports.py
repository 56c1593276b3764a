"""How each task's records are shown, by its name `SUITE/TASK`. A new task adds one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from PIL import Image

from wsigym.errors import InvalidArgumentError, UnknownNameError

from .evidence_table import evidence_tables
from .evipath.exploration_table import exploration_curve, exploration_tables
from .evipath.localization_plot import budget_curve
from .evipath.localization_table import localization_tables
from .records import EpisodeRecord
from .suites import EVIDENCE_TASKS
from .tables import Table, TableOptions

__all__ = ["REPORTS", "Report", "find_report"]


@dataclass(frozen=True)
class Report:
    """A task's tables, the main one first, and its budget curve."""

    tables: Callable[[Sequence[EpisodeRecord], TableOptions], list[Table]]
    curve: Callable[[Sequence[EpisodeRecord]], Image.Image]


def _no_curve(records: Sequence[EpisodeRecord]) -> Image.Image:
    raise InvalidArgumentError(
        f"{records[0].suite}/{records[0].task} has no budget, so that there is no curve to --plot."
    )


REPORTS: Mapping[str, Report] = {
    "evipath/exploration": Report(exploration_tables, exploration_curve),
    "evipath/localization": Report(localization_tables, budget_curve),
    **{task.name: Report(partial(evidence_tables, task), _no_curve) for task in EVIDENCE_TASKS},
}


def find_report(task: str) -> Report:
    """The report of `SUITE/TASK`. Raises `UnknownNameError`."""
    if task not in REPORTS:
        raise UnknownNameError("task", task, REPORTS)
    return REPORTS[task]
