"""The paper's figures on a task of CaseScope beside the same of our runs: a row a model and collection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..evidence_measures import ACCURACY, CIRCULAR, CIRCULAR_BY_ITEM, SCORE_BY_ITEM, ByItem, Measure
from ..evidence_table import ordered_rows, paired
from ..published_facts import published_facts, published_rows
from ..records import EpisodeRecord
from ..rows import group_by, interval_note, scored
from ..tables import Block, Cell, Column, Table

__all__ = ["published_table"]

TEACHING, ATLAS = "teaching", "atlas"
COLLECTIONS = ((TEACHING, "T"), (ATLAS, "A"))

S5, S6, S7, S8, S9, S10A, S10B, S11 = (
    f"casescope_table{name}"
    for name in (
        "S5_readers",
        "S6_teaching",
        "S7_atlas",
        "S8_fieldset_ablation",
        "S9_rotation_consistency",
        "S10a_teaching_subsets",
        "S10b_atlas_subsets",
        "S11_open_ended",
    )
)

Arms = Mapping[str, Sequence[EpisodeRecord]]
"""The episodes of one policy on one collection, by how much of the evidence was shown."""


@dataclass(frozen=True)
class Figure:
    """A column. `paper`: for each collection the file and its column; `here`: our figure, None where a run lacks it."""

    column: Column
    paper: Mapping[str, tuple[str, str]]
    here: Callable[[Arms], Cell]
    block: str = ""


def _measured(measure: Measure, paper: Mapping[str, tuple[str, str]]) -> Figure:
    column = Column(measure.key, measure.label, measure.digits, measure.scale)
    return Figure(column, paper, lambda arms: measure.of(arms["all"]))


def _by_letter(file: str, measures: Mapping[str, Measure], columns: Mapping[str, str]) -> list[Figure]:
    """Figures of a file whose columns begin with the collection's letter."""
    return [
        _measured(measures[key], {source: (file, f"{letter}_{name}") for source, letter in COLLECTIONS})
        for key, name in columns.items()
    ]


def _of_both(measure: Measure, name: str) -> Figure:
    return _measured(measure, {TEACHING: (S6, name), ATLAS: (S7, name)})


def _less(budget: str, name: str) -> list[Figure]:
    """Circular accuracy of A2 with less evidence, and what that takes."""
    block, label = "Circular with less of the evidence", budget.replace("-", "\n")
    plain, delta = ({source: (S8, f"{letter}_{name}{end}") for source, letter in COLLECTIONS} for end in ("", "_delta"))
    return [
        Figure(
            Column(f"circular_{budget}", label, 1, 100),
            plain,
            lambda arms: CIRCULAR.of(arms[budget]) if budget in arms else None,
            block,
        ),
        Figure(
            Column(f"difference_{budget}", "difference", 1, 100, signed=True),
            delta,
            lambda arms: _paired(CIRCULAR_BY_ITEM, arms, budget, "all"),
            block,
        ),
    ]


def _paired(by: ByItem, arms: Arms, first: str, second: str) -> Cell:
    return paired(by, arms[first], arms[second]) if first in arms and second in arms else None


def _part(field: str, value: str, name: str, teaching: int, atlas: int) -> Figure:
    """Vanilla accuracy of A2 on a part of the cases; the paper's columns tell how many cases it has."""

    def here(arms: Arms) -> Cell:
        some = [record for record in arms["all"] if record.groups.get(field) == value]
        return ACCURACY.of(some) if some else None

    paper = {TEACHING: (S10A, f"{name}_{teaching}"), ATLAS: (S10B, f"{name}_{atlas}")}
    return Figure(Column(f"{field}_{value}", f"{field}\n{value}", 1, 100), paper, here, "Vanilla on parts of the cases")


PARTS = (
    ("he", "Y", "HE_Y", 194, 176),
    ("he", "P", "HE_P", 221, 601),
    ("he", "N", "HE_N", 21, 23),
    ("fields", "2", "F2", 57, 375),
    ("fields", "3-5", "F3to5", 184, 319),
    ("fields", "6+", "F6plus", 195, 106),
    ("behaviour", "non-neoplastic", "NN", 114, 210),
    ("behaviour", "benign", "B", 96, 190),
    ("behaviour", "intermediate", "I", 61, 107),
    ("behaviour", "malignant", "M", 165, 293),
)


def _figures(task: str, measures: Mapping[str, Measure]) -> list[Figure]:
    if task == "a1":
        errors = {f"error_{name}": name for name in ("F", "L", "W", "B", "N")}
        return _by_letter(S11, measures, {"hds": "HDS", "top1": "exact", "top3": "top3", **errors})
    if task == "a2":
        both = [_of_both(measures["circular"], "A2"), _of_both(measures["accuracy"], "A2v")]
        less = [*_less("highest-power", "highpower"), *_less("no-site", "nosite")]
        return [
            *both,
            *_by_letter(S9, measures, {"consistent": "content_consistent"}),
            *less,
            *(_part(*part) for part in PARTS),
        ]
    if task == "b":
        return [_of_both(measures["circular"], "B"), _of_both(measures["miss"], "Miss")]
    if task == "c":
        columns = {"circular": "C", "kappa": "Ckappa"}
        return [_measured(measures[key], {TEACHING: (S6, name)}) for key, name in columns.items()]
    if task == "r1":
        delta = Figure(
            Column("delta_img", "images\n- text", 1, 100, signed=True),
            {TEACHING: (S6, "dimg"), ATLAS: (S7, "dimg")},
            lambda arms: _paired(SCORE_BY_ITEM, arms, "all", "text"),
        )
        return [_of_both(measures["statements"], "R1"), delta]
    return [_measured(measures["circular"], {ATLAS: (S7, "G1")})]


READERS = {"a1": ("top1", "A1_exact"), "a2": ("accuracy", "A2")}
"""The measure and the column of the paper's readers, who saw 120 cases in rotation 0."""

READER_CASES = "120 reader cases"

FACTS = {
    "a1": ("spearman.A1", "judge."),
    "a2": ("A2.", "retention.", "spearman.A2", "subset.", "fields3plus."),
    "b": ("miss.", "B."),
    "c": (),
    "r1": ("R1.",),
    "g1": ("G1.",),
}
"""What the keys of the facts in the paper's text on a task begin with."""


def published_table(task: str, measures: Sequence[Measure]) -> Callable[[Sequence[EpisodeRecord]], Table]:
    """The function from a run's records to the table: rows of these runs first, then the paper's models and readers.

    A run's items of the collections "teaching" and "atlas" are shown apart, others together.
    """
    figures = _figures(task, {measure.key: measure for measure in measures})

    def table(records: Sequence[EpisodeRecord]) -> Table:
        rows = [*_ours(records, figures), *_models(figures), *_readers(task, figures)]
        blocks: dict[str, list[Column]] = {}
        for figure in figures:
            blocks.setdefault(figure.block, [] if figure.block else [Column("group", "group")]).append(figure.column)
        return Table(
            "published",
            f"casescope/{task} in the paper and here (CaseScope, arXiv 2611.15325)",
            (Column("model", "model"), Column("source", "collection")),
            tuple(Block(title, tuple(columns)) for title, columns in blocks.items()),
            tuple(rows),
            (interval_note(records, [cell for row in rows for cell in row.values()]), *_notes(task)),
        )

    return table


def _notes(task: str) -> list[str]:
    notes = [
        "In per cent but kappa. The paper's figures are on its own cases: compare with a run on the same ones only. "
        "Its random choice is one simulated draw."
    ]
    if task == "a1":
        notes.append("The paper's HDS takes of each answer the higher of a judge and the ontology, ours the ontology.")
    told = [
        f"{key} {fact.value}" + (f" ({fact.note})" if fact.note else "")
        for key, fact in published_facts("casescope_prose_facts").items()
        if key.startswith(FACTS[task])
    ]
    return [*notes, f"From its text: {'; '.join(told)}."] if told else notes


def _ours(records: Sequence[EpisodeRecord], figures: Sequence[Figure]) -> list[dict[str, Cell]]:
    rows: list[dict[str, Cell]] = []
    players: dict[tuple[str, str | None, str], dict[str, list[EpisodeRecord]]] = {}
    for (policy, endpoint, budget), episodes in ordered_rows(records):
        for source, group in group_by(scored(episodes), _collection).items():
            players.setdefault((policy, endpoint, source), {})[budget] = group
    for (policy, endpoint, source), arms in players.items():
        if "all" in arms:
            name = policy if endpoint is None else f"{policy}, {endpoint}"
            cells = {figure.column.key: figure.here(arms) for figure in figures}
            rows.append({"model": name, "source": source, "group": "these runs", **cells})
    return rows


def _collection(record: EpisodeRecord) -> str:
    source = record.groups.get("source")
    return source if source in (TEACHING, ATLAS) else "all"


def _models(figures: Sequence[Figure]) -> list[dict[str, Cell]]:
    """The paper's models, in its order, with the figures that it has of each; another file may name some only."""
    rows: dict[tuple[str, str], dict[str, Cell]] = {}
    for figure in figures:
        for source, (file, name) in figure.paper.items():
            for line in published_rows(file):
                if line[name] is None:
                    continue
                row = rows.setdefault((source, line["model"]), {"model": line["model"], "source": source})
                row.setdefault("group", line.get("group"))
                row[figure.column.key] = line[name] / figure.column.scale
    return sorted(rows.values(), key=lambda row: [TEACHING, ATLAS].index(str(row["source"])))


def _readers(task: str, figures: Sequence[Figure]) -> list[dict[str, Cell]]:
    if task not in READERS:
        return []
    key, name = READERS[task]
    column = next(figure.column for figure in figures if figure.column.key == key)
    return [
        {"model": line["row"], "source": READER_CASES, "group": line["kind"], key: line[name] / column.scale}
        for line in published_rows(S5)
    ]
