from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from casescope_builder import TRUE, build_casescope, case, entity, ontology, statements

from wsigym.cohorts.builders.casescope.cases import CaseLine, load_sources, read_sources, source_faults
from wsigym.errors import CohortError


def faults(folder: Path, **sources: Any) -> list[str]:
    return [str(fault) for fault in read_sources(build_casescope(folder, **sources))[1]]


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 10, 15, 23, 100])
def test_at_most_eight_fields_span_the_range(count: int) -> None:
    fields = [{"image": {"file": f"{place}.png"}} for place in range(count)]
    shown = CaseLine.model_validate(case(count=1) | {"fields": fields}).shown()
    wanted = range(count) if count <= 8 else np.round(np.linspace(0, count - 1, 8)).astype(int)
    assert [field.image.file for field in shown] == [f"{place}.png" for place in wanted]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"entity": "Nothing"}, r"cases\.jsonl:1: entity: no entity 'Nothing'"),
        ({"entity": "keyword tumour"}, r"entity: .*it is a synonym of 'Key'"),
        ({"alternates": ["F1", "Fx"]}, r"alternates\.1: no entity 'Fx'"),
        ({"alternates": ["Key"]}, r"alternates: 'Key' is the entity itself"),
        ({"fields": []}, r"fields: .*at least 1"),
        ({"level": "Four"}, r"level: 'Four' is no level of 'scale'; allowed are One, Two, Three"),
        ({"level": "One"}, r"level: .*'Key' has the fixed level 'Two'"),
        ({"entity": "F1", "level": "One"}, r"level: .*'F1' has no grading group"),
        ({"site": ""}, r"site: "),
        ({"unit": "patient"}, r"unit: "),
        ({"case_id": "a/b"}, r"case_id: "),
        ({"fields": [{"image": {"file": "a.png"}, "caption": "x"}]}, r"fields\.0\.caption: no such field"),
    ],
)
def test_each_fault_of_a_case_is_one_error(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    [fault] = faults(tmp_path, cases=[case(**changes)], told=[])
    assert fault.startswith("casescope/cases.jsonl:1: ")
    assert re.search(said, fault), fault


def test_fields_rise_in_power(tmp_path: Path) -> None:
    lines = case()
    lines["fields"].reverse()
    [fault] = faults(tmp_path, cases=[lines], told=[])
    assert "fields go from low to high power, and 10x stands after 20x" in fault


def test_ids_are_unique_and_files_are_there(tmp_path: Path) -> None:
    assert "line 1 already" in faults(tmp_path, cases=[case(), case()], told=[])[0]
    assert "holds no case" in faults(tmp_path, cases=[], told=[])[0]
    (tmp_path / "casescope" / "cases.jsonl").unlink()
    assert [fault.message for fault in source_faults(tmp_path)] == ["no such file; items need cases"]
    assert source_faults(tmp_path / "elsewhere") == []


def test_a_faulty_ontology_is_not_held_against_cases(tmp_path: Path) -> None:
    found = faults(tmp_path, entities=[entity("Keys", he="?"), entity("A")], told=[])
    assert len(found) == 1
    with pytest.raises(CohortError, match=r"ontology\.jsonl:1: he"):
        load_sources(tmp_path)


STATEMENT_FAULTS: list[tuple[int, dict[str, Any], str]] = [
    (0, {"case_id": "zqnone"}, r":1: case_id: no case 'zqnone'"),
    (0, {"true": 1}, r":1: true: "),
    (0, {"level": "middle"}, r":1: level: "),
    (0, {"basis": "F1"}, r":1: .*a true one has none"),
    (2, {"basis": None}, r":3: basis: is missing"),
    (2, {"basis": "Keyword tumour"}, r":3: basis: .*is no entity"),
    (0, {"statement": "key cells fill the wide field"}, ""),  # a name of three characters may stand in any text
    (0, {"statement": "keyword tumours fill the field"}, r":1: statement: names 'Keyword tumour'"),
    (0, {"statement": "a twin-like growth fills the field"}, r":1: statement: names 'Twin'"),
    (3, {"statement": "the partner's cells lie in mucin"}, r":4: statement: names 'Partner'"),
    (0, {"statement": "cells of the left knee lie here"}, r":1: statement: names 'left knee'"),
    (0, {"statement": "cells fill it; small nests too"}, r":1: statement: is more than one sentence"),
    (0, {"statement": "Cells fill it. Small nests too"}, r":1: statement: is more than one sentence"),
    (0, {"statement": "cells"}, r":1: statement: the true ones of low power have 18 .* the false ones 28"),
    (0, {"statement": "no round cells in the field"}, r":1: statement: .* 1 are negated, of the false ones 0"),
    (2, {"statement": "square cells fill the field"}, r":3: statement: .*mirrors the true 'round cells fill"),
    (0, {"span": "round cells"}, r":1: span: 'round cells' does not stand in the caption"),
]


@pytest.mark.parametrize(("place", "changes", "said"), STATEMENT_FAULTS)
def test_each_fault_of_a_statement_is_one_error(tmp_path: Path, place: int, changes: dict[str, Any], said: str) -> None:
    told = statements()
    told[place] |= changes
    found = [fault for fault in faults(tmp_path, told=told) if "true and" not in fault]  # a group that lost one
    assert len(found) == bool(said)
    if said:
        assert found[0].startswith("casescope/statements.jsonl:")
        assert re.search(said, found[0]), found


def test_two_are_true_and_two_false(tmp_path: Path) -> None:
    told = statements()
    told[0] = told[0] | {"true": False, "basis": "F1"}
    [fault] = faults(tmp_path, told=told)
    assert "1 true and 3 false statements" in fault
    assert len(faults(tmp_path, told=statements()[:3])) == 1
    assert faults(tmp_path, told=statements() + statements(level="high") + statements(level=None)) == []


def test_negations_may_be_as_many_and_negated_mirrors_are_seen(tmp_path: Path) -> None:
    told = statements()
    told[0]["statement"], told[2]["statement"] = "no round cells fill the field", "no spindles cross the whole view"
    assert faults(tmp_path, told=told) == []
    told = statements()
    told[2]["statement"], told[0]["statement"] = "nests do not lie in pale stroma", "the pale field has no nests here"
    told[1]["statement"] = "small nests lie in pale stroma"
    assert any("mirrors" in fault for fault in faults(tmp_path, told=told))


def test_a_span_may_stand_for_a_basis(tmp_path: Path) -> None:
    told = statements()
    told[2] = {**told[2], "basis": None, "span": "short spindles"}
    captioned = case(caption="Here are short spindles.")
    assert faults(tmp_path, told=told, cases=[captioned]) == []


def test_what_statements_may_not_name_is_what_the_seed_offers(tmp_path: Path) -> None:
    """Of many at the last priority two are drawn: which, the seed says; that one may not be named then."""
    fewer = [line for line in ontology() if line.get("entity") not in ("S2", "S3")]
    lines = [*fewer, *(entity(f"Longname{n}", family="beta", systems=["bone"]) for n in range(9))]
    told = statements()
    told[0]["statement"] = "longname3 cells fill the field"
    build_casescope(tmp_path, entities=lines, told=told)
    seeds = [bool(read_sources(tmp_path, seed)[1]) for seed in range(40)]
    assert any(seeds)
    assert not all(seeds)
    assert TRUE[0] not in str(read_sources(tmp_path)[1])
