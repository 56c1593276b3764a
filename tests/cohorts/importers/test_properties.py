"""What holds for all input: polygons survive each dialect, and nothing but `AnnotationError` ever comes out."""

from __future__ import annotations

import contextlib
import json
import math
import warnings
from pathlib import Path
from typing import Any

import pytest
import shapely
from annotation_writer import SQUARE, WRITERS, Ring, coco
from hypothesis import given
from hypothesis import strategies as st

from wsigym.cohorts.importers import DIALECTS, Annotations, read_annotations
from wsigym.errors import AnnotationError
from wsigym.slides import Box


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drawn") / "case.file"


def read(path: Path, text: str | bytes, dialect: str, slide_box: Box | None = None) -> Annotations:
    path.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_annotations(path, dialect, slide_box=slide_box)


@st.composite
def star_shaped(draw: st.DrawFn, x: float, y: float, low: float, high: float) -> Ring:
    """A simple outline around (x, y), with corners between `low` and `high` away from it."""
    corners = draw(st.integers(3, 12))
    turns = [2 * math.pi * corner / corners for corner in range(corners)]
    reach = [draw(st.floats(low, high)) for _ in turns]
    ring = [(x + r * math.cos(t), y + r * math.sin(t)) for r, t in zip(reach, turns, strict=True)]
    return ring if draw(st.booleans()) else ring[::-1]


@st.composite
def drawn(draw: st.DrawFn) -> list[tuple[Ring, list[Ring]]]:
    """One to three polygons that lie apart, each with up to one hole well inside."""
    shapes = []
    for index in range(draw(st.integers(1, 3))):
        x, y = 300.0 + 500 * index, draw(st.floats(300, 700))
        # A triangle's edges pass its centre at half the distance of its corners: a hole within 40 stays inside.
        outline = draw(star_shaped(x, y, 100, 240))
        holes = [draw(star_shaped(x, y, 5, 40))] if draw(st.booleans()) else []
        shapes.append((outline, holes))
    return shapes


def area_of(shapes: list[tuple[Ring, list[Ring]]]) -> float:
    return sum(shapely.Polygon(outline, holes).area for outline, holes in shapes)


@pytest.mark.parametrize("dialect", list(WRITERS))
@given(shapes=drawn())
def test_written_and_read_back_the_area_is_the_same(path: Path, dialect: str, shapes: Any) -> None:
    found = read(path, WRITERS[dialect](shapes), dialect)
    kept = sum(region.area.area for region in found.regions if region.name != "negative")
    assert kept == pytest.approx(area_of(shapes), rel=1e-9)
    assert found.warnings == ()


@given(shapes=drawn())
def test_coco_too_without_holes(path: Path, shapes: Any) -> None:
    flat = [[number for point in outline for number in point] for outline, _ in shapes]
    found = read(path, coco([{"segmentation": flat}]), "coco")
    assert found.regions[0].area.area == pytest.approx(area_of([(outline, []) for outline, _ in shapes]), rel=1e-9)


@given(shapes=drawn(), size=st.tuples(st.integers(500, 1500), st.integers(710, 900)))
def test_clipped_areas_lie_on_the_slide(path: Path, shapes: Any, size: tuple[int, int]) -> None:
    slide = shapely.box(0, 0, *size)
    found = read(path, WRITERS["geojson"](shapes), "geojson", Box(0, 0, *size))
    whole = shapely.MultiPolygon([shapely.Polygon(outline, holes) for outline, holes in shapes])
    assert all(slide.covers(region.area) and region.area.is_valid for region in found.regions)
    assert sum(region.area.area for region in found.regions) == pytest.approx(whole.intersection(slide).area, rel=1e-6)


POINTS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=0, max_size=9)


@pytest.mark.parametrize("dialect", list(WRITERS))
@given(rings=st.lists(POINTS, min_size=1, max_size=4))
def test_scribbles_become_valid_areas_or_an_error(path: Path, dialect: str, rings: Any) -> None:
    """Outlines that cross, touch and repeat themselves: the areas are valid and within their hull, or there is none."""
    shapes = [(ring, []) for ring in rings if dialect != "geojson" or ring]
    if not shapes:
        return
    try:
        found = read(path, WRITERS[dialect](shapes), dialect)
    except AnnotationError:
        return
    hull = shapely.MultiPoint([point for ring in rings for point in ring]).convex_hull
    for region in found.regions:
        assert region.area.is_valid
        assert 0 < region.area.area <= hull.area + 1e-6


KEYS = [
    *("type", "features", "geometry", "coordinates", "properties", "classification", "name", "names", "geometries"),
    *("childObjects", "positive", "negative", "vertices", "images", "annotations", "categories", "id", "image_id"),
    *("category_id", "bbox", "segmentation", "file_name", "width", "height"),
]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("Polygon"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner | st.sampled_from(["Feature", "FeatureCollection", "MultiPolygon", "GeometryCollection", "Point"]),
            max_size=5,
        )
    ),
    max_leaves=25,
)


@pytest.mark.parametrize("dialect", list(DIALECTS))
@given(content=st.text(max_size=60) | st.binary(max_size=60) | JSON_VALUES.map(json.dumps))
def test_only_annotation_errors(path: Path, dialect: str, content: str | bytes) -> None:
    with contextlib.suppress(AnnotationError):
        read(path, content, dialect)


@pytest.mark.parametrize("dialect", ["asap", "imagescope"])
@given(cut=st.integers(0, 400), put=st.binary(max_size=3))
def test_damaged_xml(path: Path, dialect: str, cut: int, put: bytes) -> None:
    whole = WRITERS[dialect]([(SQUARE, []), (SQUARE, [])]).encode()
    with contextlib.suppress(AnnotationError):
        read(path, whole[:cut] + put + whole[cut + len(put) :], dialect)
