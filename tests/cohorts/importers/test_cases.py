"""Every annotation file of ../shared/cases gets the answer of its EXPECTED.md; real files give checked facts."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import pytest
from shapely import Polygon

from wsigym.cohorts.importers import Annotations, read_annotations
from wsigym.errors import AnnotationError, WsigymWarning
from wsigym.slides import Box

SLIDE = Box(0, 0, 1024, 1024)


def read(path: Path, dialect: str | None = None, slide_box: Box | None = SLIDE) -> tuple[Annotations, list[str]]:
    """The annotations, and the warnings that came with them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read_annotations(path, dialect or path.name.split("_")[0], slide_box=slide_box)
    assert all(warning.category is WsigymWarning for warning in caught)
    return found, [str(warning.message) for warning in caught]


def areas(found: Annotations) -> list[float]:
    return [region.area.area for region in found.regions]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("asap_ok.xml", [40000]),
        ("imagescope_ok.xml", [40000]),
        ("imagescope_rect.xml", [40000]),
        ("geojson_ok.geojson", [40000]),
        ("geojson_bare_list.geojson", [40000]),
        ("geojson_bare_geometry.geojson", [40000]),
        ("geojson_3d.geojson", [40000]),
        ("geojson_no_classification.geojson", [40000]),
        ("asap_exclusion_hole.xml", [30000]),
        ("imagescope_hole.xml", [30000]),
        ("geojson_hole.geojson", [30000]),
        ("geojson_multipolygon.geojson", [35000]),
        ("asap_negative.xml", [10000]),
        ("asap_no_annotations.xml", []),
    ],
)
def test_areas_without_a_warning(shared_cases: Path, name: str, expected: list[float]) -> None:
    found, told = read(shared_cases / name)
    assert areas(found) == expected
    assert told == []


@pytest.mark.parametrize(
    ("name", "area", "place"),
    [
        ("asap_bowtie.xml", 20000, "Annotation[0]: repaired"),
        ("geojson_bowtie.geojson", 20000, "features[0]: repaired"),
        ("asap_unordered.xml", 40000, "Annotation[0]: repaired"),
        ("asap_2pt.xml", 40000, "Annotation[0]: skipped"),
        ("asap_empty_coords.xml", 40000, "Annotation[0]: skipped"),
        ("asap_nan.xml", 40000, "Annotation[0]: skipped"),
        ("geojson_null_geometry.geojson", 40000, "features[0]: skipped"),
    ],
)
def test_one_warning_names_the_shape(shared_cases: Path, name: str, area: float, place: str) -> None:
    found, told = read(shared_cases / name)
    assert areas(found) == [area]
    assert len(told) == 1
    assert place in told[0]
    assert name in told[0]


@pytest.mark.parametrize(
    ("name", "dialect", "position", "reason"),
    [
        ("asap_collinear.xml", "asap", "", "enclose no area"),
        ("geojson_2pt.geojson", "geojson", "", "three different points"),
        ("geojson_nan.geojson", "geojson", "", "not a finite number"),
        ("asap_truncated.xml", "asap", "line 4, column 137", "not XML"),
        ("geojson_truncated.geojson", "geojson", "line 1, column 85", "not JSON"),
        ("empty.geojson", "geojson", "", "empty"),
        ("xml_wrong_root.xml", "asap", "line 1", "<foo>"),
        ("xml_wrong_root.xml", "imagescope", "line 1", "<foo>"),
        ("xml_billion_laughs.xml", "asap", "", "refused"),
        ("asap_ok.xml", "imagescope", "line 1", "<ASAP_Annotations>"),
        ("imagescope_ok.xml", "asap", "line 1", "<Annotations>"),
        ("asap_ok.xml", "geojson", "line 1, column 1", "not JSON"),
        ("geojson_ok.geojson", "asap", "line 1, column 0", "not XML"),
        ("geojson_ok.geojson", "coco", "categories", "lists"),
        ("geojson_ok.geojson", "polygons", "", "'positive' and 'negative'"),
    ],
)
def test_errors_say_file_position_and_reason(
    shared_cases: Path, name: str, dialect: str, position: str, reason: str
) -> None:
    path, begun = shared_cases / name, time.perf_counter()
    with pytest.raises(AnnotationError) as caught:
        read(path, dialect)
    assert time.perf_counter() - begun < 1
    assert (caught.value.file, caught.value.position) == (str(path), position)
    assert reason in caught.value.reason
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "expected", "left_out"),
    [
        ("asap_types.xml", [40000, 40000], {"Dot": 1, "PointSet": 1, "Measurement": 1}),
        ("geojson_points_lines.geojson", [40000], {"Point": 1, "MultiPoint": 1, "LineString": 1}),
        ("imagescope_arrow_ruler.xml", [], {"arrow": 1, "ruler": 1}),
    ],
)
def test_marks_are_no_areas_and_are_counted(
    shared_cases: Path, name: str, expected: list[float], left_out: dict[str, int]
) -> None:
    found, told = read(shared_cases / name)
    assert (areas(found), found.left_out, told) == (expected, left_out, [])


def test_the_clipped_are_counted(shared_cases: Path) -> None:
    assert read(shared_cases / "asap_negative.xml")[0].clipped == 1
    assert areas(read(shared_cases / "asap_negative.xml", slide_box=None)[0]) == [22500]


def shoelace(ring: list[list[float]]) -> float:
    return abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(ring, [*ring[1:], ring[0]], strict=True))) / 2


@pytest.mark.realdata
class TestRealFiles:
    """Figures read off the files by hand: vertices counted, areas by the shoelace formula, ellipse axes measured."""

    def test_asap(self, shared_data: Path) -> None:
        found, told = read(shared_data / "wsidicom_asap-polygon.xml", "asap", None)
        assert [region.name for region in found.regions] == [None]
        assert areas(found) == pytest.approx([28616.81], abs=0.01)
        assert len(found.regions[0].area.exterior.coords) == 7  # type: ignore[union-attr]
        assert told == []
        dots, _ = read(shared_data / "wsidicom_asap-dot.xml", "asap", None)
        assert (dots.regions, dots.left_out) == ((), {"Dot": 1})

    def test_qupath(self, shared_data: Path) -> None:
        """The ellipse is a polygon of 100 sides, 321 x 180 px; its area is that of the ellipse within 0.1 %."""
        rectangle, _ = read(shared_data / "wsidicom_qupath-rectangle.json", "geojson", None)
        assert areas(rectangle) == [210 * 176]
        ellipse, _ = read(shared_data / "wsidicom_qupath-ellipse.json", "geojson", None)
        assert ellipse.regions[0].area.bounds == (26035, 15267, 26356, 15447)
        assert len(ellipse.regions[0].area.exterior.coords) == 101  # type: ignore[union-attr]
        assert areas(ellipse) == pytest.approx([3.141592653589793 * 160.5 * 90], rel=1e-3)
        polygon, _ = read(shared_data / "wsidicom_qupath-polygon.json", "geojson", None)
        assert areas(polygon) == [94491.5]

    def test_camelyon16_polygons(self, shared_data: Path) -> None:
        found, told = read(shared_data / "ncrf_Tumor_098.json", "polygons", None)
        assert {region.name for region in found.regions} == {"tumour"}
        assert areas(found) == [24071, 112516, 306134.5, 56302.5, 8353.5]
        assert told == []

    def test_an_outline_that_touches_itself_keeps_its_area(self, shared_data: Path) -> None:
        found, told = read(shared_data / "ncrf_Tumor_001.json", "polygons", None)
        assert areas(found) == [1970261, 9407153.5]
        assert len(told) == 1
        assert "positive[1]: repaired: Ring Self-intersection" in told[0]

    def test_a_normal_slide(self, shared_data: Path) -> None:
        found, _ = read(shared_data / "ncrf_Normal_001.json", "polygons", None)
        assert [region.name for region in found.regions] == ["negative"] * 4
        assert all(isinstance(region.area, Polygon) for region in found.regions)
