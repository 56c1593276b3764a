"""The kinds behind the cases: each dialect's rules, on files made here."""

from __future__ import annotations

import json
import math
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
from annotation_writer import (
    BOW_TIE,
    HOLE,
    SQUARE,
    WRITERS,
    asap_shapes,
    coco,
    geojson_features,
    imagescope_layers,
    polygons,
)

from wsigym.cohorts.importers import DIALECTS, Annotations, read_annotations, read_drawings, settle
from wsigym.errors import AnnotationError, UnknownNameError, WsigymWarning
from wsigym.slides import Box

FAR = [(x + 1000, y) for x, y in SQUARE]


def read(tmp_path: Path, text: str, dialect: str, **options: Any) -> Annotations:
    path = tmp_path / "case.file"
    path.write_text(text, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_annotations(path, dialect, **options)


def named_areas(found: Annotations) -> list[tuple[str | None, float]]:
    return [(region.name, region.area.area) for region in found.regions]


@pytest.mark.parametrize("dialect", list(WRITERS))
class TestEveryDialect:
    def test_hole(self, tmp_path: Path, dialect: str) -> None:
        found = read(tmp_path, WRITERS[dialect]([(SQUARE, [HOLE])]), dialect)
        assert [area for name, area in named_areas(found) if name != "negative"] == [30000]
        assert found.warnings == ()

    def test_bow_tie(self, tmp_path: Path, dialect: str) -> None:
        found = read(tmp_path, WRITERS[dialect]([(BOW_TIE, [])]), dialect)
        assert [area for _, area in named_areas(found)] == [20000]
        assert len(found.warnings) == 1

    def test_two_points_alone(self, tmp_path: Path, dialect: str) -> None:
        with pytest.raises(AnnotationError, match="three different points; found 2"):
            read(tmp_path, WRITERS[dialect]([(SQUARE[:2], [])]), dialect)

    def test_garbage(self, tmp_path: Path, dialect: str) -> None:
        for text in ("\x00\x01", "{", "[1, 2]", "null", "<a/>", "<Annotations><Foo/></Annotations>", " \n"):
            with pytest.raises(AnnotationError):
                read(tmp_path, text, dialect)

    def test_outside_the_slide(self, tmp_path: Path, dialect: str) -> None:
        with pytest.raises(AnnotationError, match="outside the slide of 50 x 50 px"):
            read(tmp_path, WRITERS[dialect]([(SQUARE, [])]), dialect, slide_box=Box(0, 0, 50, 50))


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.xml", tmp_path):
        with pytest.raises(AnnotationError, match="cannot be read"):
            read_annotations(path, "asap")


def test_an_unknown_dialect(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="asap, imagescope, geojson, coco, polygons"):
        read_annotations(tmp_path / "x", "hal")
    assert list(DIALECTS) == ["asap", "imagescope", "geojson", "coco", "polygons"]


def test_the_error_travels_between_processes() -> None:
    error = AnnotationError("a.xml", "line 3, column 1", "not XML")
    assert str(pickle.loads(pickle.dumps(error))) == str(error) == "a.xml: line 3, column 1: not XML"


def test_a_stroke_over_its_own_beginning_is_no_hole(tmp_path: Path) -> None:
    """An outline that runs round twice encloses its square once; the corner where it crosses itself stays outside."""
    twice = [(0, 0), (100, 0), (100, 100), (0, 100), (0, 10), (90, 10), (90, 90), (10, 90), (10, 0)]
    found = read(tmp_path, asap_shapes([("Polygon", "Tumor", twice)]), "asap")
    assert named_areas(found) == [("Tumor", 100 * 100 - 10 * 10)]


def test_warnings_come_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "case.xml"
    path.write_text(asap_shapes([("Polygon", "A", SQUARE), ("Polygon", "A", SQUARE[:1]), ("Polygon", "A", BOW_TIE)]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read_annotations(path, "asap")
    assert tuple(str(one.message) for one in caught) == found.warnings
    assert [one.category for one in caught] == [WsigymWarning] * 2
    assert "Annotation[1]: skipped" in found.warnings[0]
    assert "Annotation[2]: repaired" in found.warnings[1]


class TestAsap:
    def test_camelyon_groups(self, tmp_path: Path) -> None:
        shapes = [("Polygon", "_0", SQUARE), ("Polygon", "_1", FAR), ("Polygon", "_2", HOLE)]
        assert named_areas(read(tmp_path, asap_shapes(shapes), "asap")) == [("tumour", 30000), ("tumour", 40000)]
        shapes = [("Polygon", "metastases", SQUARE), ("Polygon", "normal", HOLE), ("Polygon", "None", FAR)]
        found = read(tmp_path, asap_shapes(shapes), "asap")
        assert named_areas(found) == [("metastases", 40000), ("normal", 10000), (None, 40000)]

    def test_the_user_maps_names(self, tmp_path: Path) -> None:
        shapes = [("Polygon", "_0", SQUARE), ("Polygon", "normal", HOLE), ("Polygon", "None", FAR)]
        classes = {"_0": "cancer", "normal": "exclusion", "": "unsure"}
        found = read(tmp_path, asap_shapes(shapes), "asap", classes=classes)
        assert named_areas(found) == [("cancer", 30000), ("unsure", 40000)]

    def test_points_are_sorted_by_order(self, tmp_path: Path) -> None:
        text = asap_shapes([("Polygon", "Tumor", SQUARE)])
        first, second = '<Coordinate Order="0" X="100" Y="100"/>', '<Coordinate Order="2" X="300" Y="300"/>'
        shuffled = text.replace(first, "#").replace(second, first).replace("#", second)
        found = read(tmp_path, shuffled, "asap")
        assert (named_areas(found), found.warnings) == ([("Tumor", 40000)], ())

    def test_an_order_of_many_digits_is_a_number(self, tmp_path: Path) -> None:
        ring = [(500 + 400 * math.cos(turn / 6), 500 + 400 * math.sin(turn / 6)) for turn in range(37)]
        found = read(tmp_path, asap_shapes([("Polygon", "Tumor", ring)]), "asap")
        assert found.warnings == ()

    def test_unknown_type_is_faulty(self, tmp_path: Path) -> None:
        with pytest.raises(AnnotationError, match="'Blob'"):
            read(tmp_path, asap_shapes([("Blob", "Tumor", SQUARE)]), "asap")

    def test_an_exclusion_that_meets_nothing(self, tmp_path: Path) -> None:
        found = read(tmp_path, asap_shapes([("Polygon", "_0", SQUARE), ("Polygon", "_2", FAR)]), "asap")
        assert named_areas(found) == [("tumour", 40000)]
        assert "Annotation[1]: excludes nothing" in found.warnings[0]

    def test_an_area_that_is_excluded_whole(self, tmp_path: Path) -> None:
        found = read(tmp_path, asap_shapes([("Polygon", "_0", HOLE), ("Polygon", "_2", SQUARE)]), "asap")
        assert named_areas(found) == []
        assert "Annotation[0]: skipped: Annotation[1] excludes all of it" in found.warnings[0]

    @pytest.mark.parametrize(
        "text",
        [
            "<ASAP_Annotations/>",
            '<?xml version="1.0" encoding="nonsense"?><ASAP_Annotations/>',
            '<!DOCTYPE a SYSTEM "file:///etc/passwd"><ASAP_Annotations><Annotations/></ASAP_Annotations>',
            "<ASAP_Annotations><Annotations><Dot/></Annotations></ASAP_Annotations>",
        ],
    )
    def test_never_zero_annotations_by_mistake(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(AnnotationError):
            read(tmp_path, text, "asap")


class TestImagescope:
    def test_a_negative_region_cuts_its_own_layer(self, tmp_path: Path) -> None:
        layers = [("Tumor", [("0", "0", SQUARE), ("0", "1", HOLE)]), ("Stroma", [("1", "0", SQUARE)])]
        found = read(tmp_path, imagescope_layers(layers), "imagescope")
        assert named_areas(found) == [("Tumor", 30000), ("Stroma", 40000)]

    @pytest.mark.parametrize("corners", [[(100, 100), (300, 200)], [(100, 100), (300, 100), (300, 200), (100, 200)]])
    def test_ellipse(self, tmp_path: Path, corners: list[tuple[float, float]]) -> None:
        found = read(tmp_path, imagescope_layers([("T", [("2", "0", corners)])]), "imagescope")
        assert found.regions[0].area.area == pytest.approx(math.pi * 100 * 50, rel=2e-4)
        assert found.regions[0].area.bounds == pytest.approx((100, 100, 300, 200))

    def test_rectangle_of_two_corners(self, tmp_path: Path) -> None:
        found = read(tmp_path, imagescope_layers([("", [("1", "0", [(300, 100), (100, 300)])])]), "imagescope")
        assert named_areas(found) == [(None, 40000)]

    def test_the_description_names_a_layer_without_name(self, tmp_path: Path) -> None:
        text = imagescope_layers([("", [("0", "0", SQUARE)])])
        attributes = '<Attributes><Attribute Name="Description" Value="Gland"/></Attributes>'
        found = read(tmp_path, text.replace("<Regions>", f"{attributes}<Regions>"), "imagescope")
        assert named_areas(found) == [("Gland", 40000)]

    @pytest.mark.parametrize("kind", ["9", "Polygon"])
    def test_unknown_type_is_faulty(self, tmp_path: Path, kind: str) -> None:
        with pytest.raises(AnnotationError, match=f"Type is '{kind}'"):
            read(tmp_path, imagescope_layers([("T", [(kind, "0", SQUARE)])]), "imagescope")


class TestGeojson:
    def geometry(self, *rings: Any) -> dict[str, Any]:
        return {"type": "Polygon", "coordinates": [[*ring, ring[0]] for ring in rings]}

    @pytest.mark.parametrize(
        ("classification", "name"),
        [
            ({"name": "Tumor", "colorRGB": -3670016}, "Tumor"),
            ({"names": ["Tumor", "Positive"]}, "Tumor: Positive"),
            ("Stroma", "Stroma"),
            (None, None),
            ({}, None),
            ({"name": " "}, None),
            ({"name": "a\ud800"}, "a?"),
        ],
    )
    def test_class(self, tmp_path: Path, classification: Any, name: str | None) -> None:
        properties = {"classification": classification}
        feature = {"type": "Feature", "geometry": self.geometry(SQUARE), "properties": properties}
        assert named_areas(read(tmp_path, json.dumps(feature), "geojson")) == [(name, 40000)]

    def test_single_feature_and_children(self, tmp_path: Path) -> None:
        child = {"type": "Feature", "geometry": self.geometry(HOLE), "properties": {}}
        properties = {"childObjects": [child, None]}
        feature = {"type": "Feature", "geometry": self.geometry(SQUARE), "properties": properties}
        found = read(tmp_path, json.dumps([feature]), "geojson")
        assert [area for _, area in named_areas(found)] == [40000, 10000]
        assert "[0].childObjects[1]: skipped" in found.warnings[0]

    def test_collections_nest(self, tmp_path: Path) -> None:
        inner = {"type": "GeometryCollection", "geometries": [self.geometry(HOLE), {"type": "Point"}]}
        outer = {"type": "GeometryCollection", "geometries": [self.geometry(FAR), inner]}
        found = read(tmp_path, geojson_features([outer]), "geojson")
        assert (named_areas(found), found.left_out) == ([("Tumor", 50000)], {"Point": 1})

    @pytest.mark.parametrize(
        "geometry",
        [
            {"type": "Polygon"},
            {"type": "Polygon", "coordinates": []},
            {"type": "Polygon", "coordinates": [[["a", 1], [2, 2], [3, 1]]]},
            {"type": "Polygon", "coordinates": [[[True, 1], [2, 2], [3, 1]]]},
            {"type": "Polygon", "coordinates": [[[1e300, 1], [2, 2], [3, 1]]]},
            {"type": "Polygon", "coordinates": [[1, 2, 3]]},
            {"type": "Circle"},
            {"type": "GeometryCollection", "geometries": []},
            [],
            7,
        ],
    )
    def test_a_faulty_geometry_is_skipped_by_index(self, tmp_path: Path, geometry: Any) -> None:
        found = read(tmp_path, geojson_features([self.geometry(SQUARE), geometry]), "geojson")
        assert named_areas(found) == [("Tumor", 40000)]
        assert len(found.warnings) == 1
        assert "features[1]: skipped" in found.warnings[0]

    def test_deep_nesting_is_no_crash(self, tmp_path: Path) -> None:
        for deep in ("[" * 100_000, '{"type":"Polygon","coordinates":' + "[" * 800 + "1" + "]" * 800 + "}"):
            with pytest.raises(AnnotationError):
                read(tmp_path, deep, "geojson")

    def test_empty_collections_are_negative_slides(self, tmp_path: Path) -> None:
        for text in ("[]", geojson_features([])):
            assert read(tmp_path, text, "geojson").regions == ()


class TestCoco:
    def test_boxes_and_polygons(self, tmp_path: Path) -> None:
        flat = [float(number) for point in SQUARE for number in point]
        far = [float(number) for point in FAR for number in point]
        one = {"segmentation": [flat, far], "bbox": [0, 0, 1, 1]}
        found = read(tmp_path, coco([{"bbox": [10, 20, 30.5, 40]}, one]), "coco")
        assert named_areas(found) == [("Tumor", 1220), ("Tumor", 80000)]
        assert found.regions[0].area.bounds == (10, 20, 40.5, 60)

    def test_one_drawing_an_image(self, tmp_path: Path) -> None:
        path = tmp_path / "all.json"
        path.write_text(coco([{"bbox": [1, 2, 3, 4], "image_id": 1}], ["x/a.tif", "b.svs"]))
        drawings = read_drawings(path, "coco")
        assert [(drawing.stem, len(drawing.shapes)) for drawing in drawings] == [("a", 0), ("b", 1)]
        with pytest.raises(AnnotationError, match="holds 2 slides"):
            read_annotations(path, "coco")

    def test_an_image_of_another_size_than_the_slide(self, tmp_path: Path) -> None:
        text = coco([{"bbox": [1, 2, 3, 4]}], width=512, height=512)
        with pytest.raises(AnnotationError, match="512 x 512 px, but the slide has 1024 x 1024"):
            read(tmp_path, text, "coco", slide_box=Box(0, 0, 1024, 1024))
        assert len(read(tmp_path, text, "coco", slide_box=Box(0, 0, 512, 512)).regions) == 1

    @pytest.mark.parametrize(
        ("annotation", "reason"),
        [
            ({"segmentation": {"counts": [1, 2], "size": [3, 1]}}, "run-length mask"),
            ({"bbox": [1, 2, 3, 4], "image_id": 5}, "image_id 5 is not in the file"),
            ({"bbox": [1, 2, 3, 4], "category_id": None}, "category_id is None"),
            ({"bbox": [1, 2, 3, 4], "image_id": [5]}, "image_id is"),
        ],
    )
    def test_errors(self, tmp_path: Path, annotation: dict[str, Any], reason: str) -> None:
        with pytest.raises(AnnotationError, match=reason) as caught:
            read(tmp_path, coco([{"bbox": [0, 0, 9, 9]}, annotation]), "coco")
        assert caught.value.position == "annotations[1]"

    @pytest.mark.parametrize(
        "annotation",
        [{}, {"bbox": [1, 2, 3]}, {"bbox": [1, 2, 0, 4]}, {"bbox": [1, 2, -3, 4]}, {"bbox": [1, 2, 10**400, 4]}]
        + [{"segmentation": polygon} for polygon in ([[1, 2, 3]], [[1, 2, 3, 4]], ["ab"], [[None] * 6])],
    )
    def test_faulty_annotations_are_skipped(self, tmp_path: Path, annotation: dict[str, Any]) -> None:
        found = read(tmp_path, coco([{"bbox": [0, 0, 9, 9]}, annotation]), "coco")
        assert [area for _, area in named_areas(found)] == [81]
        assert "annotations[1]: skipped" in found.warnings[0]

    def test_names_stand_for_slides(self, tmp_path: Path) -> None:
        with pytest.raises(AnnotationError, match="second image is called 'a'"):
            read(tmp_path, coco([], ["a.tif", "b/a.svs"]), "coco")


class TestPolygons:
    def test_negative_is_cut_out_and_kept(self, tmp_path: Path) -> None:
        found = read(tmp_path, polygons([(SQUARE, [HOLE]), (FAR, [])]), "polygons")
        assert named_areas(found) == [("tumour", 30000), ("tumour", 40000), ("negative", 10000)]
        only = read(tmp_path, polygons([(SQUARE, [HOLE])]), "polygons", classes={"negative": "exclusion"})
        assert named_areas(only) == [("tumour", 30000)]

    @pytest.mark.parametrize("text", ["{}", '{"tumor": []}', '{"positive": 3}', "[]"])
    def test_other_objects(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(AnnotationError, match=r"found (keys \(none\)|keys 'tumor'|a int|a list)"):
            read(tmp_path, text, "polygons")

    def test_faulty(self, tmp_path: Path) -> None:
        text = json.dumps({"positive": [{"vertices": SQUARE}, {"vertices": [1, 2]}, 5, {"name": "x"}]})
        found = read(tmp_path, text, "polygons")
        assert [warning.split(": ")[1] for warning in found.warnings] == ["positive[1]", "positive[2]", "positive[3]"]


def test_settle_leaves_the_drawing_alone(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text(polygons([(SQUARE, [HOLE])]))
    drawing = read_drawings(path, "polygons")[0]
    assert settle("f", drawing, {}) == settle("f", drawing, {})
    assert drawing.labels == {"positive", "negative"}
