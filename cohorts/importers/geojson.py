"""GeoJSON in level-0 pixels, as QuPath writes it: collections, lists of features, single features, bare geometries.

Polygons (with holes), MultiPolygons and those in a GeometryCollection are areas; points and lines are not. An ellipse
of QuPath is a polygon already. The class is `properties.classification`. Features nested in `childObjects` count too.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wsigym.cohorts.regions import class_name
from wsigym.errors import AnnotationError

from .documents import label_of, read_json
from .shapes import Drawing, FaultyShapeError, Part, Shape

__all__ = ["CLASSES", "features", "read", "shapes_of"]

CLASSES: dict[str, str] = {}

MARKS = ("Point", "MultiPoint", "LineString", "MultiLineString")
AREAS = ("Polygon", "MultiPolygon")


def read(file: str, content: bytes) -> list[Drawing]:
    found = features(file, read_json(file, content))
    return [Drawing(Path(file).stem, tuple(shape for each in found for shape in shapes_of(*each)))]


def features(file: str, document: Any) -> list[tuple[str, Any]]:
    """Each feature (or what stands in its place) with its position; a bare geometry becomes a feature."""
    if isinstance(document, list):
        return _with_children([(f"[{index}]", each) for index, each in enumerate(document)])
    kind = document.get("type") if isinstance(document, dict) else None
    if kind == "FeatureCollection":
        listed = document.get("features")
        if not isinstance(listed, list):
            raise AnnotationError(file, "features", "a FeatureCollection needs a list of features")
        return _with_children([(f"features[{index}]", each) for index, each in enumerate(listed)])
    if kind == "Feature":
        return _with_children([("feature", document)])
    if kind in (*AREAS, *MARKS, "GeometryCollection"):
        return [("geometry", {"type": "Feature", "geometry": document})]
    found = f"an object of type {kind!r}" if isinstance(document, dict) else f"a {type(document).__name__}"
    raise AnnotationError(
        file, "", f"found {found}; GeoJSON is a FeatureCollection, a Feature, a list of those, or a geometry"
    )


def _with_children(listed: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Features and, after each, those that QuPath nests under it."""
    found: list[tuple[str, Any]] = []
    waiting = listed[::-1]
    while waiting:
        position, feature = waiting.pop()
        found.append((position, feature))
        properties = feature.get("properties") if isinstance(feature, dict) else None
        children = properties.get("childObjects") if isinstance(properties, dict) else None
        if isinstance(children, list):
            nested = [(f"{position}.childObjects[{index}]", child) for index, child in enumerate(children)]
            waiting += nested[::-1]
    return found


def shapes_of(position: str, feature: Any) -> Iterator[Shape]:
    """The area of a feature, if it has one, and each point or line in it."""
    parts: list[Part] = []
    marks: list[str] = []
    try:
        if not isinstance(feature, dict) or feature.get("type") != "Feature":
            raise FaultyShapeError("it is no Feature")
        label = _label(feature)
        for geometry in _flat(feature.get("geometry")):
            if geometry["type"] in MARKS:
                marks.append(geometry["type"])
            else:
                parts += _parts(geometry)
        if not parts and not marks:
            raise FaultyShapeError("its geometry is empty")
    except ValueError as error:
        yield Shape(position, fault=str(error))
        return
    if parts:
        yield Shape(position, label, parts)
    for kind in marks:
        yield Shape(position, left_out=kind)


def _label(feature: dict[str, Any]) -> str | None:
    """The class; QuPath writes a derived one as `names` from the general to the particular, others as plain text."""
    properties = feature.get("properties")
    found = properties.get("classification") if isinstance(properties, dict) else None
    if isinstance(found, str):
        return label_of(found)
    names = found.get("names") if isinstance(found, dict) else None
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return label_of(": ".join(names))
    return label_of(class_name(feature))


def _flat(geometry: Any) -> Iterator[dict[str, Any]]:
    """A geometry, or those in a GeometryCollection at any depth."""
    waiting = [geometry]
    while waiting:
        each = waiting.pop()
        kind = each.get("type") if isinstance(each, dict) else None
        if kind == "GeometryCollection" and isinstance(each.get("geometries"), list):
            waiting += each["geometries"][::-1]
        elif kind in AREAS or kind in MARKS:
            yield each
        elif each is None:
            raise FaultyShapeError("it has no geometry (null)")
        else:
            raise FaultyShapeError(f"its geometry is of type {kind!r}; allowed are {', '.join(AREAS + MARKS)}")


def _parts(geometry: dict[str, Any]) -> list[Part]:
    coordinates = geometry.get("coordinates")
    polygons = coordinates if geometry["type"] == "MultiPolygon" else [coordinates]
    return [[[_pair(point) for point in _list(ring)] for ring in _list(polygon)] for polygon in _list(polygons)]


def _pair(point: object) -> tuple[object, object]:
    """x and y; a third coordinate is the height, which slides do not have."""
    if isinstance(point, list) and len(point) >= 2:
        return point[0], point[1]
    raise FaultyShapeError(f"a point is [x, y]; found {reprlib.repr(point)}")


def _list(value: object) -> list[Any]:
    if isinstance(value, list) and value:
        return value
    raise FaultyShapeError(f"its coordinates are incomplete; found {reprlib.repr(value)} where a list is needed")
