"""One row a policy across EviPathBench: what it sees (T1, T2), finds (T3A, T3B) and concludes (T4), side by side.

A row joins the runs of one policy (and endpoint) on the suite's tasks. Evidence tasks count with all of their evidence;
localization and exploration at each budget that was played, the base budget where there are several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wsigym.errors import RunError
from wsigym.scoring.hit_rates import micro_rate
from wsigym.scoring.intervals import Estimate

from ..evidence_measures import accuracy
from ..evidence_table import paired_accuracy, parts_of
from ..published_facts import published_facts
from ..records import EpisodeRecord
from ..rows import interval_note, join_runs, mean_of, scored, unit_of
from ..run_folder import Run
from ..tables import Block, Cell, Column, Table

__all__ = ["profile_table"]

T1, T2, T4 = "evipath/interpretation", "evipath/verification", "evipath/integration"
T3A, T3B = "evipath/localization", "evipath/exploration"

EXPERTS = {"t1": "expert.T1", "t2": "expert.T2", "t4": "expert.T4"}
CENTRE = "search-centre"


def profile_table(runs: Sequence[Run], *, common: bool = False) -> Table:
    """The profile of every policy in runs of this suite. Raises `RunError` for another's, and as `join_runs` does."""
    records: dict[str, list[EpisodeRecord]] = {}
    of_task: dict[str, list[Run]] = {}
    for run in runs:
        of_task.setdefault(f"{run.config.suite}/{run.config.task}", []).append(run)
    for name, its_runs in of_task.items():
        if name not in (T1, T2, T3A, T3B, T4):
            raise RunError(f"{its_runs[0].name} is a run of {name}; a profile joins the tasks of evipath.")
        records[name] = join_runs(its_runs, common=common)
    everything = [record for found in records.values() for record in found]
    players = dict.fromkeys((record.policy, record.endpoint) for record in everything)
    rows: list[dict[str, Cell]] = [
        {"policy": policy, "endpoint": endpoint} | _cells(records, policy, endpoint) for policy, endpoint in players
    ]
    scales = list(dict.fromkeys(name for task in (T1, T2) for name in parts_of(records.get(task, []), "magnification")))
    facts = published_facts("evipath_prose_facts")
    rows += [
        {"policy": "chance", "t1": 0.25, "t2": 0.25, "t4": 0.25},
        {"policy": "experts (paper)"} | {key: _share(facts[fact].value) for key, fact in EXPERTS.items()},
        {"policy": f"{CENTRE} (paper)", "t3a": str(facts["T3A.parent_centre_iou.10x40x"].value)},
    ]
    blocks = (
        Block(
            "Accuracy in %; mean IoU; positives kept at the last magnification, %",
            (
                Column("t1", "T1 image\nto text", 1, 100),
                Column("t2", "T2 text\nto image", 1, 100),
                Column("t3a", "T3A\nmIoU", 3),
                Column("t3b", "T3B\nkept, %", 2, 100),
                Column("t4", "T4 inte-\ngration", 1, 100),
                Column("gap", "T2 - T1", 1, 100, signed=True),
            ),
        ),
        *(
            Block(f"{label} by magnification, %", tuple(Column(f"{key}_{name}", name, 1, 100) for name in scales))
            for key, label in (("t1", "T1"), ("t2", "T2"))
            if scales
        ),
    )
    endpoint = (Column("endpoint", "endpoint"),) if any(record.endpoint for record in everything) else ()
    estimates = [cell for row in rows for cell in row.values() if isinstance(cell, Estimate)]
    return Table(
        "profile",
        "EviPathBench: a profile of each policy",
        (Column("policy", "policy"), *endpoint),
        blocks,
        tuple(rows),
        (
            interval_note(everything, estimates),
            "T2 - T1: percentage points, paired over the findings that both ask; * where the interval excludes 0.",
            "The paper's figures are on its own slides (arXiv 2607.19261); its search-centre is at 10x and 40x.",
        ),
    )


def _cells(records: Mapping[str, Sequence[EpisodeRecord]], policy: str, endpoint: str | None) -> dict[str, Cell]:
    def of(task: str, budget: str) -> list[EpisodeRecord]:
        mine = [record for record in records.get(task, ()) if (record.policy, record.endpoint) == (policy, endpoint)]
        budgets = {record.budget for record in mine}
        chosen = budget if budget in budgets else next(iter(sorted(budgets)), None)
        return scored(record for record in mine if record.budget == chosen)

    cells: dict[str, Cell] = {}
    evidence = {"t1": of(T1, "all"), "t2": of(T2, "all"), "t4": of(T4, "all")}
    for key, found in evidence.items():
        cells[key] = accuracy(found) if found else None
    for key in ("t1", "t2"):
        for name, group in parts_of(evidence[key], "magnification").items():
            cells[f"{key}_{name}"] = accuracy(group)
    if evidence["t1"] and evidence["t2"]:
        cells["gap"] = paired_accuracy(evidence["t2"], evidence["t1"])
    localization = of(T3A, "base")
    cells["t3a"] = mean_of(localization, lambda record: record.score) if localization else None
    cells["t3b"] = _kept(of(T3B, "K=6,3,2"))
    return cells


def _kept(episodes: Sequence[EpisodeRecord]) -> Cell:
    """The unconditional rate at the last magnification; None without episodes."""
    if not episodes:
        return None
    scales = [name.removeprefix("positives_") for name in episodes[0].metrics if name.startswith("positives_")]
    last = max(scales, key=lambda scale: float(scale.removesuffix("x")))
    parts, wholes = (
        [float(record.metrics[f"{name}_{last}"] or 0) for record in episodes] for name in ("retained", "positives")
    )
    return micro_rate(parts, wholes, [unit_of(record) for record in episodes])


def _share(value: float | str) -> float:
    return float(value) / 100
