"""Does a policy say "insufficient information" where it should, and only there? One row a policy, all tasks beside it.

Safe refusal is of the two traps; over-refusal of the other twelve. Insufficiency is said by its option or by a phrase
of a fixed list (`INSUFFICIENT_PHRASES`; protocol, PV-4), which is read as the option where there is one. Who declines
for another reason ("I can't help with that") is not safe in a trap, and over-refuses elsewhere. Averages weigh each
task alike (protocol, section 5.3). The paper's own averages over its models stand in the last row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wsigym.errors import RunError
from wsigym.scoring.refusals import refusals

from ..published_facts import published_facts
from ..rows import group_by, join_runs, scored
from ..run_folder import Run
from ..tables import Block, Cell, Column, Table
from .measures import is_insufficient
from .tasks import COLUMNS, MEANS, TRAPS

__all__ = ["refusals_table"]


def refusals_table(runs: Sequence[Run], *, common: bool = False) -> Table:
    """The refusals of every policy in runs of this suite. Raises `RunError` for another's, and as `join_runs` does."""
    of_task: dict[str, list[Run]] = {}
    for run in runs:
        name = f"{run.config.suite}/{run.config.task}"
        if name not in COLUMNS:
            raise RunError(f"{run.name} is a run of {name}; refusals are shown of pathview's tasks.")
        of_task.setdefault(name, []).append(run)
    records = [record for its_runs in of_task.values() for record in join_runs(its_runs, common=common)]
    rows: list[dict[str, Cell]] = []
    players = group_by(scored(records), lambda record: (record.policy, record.endpoint))
    for (policy, endpoint), episodes in players.items():
        tasks = [f"{record.suite}/{record.task}" for record in episodes]
        traps = np.array([task in TRAPS for task in tasks], np.bool_)
        # In a trap only insufficiency is safe: another refusal declines for another reason.
        said = np.array(
            [
                bool(record.metrics.get("insufficient")) if trap else is_insufficient(record)
                for record, trap in zip(episodes, traps.tolist(), strict=True)
            ],
            np.bool_,
        )
        found = refusals(said, traps, tasks)
        by_task = {**found.safe_by_task, **found.over_by_task}
        row: dict[str, Cell] = {str(task): share for task, share in by_task.items()}
        rows.append(row | {"policy": policy, "endpoint": endpoint, "over": found.over, "safe": found.safe})
    facts = published_facts("pathview_prose_facts")
    keys = {"over": "refusal.ordinary_mean", **MEANS}
    paper: dict[str, Cell] = {name: float(facts[key].value) / 100 for name, key in keys.items()}
    paper["policy"] = "models of the paper"
    named = (Column("endpoint", "endpoint"),) if any(row["endpoint"] for row in rows) else ()
    averages = (Column("over", "over-refusal", 1, 100), Column("safe", "safe refusal", 1, 100))

    def columns(names: Sequence[str]) -> tuple[Column, ...]:
        return tuple(Column(name, name.partition("/")[2].replace("-", "-\n"), 1, 100) for name in names)

    ordinary = [name for name in COLUMNS if name in of_task and name not in TRAPS]
    shown = [name for name in TRAPS if name in of_task]
    return Table(
        "refusals",
        "PathView-Bench: who declines, and where",
        (Column("policy", "policy"), *named),
        (
            Block("Averages over tasks, %", averages),
            *((Block("Safe refusal in the traps, % (higher is better)", columns(shown)),) if shown else ()),
            *((Block("Over-refusal, % (lower is better)", columns(ordinary)),) if ordinary else ()),
        ),
        (*rows, paper),
        ("Read the two together: who always declines has the best of one, who never does of the other.",),
    )
