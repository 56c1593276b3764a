"""Localization queries: what is asked, how valid boxes group, and that ids give nothing away."""

from __future__ import annotations

import pickle
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from cohort_builder import NODES, SLIDE_PX, build_cohort, read_lines, write_lines

from wsigym.cohorts import Cohort, LocalizationQuery, LocalizationReference, localization_queries
from wsigym.errors import InvalidArgumentError, UnknownNameError
from wsigym.slides import Box

Queries = list[tuple[LocalizationQuery, LocalizationReference]]


def queries_of(tiny_cohort: Path, folder: Path, nodes: list[dict[str, Any]]) -> Queries:
    slides = [{"slide_id": "s1", "path": str(tiny_cohort / "s1.svs")}]
    build_cohort(folder, slides=slides, nodes=nodes, paths=[], pixels=False)
    return localization_queries(Cohort.load(folder, allow_outside=True))


def test_queries_of_a_slide(tiny_cohort: Path) -> None:
    found = localization_queries(Cohort.load(tiny_cohort))
    assert [query.slide_id for query, _ in found] == ["s1"] * 5 + ["s2"] * 5
    whole = Box(0, 0, SLIDE_PX, SLIDE_PX)
    a, a1, b = (Box.of(NODES[index]["box"]) for index in (0, 1, 4))
    assert [(query.target, query.magnification, query.search_box) for query, _ in found[:5]] == [
        ("crowded", 2.5, whole),
        ("glands", 10, a),
        ("mitosis", 40, a1),
        ("necrosis", 2.5, whole),
        ("debris", 10, b),
    ]
    assert [reference.node_ids for _, reference in found[:5]] == [("a",), ("a-1", "a-2"), ("a-1-1",), ("b",), ("b-1",)]
    assert found[1][1].boxes == (Box(300, 200, 401, 300), Box(900, 700, 350, 420))
    assert all(query.query_id == reference.query_id for query, reference in found)
    assert len({query.query_id for query, _ in found}) == len(found)


@pytest.mark.parametrize(
    ("changes", "together"),
    [
        ({}, True),
        ({"finding": "other glands"}, False),
        ({"magnification": 20}, False),
        ({"parent_id": "b"}, False),
    ],
)
def test_what_makes_valid_boxes_of_one_query(
    tiny_cohort: Path, tmp_path: Path, changes: dict[str, Any], together: bool
) -> None:
    child = {**NODES[1], "box": [300, 1300, 50, 50]}
    nodes = [NODES[0], {**NODES[4], "finding": "crowded"}, child, {**child, "node_id": "c", **changes}]
    nodes[0] = {**nodes[0], "box": [64, 1200, 900, 701]}
    found = queries_of(tiny_cohort, tmp_path, nodes)
    assert [len(reference.boxes) for _, reference in found] == ([2, 2] if together else [2, 1, 1])


def test_equal_search_boxes_of_different_parents_ask_the_same(tiny_cohort: Path, tmp_path: Path) -> None:
    """One whole-slide node and none are the same question, so either answer is right."""
    whole = {**NODES[0], "box": [0, 0, SLIDE_PX, SLIDE_PX]}
    child = {**NODES[1], "finding": "same"}
    root = {**NODES[4], "magnification": 10, "finding": "same"}
    found = queries_of(tiny_cohort, tmp_path, [whole, child, root])
    assert [reference.node_ids for _, reference in found] == [("a",), ("a-1", "b")]


def test_ids_are_stable_when_other_nodes_come_and_go(tiny_cohort: Path, tmp_path: Path) -> None:
    few = queries_of(tiny_cohort, tmp_path / "few", [dict(NODES[0]), dict(NODES[1])])
    many = queries_of(tiny_cohort, tmp_path / "many", [dict(node) for node in reversed(NODES)])
    assert {query for query, _ in few} <= {query for query, _ in many}


def test_a_query_holds_nothing_of_the_annotation_but_what_it_asks(tiny_cohort: Path, tmp_path: Path) -> None:
    """Move the answers, rename the nodes: the questions are the same to the last character."""
    shown = {query for query, _ in localization_queries(Cohort.load(tiny_cohort)) if query.slide_id == "s1"}
    nodes = [dict(node) for node in NODES]
    for node in nodes:
        node["node_id"] = "x" + node["node_id"]
        node["parent_id"] = node["parent_id"] and "x" + node["parent_id"]
    nodes[2]["box"], nodes[3]["box"], nodes[5]["box"] = [1000, 800, 350, 320], [400, 300, 9, 7], [70, 1210, 8, 8]
    moved = queries_of(tiny_cohort, tmp_path, nodes)
    assert {query for query, _ in moved} == shown
    assert {field.name for field in fields(LocalizationQuery)}.isdisjoint({"boxes", "node_ids", "path_id"})


def test_splits_and_cohorts_without_nodes(tiny_cohort: Path, tmp_path: Path) -> None:
    slides = [
        {"slide_id": "s1", "path": str(tiny_cohort / "s1.svs"), "split": "train"},
        {"slide_id": "s2", "path": str(tiny_cohort / "s2.svs"), "split": "test"},
    ]
    folder = build_cohort(tmp_path, slides=slides, pixels=False)
    write_lines(
        folder / "nodes.jsonl", [line for line in read_lines(folder / "nodes.jsonl") if line["slide_id"] == "s1"]
    )
    (folder / "paths.jsonl").unlink()
    cohort = Cohort.load(folder, allow_outside=True)
    assert len(localization_queries(cohort)) == len(localization_queries(cohort, "train")) == 5
    with pytest.raises(InvalidArgumentError, match="no annotated node on a slide of split test"):
        localization_queries(cohort, "test")
    with pytest.raises(UnknownNameError):
        localization_queries(cohort, "dev")


def test_queries_and_references_are_values(tiny_cohort: Path) -> None:
    found = localization_queries(Cohort.load(tiny_cohort))
    assert pickle.loads(pickle.dumps(found)) == found
    assert len({hash(pair) for pair in found}) == len(found)
