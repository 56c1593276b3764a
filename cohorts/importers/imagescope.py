"""Aperio ImageScope XML. A layer (`Annotation`) has regions; the class is the layer's name.

Region types 0 (freehand outline), 1 (rectangle) and 2 (ellipse) are areas; 3 (arrow), 4 (ruler) and 5 (pin) are not.
A region with `NegativeROA="1"` is cut out of the areas of its layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from .documents import children, label_of, read_xml
from .shapes import Drawing, FaultyShapeError, Part, Shape, as_part, coordinate

__all__ = ["CLASSES", "read"]

CLASSES: dict[str, str] = {}

OUTLINE, RECTANGLE, ELLIPSE = "0", "1", "2"
MARKS = {"3": "arrow", "4": "ruler", "5": "pin"}

ELLIPSE_SIDES = 256
"""The polygon of an ellipse has this many sides: its area is 0.01 % too small."""


def read(file: str, content: bytes) -> list[Drawing]:
    root = read_xml(file, content, "Annotations", "imagescope")
    return [Drawing(Path(file).stem, tuple(_shapes(file, root)))]


def _shapes(file: str, root: Element) -> Iterator[Shape]:
    for index, layer in enumerate(children(file, root, "Annotation")):
        for number, region in enumerate(layer.iterfind("Regions/Region")):
            yield _shape(f"Annotation[{index}].Region[{number}]", f"layer {index}", _label(layer), region)


def _label(layer: Element) -> str | None:
    """The layer's name, or else what its Description column says, where ImageScope's users write it."""
    described = (
        attribute.get("Value")
        for attribute in layer.iterfind("Attributes/Attribute")
        if attribute.get("Name") == "Description"
    )
    return label_of(layer.get("Name")) or label_of(next(described, None))


def _shape(position: str, layer: str, label: str | None, region: Element) -> Shape:
    kind = region.get("Type", OUTLINE)
    if kind in MARKS:
        return Shape(position, left_out=MARKS[kind])
    negative = region.get("NegativeROA", "0")
    try:
        if negative not in ("0", "1"):
            raise FaultyShapeError(f"its NegativeROA is {negative!r}; allowed are 0 and 1")
        part = _part(kind, [(vertex.get("X"), vertex.get("Y")) for vertex in region.iterfind("Vertices/Vertex")])
    except FaultyShapeError as error:
        return Shape(position, label, fault=str(error))
    if negative == "1":
        return Shape(position, None, [part], layer=layer, cuts=layer, is_area=False)
    return Shape(position, label, [part], layer=layer)


def _part(kind: str, vertices: list[tuple[str | None, str | None]]) -> Part:
    if kind == RECTANGLE and len(vertices) == 2:
        return as_part(*vertices[0], *vertices[1])
    if kind == ELLIPSE and len(vertices) <= 4:
        return [_ellipse(vertices)]
    if kind in (OUTLINE, RECTANGLE, ELLIPSE):
        return [vertices]
    raise FaultyShapeError(f"its Type is {kind!r}; known are 0 to 5")


def _ellipse(vertices: list[tuple[str | None, str | None]]) -> list[tuple[float, float]]:
    """The ellipse in the bounding box of `vertices`, which are two or four corners of it."""
    xs = [coordinate(x) for x, _ in vertices]
    ys = [coordinate(y) for _, y in vertices]
    if len(vertices) < 2:
        raise FaultyShapeError(f"an ellipse needs two corners; found {len(vertices)}")
    x, y, a, b = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2, (max(xs) - min(xs)) / 2, (max(ys) - min(ys)) / 2
    turns = [2 * math.pi * side / ELLIPSE_SIDES for side in range(ELLIPSE_SIDES)]
    return [(x + a * math.cos(turn), y + b * math.sin(turn)) for turn in turns]
