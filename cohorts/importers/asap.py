"""ASAP XML, the format of CAMELYON16 and CAMELYON17.

A `Polygon`, `Rectangle` or `Spline` is an area; a spline is the polygon through its points. `Dot`, `PointSet` and
`Measurement` are none. The class is the annotation's group (`PartOfGroup`; "None" is no class).
"""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

from wsigym.errors import AnnotationError

from .documents import children, label_of, read_xml
from .shapes import EXCLUSION, Drawing, Ring, Shape

__all__ = ["CLASSES", "read"]

CLASSES = {"_0": "tumour", "_1": "tumour", "_2": EXCLUSION, "Exclusion": EXCLUSION}
"""CAMELYON16's groups, by its README: _0 and _1 are tumour, _2 is non-tumour tissue drawn inside of it, which its test
slides call Exclusion. The names of CAMELYON17 and others are kept as they are."""

AREAS = ("Polygon", "Rectangle", "Spline")
MARKS = ("Dot", "PointSet", "Measurement")


def read(file: str, content: bytes) -> list[Drawing]:
    root = read_xml(file, content, "ASAP_Annotations", "asap")
    annotations = root.find("Annotations")
    if annotations is None:
        raise AnnotationError(file, "<ASAP_Annotations>", "it has no <Annotations>; is the file cut short?")
    shapes = (
        _shape(f"Annotation[{index}]", one) for index, one in enumerate(children(file, annotations, "Annotation"))
    )
    return [Drawing(Path(file).stem, tuple(shapes))]


def _shape(position: str, annotation: Element) -> Shape:
    kind = annotation.get("Type", "")
    if kind in MARKS:
        return Shape(position, left_out=kind)
    group = label_of(annotation.get("PartOfGroup"))
    label = None if group == "None" else group
    if kind not in AREAS:
        known = ", ".join(AREAS + MARKS)
        return Shape(position, label, fault=f"its Type is {kind!r}; known are {known}")
    points = list(annotation.iterfind("Coordinates/Coordinate"))
    in_order = sorted(points, key=_order)
    otherwise = None
    if in_order != points:
        reason = (
            "by their Order its points make an outline that crosses itself, so their sequence in the file was taken"
        )
        otherwise = ([[_ring(points)]], reason)
    return Shape(position, label, [[_ring(in_order)]], otherwise=otherwise)


def _order(point: Element) -> int:
    """The point's Order. Points without one stay where the file has them, before the others."""
    try:
        return int(point.get("Order", ""))
    except ValueError:
        return -1


def _ring(points: list[Element]) -> Ring:
    return [(point.get("X"), point.get("Y")) for point in points]
