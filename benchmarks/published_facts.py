"""The figures that the papers print, kept as data in `published/` beside this file, for tables to show beside ours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from wsigym.errors import UnknownNameError

from .tables import Block, Cell, Column, Table

__all__ = ["PublishedFact", "facts_table", "published_facts", "published_rows"]


@dataclass(frozen=True)
class PublishedFact:
    """One figure as the paper prints it: a number, or text such as "0.25-0.28"; and what it is about."""

    value: float | str
    note: str


def published_facts(name: str) -> dict[str, PublishedFact]:
    """The facts of `published/<name>.json` by their key. Raises `UnknownNameError` where there is no such file."""
    return {row["key"]: PublishedFact(row["value"], row["note"]) for row in published_rows(name)}


def published_rows(name: str) -> list[dict[str, Any]]:
    """The rows of `published/<name>.json`, each from column to value. Raises as `published_facts`."""
    folder = resources.files("wsigym.benchmarks") / "published"
    file = folder / f"{name}.json"
    if not file.is_file():
        known = sorted(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))
        raise UnknownNameError("published table", name, known)
    table = json.loads(file.read_text("utf-8"))
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def facts_table(paper: str, rows: Sequence[Mapping[str, Cell]], note: str) -> Table:
    """Figures of `paper` beside those of runs: each row has "fact", "paper", "ours" (None: not there) and "note"."""
    return Table(
        "published",
        f"The paper beside these runs ({paper})",
        (Column("fact", "figure"),),
        (Block("", (Column("paper", "paper"), Column("ours", "here"), Column("note", "note"))),),
        tuple(rows),
        (note,),
    )
