"""The ontology of diagnoses: one JSON object a line of `casescope/ontology.jsonl`, of three kinds.

    {"entity": "Melanoma", "behaviour": "malignant", "lineage": "melanocytic", "family": ..., "systems": ["skin"], ...}
    {"exclusion": "squamous in situ", "kind": "equivalent", "members": ["Bowen disease", ...]}
    {"grading": "DCIS nuclear grade", "levels": ["Low", "Intermediate", "High"]}

Every fault is found in one reading: fields, names given twice, names that are no entity, cycles of parents, empty
groups.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ValidationError, model_validator

from wsigym.errors import Fault

from ...files import json_fault, parse_json, read_text, validation_faults
from ...models import Line, Name
from ...references import folded

__all__ = [
    "BEHAVIOURS",
    "ONTOLOGY",
    "Behaviour",
    "EntityLine",
    "ExclusionGroup",
    "GradingGroup",
    "Names",
    "Ontology",
    "folded",
    "nearest",
    "read_ontology",
    "sized",
]

ONTOLOGY = "casescope/ontology.jsonl"

Behaviour = Literal["non-neoplastic", "benign", "intermediate", "malignant"]

BEHAVIOURS: tuple[Behaviour, ...] = ("non-neoplastic", "benign", "intermediate", "malignant")
"""From harmless to harmful; intermediate is borderline, in situ or precursor."""


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    seen: dict[str, str] = {}
    for name in names:
        earlier = seen.setdefault(folded(name), name)
        if earlier is not name:
            raise ValueError(f"{name!r} stands there twice")
    return names


Names = Annotated[tuple[Name, ...], AfterValidator(_distinct)]


def sized(low: int, high: int | None = None) -> AfterValidator:
    """A list of `low` to `high` entries, counted once its entries are valid, so that a faulty one is one fault."""

    def check(values: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(values) < low:
            raise ValueError(f"at least {low} needed, {len(values)} found")
        if high is not None and len(values) > high:
            raise ValueError(f"at most {high} allowed, {len(values)} found")
        return values

    return AfterValidator(check)


class EntityLine(Line):
    """A diagnosis.

    `behaviour_sure` is False for codes that are debated (left out of task B). `systems` are the organ systems where it
    occurs. `he` says whether H&E alone tells it: Y yes, P suggests it, N does not. `parent` is what it is a subtype of.
    `look_alikes` are classic confusions, always offered; `partners` are curated differentials, offered first; either
    counts both ways. `grading` is an ordinal group, and `level` the entity's level where it has a fixed one.
    """

    entity: Name
    synonyms: Names = ()
    behaviour: Behaviour
    behaviour_sure: bool = True
    in_situ: bool = False
    lineage: Name
    family: Name
    systems: Annotated[Names, sized(1)]
    he: Literal["Y", "P", "N"]
    parent: Name | None = None
    look_alikes: Names = ()
    partners: Names = ()
    grading: Name | None = None
    level: Name | None = None

    @model_validator(mode="after")
    def _whole(self) -> EntityLine:
        if self.in_situ and self.behaviour != "intermediate":
            raise ValueError(f"in_situ is a kind of intermediate behaviour, and the behaviour is {self.behaviour}")
        if self.level is not None and self.grading is None:
            raise ValueError("a level needs its grading group")
        return self


class ExclusionGroup(Line):
    """Entities that may not be offered against each other; grading siblings and parents with subtypes never are."""

    exclusion: Name
    kind: Literal["equivalent", "subtype", "site variant", "inseparable"]
    members: Annotated[Names, sized(2)]


class GradingGroup(Line):
    """An ordinal scale, its levels from the lowest to the highest."""

    grading: Name
    levels: Annotated[Names, sized(2, 4)]


_KINDS: Mapping[str, type[Line]] = {"entity": EntityLine, "exclusion": ExclusionGroup, "grading": GradingGroup}


@dataclass(frozen=True)
class Ontology:
    """Entities by name in the order of the file, exclusion groups, and grading groups by name."""

    entities: Mapping[str, EntityLine]
    exclusions: Sequence[ExclusionGroup]
    gradings: Mapping[str, GradingGroup]

    def names(self, entity: str) -> tuple[str, ...]:
        """The entity's name and synonyms."""
        line = self.entities[entity]
        return (line.entity, *line.synonyms)

    def look_alikes(self, entity: str) -> frozenset[str]:
        """Its classic confusions, from either side."""
        return self._look_alikes.get(entity, frozenset())

    def partners(self, entity: str) -> frozenset[str]:
        """Its curated differentials, from either side; look-alikes are among them."""
        return self._partners.get(entity, frozenset()) | self.look_alikes(entity)

    def excluded(self, entity: str) -> frozenset[str]:
        """What may not be offered against it: itself, its groups' members, what it is a subtype of, its subtypes, and
        the other levels of its grading group."""
        line = self.entities[entity]
        found = {entity, *self._shared.get(entity, ()), *self.above(entity)}
        found |= {name for name in self.entities if entity in self.above(name)}
        if line.grading is not None:
            found |= {name for name, other in self.entities.items() if other.grading == line.grading}
        return frozenset(found)

    def above(self, entity: str) -> tuple[str, ...]:
        """Its parent, the parent's parent and so on."""
        found: list[str] = []
        parent = self.entities[entity].parent
        while parent is not None:
            found.append(parent)
            parent = self.entities[parent].parent
        return tuple(found)

    @cached_property
    def _look_alikes(self) -> Mapping[str, frozenset[str]]:
        return _both_ways((line.entity, other) for line in self.entities.values() for other in line.look_alikes)

    @cached_property
    def _partners(self) -> Mapping[str, frozenset[str]]:
        return _both_ways((line.entity, other) for line in self.entities.values() for other in line.partners)

    @cached_property
    def _shared(self) -> Mapping[str, frozenset[str]]:
        return _both_ways(pair for group in self.exclusions for pair in combinations(group.members, 2))


def _both_ways(pairs: Iterable[tuple[str, str]]) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for one, other in pairs:
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return {name: frozenset(others) for name, others in found.items()}


# -- reading ------------------------------------------------------------------------------------------------------


@dataclass
class _Read:
    """The valid lines with their numbers, and the entities, gradings and so on that broken lines would have named."""

    entities: list[tuple[int, EntityLine]] = field(default_factory=list)
    exclusions: list[tuple[int, ExclusionGroup]] = field(default_factory=list)
    gradings: list[tuple[int, GradingGroup]] = field(default_factory=list)
    excused: set[str] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)

    def fault(self, line: int, where: str, message: str) -> None:
        self.faults.append(Fault(ONTOLOGY, line, where, message))


def read_ontology(root: Path) -> tuple[Ontology, list[Fault]]:
    """The ontology of a cohort and every fault of its file. With faults, it holds what can be made of the valid lines,
    without parents that go in a circle, and is for finding further faults only."""
    read = _Read()
    if not os.path.lexists(root / ONTOLOGY):
        read.faults.append(Fault(ONTOLOGY, None, "", "no such file; cases need an ontology"))
    else:
        _read_lines(root, read)
    entities = _entities(read)
    gradings = _named(read, read.gradings, "grading")
    _named(read, read.exclusions, "exclusion")
    _check_references(read, entities, gradings)
    whole = _without_cycles(read, entities)
    exclusions = [
        group.model_copy(update={"members": tuple(name for name in group.members if name in whole)})
        for _, group in read.exclusions
    ]
    return Ontology(whole, tuple(exclusions), gradings), sorted(read.faults, key=lambda fault: fault.line or 0)


def _read_lines(root: Path, read: _Read) -> None:
    text, unreadable = read_text(root / ONTOLOGY, ONTOLOGY)
    read.faults += unreadable
    for number, line in enumerate((text or "").split("\n"), start=1):
        if not line.strip():
            continue
        content: Any = None
        try:
            content = parse_json(line)
            kinds = [
                kind for kind in ("exclusion", "entity", "grading") if isinstance(content, dict) and kind in content
            ]
            if "entity" in kinds:
                kinds = ["entity"]  # an entity's grading is a field of it
            if len(kinds) != 1:
                read.fault(number, "", f"an object with one of {', '.join(_KINDS)} is needed; found {line[:120]!r}")
                continue
            model = _KINDS[kinds[0]].model_validate(content)
        except ValidationError as error:
            read.faults += validation_faults(error, ONTOLOGY, number)
            read.excused |= {name for key in _KINDS if isinstance(name := content.get(key), str)}
            continue
        except ValueError as error:
            read.faults.append(json_fault(error, ONTOLOGY, number))
            continue
        lines: Mapping[str, list[Any]] = {
            "entity": read.entities,
            "exclusion": read.exclusions,
            "grading": read.gradings,
        }
        lines[kinds[0]].append((number, model))
    if text is not None and not read.entities and not read.faults:
        read.faults.append(Fault(ONTOLOGY, None, "", "holds no entity; at least one is needed"))


def _entities(read: _Read) -> dict[str, EntityLine]:
    """Entities by name; a name or synonym that two share is a fault of the later one."""
    entities: dict[str, EntityLine] = {}
    owners: dict[str, tuple[str, int]] = {}
    for number, line in read.entities:
        for place, name in enumerate((line.entity, *line.synonyms)):
            owner, at = owners.setdefault(folded(name), (line.entity, number))
            if at != number or (place and folded(name) == folded(line.entity)):
                where = f"synonyms.{place - 1}" if place else "entity"
                read.fault(
                    number, where, f"{name!r} is a name of {owner!r} on line {at} already; a name has one entity"
                )
        entities.setdefault(line.entity, line)
    return entities


def _named(read: _Read, lines: Sequence[tuple[int, Any]], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    first: dict[str, int] = {}
    for number, group in lines:
        name = getattr(group, kind)
        if name in found:
            read.fault(number, kind, f"{name!r} stands on line {first[name]} already; a group has one line")
            continue
        found[name], first[name] = group, number
    return found


def _check_references(read: _Read, entities: Mapping[str, EntityLine], gradings: Mapping[str, GradingGroup]) -> None:
    for number, line in read.entities:
        named = [("parent", line.parent)] if line.parent is not None else []
        for where in ("look_alikes", "partners"):
            named += [(f"{where}.{place}", name) for place, name in enumerate(getattr(line, where))]
        for where, name in named:
            if name == line.entity:
                read.fault(number, where, f"{name!r} names itself")
            else:
                _check_entity(read, entities, number, where, name)
        if line.grading is not None and line.grading not in gradings and line.grading not in read.excused:
            read.fault(number, "grading", f"no grading group {line.grading!r}; {nearest(line.grading, gradings)}")
        group = gradings.get(line.grading or "")
        if line.level is not None and group is not None and line.level not in group.levels:
            levels = ", ".join(group.levels)
            read.fault(number, "level", f"{line.level!r} is no level of {line.grading!r}; allowed are {levels}")
    for number, excluding in read.exclusions:
        for place, name in enumerate(excluding.members):
            _check_entity(read, entities, number, f"members.{place}", name)


def _check_entity(read: _Read, entities: Mapping[str, EntityLine], number: int, where: str, name: str) -> None:
    if name not in entities and name not in read.excused:
        read.fault(number, where, f"no entity {name!r}; {nearest(name, entities)}")


def nearest(name: str, known: Iterable[str]) -> str:
    """What to say after a name that is none: the nearest one, where one is near, else some of those there are."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    listed = ", ".join(map(repr, names[:5])) + (" ..." if len(names) > 5 else "")
    return f"there are {listed}" if names else "there are none"


def _without_cycles(read: _Read, entities: Mapping[str, EntityLine]) -> dict[str, EntityLine]:
    """The entities, without parents that are no entity or lead back; each cycle is one fault, at its first line."""
    lines = {line.entity: number for number, line in reversed(read.entities)}
    told: set[str] = set()
    whole = dict(entities)
    for name, line in entities.items():
        if line.parent is not None and (line.parent == name or line.parent not in entities):
            whole[name] = line.model_copy(update={"parent": None})
            continue
        cycle = _cycle(entities, name)
        if cycle:
            whole[name] = line.model_copy(update={"parent": None})
            if not told.intersection(cycle):
                told.update(cycle)
                read.fault(lines[name], "parent", f"goes in a circle: {' -> '.join([*cycle, name])}; break it")
    return whole


def _cycle(entities: Mapping[str, EntityLine], start: str) -> list[str]:
    """The names from `start` up to the one whose parent is `start` again; empty where it is in no cycle of several."""
    path = [start]
    while True:
        parent = entities[path[-1]].parent
        if parent == start:
            return path if len(path) > 1 else []
        if parent is None or parent not in entities or parent in path:
            return []
        path.append(parent)
