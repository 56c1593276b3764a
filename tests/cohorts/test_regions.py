"""Regions: areas with their class, and a fault for whatever is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wsigym.cohorts.regions import read_regions

SQUARE = [[0, 0], [200, 0], [200, 200], [0, 200], [0, 0]]
HOLE = [[50, 50], [150, 50], [150, 150], [50, 150], [50, 50]]


def feature(geometry: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def polygon(*rings: Any) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": list(rings)}


def write(tmp_path: Path, features: Any) -> Path:
    path = tmp_path / "s1.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


@pytest.mark.parametrize(
    ("geometry", "area"),
    [
        (polygon(SQUARE), 40_000),
        (polygon(SQUARE, HOLE), 30_000),
        (polygon([[x, y, 7] for x, y in SQUARE]), 40_000),
        ({"type": "MultiPolygon", "coordinates": [[SQUARE], [[[x + 300, y] for x, y in HOLE]]]}, 50_000),
    ],
)
def test_areas(tmp_path: Path, geometry: dict[str, Any], area: float) -> None:
    regions, faults = read_regions(write(tmp_path, [feature(geometry)]), "f")
    assert faults == []
    assert [region.area.area for region in regions] == [area]
    assert not regions[0].area.has_z


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({"classification": {"name": "Tumor", "color": [200, 0, 0]}}, "Tumor"),
        ({"classification": {"name": None}}, None),
        ({"classification": {}}, None),
        ({"classification": None}, None),
        ({}, None),
    ],
)
def test_class_names(tmp_path: Path, properties: dict[str, Any], name: str | None) -> None:
    assert read_regions(write(tmp_path, [feature(polygon(SQUARE), **properties)]), "f")[0][0].name == name


@pytest.mark.parametrize(
    ("faulty", "words"),
    [
        (None, "a feature is an object"),
        (feature(None), "a feature is an object"),
        (feature({"type": "Point", "coordinates": [1, 2]}), "found Point, allowed are Polygon and MultiPolygon"),
        (feature({"type": "Polygon"}), "not an area"),
        (feature({"type": "Blob", "coordinates": []}), "not an area"),
        (feature(polygon()), "empty"),
        (feature(polygon([[0, 0], [9, 9], [9, 0], [0, 9], [0, 0]])), "Self-intersection"),
        (feature(polygon([[0, 0], [9, 9]])), "not an area"),
        (feature(polygon([[0, 0], [9, 9], [18, 18], [0, 0]])), "not an area"),
        (feature(polygon([[0, 0], [float("nan"), 0], [9, 9], [0, 0]])), "not an area"),
        (feature(polygon([[0, 0], ["a", 0], [9, 9], [0, 0]])), "not an area"),
        (feature(polygon(SQUARE), classification="Tumor"), "an object with a name"),
        (feature(polygon(SQUARE), classification={"name": 3}), "is text; found 3"),
    ],
)
def test_faulty_features_are_named_by_index_and_the_others_kept(tmp_path: Path, faulty: Any, words: str) -> None:
    path = write(tmp_path, [feature(polygon(SQUARE)), faulty, feature(polygon(SQUARE))])
    regions, faults = read_regions(path, "regions/s1.geojson")
    assert len(regions) == 2
    (fault,) = faults
    assert (fault.file, fault.field) == ("regions/s1.geojson", "features.1")
    assert words in fault.message


@pytest.mark.parametrize("text", ["[]", "{}", "null", '{"features": {}}'])
def test_no_collection(tmp_path: Path, text: str) -> None:
    (tmp_path / "f").write_text(text)
    regions, (fault,) = read_regions(tmp_path / "f", "f")
    assert regions == []
    assert "FeatureCollection" in fault.message


@pytest.mark.parametrize(("text", "words"), [("", "not JSON"), ("[" * 100_000, "nested too deeply")])
def test_no_json(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "f").write_text(text)
    regions, (fault,) = read_regions(tmp_path / "f", "f")
    assert regions == []
    assert words in fault.message
