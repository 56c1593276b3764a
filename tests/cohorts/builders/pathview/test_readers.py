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
from wsigym.cohorts.builders.pathview.faults import TOLD
from wsigym.cohorts.builders.pathview.readers import coco
from wsigym.errors import CohortError

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
    with pytest.raises(CohortError, match=f"pathview/masks/a.npy: .*({words})"):
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
        (json.dumps(document())[:-40], "json:1: (the file ends before its object does|not JSON)"),
        ("[1]", "json:1: a COCO file is an object"),
        ("", "the file ends"),
        (
            json.dumps(document(annotations=[{"image_id": 9, "category_id": 1}])),
            r"\[0\].image_id: 9 is not the id",
        ),
        (
            json.dumps(document(annotations=[{"image_id": 5, "category_id": 3}])),
            r"\[0\].category_id: 3 is not the id",
        ),
        (json.dumps(document(annotations=[{"image_id": [], "category_id": 3}])), r"image_id: \[\] is not the id of"),
        (json.dumps(document(annotations=[7])), r"annotations\[0\]: found a int"),
        (json.dumps(document(images=[{"id": 5}])), "file_name"),
        ('{"images": [],\n "annotations": [tru]}', "json:2: not JSON"),
    ],
)
def test_coco_files_that_are_none(tmp_path: Path, content: str, words: str) -> None:
    build_sources(tmp_path, source(form="coco", annotations="pathview/*.json"), {"coco.json": content})
    with pytest.raises(CohortError, match=words):
        build_pathview(Cohort.load(tmp_path))


def told(folder: Path) -> list[str]:
    """The faults that a check finds, without their folder."""
    return [str(fault).removeprefix("pathview/") for fault in Cohort.faults_of(folder)]


def refused(folder: Path) -> list[str]:
    """The faults for which a build refuses, which changes nothing."""
    with pytest.raises(CohortError) as caught:
        build_pathview(Cohort.load(folder))
    assert not [*folder.rglob("*.part"), *folder.rglob("items/*/*")]
    return [str(fault).removeprefix("pathview/") for fault in caught.value.faults]


def test_every_faulty_entry_of_a_coco_file_is_listed(tmp_path: Path) -> None:
    wrong: list[Any] = [
        {"id": 4, "image_id": 9, "category_id": 1, "bbox": [1, 1, 2, 2]},
        {"id": 5, "image_id": 5, "bbox": [1, 1, 2, 2]},
        "box",
        {"image_id": 8, "category_id": 7, "bbox": [1, 1, 2, 2]},
        {"image_id": 6, "category_id": 1, "bbox": [1, 1, 2, 2]},  # of a faulty image: told once
        {"image_id": 5, "category_id": 3, "bbox": [1, 1, 2, 2]},  # of a label that labels.toml lacks
    ]
    images = [*document()["images"], {"id": 5, "file_name": "b.png"}, {"id": 6}, {"id": 7, "file_name": "y/a.tif"}]
    categories = [*document()["categories"], {"id": 3, "name": "X"}, {"id": 4}, {"name": "T"}]
    unusable = [
        {"image_id": 5, "category_id": 1, "bbox": [1, float("nan"), 2, 2]},
        {"image_id": 5, "category_id": 1, "bbox": [5, 5, -1, 2]},
        {"image_id": 5, "category_id": 1, "bbox": [1, 1, "x", 2]},
        {"image_id": 5, "category_id": 1, "bbox": [10**400, 1, 2, 2]},
        {"image_id": 5, "category_id": 1},
        {"image_id": 5, "category_id": 1, "segmentation": [[1, 1, 2, 2, 3]]},
        {"image_id": 5, "category_id": 1, "bbox": [5, 5, 0, 2]},  # no area, which is the filter's
    ]
    entries = [*document()["annotations"], *wrong, *unusable]
    content = document(images=images, categories=categories, annotations=entries)
    files = {"1.json": json.dumps(content, indent=1), "2.json": '{"images": [],\n "annotations": [tru]}'}
    build_sources(tmp_path, source(form="coco", annotations="pathview/*.json"), files)
    hard = [
        "1.json: images[1]: its id is 5; every one needs an id of its own",
        "1.json: images[2]: an image needs a 'file_name'",
        "1.json: images[3]: a second image is called 'a'; slides are matched by that name",
        "1.json: categories[3].name: is None; a raw label is needed",
        "1.json: categories[4]: its id is None; every one needs an id of its own",
        "1.json: annotations[3].image_id: 9 is not the id of one of the file's images",
        "1.json: annotations[4].category_id: is missing; it is required",
        "1.json: annotations[5]: found a str; an object is needed",
        "1.json: annotations[6].image_id: 8 is not the id of one of the file's images",
        "1.json: annotations[6].category_id: 7 is not the id of one of the file's categories",
        "2.json:2: not JSON: Expecting value",
    ]
    soft = [
        "1.json: annotations[9].bbox: its box is not finite",
        "1.json: annotations[10].bbox: its box has a negative side",
        "1.json: annotations[11].bbox: coordinate 'x' is not",
        "1.json: annotations[12].bbox: its box is not finite",
        "1.json: annotations[13].bbox: it has no polygon, and its bbox is None",
        "1.json: annotations[14].segmentation: a polygon is a list",
    ]
    label = "labels.toml: standard: raw label 'X' of source s"
    assert starting(refused(tmp_path), [*hard, label])
    assert starting(told(tmp_path), [*hard, *soft, label])


def starting(found: list[str], expected: list[str]) -> bool:
    """Whether each begins as expected; shows the first that does not."""
    for one, beginning in zip(found, expected, strict=True):
        assert one[: len(beginning)] == beginning
    return True


def test_every_faulty_feature_of_geojson_files_is_listed(tmp_path: Path) -> None:
    def ring(*points: Any) -> dict[str, Any]:
        return {**feature("T", 0, 0, 1), "geometry": {"type": "Polygon", "coordinates": [list(points)]}}

    features = [
        feature("T", 10, 10, 20),
        {"type": "Feature", "geometry": None, "properties": {}},
        7,
        ring([0, 0], [float("nan"), 5], [5, 5]),
        ring([0, 0], [5, 5]),
        feature("X", 50, 50, 20),
    ]
    files = {"a.geojson": json.dumps({"type": "FeatureCollection", "features": features}), "b.geojson": "[1,\n{"}
    text = source(form="geojson", annotations="pathview/*.geojson")
    build_sources(tmp_path, text, files, images=("a", "b"))
    hard = [
        "a.geojson: features[1]: it has no geometry (null)",
        "a.geojson: features[2]: it is no Feature",
        "b.geojson:2: not JSON: ",
    ]
    soft = [
        "a.geojson: features[3]: coordinate nan is not a finite number",
        "a.geojson: features[4]: an outline needs three different points; found 2",
    ]
    label = "labels.toml: standard: raw label 'X' of source s"
    assert starting(refused(tmp_path), [*hard, label])
    assert starting(told(tmp_path), [*hard, *soft, label])


def test_boxes_of_a_table_that_are_none_are_left_out_of_a_build_and_told_by_a_check(tmp_path: Path) -> None:
    rows = boxes(
        ("a", "T", 10, 10, 30, 30), ("a", "T", 1, float("nan"), 3, 4), ("a", "L", 9, 1, 3, 4), ("a", "L", 1, 9, 3, 4)
    )
    sides = "image,label,x,y,width,height\na,T,1,2,-3,4\na,T,1,2,3,inf\na,T,1,2,3,-4\na,T,1,2,0,4\n"
    files = {"boxes-1.csv": rows, "boxes-2.csv": sides}
    build_sources(tmp_path, source(annotations="pathview/boxes*.csv"), files)
    assert told(tmp_path) == [
        "boxes-1.csv:3: y1: is 'nan': its box is not finite",
        "boxes-1.csv:4: x2: is '3': its box has a negative side",
        "boxes-1.csv:5: y2: is '4': its box has a negative side",
        "boxes-2.csv:2: width: is '-3': its box has a negative side",
        "boxes-2.csv:3: height: is 'inf': its box is not finite",
        "boxes-2.csv:4: height: is '-4': its box has a negative side",
    ]
    assert build_pathview(Cohort.load(tmp_path)).dropped[""] == {
        "its box is not finite": 2, "its box has a negative side": 4, "its box has no area": 1,
    }  # fmt: skip


def test_every_mask_that_is_none_is_listed(tmp_path: Path) -> None:
    array(tmp_path, [[0.5]])
    np.save(tmp_path / "pathview" / "masks" / "b.npy", np.array([[-1]]))
    build_sources(tmp_path, source(form="semantic", annotations="pathview/masks/*.npy", classes=CLASSES))
    assert starting(refused(tmp_path), ["masks/a.npy: holds numbers that are not whole", "masks/b.npy: holds -1"])


def test_of_very_many_faults_the_first_are_told_and_the_others_counted(tmp_path: Path) -> None:
    text = "image,label,x1,y1,x2,y2\n" + "a,T,1,2,3,vier\n" * (TOLD + 234_567)
    build_sources(tmp_path, source(), {"boxes.csv": text})
    found = told(tmp_path)
    assert len(found) == TOLD + 1
    assert found[TOLD - 1 :] == [
        f"boxes.csv:{TOLD + 1}: y2: is 'vier'; a number is needed", "boxes.csv: and 234,567 faults more",
    ]  # fmt: skip


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
