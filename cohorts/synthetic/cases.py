"""CaseScope's sources of a synthetic cohort: a case a lesion, its fields cut from the slide, statements on it.

What is written follows from the cohort's trees and paths alone; the ontology is that of `ontology.jsonl` beside this
file. A statement says what is drawn, or what is drawn elsewhere. Cases of patients in turn are of two collections.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import Any

from ..builders.casescope.cases import CASES, STATEMENTS
from ..builders.casescope.ontology import ONTOLOGY, GradingGroup, read_ontology
from ..builders.casescope.statements import LENGTH_TOLERANCE
from ..cohort import Cohort
from ..models import DiagnosticPath, Node
from .entities import CYTOLOGY, ENTITIES, Entity

__all__ = ["ARCHITECTURE", "write_casescope"]

COLLECTIONS = ("teaching", "atlas")

SITES = {
    "breast": "upper outer quadrant",
    "colon": "sigmoid",
    "kidney": "upper pole",
    "liver": "segment VI",
    "lung": "right upper lobe",
    "prostate": "peripheral zone",
    "skin": "forearm",
}
"""Where a specimen is from, in words that stand in no diagnosis' name, as such a name would be told by its site."""

ARCHITECTURE = {
    "nests": (
        "ragged islands of cells lie in pale fibrous tissue",
        "broad cell islands with pointed edges break up the field",
    ),
    "files": ("single cells are scattered through dense collagen", "thin cords of cells run along collagen bundles"),
    "ducts": (
        "widened round spaces with sharp rims are packed with cells",
        "dilated spaces keep their smooth outlines",
    ),
    "acini": ("rounded lobules of small even spaces lie close together", "small open tubes sit in orderly clusters"),
    "infiltrate": (
        "patchy blue collections of small cells part the tissue",
        "loose sheets of small dark cells spread between structures",
    ),
    "glands": (
        "irregular angulated lumens crowd and replace the tissue",
        "back-to-back tubes with pointed corners fill the field",
    ),
    "tubules": ("dark crowded tubes form a raised zone", "long parallel tubes are packed in a dark plaque"),
    "plates": ("thick plates of cells form an expansile rounded mass", "broad slabs several cells wide bulge outwards"),
    "round-nests": (
        "even round nests of cells fill a defined area",
        "a symmetrical growth of rounded clusters is seen",
    ),
}
"""What a lesion's field looks like at low power, by how it is drawn."""

_LARGE = ("atypical", "vesicular", "stratified", "histiocyte")
"""Kinds of large nuclei. A false statement on nuclei is of the other size, so that it is plainly false."""


def write_casescope(folder: Path) -> None:
    """Write `casescope/ontology.jsonl`, `cases.jsonl` and `statements.jsonl` for the synthetic cohort in `folder`."""
    (folder / "casescope").mkdir()
    text = (resources.files("wsigym.cohorts.synthetic") / "ontology.jsonl").read_text("utf-8")
    (folder / ONTOLOGY).write_text(text, encoding="utf-8")
    gradings = read_ontology(folder)[0].gradings
    known = {entity.diagnosis: (organ, entity) for organ, entities in ENTITIES.items() for entity in entities}
    grading_of = {
        line["entity"]: line.get("grading") for line in map(json.loads, text.splitlines()) if "entity" in line
    }
    cases: list[dict[str, Any]] = []
    statements: list[dict[str, Any]] = []
    for case, paths in _cases(Cohort.load(folder)):
        grading = grading_of[case["entity"]]
        if grading is not None:
            case["level"] = _level(paths, gradings[grading])
        cases.append(case)
        statements += _statements(case["case_id"], *known[case["entity"]])
    for name, lines in ((CASES, cases), (STATEMENTS, statements)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _cases(cohort: Cohort) -> Iterator[tuple[dict[str, Any], list[DiagnosticPath]]]:
    """A case for each lesion, which is the first node of paths, with those paths."""
    patients = list(dict.fromkeys(entry.patient_id for entry in cohort.slides))
    for entry in cohort.slides:
        nodes = {node.node_id: node for node in cohort.nodes_of(entry.slide_id)}
        lesions: dict[str, list[DiagnosticPath]] = {}
        for path in cohort.paths:
            if path.slide_id == entry.slide_id:
                lesions.setdefault(path.node_ids[0], []).append(path)
        for root, paths in lesions.items():
            seen = dict.fromkeys(node_id for path in paths for node_id in path.node_ids)
            yield (
                {
                    "case_id": f"{entry.slide_id}-{root}",
                    "entity": paths[0].diagnosis,
                    "fields": [_field(node) for node in sorted(map(nodes.__getitem__, seen), key=_power)],
                    "site": SITES[str(entry.organ)],
                    "system": entry.organ,
                    "source": COLLECTIONS[patients.index(entry.patient_id) % 2],
                    "patient_id": entry.patient_id,
                    "split": entry.split,
                },
                paths,
            )


def _power(node: Node) -> float:
    return node.magnification


def _field(node: Node) -> dict[str, Any]:
    image = {"slide_id": node.slide_id, "box": node.box.to_list(), "magnification": node.magnification}
    return {"image": image, "finding": node.finding}


def _level(paths: Sequence[DiagnosticPath], group: GradingGroup) -> str:
    """The highest grade that was seen, on the group's scale: low is its first level and high its last."""
    grades = ("low", "intermediate", "high")
    highest = max(grades.index(path.details.grade or "low") for path in paths)
    return group.levels[highest * (len(group.levels) - 1) // 2]


def _statements(case_id: str, organ: str, entity: Entity) -> Iterator[dict[str, Any]]:
    """Four a level: two that are true of the entity, and the two of another one, alike in length. As either two belong
    together, the words alone do not tell which are true."""
    large = [kind for kind in CYTOLOGY if (kind in _LARGE) != (entity.kind in _LARGE)]
    nuclei = {kind: tuple(f"the cells have {text}" for text in texts) for kind, texts in CYTOLOGY.items()}
    for level, told, right, wrong in (
        ("low", ARCHITECTURE, entity.field, [name for name in ARCHITECTURE if name != entity.field]),
        ("high", nuclei, entity.kind, large),
    ):
        rng = random.Random(hashlib.sha256(f"{case_id}\0{level}".encode()).digest())
        near = [name for name in wrong if _alike(told[name], told[right])]
        chosen = rng.choice(near)
        basis = _basis(organ, "field" if level == "low" else "kind", chosen)
        for text in told[right]:
            yield {"case_id": case_id, "level": level, "statement": text, "true": True}
        for text in told[chosen]:
            yield {"case_id": case_id, "level": level, "statement": text, "true": False, "basis": basis}


def _alike(one: Sequence[str], other: Sequence[str]) -> bool:
    shorter, longer = sorted(fmean(map(len, texts)) for texts in (one, other))
    return shorter >= (1 - LENGTH_TOLERANCE) * longer


def _basis(organ: str, part: str, name: str) -> str:
    """An entity that is drawn so, of the organ where it has one."""
    organs = [organ, *(other for other in ENTITIES if other != organ)]
    drawn = [entity.diagnosis for each in organs for entity in ENTITIES[each] if getattr(entity, part) == name]
    return drawn[0]
