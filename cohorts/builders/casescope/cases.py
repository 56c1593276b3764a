"""Cases and statements of CaseScope: a JSON object a line of `casescope/cases.jsonl` and `casescope/statements.jsonl`.

A case is some H&E fields of one lesion (or of one disease), its site where that is told, and its entity in the
ontology. Reading finds every fault of the three files; what is needed of statements says `statements.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from wsigym.errors import CohortError, Fault

from ...files import Lines, read_lines
from ...items import ImageSpec
from ...models import FileStem, Line, Name
from .ontology import ONTOLOGY, Names, Ontology, folded, nearest, read_ontology, sized

__all__ = [
    "CASES",
    "MAX_FIELDS",
    "STATEMENTS",
    "CaseField",
    "CaseLine",
    "Sources",
    "StatementLine",
    "load_sources",
    "read_sources",
    "source_faults",
]

CASES, STATEMENTS = "casescope/cases.jsonl", "casescope/statements.jsonl"

MAX_FIELDS = 8
"""Fields shown of a case: the input budget of all models."""


class CaseField(Line):
    """One field: its image, and the finding that a caption ties to it and to no other, where one does."""

    image: ImageSpec
    finding: Name | None = None


class CaseLine(Line):
    """A case.

    `fields` go from low to high power. `entity` and the accepted `alternates` are names of the ontology. `system` is
    the organ system under which it is filed (by default its entity's), `site` the specimen's, told to the model; None
    where it is filed under several. `level` is its grade where the entity's grading group has one and the entity no
    fixed level. `unit`: "lesion" shows one lesion of one case, "disease" figures of one disease, whoever had it.
    `caption` is the text from which spans of statements are taken. `source` names the collection.
    """

    case_id: FileStem
    entity: Name
    alternates: Names = ()
    fields: Annotated[tuple[CaseField, ...], sized(1)]
    site: Name | None = None
    system: Name | None = None
    level: Name | None = None
    unit: Literal["lesion", "disease"] = "lesion"
    source: Name | None = None
    caption: Name | None = None
    patient_id: Name | None = None
    split: Literal["train", "val", "test"] | None = None

    @model_validator(mode="after")
    def _rising(self) -> CaseLine:
        if any(field.image.tiles for field in self.fields):
            raise ValueError("a field is a file or a box of a slide, not tiles")
        known = [field.image.magnification for field in self.fields if field.image.magnification is not None]
        for one, other in pairwise(known):
            if other < one:
                raise ValueError(f"fields go from low to high power, and {other:g}x stands after {one:g}x")
        return self

    def shown(self) -> tuple[CaseField, ...]:
        """At most eight fields spanning the range: those at round(linspace(0, n - 1, 8))."""
        last = len(self.fields) - 1
        if last < MAX_FIELDS:
            return self.fields
        return tuple(self.fields[round(place * last / (MAX_FIELDS - 1))] for place in range(MAX_FIELDS))


class StatementLine(Line):
    """A labelled statement on a case: at `level` low (architecture) or high (cytology), or on the whole case.

    `basis` is the entity, or the level of a grading group, that a false statement would fit. `span` is the part of the
    case's caption that a statement restates or contradicts.
    """

    case_id: Name
    level: Literal["low", "high"] | None = None
    statement: Name
    true: Annotated[bool, Field(strict=True)]
    basis: Name | None = None
    span: Name | None = None

    @model_validator(mode="after")
    def _based(self) -> StatementLine:
        if self.true and self.basis is not None:
            raise ValueError("a basis is what a false statement would fit; a true one has none")
        return self


@dataclass(frozen=True)
class Sources:
    """What the items are built from. `cases` and `statements` are (line, content) in the order of their files."""

    ontology: Ontology
    cases: Sequence[tuple[int, CaseLine]]
    statements: Sequence[tuple[int, StatementLine]]

    def level(self, case: CaseLine) -> tuple[str, int] | None:
        """The case's grading group and the place of its level there, None where it has none."""
        line = self.ontology.entities[case.entity]
        level = line.level or case.level
        if line.grading is None or level is None:
            return None
        return line.grading, self.ontology.gradings[line.grading].levels.index(level)

    def systems(self, case: CaseLine) -> tuple[str, ...]:
        """The organ systems under which the case is filed."""
        return (case.system,) if case.system is not None else self.ontology.entities[case.entity].systems


def load_sources(root: Path, seed: int = 0) -> Sources:
    """The sources of a cohort, held against the options that `seed` draws. Raises `CohortError` with every fault."""
    sources, faults = read_sources(root, seed)
    if faults:
        raise CohortError(faults)
    return sources


def source_faults(root: Path) -> list[Fault]:
    """Every fault of a cohort's `casescope/` files; none where there are none of them."""
    if not any(os.path.lexists(root / name) for name in (ONTOLOGY, CASES, STATEMENTS)):
        return []
    return read_sources(root)[1]


def read_sources(root: Path, seed: int = 0) -> tuple[Sources, list[Fault]]:
    """The sources as far as they are valid, and every fault of the three files."""
    from .statements import statement_faults  # which needs what a case's options are, and so this module

    ontology, faults = read_ontology(root)
    told: list[Fault] = []
    cases = read_lines(root, CASES, CaseLine, told)
    statements = read_lines(root, STATEMENTS, StatementLine, told)
    if not os.path.lexists(root / CASES):
        told.append(Fault(CASES, None, "", "no such file; items need cases"))
    elif not cases.valid and not told:
        told.append(Fault(CASES, None, "", "holds no case; at least one is needed"))
    # An entity on a line that is itself faulty may be the one that is meant.
    usable = not any(fault.line is not None or not ontology.entities for fault in faults)
    told += _case_faults(cases, ontology, usable)
    kept = [(line, case) for line, case in cases.valid if case.entity in ontology.entities]
    sources = Sources(ontology, kept, statements.valid)
    if not faults and not told:
        told += statement_faults(sources, seed)
    return sources, faults + told


def _case_faults(cases: Lines[CaseLine], ontology: Ontology, usable: bool) -> list[Fault]:
    """`usable` tells whether what the ontology lacks is held against cases."""
    faults: list[Fault] = []
    first: dict[str, int] = {}
    for line, case in cases.valid:
        at = first.setdefault(case.case_id, line)
        if at != line:
            faults.append(
                Fault(CASES, line, "case_id", f"{case.case_id!r} stands on line {at} already; ids are unique")
            )
        if not usable:
            continue
        named = [("entity", case.entity), *((f"alternates.{n}", name) for n, name in enumerate(case.alternates))]
        for where, name in named:
            if name not in ontology.entities:
                faults.append(Fault(CASES, line, where, f"no entity {name!r} in {ONTOLOGY}; {_meant(name, ontology)}"))
        if case.entity in case.alternates:
            faults.append(Fault(CASES, line, "alternates", f"{case.entity!r} is the entity itself"))
        faults += [Fault(CASES, line, "level", message) for message in _level_fault(case, ontology)]
    return faults


def _meant(name: str, ontology: Ontology) -> str:
    for entity in ontology.entities:
        if folded(name) in map(folded, ontology.names(entity)):
            return f"it is a synonym of {entity!r}"
    return nearest(name, ontology.entities)


def _level_fault(case: CaseLine, ontology: Ontology) -> list[str]:
    line = ontology.entities.get(case.entity)
    if case.level is None or line is None:
        return []
    if line.grading is None:
        return [f"{case.level!r} is given, and {line.entity!r} has no grading group"]
    levels = ontology.gradings[line.grading].levels
    if case.level not in levels:
        return [f"{case.level!r} is no level of {line.grading!r}; allowed are {', '.join(levels)}"]
    if line.level not in (None, case.level):
        return [f"{case.level!r} is given, and {line.entity!r} has the fixed level {line.level!r}"]
    return []


def without_names(text: str, names: Sequence[str], put: str) -> str:
    """The text with `put` in place of every name, whole words in whatever case, the longest first."""
    if not names:
        return text
    alternatives = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<!\w)(?:{alternatives})(?:e?s)?(?!\w)", put, text, flags=re.IGNORECASE)


def names_in(text: str, names: Mapping[str, str]) -> list[str]:
    """Those of `names` (folded -> as written) whose words stand in the text one after another, plural or not."""
    words = f" {folded(text)} "
    return [name for fold, name in names.items() if fold and re.search(rf" {re.escape(fold)}(?:e?s)? ", words)]
