"""Every task by its name `SUITE/TASK`, in one table. A suite is a paper, a task one of its tests."""

from __future__ import annotations

from collections.abc import Mapping

from wsigym.errors import InvalidArgumentError, UnknownNameError

from .casescope.tasks import TASKS as CASESCOPE
from .evipath.evidence import INTEGRATION, INTERPRETATION, VERIFICATION
from .evipath.exploration import Exploration
from .evipath.localization import Localization
from .pathview.tasks import TASKS as PATHVIEW
from .task import Task

__all__ = ["EVIDENCE_TASKS", "TASKS", "find_task"]

EVIDENCE_TASKS = (INTERPRETATION, VERIFICATION, INTEGRATION, *PATHVIEW, *CASESCOPE)
"""Tasks whose items lie in files."""

_ALL: tuple[Task, ...] = (Localization(), Exploration(), *EVIDENCE_TASKS)

TASKS: Mapping[str, Task] = {task.name: task for task in _ALL}


def find_task(name: str) -> Task:
    """The task of `SUITE/TASK`, or of `SUITE` where that suite has a single one.

    Raises `UnknownNameError` with a near match, or `InvalidArgumentError` where a suite alone does not say which.
    """
    suite, slash, _ = name.partition("/")
    of_suite = [known for known in TASKS if known.startswith(f"{suite}/")]
    if name in TASKS:
        return TASKS[name]
    if not of_suite:
        raise UnknownNameError("suite", suite, sorted({known.partition("/")[0] for known in TASKS}))
    if slash:
        raise UnknownNameError("task", name, of_suite)
    if len(of_suite) > 1:
        raise InvalidArgumentError(f"suite {suite!r} has {len(of_suite)} tasks; name one: {', '.join(of_suite)}.")
    return TASKS[of_suite[0]]
