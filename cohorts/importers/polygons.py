"""The plain polygon JSON that CAMELYON16's annotations are often converted to.

`{"positive": [{"name", "vertices": [[x, y], ...]}], "negative": [...]}`. Positive polygons are areas. Negative ones are
cut out of them, and are kept as areas of class "negative" as well: on a normal slide they outline its tissue.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wsigym.errors import AnnotationError

from .documents import read_json
from .shapes import Drawing, Shape

__all__ = ["CLASSES", "read"]

CLASSES = {"positive": "tumour"}

GROUPS = ("positive", "negative")


def read(file: str, content: bytes) -> list[Drawing]:
    document = read_json(file, content)
    if not isinstance(document, dict) or not document or not set(document) <= set(GROUPS):
        keys = ", ".join(map(repr, list(document)[:5])) if isinstance(document, dict) else ""
        found = f"keys {keys or '(none)'}" if isinstance(document, dict) else _kind(document)
        raise AnnotationError(
            file, "", f"found {found}; polygons files are an object of lists 'positive' and 'negative'"
        )
    for group, polygons in document.items():
        if not isinstance(polygons, list):
            raise AnnotationError(file, group, f"found {_kind(polygons)}; a list of polygons is needed")
    return [Drawing(Path(file).stem, tuple(_shapes(document)))]


def _shapes(document: dict[str, list[Any]]) -> Iterator[Shape]:
    for group, polygons in document.items():
        for index, polygon in enumerate(polygons):
            position, cuts = f"{group}[{index}]", "positive" if group == "negative" else None
            vertices = polygon.get("vertices") if isinstance(polygon, dict) else None
            if isinstance(vertices, list) and all(isinstance(vertex, list) and len(vertex) == 2 for vertex in vertices):
                yield Shape(position, group, [[[(x, y) for x, y in vertices]]], layer=group, cuts=cuts)
            else:
                yield Shape(position, group, fault="it has no 'vertices' that are a list of [x, y]")


def _kind(value: object) -> str:
    return f"a {type(value).__name__}"
