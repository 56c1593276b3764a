"""`pathview/*`: the fourteen tasks with the paper's metrics; their items are built by `wsigym items build pathview`.

A trap's metric is the share answered with insufficiency (SRR); beside every other stands the share that was answered so
without need. Chance is 1/5 for options where four stand beside insufficiency; of F1 see `F1_CHANCE`.
"""

from __future__ import annotations

from dataclasses import dataclass

from wsigym.cohorts.builders.pathview import SUITE

from ..evidence_measures import ACCURACY, CHANCE, Measure
from ..evidence_task import EvidenceTask
from . import measures as m
from .published import published_mean, published_table

__all__ = ["COLUMNS", "MEASURES", "TASKS", "TRAPS"]


@dataclass(frozen=True)
class _Row:
    """A task: its `column` in the paper's table 3 (None for a trap), one line on it, its measures, the first the
    paper's."""

    name: str
    column: str | None
    summary: str
    measures: tuple[Measure, ...]


OPTION = (ACCURACY, m.OVER)
AREA = (m.F1, m.F1_TRUTH, m.F1_CHANCE, m.OVER)
BOXES = (m.DICE, m.NAMED, m.OVER)
TRAP = (m.SAFE, CHANCE)

ROWS = (
    _Row("object-grounding", "R_OGD", "box all objects of a category in a field", BOXES),
    _Row("region-classification", "R_RCL", "the dominant category of a field", OPTION),
    _Row("object-classification", "R_OCL", "the category in a box of a field", OPTION),
    _Row("object-counting", "R_OCN", "count the objects of a category", (m.MAE, m.MAE_PARSED, m.COVERAGE, m.OVER)),
    _Row("region-description", "R_RDS", "name the main objects of a field", (m.RECALL, m.NAMED, m.OVER)),
    _Row("density-localization", "R_DLO", "the quadrant of a field that is densest", AREA),
    _Row("spatial-relation", "R_SPR", "the category nearest to a box", OPTION),
    _Row("region-trap", None, "the organ of a field that tells none", TRAP),
    _Row("organ-classification", "S_ORG", "the organ of a slide", OPTION),
    _Row("lesion-grounding", "S_LGD", "box all foci of a lesion on a slide", BOXES),
    _Row("slide-object-classification", "S_OCL", "the category in a box of a slide", OPTION),
    _Row("area-estimation", "S_ARE", "the share of a slide's tissue that is of a category", AREA),
    _Row("slide-density-localization", "S_DLO", "the quadrant of a slide that is densest", AREA),
    _Row("slide-trap", None, "count cells on a macro view, which shows none", TRAP),
)

COLUMNS = {f"{SUITE}/{row.name}": row.column for row in ROWS}
MEASURES = {f"{SUITE}/{row.name}": row.measures[0] for row in ROWS}
"""The paper's metric of each task."""

TRAPS = tuple(f"{SUITE}/{row.name}" for row in ROWS if row.column is None)

MEANS = dict(zip(TRAPS, ("SRR.region_trap_mean", "SRR.slide_trap_mean"), strict=True))
"""The paper's fact on each trap: safe refusal, averaged over its models."""

TASKS = tuple(
    EvidenceTask(
        f"{SUITE}/{row.name}",
        f"{row.summary} (PathView-Bench)",
        measures=row.measures,
        details=m.details,
        published=(
            published_mean(MEANS[f"{SUITE}/{row.name}"], row.measures[0])
            if row.column is None
            else published_table(row.column, row.measures[0])
        ),
    )
    for row in ROWS
)
