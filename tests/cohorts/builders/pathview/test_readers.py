"""Every kind of annotation file gives the same items; what cannot be read says where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathview_builder import SIDE, boxes, build_sources, source
from PIL import Image

from wsigym.cohorts import Cohort, load_items
from wsigym.cohorts.builders.pathview import build_pathview
from wsigym.cohorts.builders.pathview.readers import coco
from wsigym.errors import AnnotationError, CohortError

CLASSES = {"1": "T", "2": "L"}
EXPECTED = {"tumour cell": [[50, 50, 150, 150], [250, 100, 350, 200]], "lymphocyte": [[750, 750, 800, 800]]}
"""In thousandths of 200 px; see `mask` for the same in pixels."""


def mask(instances: bool) -> np.ndarray:
    found = np.zeros((SIDE, SIDE), np.uint16)
    found[10:30, 10:30] = 7 if instances else 1
    found[20:40, 50:70] = 300 if instances else 1
    found[150:160, 150:160] = 8 if instances else 2
    return found


def document(**changes: Any) -> dict[str, Any]:
    return {
        "info": {"images": [1]},
        "annotations": [
            {"id": 1, "image_id": 5, "category_id": 1, "bbox": [10, 10, 20, 20], "segmentation": {"counts": "x"}},
            {"id": 2, "image_id": 5, "category_id": 1, "segmentation": [[50, 20, 70, 20, 70, 40, 50, 40]]},
            {"id": 3, "image_id": 5, "category_id": 2, "bbox": [150, 150, 10, 10]},
        ],
        "categories": [{"id": 1, "name": "T"}, {"id": 2, "name": "L"}],
        "images": [{"id": 5, "file_name": "x/a.png", "width": SIDE, "height": SIDE}],
        **changes,
    }


def feature(name: str, x: int, y: int, side: int) -> dict[str, Any]:
    ring = [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "geometry": geometry, "properties": {"classification": {"name": name}}}


def write(folder: Path, form: str) -> str:
    """Write the annotations in a form; what sources.toml says of it."""
    home = folder / "pathview"
    home.mkdir(parents=True)
    if form == "csv corners":
        rows = (("a", "T", 10, 10, 30, 30), ("a.png", "T", 50, 20, 70, 40), ("a", "L", 150, 150, 160, 160))
        (home / "boxes.csv").write_text(boxes(*rows[:1], *(("a", *row[1:]) for row in rows[1:])))
        return source()
    if form == "csv sides":
        text = "label,image,x,y,width,height\nT,a.png,10,10,20,20\nT,a.png,50,20,20,20\nL,a.png,150,150,10,10\n"
        (home / "boxes.csv").write_text("\ufeff" + text, encoding="utf-8")
        return source()
    if form == "coco":
        (home / "coco.json").write_text(json.dumps(document(), indent=1))
        return source(form="coco", annotations="pathview/*.json")
    if form == "geojson":
        features = [feature("T", 10, 10, 20), feature("T", 50, 20, 20), feature("L", 150, 150, 10)]
        (home / "a.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        return source(form="geojson", annotations="pathview/*.geojson")
    (home / "masks").mkdir()
    if form == "semantic":
        np.save(home / "masks" / "a.npy", mask(False).astype(float))
        return source(form="semantic", annotations="pathview/masks/*.npy", classes=CLASSES)
    if form == "semantic png":
        Image.fromarray(mask(False).astype(np.uint8)).save(home / "masks" / "a.png")
        return source(form="semantic", annotations="pathview/masks/*.png", classes=CLASSES)
    if form == "half size":
        np.save(home / "masks" / "a.npy", mask(False)[::2, ::2])
        return source(form="semantic", annotations="pathview/masks/*.npy", classes=CLASSES)
    if form == "instances of two channels":
        np.save(home / "masks" / "a.npy", np.stack([mask(True), mask(False)], axis=2))
        return source(form="instances", annotations="pathview/masks/*.npy", classes=CLASSES)
    Image.fromarray(mask(True)).save(home / "masks" / "a.png")
    (home / "types").mkdir()
    np.save(home / "types" / "a.npy", mask(False))
    return source(form="instances", annotations="pathview/masks/*.png", types="pathview/types/*.npy", classes=CLASSES)


@pytest.mark.parametrize(
    "form",
    [
        "csv corners", "csv sides", "coco", "geojson", "semantic", "semantic png", "half size",
        "instances of two channels", "instances with types",
    ],
)  # fmt: skip
def test_each_form_says_the_same(tmp_path: Path, form: str) -> None:
    build_sources(tmp_path, write(tmp_path, form))
    build_pathview(Cohort.load(tmp_path))
    (asked,) = load_items(Cohort.load(tmp_path), "pathview", "object-grounding")
    assert asked.reference.answer == EXPECTED[str(asked.reference.strata["target"])]
    (described,) = load_items(Cohort.load(tmp_path), "pathview", "region-description")
    assert described.reference.answer == ["tumour cell", "lymphocyte"]


def test_what_is_wrong_with_an_annotation_of_coco_is_logged(tmp_path: Path) -> None:
    wrong = [
        {"image_id": 5, "category_id": 1, "bbox": [50, 50, 90, 90], "iscrowd": 1},
        {"image_id": 5, "category_id": 1, "bbox": [50, 50, 90]},
        {"image_id": 5, "category_id": 1, "bbox": [50, 50, 90, "x"]},
        {"image_id": 5, "category_id": 1, "segmentation": [[1, 2, 3]]},
        {"image_id": 5, "category_id": 1},
        {"image_id": 5, "category_id": 1, "bbox": [50, 50, 0, 9]},
    ]
    content = json.dumps(document(annotations=[*document()["annotations"], *wrong]))
    build_sources(tmp_path, source(form="coco", annotations="pathview/*.json"), {"coco.json": content})
    done = build_pathview(Cohort.load(tmp_path))
    assert sum(done.dropped[""].values()) == len(wrong)
    assert any("iscrowd" in reason for reason in done.dropped[""])
    (asked,) = load_items(Cohort.load(tmp_path), "pathview", "object-counting")
    assert asked.reference.strata["target"] == "lymphocyte"  # how many tumour cells there are is not known


def test_instances_of_one_label(tmp_path: Path) -> None:
    (tmp_path / "pathview" / "masks").mkdir(parents=True)
    np.save(tmp_path / "pathview" / "masks" / "a.npy", mask(True) + (mask(True) == 0))  # a mask without nothing
    text = source(form="instances", annotations="pathview/masks/*.npy", label="T")
    build_sources(tmp_path, text)
    build_pathview(Cohort.load(tmp_path), ["object-counting"])
    (asked,) = load_items(Cohort.load(tmp_path), "pathview", "object-counting")
    assert asked.reference.answer == 4


def array(folder: Path, values: Any) -> None:
    (folder / "pathview" / "masks").mkdir(parents=True)
    np.save(folder / "pathview" / "masks" / "a.npy", np.asarray(values))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[0.5]], "not whole"),
        ([[-1]], "holds -1"),
        ([0, 1], r"has the shape \(2,\)"),
        (np.zeros((2, 2, 4)), r"\(2, 2, 4\)"),
        (["a"], "shape|holds"),
    ],
)
def test_masks_that_are_none(tmp_path: Path, values: Any, words: str) -> None:
    array(tmp_path, values)
    build_sources(tmp_path, source(form="semantic", annotations="pathview/masks/*.npy", classes=CLASSES))
    with pytest.raises(AnnotationError, match=f"pathview/masks/a.npy: .*({words})"):
        build_pathview(Cohort.load(tmp_path))


def test_a_mask_of_another_shape(tmp_path: Path) -> None:
    array(tmp_path, np.ones((100, 50), int))
    build_sources(tmp_path, source(form="semantic", annotations="pathview/masks/*.npy", classes=CLASSES))
    with pytest.raises(CohortError, match="200 x 200 px, but was annotated on 50 x 100 px"):
        build_pathview(Cohort.load(tmp_path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("image,label,x1\n", ":1: has the columns image, label, x1; needed are"),
        ("image,label,x1,y1,x2,y2\na,T,1,2,3\n", ":2: has 5 cells"),
        ("image,label,x1,y1,x2,y2\na,T,1,2,3,4\n\na,T,1,zwei,3,4\n", ":4: y1: is 'zwei'; a number is needed"),
        ("", ":1: has the columns none"),
    ],
)
def test_tables_of_boxes_that_are_none(tmp_path: Path, text: str, words: str) -> None:
    build_sources(tmp_path, source(), {"boxes.csv": text})
    with pytest.raises(CohortError, match=f"pathview/boxes.csv{words}"):
        build_pathview(Cohort.load(tmp_path))
    assert not list(tmp_path.rglob("*.part"))


def test_every_faulty_row_of_every_table_of_boxes_is_listed(tmp_path: Path) -> None:
    rows = "image,label,x1,y1,x2,y2\na,T,1,2,3\na,T,1,2,3,4\na,T,1,zwei,3,4\n"
    build_sources(tmp_path, source(annotations="pathview/boxes*.csv"), {"boxes-1.csv": rows, "boxes-2.csv": "image\n"})
    found = [(fault.file, fault.line) for fault in Cohort.faults_of(tmp_path)]
    assert found == [("pathview/boxes-1.csv", 2), ("pathview/boxes-1.csv", 4), ("pathview/boxes-2.csv", 1)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (json.dumps(document())[:-40], "line 1: the file ends before its object does|line 1: not JSON"),
        ("[1]", "line 1: a COCO file is an object"),
        ("", "the file ends"),
        (json.dumps(document(annotations=[{"image_id": 9, "category_id": 1}])), r"annotations\[0\]: its image_id 9"),
        (json.dumps(document(annotations=[{"image_id": 5, "category_id": 3}])), r"annotations\[0\]: its category_id 3"),
        (json.dumps(document(annotations=[{"image_id": [], "category_id": 3}])), r"its image_id \[\]"),
        (json.dumps(document(annotations=[7])), r"annotations\[0\]: found a int"),
        (json.dumps(document(images=[{"id": 5}])), "file_name"),
        ('{"images": [],\n "annotations": [tru]}', "line 2: not JSON"),
    ],
)
def test_coco_files_that_are_none(tmp_path: Path, content: str, words: str) -> None:
    build_sources(tmp_path, source(form="coco", annotations="pathview/*.json"), {"coco.json": content})
    with pytest.raises(AnnotationError, match=words):
        build_pathview(Cohort.load(tmp_path))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
"""Without halves of surrogate pairs, which are no UTF-8."""


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
@given(
    value=st.dictionaries(
        TEXT,
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=2),
            max_leaves=12,
        ),
        max_size=4,
    ),
    indent=st.sampled_from([None, 1]),
)
def test_any_json_streams_as_it_loads(
    tmp_path_factory: pytest.TempPathFactory, chunk: int, value: dict[str, Any], indent: int | None
) -> None:
    path = tmp_path_factory.getbasetemp() / f"stream-{chunk}.json"
    path.write_text(json.dumps(value, indent=indent, ensure_ascii=False), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coco, "CHUNK", chunk)
        found = list(coco.stream("x", path))
    assert found == [
        (key, place, each)
        for key, listed in value.items()
        if isinstance(listed, list)
        for place, each in enumerate(listed)
    ]
