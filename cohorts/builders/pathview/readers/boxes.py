"""Tables of boxes: a CSV with `image`, `label` and either x1, y1, x2, y2 or x, y, width, height; one box a row."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from wsigym.errors import CohortError

from ..faults import Faults
from ..marks import Marks
from ..sources import Source

__all__ = ["read"]

CORNERS, SIDES = ("x1", "y1", "x2", "y2"), ("x", "y", "width", "height")


def read(root: Path, source: Source, marks: Marks) -> None:
    """Raises `CohortError` with the faulty rows of all tables."""
    faults = Faults()
    for path in source.files(root, source.annotations, "annotations"):
        name = path.relative_to(root).as_posix()
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                _read(name, csv.reader(file), marks, faults)
        except (UnicodeDecodeError, csv.Error) as error:
            faults.add(name, None, "", f"not a table in UTF-8: {error}")
        except OSError as error:
            faults.add(name, None, "", f"cannot be read: {error.strerror or error}")
    if faults:
        raise CohortError(faults.listed)


def _read(name: str, rows: csv._reader, marks: Marks, faults: Faults) -> None:  # type: ignore[name-defined]
    header = [column.strip() for column in next(rows, [])]
    corners = all(column in header for column in CORNERS)
    if not {"image", "label"} <= set(header) or not (corners or all(column in header for column in SIDES)):
        needed = f"image, label and {', '.join(CORNERS)} (or {', '.join(SIDES)})"
        faults.add(name, 1, "", f"has the columns {', '.join(header) or 'none'}; needed are {needed}")
        return
    image, label = header.index("image"), header.index("label")
    places = [header.index(column) for column in (CORNERS if corners else SIDES)]
    for row in rows:
        if not row:
            continue
        if len(row) != len(header):
            faults.add(name, rows.line_num, "", f"has {len(row)} cells; {len(header)} are needed")
            continue
        try:
            a, b, c, d = [float(row[place]) for place in places]
        except ValueError:
            faults.add(name, rows.line_num, *_wrong(header, row, places))
            continue
        box = (a, b, c, d) if corners else (a, b, a + c, b + d)
        why = marks.add(name, rows.line_num, row[image].strip(), row[label].strip(), box)
        if why is not None:
            marks.unusable.add(name, rows.line_num, *_no_box(header, row, places, why))


def _wrong(header: list[str], row: list[str], places: list[int]) -> tuple[str, str]:
    """The first column that is no number, and what is wrong there."""
    for place in places:
        try:
            float(row[place])
        except ValueError:
            return header[place], f"is {row[place]!r}; a number is needed"
    raise AssertionError("every cell is a number")


def _no_box(header: list[str], row: list[str], places: list[int], why: str) -> tuple[str, str]:
    """The first column that makes a row's numbers no box, and why they are none."""
    place = next((place for place in places if not math.isfinite(float(row[place]))), None)
    if place is None:  # finite, so a side is negative
        negative = float(row[places[2]]) < (float(row[places[0]]) if header[places[2]] == CORNERS[2] else 0)
        place = places[2] if negative else places[3]
    return header[place], f"is {row[place]!r}: {why}"
