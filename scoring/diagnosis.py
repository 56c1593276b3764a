"""Grades of a free diagnosis against an ontology, and the hierarchical diagnosis score (CaseScope A1).

The deterministic grade of a diagnosis is 1 for the reference entity by any of its names, an accepted alternate, or a
subtype of it; 0.5 for another entity of the same family and the same behaviour; else 0. With a judge's grade g in
{0, 1, 2} the paper takes max(g / 2, deterministic); without one (here the rule, a judge is a plug) the score is a lower
bound of the published, and columns say `HDS-onto`. To keep it one, an answer names an entity only where nothing stands
beside the name that could change the diagnosis (`diagnosis_names.py` lists what may): "melanoma in situ", "no melanoma"
and "melanoma cannot be excluded" are not melanoma.

    HDS    100 * mean of the grades
    Top-1  100 * share of grades that are 1
    Top-3  100 * share of cases whose diagnosis or one of two differentials has the grade 1

Every answer is in one of six classes, whose shares add up to 1: exact (grade 1), B wrong behaviour (which overrides the
family), F within the family, L another family of the lineage, W wrong lineage, N no answer. So HDS = exact + F / 2. A
diagnosis that maps to no entity is in W, and counted as `unmapped` too.

Chance: there is none of free text; the prior is the share of the commonest entity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError, UnknownNameError

from .answers import fold
from .diagnosis_names import DiagnosisNames

__all__ = [
    "DIFFERENTIALS",
    "ERROR_CLASSES",
    "Diagnosis",
    "DiagnosisReport",
    "DiagnosisTable",
    "Entity",
    "ErrorClass",
    "diagnosis_report",
]

ErrorClass = Literal["exact", "F", "L", "W", "B", "N"]

ERROR_CLASSES: tuple[ErrorClass, ...] = ("exact", "F", "L", "W", "B", "N")
"""In the order of the paper's table."""

DIFFERENTIALS = 2
"""Differentials of an answer that count for Top-3; further ones are ignored."""


@dataclass(frozen=True)
class Entity:
    """A diagnosis: its name, other names for it, and where it stands. `parent` is the entity it is a subtype of."""

    name: str
    behaviour: str
    lineage: str
    family: str
    synonyms: tuple[str, ...] = ()
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One graded answer: `grade` 0, 0.5 or 1; its class of error; whether Top-3 holds; the entity it was read as."""

    grade: float
    error: ErrorClass
    top3: bool
    entity: str | None


class DiagnosisTable:
    """Entities by every name they go by. Raises `InvalidArgumentError` for a name of two, or an unknown parent."""

    def __init__(self, entities: Iterable[Entity]) -> None:
        listed = list(entities)
        self._entities = {entity.name: entity for entity in listed}
        owners: dict[str, Entity] = {}
        for entity in listed:
            if entity.parent is not None and entity.parent not in self._entities:
                raise InvalidArgumentError(f"{entity.name!r} has the parent {entity.parent!r}, which is no entity.")
            for name in (entity.name, *entity.synonyms):
                other = owners.setdefault(fold(name), entity)
                if other is not entity:
                    raise InvalidArgumentError(f"{name!r} is a name of {other.name!r} and {entity.name!r}; need one.")
        self._names = DiagnosisNames((each.name, (each.name, *each.synonyms), each.family) for each in listed)

    def entity(self, diagnosis: str) -> Entity | None:
        """The one entity that a diagnosis names, and says nothing else that could change it; None else.

        So for none, for several ("melanoma or naevus"), and for one that is denied, doubted or narrowed in words that
        the ontology does not know.
        """
        name = self._names.named(diagnosis)
        return None if name is None else self._entities[name]

    def grade(
        self,
        reference: str,
        diagnosis: str | None,
        differentials: Sequence[str] = (),
        *,
        alternates: Sequence[str] = (),
        judged: int | None = None,
    ) -> Diagnosis:
        """Grade an answer; `diagnosis` is None or blank where there is none. `alternates` are accepted entities.

        `judged` is a judge's grade 0, 1 or 2. Raises `UnknownNameError` where the reference or an alternate is no
        entity, `InvalidArgumentError` for another grade.
        """
        if judged not in (None, 0, 1, 2):
            raise InvalidArgumentError(f"a judge's grade is {judged}; allowed are 0, 1 and 2.")
        right = [self._known(name) for name in (reference, *alternates)]
        answers = (diagnosis or "", *differentials[:DIFFERENTIALS])
        exact = [self._is_right(self.entity(text), right) for text in answers]
        if not answers[0].strip():
            return Diagnosis(0.0, "N", any(exact), None)
        entity = self.entity(answers[0])
        error = "exact" if exact[0] or judged == 2 else self._error(entity, right[0])
        grade = {"exact": 1.0, "F": 0.5}.get(error, 0.0)
        if judged == 1 and grade < 0.5:
            error, grade = "F", 0.5
        return Diagnosis(grade, error, any(exact) or error == "exact", None if entity is None else entity.name)

    def _known(self, name: str) -> Entity:
        if name not in self._entities:
            raise UnknownNameError("entity", name, self._entities)
        return self._entities[name]

    def _is_right(self, entity: Entity | None, right: Sequence[Entity]) -> bool:
        """Whether an entity is a right one, or a subtype of one with the same behaviour."""
        seen: set[str] = set()
        above = entity
        while entity is not None and above is not None and above.name not in seen:
            for one in right:
                if above.name == one.name and (above is entity or entity.behaviour == one.behaviour):
                    return True
            seen.add(above.name)
            above = None if above.parent is None else self._entities[above.parent]
        return False

    @staticmethod
    def _error(entity: Entity | None, reference: Entity) -> ErrorClass:
        if entity is None:
            return "W"
        if entity.behaviour != reference.behaviour:
            return "B"
        if entity.family == reference.family:
            return "F"
        return "L" if entity.lineage == reference.lineage else "W"


@dataclass(frozen=True)
class DiagnosisReport:
    """Percentages as in the paper's table; None without answers. `shares` has every class of `ERROR_CLASSES`.

    `grades` (n,), `exact` (n,) and `top3` (n,) are the items' values in 0..1, for intervals over cases.
    """

    hds: float | None
    top1: float | None
    top3_share: float | None
    shares: dict[ErrorClass, float]
    unmapped: float | None
    grades: npt.NDArray[np.float64]
    exact: npt.NDArray[np.bool_]
    top3: npt.NDArray[np.bool_]


def diagnosis_report(diagnoses: Sequence[Diagnosis]) -> DiagnosisReport:
    """The figures of graded answers, one a case."""
    grades = np.array([diagnosis.grade for diagnosis in diagnoses], dtype=np.float64)
    errors = np.array([ERROR_CLASSES.index(diagnosis.error) for diagnosis in diagnoses], dtype=np.intp)
    top3 = np.array([diagnosis.top3 for diagnosis in diagnoses], dtype=np.bool_)
    unmapped = np.array([one.entity is None and one.error != "N" for one in diagnoses], dtype=np.bool_)
    n = len(diagnoses)
    counts = np.bincount(errors, minlength=len(ERROR_CLASSES))
    return DiagnosisReport(
        hds=float(100 * grades.mean()) if n else None,
        top1=float(100 * (grades == 1).mean()) if n else None,
        top3_share=float(100 * top3.mean()) if n else None,
        shares={name: float(100 * count / n) for name, count in zip(ERROR_CLASSES, counts, strict=True)} if n else {},
        unmapped=float(100 * unmapped.mean()) if n else None,
        grades=grades,
        exact=grades == 1,
        top3=top3,
    )
