"""`casescope/a1`, `a2`, `b`, `c`, `r1`, `g1`: the six tasks of CaseScope (arXiv 2611.15325).

Their items are built by `wsigym items build` from cases and an ontology (`wsigym.cohorts.builders.casescope`). Those
with options are circular. Chance of uniform guesses: a2 10 % and 1e-10 circular, b 25 % and 0.39 %, c and g1 1/n and
n^-n, r1 50 % of statements and 6.25 % of items; a1 has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wsigym.cohorts import EvidenceItem, EvidenceReference
from wsigym.cohorts.builders.casescope.tasks import BEHAVIOUR_OPTIONS

from ..evidence_measures import (
    ACCURACY_BY_ITEM,
    CIRCULAR,
    CIRCULAR_BY_ITEM,
    CIRCULAR_CHANCE,
    CONSISTENT,
    SCORE_BY_ITEM,
    TOP_LETTER,
    Measure,
)
from ..evidence_measures import CHANCE as VANILLA_CHANCE
from ..evidence_task import Details, EvidenceTask, Metric, no_details
from ..records import EpisodeRecord
from .measures import (
    CLASSES,
    COVERAGE,
    HDS,
    ITEM_ACCURACY,
    ITEM_CHANCE,
    KAPPA,
    LOOK_ALIKES,
    LOOK_ALIKES_CHANCE,
    MISS,
    OVER_CALL,
    RETENTION,
    STATEMENT_CHANCE,
    STATEMENTS,
    TOP1,
    TOP3,
    UNMAPPED,
    VANILLA,
)
from .published import published_table

__all__ = ["A1", "A2", "G1", "R1", "TASKS", "B", "C"]

CHANCES = (VANILLA_CHANCE, CIRCULAR_CHANCE)


def _graded(item: EvidenceItem, reference: EvidenceReference, answer: Any) -> Mapping[str, Metric]:
    """The class of error (N where there is no answer), Top-3, and whether the ontology knows what was named."""
    if answer is None:
        return {"error": "N", "top3": False, "unmapped": False}
    return {"error": answer["error"], "top3": answer["top3"], "unmapped": answer["entity"] is None}


def _named_look_alike(item: EvidenceItem, reference: EvidenceReference, answer: Any) -> Mapping[str, Metric]:
    """How many classic look-alikes were offered, and whether one was named."""
    alike = reference.provenance["look_alikes"]
    return {"look_alikes": len(alike), "look_alike": None if answer is None else item.options[answer] in alike}


def _behaviour(item: EvidenceItem, reference: EvidenceReference, answer: Any) -> Mapping[str, Metric]:
    """The case's class from harmless to harmful, and whether it is in situ."""
    behaviour = BEHAVIOUR_OPTIONS.index(item.options[reference.answer])
    return {"behaviour": behaviour, "in_situ": bool(reference.provenance["in_situ"])}


def _level(item: EvidenceItem, reference: EvidenceReference, answer: Any) -> Mapping[str, Metric]:
    """The place of the case's level in its group, from the lowest."""
    return {"level": reference.provenance["level"]}


def _has_three_fields(record: EpisodeRecord) -> bool:
    return record.groups.get("fields") in ("3-5", "6+")


THREE_FIELDS = (("cases of three fields or more", _has_three_fields),)


def _circular(
    name: str, summary: str, measures: tuple[Measure, ...], split_by: str, details: Details = no_details
) -> EvidenceTask:
    shown = (CIRCULAR, VANILLA, CONSISTENT, RETENTION, *measures, COVERAGE, *CHANCES, TOP_LETTER)
    return EvidenceTask(
        f"casescope/{name}",
        f"{summary} (CaseScope {name.upper()})",
        circular=True,
        measures=shown,
        details=details,
        split_by=split_by,
        compared=(CIRCULAR_BY_ITEM, ACCURACY_BY_ITEM),
        parts=THREE_FIELDS,
        published=published_table(name, shown),
    )


A1_MEASURES = (HDS, TOP1, TOP3, *CLASSES, UNMAPPED, COVERAGE)
A1 = EvidenceTask(
    "casescope/a1",
    "name the diagnosis of a case in free words (CaseScope A1)",
    measures=A1_MEASURES,
    details=_graded,
    split_by="behaviour",
    compared=(SCORE_BY_ITEM,),
    parts=THREE_FIELDS,
    published=published_table("a1", A1_MEASURES),
)
A2 = _circular(
    "a2",
    "choose the diagnosis of a case among ten",
    (LOOK_ALIKES, LOOK_ALIKES_CHANCE),
    "fields",
    _named_look_alike,
)
B = _circular("b", "choose the behaviour of a lesion among four", (MISS, OVER_CALL), "behaviour", _behaviour)
C = _circular("c", "choose the grade of a lesion among its group's levels", (KAPPA,), "grading", _level)
R1_MEASURES = (STATEMENTS, ITEM_ACCURACY, COVERAGE, STATEMENT_CHANCE, ITEM_CHANCE)
R1 = EvidenceTask(
    "casescope/r1",
    "tell which of four statements on a case are true (CaseScope R1)",
    measures=R1_MEASURES,
    split_by="level",
    compared=(SCORE_BY_ITEM,),
    parts=THREE_FIELDS,
    published=published_table("r1", R1_MEASURES),
)
G1 = _circular("g1", "choose the field that shows a finding", (), "images")

TASKS = (A1, A2, B, C, R1, G1)
