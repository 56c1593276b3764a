"""Nodes to QuPath and back, and what is refused on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cohort_builder import NODES, build_cohort, read_lines
from hypothesis import given
from hypothesis import strategies as st

from wsigym.cohorts import Cohort, Node
from wsigym.cohorts.export import export_qupath
from wsigym.cohorts.importers import import_nodes, read_nodes
from wsigym.cohorts.writing import node_feature, write_features
from wsigym.errors import AnnotationError, CohortError, InvalidArgumentError
from wsigym.slides import Box


def feature(box: list[float], name: str = "f", metadata: Any = None, **properties: Any) -> dict[str, Any]:
    x, y, width, height = box
    ring = [[x, y], [x + width, y], [x + width, y + height], [x, y + height], [x, y]]
    return {
        "type": "Feature",
        "id": "PathAnnotationObject",
        "geometry": {"type": "Polygon", "coordinates": [ring]},
        "properties": {
            "name": name,
            "metadata": {"magnification": "10"} if metadata is None else metadata,
            **properties,
        },
    }


def read(tmp_path: Path, *features: Any, slide_box: Box | None = None) -> list[Node]:
    path = tmp_path / "s1.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return read_nodes(path, "s1", slide_box=slide_box)


def at(magnification: float, **more: str) -> dict[str, str]:
    return {"magnification": str(magnification), **more}


def test_the_default_parent_is_the_smallest_box_around_it_of_lower_magnification(tmp_path: Path) -> None:
    nodes = read(
        tmp_path,
        feature([0, 0, 1000, 1000], "large", at(2.5)),
        feature([0, 0, 500, 500], "small", at(2.5)),
        feature([0, 0, 400, 400], "sibling", at(10)),
        feature([10, 10, 50, 50], "inner", at(10)),
        feature([600, 600, 50, 50], "apart", at(10)),
        feature([20, 20, 5, 5], "root", at(40, parent_id="")),
    )
    assert {node.finding: node.parent_id for node in nodes} == {
        "large": None,
        "small": None,
        "sibling": "node-1",
        "inner": "node-1",
        "apart": "node-0",
        "root": None,
    }


def test_what_qupath_writes(tmp_path: Path) -> None:
    """An id of 0.4 and later; measurements as an object (0.4) or a list (0.3); a point between pixels."""
    uuid = "e3b0c442-98fc-1c14-9afb-4c8996fb9242"
    modern = {**feature([0.4, 0.5, 99.7, 100], "a", {}, measurements={"magnification": 5}), "id": uuid}
    old = feature([10, 10, 20, 20], "b", {}, measurements=[{"name": "magnification", "value": 20.0}])
    nodes = read(tmp_path, modern, old)
    assert [(node.node_id, node.parent_id, node.magnification, node.box) for node in nodes] == [
        (uuid, None, 5, Box(0, 1, 100, 100)),
        ("node-1", uuid, 20, Box(10, 10, 20, 20)),
    ]


TILTED = {"type": "Polygon", "coordinates": [[[50, 0], [100, 50], [50, 100], [0, 50], [50, 0]]]}
L_SHAPE = {"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 4], [4, 4], [4, 9], [0, 9], [0, 0]]]}
OUTER = feature([0, 0, 100, 100], "outer", at(2.5, node_id="o"))


@pytest.mark.parametrize(
    ("features", "place", "reason"),
    [
        ([OUTER, {**feature([0, 0, 1, 1], "tilted"), "geometry": TILTED}], "features[1] ('tilted')", "upright"),
        ([{**feature([0, 0, 1, 1], "L"), "geometry": L_SHAPE}], "features[0] ('L')", "upright rectangle"),
        ([{**feature([0, 0, 1, 1], "p"), "geometry": {"type": "Point"}}], "features[0] ('p')", "found Point"),
        ([{**feature([0, 0, 1, 1], "n"), "geometry": None}], "features[0] ('n')", "no geometry"),
        ([feature([0, 0, 0.2, 5], "thin")], "features[0] ('thin')", "without area"),
        ([feature([0, 0, 9, 9], "m", {})], "features[0] ('m')", "magnification is None"),
        ([feature([0, 0, 9, 9], "m", at(0))], "features[0] ('m')", "magnification"),
        ([feature([0, 0, 9, 9], "")], "features[0]", "name, the finding"),
        ([OUTER, feature([0, 0, 9, 9], "c", at(10, parent_id="q"))], "features[1] ('c')", "no node 'q'"),
        ([OUTER, feature([0, 0, 9, 9], "c", at(1, parent_id="o"))], "features[1] ('c')", "magnification rises"),
        ([OUTER, feature([0, 0, 999, 9], "c", at(9, parent_id="o"))], "features[1] ('c')", "inside its parent"),
        ([OUTER, OUTER], "features[1] ('outer')", "ids are unique"),
        ([feature([0, 0, 9, 9], "c", at(9, parent_id="c", node_id="c"))], "features[0] ('c')", "own ancestor"),
        ([feature([0, 0, 9, 2000], "long")], "features[0] ('long')", "leaves the slide"),
        ([None], "features[0]", "no Feature"),
    ],
)
def test_refused_by_name(tmp_path: Path, features: list[Any], place: str, reason: str) -> None:
    with pytest.raises(AnnotationError) as caught:
        read(tmp_path, *features, slide_box=Box(0, 0, 1024, 1024))
    assert caught.value.position == place
    assert reason in caught.value.reason


VISIBLE = st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Zs"])
TEXT = st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=19), VISIBLE).map("".join)


@st.composite
def forests(draw: st.DrawFn) -> list[Node]:
    """Trees on one slide: each box within its parent's, each magnification above it."""
    ids = draw(st.lists(TEXT, min_size=1, max_size=8, unique=True))
    nodes: list[Node] = []
    for node_id in ids:
        parent = draw(st.none() | st.sampled_from(nodes)) if nodes else None
        outer = parent.box if parent else Box(0, 0, 100_000, 80_000)
        x, y = draw(st.integers(outer.x, outer.right - 1)), draw(st.integers(outer.y, outer.bottom - 1))
        box = Box(x, y, draw(st.integers(1, outer.right - x)), draw(st.integers(1, outer.bottom - y)))
        magnification = draw(st.floats(0.1, 1)) if parent is None else parent.magnification * draw(st.floats(1.1, 1.9))
        nodes.append(
            Node(
                slide_id="s1",
                node_id=node_id,
                parent_id=parent.node_id if parent else None,
                magnification=magnification,
                box=box,
                finding=draw(TEXT),
            )
        )
    return nodes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nodes")


@given(nodes=forests())
def test_round_trip(folder: Path, nodes: list[Node]) -> None:
    path = folder / "s1.geojson"
    write_features(path, map(node_feature, nodes))
    assert read_nodes(path, "s1") == nodes


def test_the_parent_is_kept_where_another_would_be_guessed(folder: Path) -> None:
    """A root inside a larger box, and a child whose parent is not the smallest box around it."""
    facts = [("a", None, 1, 90), ("b", "a", 2, 80), ("c", "a", 4, 70), ("d", None, 8, 60)]
    nodes = [
        Node(slide_id="s1", node_id=name, parent_id=parent, magnification=zoom, box=Box(0, 0, side, side), finding="f")
        for name, parent, zoom, side in facts
    ]
    path = folder / "s1.geojson"
    write_features(path, map(node_feature, nodes))
    assert read_nodes(path, "s1") == nodes


def test_round_trip_of_a_cohort(tmp_path: Path) -> None:
    """Exported and imported into a copy without nodes, `nodes.jsonl` is the same, line by line."""
    root = build_cohort(tmp_path / "c")
    before = read_lines(root / "nodes.jsonl")
    written = export_qupath(Cohort.load(root), tmp_path / "out")
    assert [path.relative_to(tmp_path / "out").as_posix() for path in written] == [
        "nodes/s1.geojson",
        "nodes/s2.geojson",
    ]
    paths = (root / "paths.jsonl").read_bytes()
    for name in ("nodes.jsonl", "paths.jsonl"):
        (root / name).unlink()
    report = import_nodes(reversed(written), root)
    assert read_lines(root / "nodes.jsonl") == before
    assert [(one.slide_id, one.count) for one in report.imports] == [("s1", len(NODES)), ("s2", len(NODES))]
    (root / "paths.jsonl").write_bytes(paths)
    assert Cohort.load(root).check_slides() == []


def test_existing_nodes_are_not_overwritten_silently(tmp_path: Path) -> None:
    root = build_cohort(tmp_path / "c")
    before = (root / "nodes.jsonl").read_bytes()
    export_qupath(Cohort.load(root), tmp_path / "out")
    path = tmp_path / "out/nodes/s2.geojson"
    with pytest.raises(InvalidArgumentError, match="nodes of s2 already"):
        import_nodes([path], root)
    import_nodes([path], root, replace=True)
    assert Cohort.load(root).nodes_of("s1") == Cohort.load(root).nodes_of("s1")
    assert [line["slide_id"] for line in read_lines(root / "nodes.jsonl")] == ["s1"] * 6 + ["s2"] * 6
    (root / "nodes.jsonl").write_bytes(before)
    content = json.loads(path.read_text())
    content["features"] = content["features"][:1]
    path.write_text(json.dumps(content))
    with pytest.raises(CohortError, match=r"paths\.jsonl:3"):
        import_nodes([path], root, replace=True)
    assert (root / "nodes.jsonl").read_bytes() == before
