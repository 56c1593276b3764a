"""The paper's figures on a task of CaseScope beside the same of our runs: a row a model and collection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..evidence_measures import SCORE_BY_ITEM, Measure
from ..evidence_table import ordered_rows, paired
from ..published_facts import published_rows
from ..records import EpisodeRecord
from ..rows import group_by, interval_note, scored
from ..tables import Block, Cell, Column, Table

__all__ = ["published_table"]

TEACHING, ATLAS = "teaching", "atlas"

S6, S7, S9, S11 = (
    f"casescope_{name}"
    for name in ("tableS6_teaching", "tableS7_atlas", "tableS9_rotation_consistency", "tableS11_open_ended")
)

DELTA = "delta_img"
"""Statement accuracy with images minus that of the text alone, in points."""

ERRORS = ("F", "L", "W", "B", "N")

COLUMNS: Mapping[str, Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "a1": {
        source: (
            S11,
            {"hds": f"{first}_HDS", "top1": f"{first}_exact", "top3": f"{first}_top3"}
            | {f"error_{name}": f"{first}_{name}" for name in ERRORS},
        )
        for source, first in ((TEACHING, "T"), (ATLAS, "A"))
    },
    "a2": {
        source: (
            S9,
            {
                "circular": f"{first}_circular",
                "accuracy": f"{first}_vanilla",
                "consistent": f"{first}_content_consistent",
            },
        )
        for source, first in ((TEACHING, "T"), (ATLAS, "A"))
    },
    "b": {source: (table, {"circular": "B", "miss": "Miss"}) for source, table in ((TEACHING, S6), (ATLAS, S7))},
    "c": {TEACHING: (S6, {"circular": "C", "kappa": "Ckappa"})},
    "r1": {source: (table, {"statements": "R1", DELTA: "dimg"}) for source, table in ((TEACHING, S6), (ATLAS, S7))},
    "g1": {ATLAS: (S7, {"circular": "G1"})},
}
"""For each task and collection, the file and which of its columns is which measure."""

READERS = {"a1": ("top1", "A1_exact"), "a2": ("accuracy", "A2")}
"""The measure and the column of the paper's readers, who saw 120 cases in rotation 0."""

READER_CASES = "120 reader cases"


def published_table(task: str, measures: Sequence[Measure]) -> Callable[[Sequence[EpisodeRecord]], Table]:
    """The function from a run's records to the table: rows of these runs first, then the paper's models.

    A run's items of the collections "teaching" and "atlas" are shown apart, others together.
    """
    keys = list(dict.fromkeys(key for _, columns in COLUMNS[task].values() for key in columns))
    known = {measure.key: measure for measure in measures}

    def table(records: Sequence[EpisodeRecord]) -> Table:
        rows = [*_ours(records, keys, known), *_models(task, keys, known), *_readers(task, known)]
        columns = [_column(key, known) for key in keys]
        return Table(
            "published",
            f"casescope/{task} in the paper and here (CaseScope, arXiv 2611.15325)",
            (Column("model", "model"), Column("source", "collection")),
            (Block("", (Column("group", "group"), *columns)),),
            tuple(rows),
            (
                interval_note(records, [cell for row in rows for cell in row.values()]),
                "In per cent. The paper's figures are on its own cases: compare with a run on the same ones only. Its "
                "random choice is one simulated draw."
                + (" Its HDS is the higher of a judge and the ontology, ours the ontology alone." * (task == "a1")),
            ),
        )

    return table


def _column(key: str, known: Mapping[str, Measure]) -> Column:
    if key == DELTA:
        return Column(DELTA, "images\n- text", 1, 100, signed=True)
    return Column(key, known[key].label, known[key].digits, known[key].scale)


def _ours(records: Sequence[EpisodeRecord], keys: Sequence[str], known: Mapping[str, Measure]) -> list[dict[str, Cell]]:
    rows: list[dict[str, Cell]] = []
    text = {
        (policy, endpoint): group for (policy, endpoint, budget), group in ordered_rows(records) if budget == "text"
    }
    for (policy, endpoint, budget), episodes in ordered_rows(records):
        if budget != "all":
            continue
        for source, group in group_by(scored(episodes), _collection).items():
            cells: dict[str, Cell] = {key: known[key].of(group) for key in keys if key != DELTA}
            without = [each for each in text.get((policy, endpoint), ()) if _collection(each) == source]
            if DELTA in keys and without:
                cells[DELTA] = paired(SCORE_BY_ITEM, group, without)
            name = policy if endpoint is None else f"{policy}, {endpoint}"
            rows.append({"model": name, "source": source, "group": "these runs", **cells})
    return rows


def _collection(record: EpisodeRecord) -> str:
    source = record.groups.get("source")
    return source if source in (TEACHING, ATLAS) else "all"


def _models(task: str, keys: Sequence[str], known: Mapping[str, Measure]) -> list[dict[str, Cell]]:
    rows: list[dict[str, Cell]] = []
    for source, (name, columns) in COLUMNS[task].items():
        for row in published_rows(name):
            cells: dict[str, Cell] = {
                key: None
                if row[columns[key]] is None
                else row[columns[key]] / (known[key].scale if key in known else 100)
                for key in keys
                if key in columns
            }
            if any(cell is not None for cell in cells.values()):
                rows.append({"model": row["model"], "source": source, "group": row["group"], **cells})
    return rows


def _readers(task: str, known: Mapping[str, Measure]) -> list[dict[str, Cell]]:
    if task not in READERS:
        return []
    key, column = READERS[task]
    return [
        {"model": row["row"], "source": READER_CASES, "group": "reader", key: row[column] / known[key].scale}
        for row in published_rows("casescope_tableS5_readers")
        if row["kind"] == "reader"
    ]
