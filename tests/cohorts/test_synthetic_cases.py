"""CaseScope's sources of a synthetic cohort: nothing is told by words alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from wsigym.cohorts import Cohort
from wsigym.cohorts.builders.casescope.cases import names_in, source_faults
from wsigym.cohorts.builders.casescope.ontology import folded
from wsigym.cohorts.builders.casescope.statements import LENGTH_TOLERANCE
from wsigym.cohorts.synthetic.cases import ENTITY_OF, FOCI_TOLD, NESTS_TOLD, SITES, write_casescope
from wsigym.cohorts.synthetic.entities import ENTITIES, FOCI, NESTS
from wsigym.cohorts.synthetic.findings import kind_of
from wsigym.cohorts.synthetic.slide import draw_slide, source_of

LEVELS = (("low", 10, NESTS, NESTS_TOLD, "nests"), ("high", 40, FOCI, FOCI_TOLD, "foci"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trees of twelve slides and the cases on them, without the slides' pixels."""
    folder = tmp_path_factory.mktemp("cases")
    sources = [source_of(0, index) for index in range(12)]
    drawn = [draw_slide(source, 0, 2048)[1] for source in sources]
    manifest = {"format": "wsigym-cohort/1", "name": "cases", "slides": [source.manifest() for source in sources]}
    (folder / "cohort.json").write_text(json.dumps(manifest), encoding="utf-8")
    for name in ("nodes", "paths"):
        told = [json.dumps(line) + "\n" for annotations in drawn for line in getattr(annotations, name)]
        (folder / f"{name}.jsonl").write_text("".join(told), encoding="utf-8")
    write_casescope(folder)
    return folder


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "casescope" / f"{name}.jsonl").read_text("utf-8").splitlines()]


def test_files_have_no_fault(folder: Path) -> None:
    assert source_faults(folder) == []


def test_statements_are_of_the_entitys_kinds_and_true_where_they_are_drawn(folder: Path) -> None:
    cohort, cases = Cohort.load(folder), {case["case_id"]: case for case in lines(folder, "cases")}
    drawn: dict[str, set[str]] = {case_id: set() for case_id in cases}
    for path in cohort.paths:
        nodes = {node.node_id: node for node in cohort.nodes_of(path.slide_id)}
        found = drawn.setdefault(f"{path.slide_id}-{path.node_ids[0]}", set())
        found |= {kind_of(nodes[path.node_ids[1]].finding, NESTS), kind_of(nodes[path.node_ids[2]].finding, FOCI)}
    told = {text: kind for table in (NESTS_TOLD, FOCI_TOLD) for kind, texts in table.items() for text in texts}
    statements = lines(folder, "statements")
    assert {line["level"] for line in statements} == {"low", "high"}
    for line in statements:
        entity, kind = ENTITY_OF[cases[line["case_id"]]["entity"]], told[line["statement"]]
        assert kind in (*entity.nests, *entity.foci)
        assert line["true"] is (kind in drawn[line["case_id"]])
        power = {"low": 10, "high": 40}[line["level"]]
        assert power in {field["image"]["magnification"] for field in cases[line["case_id"]]["fields"]}


def test_what_is_told_of_kinds_may_stand_beside_each_other() -> None:
    """Any kind of an entity beside any other: alike in length, and no name of a diagnosis or a site in it."""
    text = (resources.files("wsigym.cohorts.synthetic") / "ontology.jsonl").read_text("utf-8")
    known = [line for line in map(json.loads, text.splitlines()) if "entity" in line]
    names = [name for line in known for name in (line["entity"], *line.get("synonyms", ()))]
    forbidden = {folded(name): name for name in (*names, *SITES.values()) if len(name) >= 4}
    for *_, told, own in LEVELS:
        for entities in ENTITIES.values():
            for entity in entities:
                kinds = [kind for kind in getattr(entity, own) if kind in told]
                for one, other in permutations(kinds, 2):
                    first, second = (fmean(map(len, told[kind])) for kind in (one, other))
                    assert min(first, second) >= (1 - LENGTH_TOLERANCE) * max(first, second)
                untold = set(getattr(entity, own)) - set(kinds)
                assert untold <= {"knot"} or len(getattr(entity, own)) == 1  # the only kind is always drawn
        for texts in told.values():
            assert len(texts) == 2
            for each in texts:
                assert not names_in(each, forbidden)


def test_a_finding_is_tied_to_one_of_several_fields_of_one_power(folder: Path) -> None:
    figures = [case for case in lines(folder, "cases") if any("finding" in field for field in case["fields"])]
    assert len(figures) >= 4
    for case in figures:
        assert {field["image"]["magnification"] for field in case["fields"]} == {40}
        assert len(case["fields"]) >= 2
        findings = [field["finding"] for field in case["fields"] if "finding" in field]
        kinds = [kind_of(finding, FOCI) for finding in findings]
        assert len(set(kinds)) == len(kinds)


def test_fields_of_one_power_stand_in_no_order_of_the_slide(folder: Path) -> None:
    """Else the last focus would be the answer where the first two are twins, which are tied to nothing."""
    order = {(node.slide_id, tuple(node.box.to_list())): node.node_id for node in Cohort.load(folder).nodes}
    rising = Counter()
    for case in lines(folder, "cases"):
        images = [field["image"] for field in case["fields"]]
        if {image["magnification"] for image in images} == {40} and len(images) > 1:
            nodes = [order[image["slide_id"], tuple(image["box"])] for image in images]
            rising[nodes == sorted(nodes)] += 1
    assert set(rising) == {True, False}


def test_no_entity_has_many_more_cases_than_others_of_its_organ(folder: Path) -> None:
    of_organ: dict[str, Counter[str]] = {}
    for case in lines(folder, "cases"):
        of_organ.setdefault(case["system"], Counter())[case["entity"]] += 1
    assert any(len(count) > 1 for count in of_organ.values())
    for count in of_organ.values():
        assert max(count.values()) <= min(count.values()) + 1


@pytest.mark.parametrize(
    ("finding", "told", "kind"),
    [
        ("Three mitotic figures among crowded enlarged nuclei", FOCI, "mitoses"),
        ("Group of roughly 15 pleomorphic nuclei, dark and irregular, several with nucleoli", FOCI, "pleomorphic"),
        ("Packed round nests with uniform round nuclei, partly smeared by crush artefact", NESTS, "bland-nests"),
        ("Tightly packed irregular nests with dark nuclei of uneven size, about 90 um wide", NESTS, "nests"),
    ],
)
def test_the_kind_is_read_from_the_finding(finding: str, told: Mapping[str, Sequence[str]], kind: str) -> None:
    assert kind_of(finding, told) == kind


def test_a_finding_of_no_kind_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing of note"):
        kind_of("nothing of note", FOCI)
