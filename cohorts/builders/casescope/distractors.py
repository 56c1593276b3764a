"""Which nine diagnoses stand beside the right one in A2: drawn from the ontology alone, no model mines them.

Every classic look-alike is in, unless excluded. The rest is drawn by priority, in a seeded order within each:

    1  curated differential partner, look-alikes among them
    2  same family
    3  same organ system, lineage and behaviour
    4  same organ system and lineage
    5  same organ system
    6  same lineage

Excluded are what shares an exclusion group with the right one or an accepted alternate, its parents and subtypes, and
the other levels of its grading group.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

from .cases import CaseLine, Sources

__all__ = ["DISTRACTORS", "Distractor", "distractors"]

DISTRACTORS = 9


@dataclass(frozen=True)
class Distractor:
    """An entity, the priority 1 to 6 that it was drawn by, whether it is a classic look-alike and of the family."""

    entity: str
    priority: int
    look_alike: bool
    same_family: bool


def distractors(sources: Sources, case: CaseLine, seed: int) -> list[Distractor] | None:
    """Nine distractors of a case, look-alikes first; None where fewer are left after the exclusions."""
    ontology = sources.ontology
    excluded = frozenset().union(*(ontology.excluded(name) for name in (case.entity, *case.alternates)))
    family = ontology.entities[case.entity].family
    alike = ontology.look_alikes(case.entity)
    found = [
        Distractor(name, priority, name in alike, line.family == family)
        for name, line in sorted(ontology.entities.items())
        if name not in excluded and (priority := _priority(sources, case, name)) is not None
    ]
    random.Random(hashlib.sha256(f"{seed}\0{case.case_id}\0distractors".encode()).digest()).shuffle(found)
    found.sort(key=lambda one: (not one.look_alike, one.priority))  # stable: the lots stay within a priority
    return found[:DISTRACTORS] if len(found) >= DISTRACTORS else None


def _priority(sources: Sources, case: CaseLine, name: str) -> int | None:
    ontology = sources.ontology
    right, other = ontology.entities[case.entity], ontology.entities[name]
    system = not set(other.systems).isdisjoint(sources.systems(case))
    lineage = other.lineage == right.lineage
    tiers = (
        name in ontology.partners(case.entity),
        other.family == right.family,
        system and lineage and other.behaviour == right.behaviour,
        system and lineage,
        system,
        lineage,
    )
    return tiers.index(True) + 1 if True in tiers else None
