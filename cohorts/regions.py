"""Annotated areas of a slide: `regions/<slide_id>.geojson`, QuPath-compatible, in level-0 pixels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapely import MultiPolygon, Polygon
from shapely.errors import ShapelyError
from shapely.geometry import shape
from shapely.validation import explain_validity

from wsigym.errors import Fault

__all__ = ["Region", "read_regions"]


@dataclass(frozen=True)
class Region:
    """An annotated area. `name` is its classification, None where the annotator gave none."""

    name: str | None
    area: Polygon | MultiPolygon


def read_regions(path: Path, file: str) -> tuple[list[Region], list[Fault]]:
    """The areas of one GeoJSON FeatureCollection, and what is wrong in it. `file` is its name in faults."""
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        return [], [Fault(file, getattr(error, "lineno", None), "", f"not readable as JSON: {error}")]
    features = content.get("features") if isinstance(content, dict) else None
    if not isinstance(features, list):
        return [], [Fault(file, None, "features", "a GeoJSON FeatureCollection with a list of features is needed")]
    regions: list[Region] = []
    faults: list[Fault] = []
    for index, feature in enumerate(features):
        try:
            regions.append(_region(feature))
        except (ValueError, TypeError, KeyError, AttributeError, ShapelyError) as error:
            faults.append(Fault(file, None, f"features[{index}]", f"not an area: {error}"))
    return regions, faults


def _region(feature: dict[str, Any]) -> Region:
    area = shape(feature["geometry"])
    if not isinstance(area, (Polygon, MultiPolygon)):
        raise ValueError(f"found {area.geom_type}, allowed are Polygon and MultiPolygon")
    if not area.is_valid:
        raise ValueError(explain_validity(area))
    if area.is_empty:
        raise ValueError("the polygon is empty")
    classification = (feature.get("properties") or {}).get("classification") or {}
    return Region(classification.get("name"), area)
