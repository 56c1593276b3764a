"""Do policies stand in the same order on two collections of cases, such as CaseScope-Teaching and -Atlas?

Each measure is computed on either collection; Spearman's rho is over policies, on values rounded as tables print them
(the paper's 0.83 over 32 models comes out so), with average ranks for ties and an interval that resamples policies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wsigym.errors import RunError
from wsigym.scoring.intervals import DRAWS, SEED, Estimate
from wsigym.scoring.ranks import rank_stability

from ..evidence_measures import Measure
from ..evidence_table import ordered_rows
from ..evidence_task import EvidenceTask
from ..records import EpisodeRecord
from ..rows import group_by, scored
from ..tables import Block, Cell, Column, Table

__all__ = ["sources_table"]

ALL = "all"


def sources_table(
    task: EvidenceTask, records: Sequence[EpisodeRecord], against: Sequence[EpisodeRecord] | None = None
) -> Table:
    """A row a policy that both collections have with all of the evidence, their mean, and Spearman's rho.

    Without `against`, the two collections are those of the records' cases (`source`). Raises `RunError` where there are
    not two, or no policy has both.
    """
    names, first, second = _collections(records, against)
    values = [_values(side, task.measures) for side in (first, second)]
    both = [player for player in values[0] if player in values[1]]
    if not both:
        raise RunError(f"no policy has episodes with all of the evidence in both {names[0]} and {names[1]}.")
    shown = [
        measure
        for measure in task.measures
        if all(isinstance(side[player][measure.key], Estimate) for side in values for player in both)
    ]
    rows: list[dict[str, Cell]] = []
    means: dict[str, Cell] = {"policy": "mean"}
    rho: dict[str, Cell] = {"policy": "Spearman"}
    for policy, endpoint in both:
        cells: dict[str, Cell] = {"policy": policy, "endpoint": endpoint}
        for measure in shown:
            for side, place in zip(values, "12", strict=True):
                cells[f"{measure.key}_{place}"] = side[policy, endpoint][measure.key]
        rows.append(cells)
    for measure in shown:
        sides = [[_number(side[player][measure.key]) for player in both] for side in values]
        if None not in sides[0] + sides[1]:
            numbers = [np.array([value for value in side if value is not None]) for side in sides]
            for each, place in zip(numbers, "12", strict=True):
                means[f"{measure.key}_{place}"] = float(each.mean())
            scores = [np.round(each * measure.scale, measure.digits) for each in numbers]
            rho[f"{measure.key}_rho"] = rank_stability(*scores)
    columns = [column for measure in shown for column in _columns(measure, names)]
    endpoint_column = (Column("endpoint", "endpoint"),) if any(endpoint for _, endpoint in both) else ()
    return Table(
        "sources",
        f"{task.name}: {names[0]} beside {names[1]}",
        (Column("policy", "policy"), *endpoint_column),
        (Block("", tuple(columns)),),
        (*rows, means, rho),
        (
            f"rho: Spearman over {len(both)} policies, of values as printed, ties on their average rank; [low, high] "
            f"resamples policies, {DRAWS:,} draws, seed {SEED}.",
            "The paper's, Teaching beside Atlas: 0.83 on A2 and 0.80 on A1 over 32 models, 0.74 on A2 over 28.",
        ),
    )


def _collections(
    records: Sequence[EpisodeRecord], against: Sequence[EpisodeRecord] | None
) -> tuple[tuple[str, str], Sequence[EpisodeRecord], Sequence[EpisodeRecord]]:
    if against is not None:
        return ("first", "second"), records, against
    groups = group_by(records, lambda record: record.groups.get("source"))
    known = {str(name): group for name, group in groups.items() if name is not None}
    if len(known) != 2:
        found = ", ".join(known) or "none"
        raise RunError(
            f"two collections are compared, and the cases are of {found}; give runs on another collection's cases with "
            "--against."
        )
    (one, first), (other, second) = known.items()
    return (one, other), first, second


def _values(
    records: Sequence[EpisodeRecord], measures: Sequence[Measure]
) -> dict[tuple[str, str | None], dict[str, Cell]]:
    """Every measure of each policy and endpoint."""
    return {
        (policy, endpoint): {measure.key: measure.of(scored(episodes)) for measure in measures}
        for (policy, endpoint, budget), episodes in ordered_rows(records)
        if budget == ALL and scored(episodes)
    }


def _number(cell: Cell) -> float | None:
    return cell.value if isinstance(cell, Estimate) else None


def _columns(measure: Measure, names: tuple[str, str]) -> list[Column]:
    label = measure.label.replace("\n", " ")
    return [
        *(
            Column(f"{measure.key}_{place}", f"{label}\n{name}", measure.digits, measure.scale)
            for place, name in zip("12", names, strict=True)
        ),
        Column(f"{measure.key}_rho", f"{label}\nrho", 2),
    ]
