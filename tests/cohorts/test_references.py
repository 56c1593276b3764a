"""Entities that free diagnoses are graded against, beside each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from evidence_builder import SUITE, TASK, build_evidence, item, reference

from wsigym.cohorts import Cohort
from wsigym.cohorts.item_files import load_items
from wsigym.errors import CohortError

ONTOLOGY = f"references/{SUITE}/ontology.json"


def entity(name: str, **changes: Any) -> dict[str, Any]:
    return {"entity": name, "behaviour": "benign", "lineage": "l", "family": "f", **changes}


def cohort_with(folder: Path, *entities: dict[str, Any]) -> Path:
    asked = item(answer={"kind": "diagnosis", "words": "Answer."}, options=[])
    build_evidence(folder, [asked], [reference(answer={"diagnosis": "naevus"})])
    (folder / ONTOLOGY).write_text(json.dumps(entities))
    return folder


@pytest.mark.parametrize(
    ("entities", "said"),
    [
        ([entity("cyst", parent="lesion")], "1.parent: no entity 'lesion'"),
        ([entity("cyst", synonyms=["Naevus."])], "1.synonyms.0: 'Naevus.' is a name of 'naevus', entry 0, already"),
        ([entity("naevus")], "1.entity: 'naevus' is a name of 'naevus', entry 0, already"),
        (
            [entity("cyst", parent="scar"), entity("scar", parent="cyst"), entity("keloid", parent="scar")],
            "1.parent: goes in a circle: cyst -> scar -> cyst; break it",
        ),
        ([entity("cyst", parent="cyst")], "1.parent: goes in a circle: cyst -> cyst"),
    ],
)
def test_entities_that_cannot_stand_beside_each_other(tmp_path: Path, entities: list[Any], said: str) -> None:
    folder = cohort_with(tmp_path, entity("naevus"), *entities)
    (fault,) = Cohort.faults_of(folder)
    assert str(fault).startswith(f"{ONTOLOGY}: {said}")
    with pytest.raises(CohortError):
        load_items(Cohort.load(folder), SUITE, TASK)


def test_entities_with_parents_are_no_fault(tmp_path: Path) -> None:
    assert Cohort.faults_of(cohort_with(tmp_path, entity("naevus", parent="cyst"), entity("cyst"))) == []
