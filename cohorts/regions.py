"""Annotated areas of a slide: `regions/<slide_id>.geojson`, QuPath-compatible, in level-0 pixels.

This is a cohort's own form, so it is read strictly: an area that is not one is a fault. Importers mend other files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from shapely import MultiPolygon, Polygon
from shapely.errors import ShapelyError
from shapely.geometry import shape
from shapely.validation import explain_validity

from wsigym.errors import Fault

from .files import json_fault, parse_json, read_text

__all__ = ["Region", "class_name", "read_regions"]


@dataclass(frozen=True)
class Region:
    """An annotated area. `name` is its classification, None where the annotator gave none."""

    name: str | None
    area: Polygon | MultiPolygon


def read_regions(path: Path, file: str) -> tuple[list[Region], list[Fault]]:
    """The areas of one GeoJSON FeatureCollection, and what is wrong in it. `file` is its name in faults."""
    text, faults = read_text(path, file)
    if text is None:
        return [], faults
    try:
        content = parse_json(text)
    except ValueError as error:
        return [], [json_fault(error, file, None)]
    features = content.get("features") if isinstance(content, dict) else None
    if not isinstance(features, list):
        return [], [Fault(file, None, "features", "a GeoJSON FeatureCollection with a list of features is needed")]
    regions: list[Region] = []
    for index, feature in enumerate(features):
        try:
            with np.errstate(invalid="ignore"):  # NaN coordinates make an invalid polygon, which is said below
                regions.append(_region(feature))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, ShapelyError) as error:
            # shapely.shape reads whatever it is given, so a malformed geometry fails in any of these ways.
            faults.append(Fault(file, None, f"features.{index}", f"not an area: {error}"))
    return regions, faults


def _region(feature: Any) -> Region:
    if not isinstance(feature, dict) or not isinstance(feature.get("geometry"), dict):
        raise ValueError("a feature is an object with a geometry")
    area = shape(feature["geometry"])
    if not isinstance(area, (Polygon, MultiPolygon)):
        raise ValueError(f"found {area.geom_type}, allowed are Polygon and MultiPolygon")
    if area.is_empty:
        raise ValueError("the polygon is empty")
    if not area.is_valid:
        raise ValueError(explain_validity(area))
    return Region(class_name(feature), shapely.force_2d(area))


def class_name(feature: dict[str, Any]) -> str | None:
    """The class of a GeoJSON feature, `properties.classification.name`. Raises `ValueError` if that is not text."""
    found: Any = feature.get("properties")
    for key in ("classification", "name"):
        if found is None:
            return None
        if not isinstance(found, dict):
            raise ValueError("properties.classification is an object with a name")
        found = found.get(key)
    if found is not None and not isinstance(found, str):
        raise ValueError(f"properties.classification.name is text; found {found!r}")
    return found
