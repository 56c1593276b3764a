"""COCO JSON, read as a stream: the file is gone through twice, and is never held as a whole.

The images and categories come first, wherever they stand in the file, then the annotations. Where an annotation has a
`bbox`, that is its box, whatever its segmentation; else the extent of its polygons. Polygons are kept for macro views,
whose areas are asked for. Ids of annotations are not looked at.
"""

from __future__ import annotations

import codecs
import json
import re
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wsigym.errors import AnnotationError, CohortError

from ....importers.coco import box_part, identified, images_of, polygon_part
from ....importers.documents import label_of
from ....importers.shapes import FaultyShapeError, Shape, geometry_of
from ..faults import Faults
from ..marks import Marks, Outline
from ..sources import Source
from .drawings import outline_of

__all__ = ["read", "stream"]

CHUNK = 1 << 20

_NUMBER = re.compile(r"[0-9.eE+-]*")
_SKIPPED = re.compile(r"[ \t\r\n,:]*")


@dataclass(frozen=True)
class _Named:
    """What annotations refer to by its id: `names` by id, of `what`; `faulty` are the ids of faulty entries."""

    what: str
    names: Mapping[Any, str]
    faulty: frozenset[Any]


def read(root: Path, source: Source, marks: Marks) -> None:
    """Raises `CohortError` with every faulty entry of all files."""
    faults = Faults()
    for path in source.files(root, source.annotations, "annotations"):
        name = path.relative_to(root).as_posix()
        with faults.of_file(name):
            images, categories = _named(name, path, marks, faults)
            for key, place, value in stream(name, path):
                if key == "annotations":
                    _add(name, place, value, images, categories, source, marks, faults)
    if faults:
        raise CohortError(faults.listed)


def _named(name: str, path: Path, marks: Marks, faults: Faults) -> tuple[_Named, _Named]:
    """The images and the categories of a file."""
    listed: dict[str, list[Any]] = {"images": [], "categories": []}
    for key, _, value in stream(name, path):
        if key in listed:
            listed[key].append(value)

    def wrong(position: str, reason: str) -> None:
        faults.add(name, None, position, reason)

    images: dict[Any, str] = {}
    for image_id, (stem, size) in images_of(listed["images"], wrong):
        images[image_id] = stem
        if size is not None:
            marks.frame(stem, *size)
    categories: dict[Any, str] = {}
    for position, category in identified("categories", listed["categories"], wrong):
        label = label_of(category.get("name"))
        if label is None:
            wrong(f"{position}.name", f"is {reprlib.repr(category.get('name'))}; a raw label is needed")
        else:
            categories[category["id"]] = label
    return (
        _Named("images", images, _ids(listed["images"]) - images.keys()),
        _Named("categories", categories, _ids(listed["categories"]) - categories.keys()),
    )


def _ids(listed: list[Any]) -> frozenset[Any]:
    ids = (each.get("id") for each in listed if isinstance(each, dict))
    return frozenset(value for value in ids if isinstance(value, int | str))


def _add(
    name: str, place: int, value: Any, images: _Named, categories: _Named, source: Source, marks: Marks, faults: Faults
) -> None:
    position = f"annotations[{place}]"
    if not isinstance(value, dict):
        faults.add(name, None, position, f"found a {type(value).__name__}; an object is needed")
        return
    try:
        image, label = images.names[value["image_id"]], categories.names[value["category_id"]]
    except (KeyError, TypeError):
        for key, named in (("image_id", images), ("category_id", categories)):
            message = _unknown(value, key, named)
            if message:
                faults.add(name, None, f"{position}.{key}", message)
        return
    if value.get("iscrowd") == 1:
        marks.drop(name, place, image, label, "it is of a crowd (iscrowd), not of one object")
        return
    polygons, box = value.get("segmentation"), value.get("bbox")
    outline: Outline | None = None
    field = "bbox"
    try:
        if isinstance(polygons, list) and polygons and (source.view == "slide" or not isinstance(box, list)):
            field = "segmentation"
            area = geometry_of(Shape(position, label, [polygon_part(polygon) for polygon in polygons]))[0]
            outline, bounds = outline_of(area), area.bounds
        else:
            bounds = _corners(box)
    except FaultyShapeError as error:
        why: str | None = str(error)
        marks.drop(name, place, image, label, str(error))
    else:
        why = marks.add(name, place, image, label, bounds, outline if source.view == "slide" else None)
    if why is not None:
        marks.unusable.add(name, None, f"{position}.{field}", why)


def _unknown(annotation: dict[str, Any], key: str, named: _Named) -> str:
    """Why an annotation's id is of no image or category of the file; "" where it is, or is of a faulty one."""
    if key not in annotation:
        return "is missing; it is required"
    value = annotation[key]
    if isinstance(value, int | str) and (value in named.names or value in named.faulty):
        return ""
    return f"{reprlib.repr(value)} is not the id of one of the file's {named.what}"


def _corners(box: object) -> tuple[float, float, float, float]:
    """The corners of a `bbox`. Raises `FaultyShapeError`; a box that is not finite or has no area is dropped later."""
    if not isinstance(box, list) or len(box) != 4 or not all(isinstance(side, int | float) for side in box):
        box_part(box)  # says what is wrong
    try:
        x, y, width, height = map(float, box)  # type: ignore[call-overload]
    except OverflowError:
        raise FaultyShapeError("its box is not finite") from None
    return x, y, x + width, y + height


def stream(name: str, path: Path) -> Iterator[tuple[str, int, Any]]:
    """(key, place, value) of each element of the arrays in the JSON object of a file, in their order.

    Memory is a chunk and the largest value. Raises `AnnotationError`.
    """
    try:
        with path.open("rb") as file:
            yield from _Text(name, file).elements()
    except OSError as error:
        raise AnnotationError(name, "", f"cannot be read: {error.strerror or error}") from None


class _Text:
    """A window on a JSON text that moves on as values are read."""

    def __init__(self, name: str, file: Any) -> None:
        self._name, self._file = name, file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._value = json.JSONDecoder().raw_decode
        self._text, self._at, self._lines, self._ended = "", 0, 1, False

    def elements(self) -> Iterator[tuple[str, int, Any]]:
        if self._next() != "{":
            raise self._wrong("a COCO file is an object")
        self._at += 1
        while self._next() != "}":
            key = self._take()
            if not isinstance(key, str):
                raise self._wrong("a key in quotes is needed")
            if self._next() != "[":
                self._take()
                continue
            self._at += 1
            place = 0
            while self._next() != "]":
                yield key, place, self._take()
                place += 1
            self._at += 1

    def _next(self) -> str:
        """The next character that is neither blank nor a comma or colon."""
        while True:
            self._at = _SKIPPED.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                raise self._wrong("the file ends before its object does")

    def _take(self) -> Any:
        """The value that begins here."""
        while True:
            try:
                value, end = self._value(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._more():
                    raise self._wrong(f"not JSON: {error.msg}", error.pos) from None
                continue
            except (RecursionError, ValueError) as error:
                raise self._wrong(f"not JSON that can be read: {error}") from None
            goes_on = isinstance(value, int | float) and _NUMBER.match(self._text, end).end() == len(self._text)  # type: ignore[union-attr]
            if goes_on and self._more():
                continue
            self._at = end
            return value

    def _more(self) -> bool:
        """Read on, and let go of what has been read; False at the end of the file."""
        if self._ended:
            return False
        chunk = self._file.read(max(CHUNK, len(self._text) - self._at))  # doubling, for values larger than a chunk
        self._ended = not chunk
        try:
            text = self._decode.decode(chunk, final=self._ended)
        except UnicodeDecodeError as error:
            raise self._wrong(f"not UTF-8 text: {error.reason}") from None
        self._lines += self._text.count("\n", 0, self._at)
        self._text, self._at = self._text[self._at :] + text, 0
        return not self._ended

    def _wrong(self, message: str, at: int | None = None) -> AnnotationError:
        line = self._lines + self._text.count("\n", 0, self._at if at is None else at)
        return AnnotationError(self._name, f"line {line}", message)
