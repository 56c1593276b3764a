"""Random trees: a sound one always loads; one planted fault is reported once, on its line."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cohort_builder import build_cohort
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from wsigym.cohorts import Cohort
from wsigym.errors import CohortError

Lines = list[dict[str, Any]]

visible = st.characters(exclude_categories=("Cs", "Cc", "Cf", "Zl", "Zp", "Zs"))
names = st.tuples(st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=7), visible).map("".join)


@dataclass
class Forest:
    slide_ids: list[str]
    nodes: Lines
    paths: Lines

    def faults(self) -> list[tuple[str, int | None, str]]:
        """Where the faults of this cohort are, once it is written down; nothing if it loads."""
        with tempfile.TemporaryDirectory() as folder:
            slides = [{"slide_id": slide_id} for slide_id in self.slide_ids]
            build_cohort(Path(folder), slides=slides, nodes=[], paths=[], pixels=False)
            for name, lines in (("nodes", self.nodes), ("paths", self.paths)):
                text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
                (Path(folder) / f"{name}.jsonl").write_text(text, encoding="utf-8")
            try:
                cohort = Cohort.load(folder)
            except CohortError as error:
                return [(fault.file, fault.line, fault.field) for fault in error.faults]
            assert [node.model_dump() for node in cohort.nodes] == self.nodes
            assert len(cohort.paths) == len(self.paths)
            return []


@st.composite
def forests(draw: st.DrawFn) -> Forest:
    """Up to three slides with trees of up to twelve nodes, in any order of lines, and a path to each leaf."""
    slide_ids = [f"s{n}" for n in range(draw(st.integers(1, 3)))]
    nodes: Lines = []
    paths: Lines = []
    for slide_id in slide_ids:
        ids = draw(st.lists(names, min_size=1, max_size=12, unique=True))
        tree: dict[str, dict[str, Any]] = {}
        for node_id in ids:
            parent = tree[draw(st.sampled_from(list(tree)))] if tree and draw(st.booleans()) else None
            x, y, width, height = parent["box"] if parent else (-(2**20), 0, 2**21, 2**21)
            box_width, box_height = draw(st.integers(1, width)), draw(st.integers(1, height))
            left, top = draw(st.integers(0, width - box_width)), draw(st.integers(0, height - box_height))
            above = parent["magnification"] if parent else draw(st.sampled_from([0.5, 1.0, 2.5]))
            tree[node_id] = {
                "slide_id": slide_id,
                "node_id": node_id,
                "parent_id": parent["node_id"] if parent else None,
                "magnification": above * draw(st.sampled_from([1.25, 1.5])),
                "box": [x + left, y + top, box_width, box_height],
                "finding": draw(names),
            }
        nodes += tree.values()
        for node_id in ids:
            if all(node["parent_id"] != node_id for node in tree.values()):
                chain = [node_id]
                while (parent_id := tree[chain[0]]["parent_id"]) is not None:
                    chain.insert(0, parent_id)
                path_id = f"p{len(paths)}"
                paths.append({"slide_id": slide_id, "path_id": path_id, "node_ids": chain, "diagnosis": draw(names)})
    return Forest(slide_ids, draw(st.permutations(nodes)), paths)


@settings(max_examples=60, deadline=None)
@given(forests())
def test_a_sound_forest_loads(forest: Forest) -> None:
    assert forest.faults() == []


PLANTS = {
    "slide": ("slide_id", lambda node, parent: {"slide_id": "nowhere"}),
    "parent": ("parent_id", lambda node, parent: {"parent_id": "nobody " * 3}),
    "box": ("box", lambda node, parent: {"box": [parent["box"][0] - 1, *parent["box"][1:]]}),
    "magnification": ("magnification", lambda node, parent: {"magnification": parent["magnification"]}),
    "half pixel": ("box", lambda node, parent: {"box": [node["box"][0] + 0.5, *node["box"][1:]]}),
    "no text": ("finding", lambda node, parent: {"finding": ""}),
    "extra": ("note", lambda node, parent: {"note": 1}),
    "self": ("parent_id", lambda node, parent: {"parent_id": node["node_id"]}),
}
"""Kind of fault: the field to be named, and what becomes of a node with a parent."""


@pytest.mark.parametrize("kind", PLANTS)
@settings(max_examples=25, deadline=None)
@given(forest=forests(), data=st.data())
def test_a_planted_fault_is_reported_once_on_its_line(kind: str, forest: Forest, data: st.DataObject) -> None:
    field, plant = PLANTS[kind]
    children = [index for index, node in enumerate(forest.nodes) if node["parent_id"] is not None]
    if kind == "box":  # a node that moves leaves its own children behind, and those are faults too
        parents = {(node["slide_id"], node["parent_id"]) for node in forest.nodes}
        children = [at for at in children if (forest.nodes[at]["slide_id"], forest.nodes[at]["node_id"]) not in parents]
    assume(children)
    at = data.draw(st.sampled_from(children))
    node = forest.nodes[at]
    (parent,) = (
        other
        for other in forest.nodes
        if (other["slide_id"], other["node_id"]) == (node["slide_id"], node["parent_id"])
    )
    forest.nodes[at] = node | plant(node, parent)
    assert forest.faults() == [("nodes.jsonl", at + 1, field)]


@settings(max_examples=25, deadline=None)
@given(forest=forests(), data=st.data())
def test_a_line_that_is_not_there_twice(forest: Forest, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(forest.nodes) - 1))
    forest.nodes.append(forest.nodes[at])
    assert forest.faults() == [("nodes.jsonl", len(forest.nodes), "node_id")]


@settings(max_examples=25, deadline=None)
@given(forest=forests(), data=st.data())
def test_a_cycle_is_reported_once(forest: Forest, data: st.DataObject) -> None:
    """A path's first node gets the last one as its parent: a cycle of as many nodes as the path has."""
    path = data.draw(st.sampled_from(forest.paths))
    lines = {(node["slide_id"], node["node_id"]): line for line, node in enumerate(forest.nodes, start=1)}
    members = [lines[path["slide_id"], node_id] for node_id in path["node_ids"]]
    forest.nodes[members[0] - 1] = forest.nodes[members[0] - 1] | {"parent_id": path["node_ids"][-1]}
    assert forest.faults() == [("nodes.jsonl", min(members), "parent_id")]
