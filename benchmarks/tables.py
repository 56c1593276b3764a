"""Tables of results as values: built once, then shown on a terminal, as JSON or as CSV.

A `Table` has key columns (policy, budget ...), which say what a row is, and blocks of further columns. On a terminal
each block is shown below the last with the key columns repeated, so that a wide table stays within 120 characters;
JSON and CSV have one wide row.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from rich import box
from rich.console import Group, JustifyMethod
from rich.table import Table as RichTable
from rich.text import Text

from wsigym.scoring.intervals import Estimate

__all__ = ["MISSING", "Block", "Cell", "Column", "Table", "TableOptions", "tables_to_json"]

COLUMN_GAP = 2
"""Blank characters beside a column on a terminal."""

FOLDED = 32
"""Text wider than this is folded rather than given its whole width."""

Cell = str | int | float | Estimate | None

MISSING = "-"
"""Shown where there is no value; never 0."""


@dataclass(frozen=True)
class Column:
    """`key` names the column in JSON and CSV, `label` on a terminal. Numbers are shown as `scale` times their value
    with `digits` decimals; an interval with at most two, as it is wide. `signed` is for differences: it writes the
    plus, the interval's every digit, and a star where the interval excludes 0. A column that is not `always` shown is
    left out on a terminal where every row has 0 or nothing."""

    key: str
    label: str
    digits: int = 3
    scale: float = 1
    signed: bool = False
    always: bool = True

    def text(self, cell: Cell) -> str:
        """The cell as a terminal shows it: "-" where there is no value."""
        if cell is None:
            return MISSING
        if isinstance(cell, str):
            return cell
        if isinstance(cell, int):
            return f"{cell:,}"
        if isinstance(cell, float):
            return self._number(cell, self.digits, self.signed)
        if cell.value is None:
            return MISSING
        value = self._number(cell.value, self.digits, self.signed)
        digits = self.digits if self.signed else min(self.digits, 2)
        if cell.low is None or cell.high is None:
            return f"{value} [{MISSING}]"
        star = ("*" if cell.excludes_zero else " ") if self.signed else ""
        return f"{value} [{self._number(cell.low, digits)}, {self._number(cell.high, digits)}]{star}"

    def _number(self, value: float, digits: int, signed: bool = False) -> str:
        # Adding 0.0 turns the minus zero that rounding leaves into plain zero.
        return f"{round(value * self.scale, digits) + 0.0:{'+' if signed else ''}.{digits}f}"


@dataclass(frozen=True)
class Block:
    """Columns shown side by side under one heading."""

    title: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class TableOptions:
    """Which tables to show beside the main one; `by` splits rows by a field of the records' groups, `against` names a
    policy that the others are held against."""

    by: str | None = None
    against: str | None = None
    causes: bool = False
    confidence: bool = False
    budgets: bool = False
    published: bool = False


@dataclass(frozen=True)
class Table:
    """`name` is what JSON calls it. `rows` hold a cell for each key and block column; one left out is missing."""

    name: str
    title: str
    keys: tuple[Column, ...]
    blocks: tuple[Block, ...]
    rows: tuple[Mapping[str, Cell], ...]
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.keys + tuple(column for block in self.blocks for column in block.columns)

    def to_rich(self, width: int = 120) -> Group:
        """For a rich console: the title, each block in parts that fit into `width` characters, the notes."""
        shown: list[Any] = [Text(self.title, style="bold")]
        for block in self.blocks:
            for number, columns in enumerate(self._parts(block, width)):
                if block.title:
                    shown += [Text(""), Text(block.title + (" (continued)" if number else ""))]
                shown.append(self._rich(columns))
        shown += [Text(note, style="dim") for note in self.notes]
        return Group(*shown)

    def _parts(self, block: Block, width: int) -> Iterator[list[Column]]:
        """The block's columns, parted so that each part with the key columns fits; a part has at least one column."""

        def needed(column: Column) -> int:
            lines = column.label.split("\n") + [column.text(row.get(column.key)) for row in self.rows]
            longest = max(map(len, lines)) + COLUMN_GAP
            return min(longest, FOLDED) if self._is_text(column) else longest

        free = width - COLUMN_GAP - sum(map(needed, self.keys))
        part: list[Column] = []
        for column in block.columns:
            if not column.always and not any(row.get(column.key) for row in self.rows):
                continue
            if part and sum(map(needed, [*part, column])) > free:
                yield part
                part = []
            part.append(column)
        yield part

    def _rich(self, columns: Sequence[Column]) -> RichTable:
        table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        for column in self.keys:
            table.add_column(Text(column.label), overflow="fold")
        for column in columns:
            justify: JustifyMethod = "left" if self._is_text(column) else "right"
            table.add_column(Text(column.label), justify=justify, overflow="fold")
        named = [[column.text(row.get(column.key)) for column in self.keys] for row in self.rows]
        first_repeats = any(now[0] == before[0] for before, now in pairwise(named))
        last: list[str] = []
        for row, keys in zip(self.rows, named, strict=True):
            # A key that repeats the row above is left blank, as long as everything left of it repeats too.
            same = next((i for i, (now, before) in enumerate(zip(keys, last, strict=False)) if now != before), 0)
            if same == 0 and last and first_repeats:
                table.add_section()
            blanked = [""] * same + keys[same:]
            table.add_row(*map(Text, blanked), *(Text(column.text(row.get(column.key))) for column in columns))
            last = keys
        return table

    def _is_text(self, column: Column) -> bool:
        return any(isinstance(row.get(column.key), str) for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: an estimate is an object of value, low, high, n and units; what is missing is null."""
        rows = [{column.key: _json_cell(row.get(column.key)) for column in self.columns} for row in self.rows]
        return {"name": self.name, "title": self.title, "rows": rows, "notes": list(self.notes)}

    def to_csv(self) -> str:
        """One line a row; an estimate takes the columns KEY, KEY_low, KEY_high, KEY_n and KEY_units."""
        estimates = {column.key for column in self.columns for row in self.rows if _is_estimate(row.get(column.key))}
        lines: list[dict[str, Any]] = []
        for row in self.rows:
            line: dict[str, Any] = {}
            for column in self.columns:
                cell = row.get(column.key)
                if column.key in estimates:
                    parts = cell if isinstance(cell, Estimate) else Estimate(None, None, None, 0, 0)
                    line[column.key] = parts.value
                    line |= {f"{column.key}_{name}": value for name, value in asdict(parts).items() if name != "value"}
                else:
                    line[column.key] = cell
            lines.append(line)
        text = io.StringIO()
        header = list(lines[0]) if lines else [column.key for column in self.columns]
        writer = csv.DictWriter(text, header, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
        return text.getvalue()


def tables_to_json(tables: Sequence[Table]) -> str:
    """`{"tables": [...]}` with the rows of each, for machines."""
    return json.dumps({"tables": [table.to_dict() for table in tables]}, indent=2, allow_nan=False)


def _is_estimate(cell: Cell) -> bool:
    return isinstance(cell, Estimate)


def _json_cell(cell: Cell) -> Any:
    return asdict(cell) if isinstance(cell, Estimate) else cell
