"""What PathView-Bench prints on a task beside the same figure of our runs: the task's column of its table 3; of the two
traps, which are in a figure of its paper alone, the mean over its models."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..evidence_measures import Measure
from ..evidence_table import ordered_rows
from ..published_facts import published_facts, published_rows
from ..records import EpisodeRecord
from ..rows import scored
from ..tables import Block, Cell, Column, Table

__all__ = ["CONTROLS", "published_mean", "published_table"]

CONTROLS = {"random": "Random Choice", "frequent": "Frequent Choice"}
"""Our policies that are the paper's control rows."""

FACTS = "pathview_prose_facts"

OWN_ITEMS = "The paper's figures are on its own items: compare with a run on the same ones only."


def published_table(column: str, measure: Measure) -> Callable[[Sequence[EpisodeRecord]], Table]:
    """The function from a run's records to the table: rows keyed by model and parameters, then those of the runs."""

    def table(records: Sequence[EpisodeRecord]) -> Table:
        ours = _ours(records, measure)
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
            (OWN_ITEMS,),
        )

    return table


def published_mean(fact: str, measure: Measure) -> Callable[[Sequence[EpisodeRecord]], Table]:
    """The function from a run's records to the table of a trap: the mean over the paper's models, then our rows."""

    def table(records: Sequence[EpisodeRecord]) -> Table:
        rows: list[dict[str, Cell]] = [
            {"model": "mean over the paper's models", "paper": float(published_facts(FACTS)[fact].value) / 100},
            *({"model": name, "ours": cell} for name, cell in _ours(records, measure).items()),
        ]
        return Table(
            "published",
            f"{measure.label.capitalize()} beside these runs, % (PathView-Bench)",
            (Column("model", "model"),),
            (Block("", (Column("paper", "paper", 1, 100), Column("ours", "here", 1, 100))),),
            tuple(rows),
            (
                f"The paper prints no {measure.label} by model, only this mean; `wsigym table RUN... --refusals` shows "
                "all its means beside over-refusal.",
                OWN_ITEMS,
            ),
        )

    return table


def _ours(records: Sequence[EpisodeRecord], measure: Measure) -> dict[str, Cell]:
    """The figure of each policy and endpoint that was shown all of the evidence."""
    ours: dict[str, Cell] = {}
    for (policy, endpoint, budget), episodes in ordered_rows(records):
        if budget == "all":
            name = policy if endpoint is None else f"{policy}, {endpoint}"
            ours[name] = measure.of(scored(episodes)) if scored(episodes) else None
    return ours
