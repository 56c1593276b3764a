"""Diagnostic trees drawn in QuPath: rectangles become nodes.

A feature's name is the finding. Its metadata (or, for the magnification, its measurements) say the rest:

    magnification   required
    node_id         else the feature's own id
    parent_id       "" for a node without parent; else the smallest box around it of lower magnification

Nothing is skipped here: a tree with a node missing would be another tree.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import shapely
from pydantic import ValidationError

from wsigym.cohorts.files import Lines
from wsigym.cohorts.invariants import tree_of
from wsigym.cohorts.models import Node
from wsigym.errors import AnnotationError
from wsigym.slides import Box

from .dialects import content_of
from .documents import read_json, text_of
from .geojson import features, shapes_of
from .shapes import FaultyShapeError, geometry_of

__all__ = ["read_nodes"]

LEGACY_ID = "PathAnnotationObject"
"""QuPath 0.2 and 0.3 write this as the id of every annotation."""


def read_nodes(path: str | Path, slide_id: str, *, slide_box: Box | None = None) -> list[Node]:
    """The nodes of one slide's GeoJSON file, in its order. Corners are rounded to whole level-0 pixels, halves up.

    Raises `AnnotationError`, naming the feature, if one is no upright rectangle, leaves `slide_box`, or lacks a finding
    or a magnification, and if the nodes do not make trees.
    """
    file = str(path)
    listed = features(file, read_json(file, content_of(path)))
    nodes = [
        _node(file, position, feature, slide_id, f"node-{index}", slide_box)
        for index, (position, feature) in enumerate(listed)
    ]
    nodes = [
        node if _says_parent(feature) else node.model_copy(update={"parent_id": _parent_around(node, nodes)})
        for node, (_, feature) in zip(nodes, listed, strict=True)
    ]
    for fault in tree_of(Lines(valid=list(enumerate(nodes))), [slide_id]).faults:
        position, feature = listed[fault.line or 0]
        message = f"{fault.field}: {fault.message}".replace("on line", "on feature")
        raise AnnotationError(file, _named(position, feature), message)
    return nodes


def _node(file: str, position: str, feature: Any, slide_id: str, default_id: str, slide_box: Box | None) -> Node:
    try:
        box = _box(position, feature)
        if slide_box is not None and not slide_box.contains(box):
            raise FaultyShapeError(
                f"its box {box.to_list()} leaves the slide of {slide_box.width} x {slide_box.height} px"
            )
        metadata = _metadata(feature)
        own_id = text_of(feature.get("id"))
        return Node(
            slide_id=slide_id,
            node_id=metadata.get("node_id") or (own_id if own_id != LEGACY_ID else "") or default_id,
            parent_id=metadata.get("parent_id") or None,
            magnification=_magnification(feature, metadata),
            box=box,
            finding=text_of(_properties(feature).get("name")),
        )
    except FaultyShapeError as error:
        raise AnnotationError(file, _named(position, feature), str(error)) from None
    except ValidationError as error:
        problem = error.errors()[0]
        field = "name, the finding" if problem["loc"][:1] == ("finding",) else problem["loc"][0]
        message = problem["msg"].removeprefix("Value error, ")
        raise AnnotationError(file, _named(position, feature), f"{field}: {message}") from None


def _box(position: str, feature: Any) -> Box:
    shapes = list(shapes_of(position, feature))
    if len(shapes) != 1 or shapes[0].left_out:
        raise FaultyShapeError(f"found {', '.join(shape.left_out or 'an area' for shape in shapes)}; a node is a box")
    area, _ = geometry_of(shapes[0])
    if not area.equals(shapely.box(*area.bounds)):
        raise FaultyShapeError("it is no upright rectangle, and a node is one; draw its bounding rectangle instead")
    left, top, right, bottom = (math.floor(bound + 0.5) for bound in area.bounds)
    if left == right or top == bottom:
        raise FaultyShapeError(f"its bounds {area.bounds} round to a box without area")
    return Box(left, top, right - left, bottom - top)


def _magnification(feature: dict[str, Any], metadata: dict[str, str]) -> float:
    found: object = metadata.get("magnification", _measurements(feature).get("magnification"))
    try:
        if isinstance(found, (int, float, str)):
            return float(found)
    except (ValueError, OverflowError):
        pass
    raise FaultyShapeError(
        f"its magnification is {found!r}; its metadata or measurements need a number under 'magnification', such as 10"
    )


def _properties(feature: dict[str, Any]) -> dict[str, Any]:
    properties = feature.get("properties")
    return properties if isinstance(properties, dict) else {}


def _metadata(feature: dict[str, Any]) -> dict[str, str]:
    """QuPath's metadata: text for each key. Numbers, which other writers put there, are taken as text."""
    metadata = _properties(feature).get("metadata")
    if not isinstance(metadata, dict):
        return {}
    return {key: text_of(value) if isinstance(value, str) else str(value) for key, value in metadata.items()}


def _measurements(feature: dict[str, Any]) -> dict[str, Any]:
    """QuPath's measurements: an object, or before version 0.4 a list of {"name", "value"}."""
    found = _properties(feature).get("measurements")
    if isinstance(found, list):
        return {str(each.get("name")): each.get("value") for each in found if isinstance(each, dict)}
    return found if isinstance(found, dict) else {}


def _says_parent(feature: dict[str, Any]) -> bool:
    return "parent_id" in _metadata(feature)


def _parent_around(node: Node, nodes: list[Node]) -> str | None:
    around = [each for each in nodes if each.magnification < node.magnification and each.box.contains(node.box)]
    nearest = min(around, key=lambda each: (each.box.area, -each.magnification), default=None)
    return nearest.node_id if nearest is not None else None


def _named(position: str, feature: Any) -> str:
    name = text_of(_properties(feature).get("name")) if isinstance(feature, dict) else ""
    return f"{position} ({name[:60]!r})" if name else position
