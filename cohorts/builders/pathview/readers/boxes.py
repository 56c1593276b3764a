"""Tables of boxes: a CSV with `image`, `label` and either x1, y1, x2, y2 or x, y, width, height; one box a row."""

from __future__ import annotations

import csv
from pathlib import Path

from wsigym.errors import CohortError, Fault

from ..marks import Marks
from ..sources import Source

__all__ = ["read"]

CORNERS, SIDES = ("x1", "y1", "x2", "y2"), ("x", "y", "width", "height")


def read(root: Path, source: Source, marks: Marks) -> None:
    """Raises `CohortError` with every faulty row of every table."""
    faults: list[Fault] = []
    for path in source.files(root, source.annotations, "annotations"):
        name = path.relative_to(root).as_posix()
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                _read(name, csv.reader(file), marks, faults)
        except (UnicodeDecodeError, csv.Error) as error:
            faults.append(Fault(name, None, "", f"not a table in UTF-8: {error}"))
        except OSError as error:
            faults.append(Fault(name, None, "", f"cannot be read: {error.strerror or error}"))
    if faults:
        raise CohortError(faults)


def _read(name: str, rows: csv._reader, marks: Marks, faults: list[Fault]) -> None:  # type: ignore[name-defined]
    header = [column.strip() for column in next(rows, [])]
    corners = all(column in header for column in CORNERS)
    if not {"image", "label"} <= set(header) or not (corners or all(column in header for column in SIDES)):
        needed = f"image, label and {', '.join(CORNERS)} (or {', '.join(SIDES)})"
        faults.append(Fault(name, 1, "", f"has the columns {', '.join(header) or 'none'}; needed are {needed}"))
        return
    image, label = header.index("image"), header.index("label")
    places = [header.index(column) for column in (CORNERS if corners else SIDES)]
    for row in rows:
        if not row:
            continue
        if len(row) != len(header):
            faults.append(Fault(name, rows.line_num, "", f"has {len(row)} cells; {len(header)} are needed"))
            continue
        try:
            a, b, c, d = [float(row[place]) for place in places]
        except ValueError:
            faults.append(Fault(name, rows.line_num, *_wrong(header, row, places)))
            continue
        box = (a, b, c, d) if corners else (a, b, a + c, b + d)
        marks.add(name, rows.line_num, row[image], row[label].strip(), box)


def _wrong(header: list[str], row: list[str], places: list[int]) -> tuple[str, str]:
    """The first column that is no number, and what is wrong there."""
    for place in places:
        try:
            float(row[place])
        except ValueError:
            return header[place], f"is {row[place]!r}; a number is needed"
    raise AssertionError("every cell is a number")
