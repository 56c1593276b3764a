"""The table as a value: how cells read, how blocks fit a terminal, and what machines get."""

from __future__ import annotations

import csv
import io
import json

import pytest
from rich.console import Console

from wsigym.benchmarks.tables import Block, Cell, Column, Table, tables_to_json
from wsigym.scoring.intervals import Estimate

IOU = Column("iou", "mean IoU")
SHARE = Column("hit", "hits, %", digits=0, scale=100)
GAIN = Column("gain", "gain", signed=True)
NOTHING = Estimate(None, None, None, 0, 0)


@pytest.mark.parametrize(
    ("column", "cell", "text"),
    [
        (IOU, None, "-"),
        (IOU, NOTHING, "-"),
        (IOU, 0.0, "0.000"),
        (IOU, "tight", "tight"),
        (IOU, 12345, "12,345"),
        (IOU, Estimate(0.4123, 0.3, 0.5678, 9, 9), "0.412 [0.30, 0.57]"),
        (IOU, Estimate(0.4123, None, None, 4, 4), "0.412 [-]"),
        (SHARE, Estimate(0.345, 0.2, 0.5, 9, 9), "34 [20, 50]"),
        (SHARE, 0.345, "34"),
        (GAIN, Estimate(0.1, 0.0004, 0.2, 9, 9), "+0.100 [0.000, 0.200]*"),
        (GAIN, Estimate(-0.1, -0.2, 0.1, 9, 9), "-0.100 [-0.200, 0.100] "),
        (GAIN, Estimate(-0.0001, -0.0002, -0.0001, 9, 9), "+0.000 [0.000, 0.000]*"),
    ],
)
def test_a_cell_reads_as_a_person_would_write_it(column: Column, cell: Cell, text: str) -> None:
    assert column.text(cell) == text


def table(**changes: object) -> Table:
    fields: dict[str, object] = {
        "name": "main",
        "title": "Results",
        "keys": (Column("policy", "policy"), Column("budget", "budget")),
        "blocks": (
            Block("Scores", (IOU, SHARE)),
            Block("Counts", (Column("n", "n"), Column("lost", "lost", always=False))),
        ),
        "rows": (
            {"policy": "a", "budget": "tight", "iou": Estimate(0.5, 0.4, 0.6, 9, 8), "hit": 0.5, "n": 9, "lost": 0},
            {"policy": "a", "budget": "base", "iou": NOTHING, "n": 0, "lost": 0},
            {"policy": "b", "budget": "base", "iou": Estimate(1.0, None, None, 3, 3), "hit": 1.0, "n": 3},
        ),
        "notes": ("A note.",),
    }
    return Table(**(fields | changes))  # type: ignore[arg-type]


def shown(given: Table, width: int = 120) -> list[str]:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(given.to_rich(width))
    return [line.rstrip() for line in console.file.getvalue().splitlines() if line.strip()]  # type: ignore[attr-defined]


def test_blocks_stand_one_below_the_other_with_their_keys() -> None:
    assert shown(table()) == [
        "Results",
        "Scores",
        " policy  budget            mean IoU  hits, %",
        " ───────────────────────────────────────────",
        " a       tight   0.500 [0.40, 0.60]       50",
        "         base                     -        -",
        " b       base             1.000 [-]      100",
        "Counts",
        " policy  budget  n",
        " ─────────────────",
        " a       tight   9",
        "         base    0",
        " b       base    3",
        "A note.",
    ]


def test_a_column_of_zeros_is_shown_only_where_it_is_always() -> None:
    assert "lost" not in "\n".join(shown(table()))
    lost = table(rows=({"policy": "a", "budget": "base", "lost": 1},))
    assert " policy  budget  n  lost" in shown(lost)


def test_a_block_too_wide_goes_on_below() -> None:
    columns = tuple(Column(f"c{i}", f"column {i}") for i in range(12))
    rows = ({"policy": "a", "budget": "base"} | {f"c{i}": 0.5 for i in range(12)},)
    lines = shown(table(blocks=(Block("Wide", columns),), rows=rows), width=60)
    assert [line for line in lines if line.startswith("Wide")] == ["Wide", "Wide (continued)", "Wide (continued)"]
    assert max(map(len, lines)) <= 60
    assert sum(line.count("0.500") for line in lines) == 12


def test_long_text_is_folded_and_not_cut() -> None:
    sentence = "a note of many words that goes on and on beyond what a line can hold, " * 3
    rows = ({"policy": "a", "budget": "base", "note": sentence, "n": 1},)
    lines = shown(table(blocks=(Block("", (Column("n", "n"), Column("note", "note"))),), rows=rows), width=80)
    assert max(map(len, lines)) <= 80
    assert sum(line.count("words") for line in lines) == 3
    # Beside the number, in one part: long text does not push itself into a further part.
    assert " policy  budget  n  note" in lines


@pytest.mark.parametrize("name", ["[red]x[/red]", "num_cpus:a:2"])
def test_markup_in_a_name_is_text(name: str) -> None:
    rows = ({"policy": name, "budget": "base", "n": 1},)
    assert any(name in line for line in shown(table(rows=rows)))
    named = Column("key", name)
    for changes in ({"keys": (named,)}, {"blocks": (Block("", (named,)),)}):
        assert any(name in line for line in shown(table(**changes)))


def test_json_has_numbers_and_null() -> None:
    content = json.loads(tables_to_json([table()]))
    (main,) = content["tables"]
    assert (main["name"], main["title"], main["notes"]) == ("main", "Results", ["A note."])
    assert main["rows"][0] == {
        "policy": "a",
        "budget": "tight",
        "iou": {"value": 0.5, "low": 0.4, "high": 0.6, "n": 9, "units": 8},
        "hit": 0.5,
        "n": 9,
        "lost": 0,
    }
    assert main["rows"][1]["hit"] is None
    assert main["rows"][1]["iou"]["value"] is None


def test_csv_has_a_column_for_each_part_of_an_estimate() -> None:
    rows = list(csv.DictReader(io.StringIO(table().to_csv())))
    assert list(rows[0]) == ["policy", "budget", "iou", "iou_low", "iou_high", "iou_n", "iou_units", "hit", "n", "lost"]
    assert [row["iou"] for row in rows] == ["0.5", "", "1.0"]
    assert [row["iou_low"] for row in rows] == ["0.4", "", ""]
    assert [row["iou_units"] for row in rows] == ["8", "0", "3"]
    assert [row["lost"] for row in rows] == ["0", "0", ""]


def test_csv_quotes_names_with_commas() -> None:
    rows = ({"policy": 'a, "b"', "budget": "2.5=10,10=7", "n": 1},)
    (row,) = csv.DictReader(io.StringIO(table(rows=rows).to_csv()))
    assert (row["policy"], row["budget"]) == ('a, "b"', "2.5=10,10=7")


def test_csv_of_no_rows_is_its_header() -> None:
    assert table(rows=()).to_csv() == "policy,budget,iou,hit,n,lost\n"
