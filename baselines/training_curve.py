"""The learning curve of a training on disk: `curve.csv`, a row a checkpoint. Needs no PyTorch: tables read it too."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wsigym.cohorts.writing import write_text

__all__ = ["CURVE", "VALIDATION", "read_curve", "write_curve"]

CURVE = "curve.csv"

VALIDATION = "val_"
"""What columns of mean IoU on the validation split begin with."""

NEEDED = ("steps", "seconds", f"{VALIDATION}all")


def read_curve(file: Path) -> list[dict[str, Any]]:
    """Its rows: "steps" an int, the others floats, None where a checkpoint has none.

    Raises `OSError`, or `ValueError` or `TypeError` where a cell is no finite number or a row lacks what each has.
    """
    with file.open(encoding="utf-8", newline="") as lines:
        try:
            return [_row_of(cells) for cells in csv.DictReader(lines)]
        except csv.Error as error:
            raise ValueError(str(error)) from None


def write_curve(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    text = io.StringIO()
    columns = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(file, text.getvalue())


def _row_of(cells: dict[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {name: float(value) if value else None for name, value in cells.items()}
    if missing := [name for name in NEEDED if row.get(name) is None]:
        raise ValueError(f"a row of {CURVE} lacks {', '.join(missing)}")
    if not all(value is None or math.isfinite(value) for value in row.values()):
        raise ValueError(f"a row of {CURVE} has numbers that are none")
    return row | {"steps": int(cells["steps"])}
