from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from casescope_builder import build_casescope, entity, ontology
from hypothesis import given
from hypothesis import strategies as st

from wsigym.cohorts import Cohort
from wsigym.cohorts.builders.casescope.ontology import folded, read_ontology


def faults(folder: Path, lines: list[Any], **sources: Any) -> list[str]:
    build_casescope(folder, entities=lines, cases=sources.get("cases", []), told=[])
    return [str(fault) for fault in read_ontology(folder)[1]]


def test_relations_count_both_ways_and_subtypes_follow(tmp_path: Path) -> None:
    lines = [*ontology(), entity("Deeper", parent="Xsubtype")]
    assert faults(tmp_path, lines) == []
    read = read_ontology(tmp_path)[0]
    assert read.look_alikes("Twin") == {"Key"}
    assert read.partners("Key") == {"Twin", "Partner"}
    assert read.above("Deeper") == ("Xsubtype", "Key")
    excluded = {"Key", "Xgroup", "Xparent", "Xsubtype", "Deeper", "Xsibling", "Debated"}
    assert read.excluded("Key") == excluded
    assert read.excluded("Deeper") == {"Deeper", "Xsubtype", "Key"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (entity("A", parent="Nobody"), r":2: parent: no entity 'Nobody'"),
        (entity("A", parent="Bse"), r":2: parent: no entity 'Bse'; did you mean 'Base'"),
        (entity("A", parent="A"), r":2: parent: 'A' names itself"),
        (entity("A", look_alikes=["Base", "Nobody"]), r":2: look_alikes\.1: no entity 'Nobody'"),
        (entity("A", partners=["Nobody"]), r":2: partners\.0: no entity"),
        (entity("Base"), r":2: entity: 'Base' is a name of 'Base' on line 1"),
        (entity("A", synonyms=["other name"]), r":2: synonyms\.0: 'other name' is a name of 'Base' on line 1"),
        (entity("A", synonyms=["x", "X"]), r":2: synonyms: 'X' stands there twice"),
        (entity("A", synonyms=["a"]), r":2: synonyms\.0: 'a' is a name of 'A' on line 2"),
        (entity("A", behaviour="bad"), r":2: behaviour: .*'non-neoplastic'"),
        (entity("A", he="maybe"), r":2: he: "),
        (entity("A", in_situ=True), r":2: .*in_situ is a kind of intermediate"),
        (entity("A", systems=[]), r":2: systems: "),
        (entity("A", grading="none"), r":2: grading: no grading group 'none'"),
        (entity("A", level="One"), r":2: .*a level needs its grading group"),
        (entity("A", colour="red"), r":2: colour: no such field"),
        ({"exclusion": "g", "kind": "equivalent", "members": []}, r":2: members: .*at least 2"),
        ({"exclusion": "g", "kind": "equivalent", "members": ["Base"]}, r":2: members: .*at least 2"),
        ({"exclusion": "g", "kind": "equivalent", "members": ["Base", "Nobody"]}, r":2: members\.1: no entity"),
        ({"exclusion": "g", "kind": "odd", "members": ["Base", "Base2"]}, r":2: kind: "),
        ({"grading": "s", "levels": ["One"]}, r":2: levels: .*at least 2"),
        ({"grading": "s", "levels": ["a", "b", "c", "d", "e"]}, r":2: levels: .*at most 4"),
        ({"grading": "s", "levels": ["One", "one"]}, r":2: levels: 'one' stands there twice"),
        ({"thing": 1}, r":2: an object with one of entity, exclusion, grading is needed"),
        ([1], r":2: an object with one of"),
    ],
)
def test_each_fault_is_one_error_with_its_place(tmp_path: Path, line: Any, said: str) -> None:
    [fault] = faults(tmp_path, [entity("Base", synonyms=["Other name"]), line])
    assert fault.startswith("casescope/ontology.jsonl:2: ")
    assert re.search(said, fault), fault


def test_a_level_is_one_of_its_group(tmp_path: Path) -> None:
    group = {"grading": "s", "levels": ["One", "Two"]}
    [fault] = faults(tmp_path, [entity("A", grading="s", level="Three"), group])
    assert ":1: level: 'Three' is no level of 's'; allowed are One, Two" in fault
    [fault] = faults(tmp_path, [entity("A", grading="s", level="One"), group, group])
    assert ":3: grading: 's' stands on line 2 already" in fault


def test_a_cycle_is_told_once_with_its_way(tmp_path: Path) -> None:
    lines = [entity("Out", parent="A"), entity("A", parent="B"), entity("B", parent="C"), entity("C", parent="A")]
    [fault] = faults(tmp_path, lines)
    assert ":2: parent: goes in a circle: A -> B -> C -> A" in fault
    assert read_ontology(tmp_path)[0].above("Out") == ("A",)  # and nothing that reads on goes round for ever


def test_all_faults_are_listed_and_a_broken_line_excuses_its_name(tmp_path: Path) -> None:
    lines = [entity("A", he="?"), entity("B", parent="A"), entity("C", parent="D", look_alikes=["E"])]
    assert [fault.split(": ")[:2] for fault in faults(tmp_path, lines)] == [
        ["casescope/ontology.jsonl:1", "he"],
        ["casescope/ontology.jsonl:3", "parent"],
        ["casescope/ontology.jsonl:3", "look_alikes.0"],
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no entity"),
        (b"{", ":1: not JSON"),
        (b"\xff", "not UTF-8"),
        (b'{"entity": "A", "entity": "B"}', "twice|more than once"),
    ],
)
def test_files_that_are_none(tmp_path: Path, content: bytes, said: str) -> None:
    build_casescope(tmp_path, told=[])
    (tmp_path / "casescope" / "ontology.jsonl").write_bytes(content)
    [fault] = map(str, read_ontology(tmp_path)[1])
    assert re.search(said, fault)
    (tmp_path / "casescope" / "ontology.jsonl").unlink()
    assert "no such file" in str(read_ontology(tmp_path)[1][0])


def test_cohort_check_lists_what_is_wrong_with_the_sources(tmp_path: Path) -> None:
    build_casescope(tmp_path)
    assert Cohort.faults_of(tmp_path) == []
    lines = [json.loads(line) for line in (tmp_path / "casescope" / "ontology.jsonl").read_text().splitlines()]
    build_casescope(tmp_path, entities=[*lines, entity("Twin"), entity("Z", parent="Nobody")])
    assert [fault.field for fault in Cohort.faults_of(tmp_path)] == ["entity", "parent"]


@given(st.text())
def test_folding_is_settled(text: str) -> None:
    assert folded(folded(text)) == folded(text)
