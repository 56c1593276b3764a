"""The column of PathView-Bench's table 3 that is of a task, beside the same figure of our runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..evidence_measures import Measure
from ..evidence_table import ordered_rows
from ..published_facts import published_rows
from ..records import EpisodeRecord
from ..rows import scored
from ..tables import Block, Cell, Column, Table

__all__ = ["CONTROLS", "published_table"]

CONTROLS = {"random": "Random Choice", "frequent": "Frequent Choice"}
"""Our policies that are the paper's control rows."""


def published_table(column: str, measure: Measure) -> Callable[[Sequence[EpisodeRecord]], Table]:
    """The function from a run's records to the table: rows keyed by model and parameters, then those of the runs."""

    def table(records: Sequence[EpisodeRecord]) -> Table:
        ours: dict[str, Cell] = {}
        for (policy, endpoint, budget), episodes in ordered_rows(records):
            if budget == "all":
                name = policy if endpoint is None else f"{policy}, {endpoint}"
                ours[name] = measure.of(scored(episodes)) if scored(episodes) else None
        rows: list[dict[str, Cell]] = []
        for row in published_rows("pathview_table3_main"):
            control = next((policy for policy, name in CONTROLS.items() if name == row["model"]), None)
            cells: dict[str, Cell] = {"model": row["model"], "params": row["params"], "group": row["group"]}
            cells["paper"] = None if row[column] is None else float(row[column])
            if control is not None:
                cells["ours"] = ours.pop(control, None)
            rows.append(cells)
        rows += [{"model": name, "group": "these runs", "ours": cell} for name, cell in ours.items()]
        digits = 2 if column == "R_OCN" else 3
        return Table(
            "published",
            f"{column} of table 3 beside these runs (PathView-Bench)",
            (Column("model", "model"), Column("params", "params")),
            (Block("", (Column("group", "group"), Column("paper", "paper", digits), Column("ours", "here", digits))),),
            tuple(rows),
            ("The paper's figures are on its own items: compare with a run on the same ones only.",),
        )

    return table
