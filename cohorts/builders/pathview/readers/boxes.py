"""Tables of boxes: a CSV with `image`, `label` and either x1, y1, x2, y2 or x, y, width, height; one box a row."""

from __future__ import annotations

import csv
from pathlib import Path

from wsigym.errors import AnnotationError

from ..marks import Marks
from ..sources import Source

__all__ = ["read"]

CORNERS, SIDES = ("x1", "y1", "x2", "y2"), ("x", "y", "width", "height")


def read(root: Path, source: Source, marks: Marks) -> None:
    for path in source.files(root, source.annotations, "annotations"):
        name = path.relative_to(root).as_posix()
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                _read(name, csv.reader(file), marks)
        except (UnicodeDecodeError, csv.Error) as error:
            raise AnnotationError(name, "", f"not a table in UTF-8: {error}") from None
        except OSError as error:
            raise AnnotationError(name, "", f"cannot be read: {error.strerror or error}") from None


def _read(name: str, rows: csv._reader, marks: Marks) -> None:  # type: ignore[name-defined]
    header = [column.strip() for column in next(rows, [])]
    corners = all(column in header for column in CORNERS)
    if not {"image", "label"} <= set(header) or not (corners or all(column in header for column in SIDES)):
        needed = f"image, label and {', '.join(CORNERS)} (or {', '.join(SIDES)})"
        raise AnnotationError(name, "line 1", f"has the columns {', '.join(header) or 'none'}; needed are {needed}")
    image, label = header.index("image"), header.index("label")
    places = [header.index(column) for column in (CORNERS if corners else SIDES)]
    for row in rows:
        if not row:
            continue
        if len(row) != len(header):
            raise AnnotationError(name, f"line {rows.line_num}", f"has {len(row)} cells; {len(header)} are needed")
        try:
            a, b, c, d = [float(row[place]) for place in places]
        except ValueError:
            raise AnnotationError(name, f"line {rows.line_num}", _wrong(header, row, places)) from None
        box = (a, b, c, d) if corners else (a, b, a + c, b + d)
        marks.add(name, rows.line_num, row[image], row[label].strip(), box)


def _wrong(header: list[str], row: list[str], places: list[int]) -> str:
    for place in places:
        try:
            float(row[place])
        except ValueError:
            return f"{header[place]} is {row[place]!r}; a number is needed"
    raise AssertionError("every cell is a number")
