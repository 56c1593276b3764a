"""A1 before a judge, human or model: a blinded sheet of answers, and what its grades amount to.

    sheet.csv    code, what a judge is told of the case, the answer; the column `grade` is filled in with 0, 1 or 2
    key.csv      code, who answered which item, whether they did, and `grade`: the ontology's own, doubled (0, 1, 2)

The sheet shows neither images nor who answered; its rows stand in the order of their codes, which tells nothing. An
answer that names no diagnosis is wrong without a judge: it is in the key alone, so that it counts in every mean.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wsigym.cohorts import Cohort, EvidenceItem, EvidenceReference
from wsigym.cohorts.item_files import load_entities
from wsigym.cohorts.references import KnownEntity
from wsigym.errors import CohortError, Fault, InvalidArgumentError, RunError
from wsigym.scoring.agreement import Agreement
from wsigym.scoring.items import parse_answer
from wsigym.scoring.judging import GRADES, blinded_sheet, judge_agreement

from ..run_folder import Run
from ..tables import Block, Cell, Column, Table
from .tasks import A1

__all__ = ["Sheet", "agreement_tables", "judge_sheet", "read_grades"]

SHEET = ("code", "site", "reference", "synonyms", "also_accepted", "behaviour", "family", "diagnosis", "differential")
KEY = ("code", "policy", "endpoint", "seed", "item", "answered")
GRADE = "grade"
JOIN = " | "


@dataclass(frozen=True)
class Sheet:
    """The two files as CSV, how many answers the sheet has, and how many without a diagnosis are in the key alone."""

    sheet: str
    key: str
    answers: int
    without: int


def judge_sheet(runs: Sequence[Run], cohort: Cohort, seed: int = 0) -> Sheet:
    """The sheet of every A1 answer of runs (read with their steps) that saw all of the evidence.

    Raises `RunError` for runs of another task, of another cohort, or without such an answer.
    """
    for run in runs:
        if f"{run.config.suite}/{run.config.task}" != A1.name:
            raise RunError(f"{run.name} is a run of {run.config.suite}/{run.config.task}; judges grade {A1.name}.")
        if run.config.cohort.sha256 != cohort.sha256:
            raise RunError(f"{run.name} was played on another cohort than {cohort.root}, or on it before it changed.")
    asked = {item.item_id: item for item in A1.items(cohort, None)}
    entities = {each.entity: each for each in load_entities(cohort, "casescope")}
    answers: list[tuple[str, str, str, str, str]] = []
    told: dict[tuple[str, str], dict[str, object]] = {}
    keys: dict[tuple[str, str], dict[str, object]] = {}
    for run in runs:
        for record in run.records:
            if record.budget != "all" or record.score is None:
                continue
            who = f"{record.policy}\0{record.endpoint}\0{record.seed}", record.item
            answers.append((*who, "", "", ""))
            said = parse_answer("diagnosis", str(record.steps[-1].action)) if record.steps else None
            keys[who] = {
                "policy": record.policy,
                "endpoint": record.endpoint or "",
                "seed": record.seed,
                "item": record.item,
                "answered": "no" if said is None else "yes",
                GRADE: round(2 * record.score),
            }
            if said is not None:
                facts = _facts(asked[record.item].question, asked[record.item].reference, entities)
                differential = JOIN.join(said["differential"])
                told[who] = facts | {"diagnosis": said["diagnosis"], "differential": differential}
    if not told:
        raise RunError("no answer with all of the evidence names a diagnosis, so that there is nothing to judge.")
    rows, owner = blinded_sheet(answers, seed)
    sheet = [{"code": row.code, **told[owner[row.code]], GRADE: ""} for row in rows if owner[row.code] in told]
    key = [{"code": row.code, **keys[owner[row.code]]} for row in rows]
    return Sheet(_csv((*SHEET, GRADE), sheet), _csv((*KEY, GRADE), key), len(told), len(keys) - len(told))


def _facts(item: EvidenceItem, reference: EvidenceReference, entities: Mapping[str, KnownEntity]) -> dict[str, object]:
    """What the paper's judge is told: the reference, other names, its behaviour, and its family with behaviours."""
    right = entities[reference.answer["diagnosis"]]
    family = [each for each in entities.values() if each.family == right.family and each is not right]
    return {
        "site": item.metadata.site or "",
        "reference": right.entity,
        "synonyms": JOIN.join(right.synonyms),
        "also_accepted": JOIN.join(each["diagnosis"] for each in reference.accepted),
        "behaviour": right.behaviour,
        "family": JOIN.join(f"{each.entity} ({each.behaviour})" for each in family),
    }


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


# -- what grades amount to ----------------------------------------------------------------------------------------


def _rows_of(reader: csv.DictReader[str], file: Path) -> Iterator[dict[str, str]]:
    try:
        yield from reader
    except csv.Error as error:
        raise CohortError([Fault(str(file), reader.line_num, "", f"is no row of a CSV file ({error})")]) from None


def read_grades(file: Path) -> dict[str, dict[str, str]]:
    """The rows of a graded sheet or a key by code; `grade` is "", "0", "1" or "2".

    Raises `CohortError` with every fault of the file, each with its line, and `InvalidArgumentError` where it cannot be
    read or has no grade at all.
    """
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{file} cannot be read ({error}); a CSV file is needed.") from None
    reader = csv.DictReader(io.StringIO(text))
    missing = [name for name in ("code", GRADE) if name not in (reader.fieldnames or ())]
    if missing:
        raise CohortError([Fault(str(file), 1, "", f"has no column {' and no column '.join(missing)}")])
    rows: dict[str, dict[str, str]] = {}
    faults = []
    for row in _rows_of(reader, file):
        cells = {name: (value or "").strip() for name, value in row.items() if isinstance(name, str)}
        if cells[GRADE] not in ("", *map(str, GRADES)):
            allowed = ", ".join(map(str, GRADES))
            message = f"{cells[GRADE]!r} is no grade; allowed are {allowed}, or nothing"
            faults.append(Fault(str(file), reader.line_num, GRADE, message))
        if cells["code"] in rows:
            faults.append(Fault(str(file), reader.line_num, "code", f"{cells['code']!r} stands there already"))
        rows[cells["code"]] = cells
    if faults:
        raise CohortError(faults)
    if not any(cells[GRADE] for cells in rows.values()):
        raise InvalidArgumentError(
            f"{file}: none of its {len(rows)} answers has a grade yet; write 0 (wrong), 1 (partly right) or 2 (right) "
            f"into its column {GRADE!r}, and score it then."
        )
    return rows


def agreement_tables(
    first: Mapping[str, Mapping[str, str]],
    second: Mapping[str, Mapping[str, str]],
    key: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Table]:
    """How far two gradings agree on the answers, and with the `key` what each model scores by the first: HDS, the
    higher of the judge's grade and the ontology's, over all of its items.

    An item without an answer scores 0 and is in no agreement; an answer that the judge left out has the ontology's
    grade. Raises `InvalidArgumentError` where nothing is graded in both, or the key is another sheet's or none.
    """
    found = judge_agreement(_grades(first), _grades(second))
    if not found.n:
        raise InvalidArgumentError(
            "no answer has a grade in both files; give two gradings of one sheet, or a sheet and its key."
        )
    tables = [_agreement_table(found)]
    if key is not None:
        tables.append(_models_table(_grades(first), key))
    return tables


def _grades(side: Mapping[str, Mapping[str, str]]) -> dict[str, int | None]:
    """Grades by code, None where there is none; what the key says to be unanswered is not among them."""
    return {code: int(row[GRADE]) if row[GRADE] else None for code, row in side.items() if row.get("answered") != "no"}


def _agreement_table(found: Agreement) -> Table:
    row: dict[str, Cell] = {
        "answers": found.n,
        "coverage": found.coverage,
        "exact": found.exact,
        "kappa": found.kappa,
        "mean_first": None if found.mean_first is None else found.mean_first / 2,
        "mean_second": None if found.mean_second is None else found.mean_second / 2,
    }
    return Table(
        "agreement",
        "Two gradings of the same answers",
        (Column("answers", "answers"),),
        (
            Block(
                "",
                (
                    Column("coverage", "graded\nby both, %", 1, 100),
                    Column("exact", "exact\nagreement, %", 1, 100),
                    Column("kappa", "kappa", 2),
                    Column("mean_first", "mean grade\nof the first", 2),
                    Column("mean_second", "mean grade\nof the second", 2),
                ),
            ),
        ),
        (row,),
        (
            "kappa is quadratic-weighted; mean grades are 0 to 1. The paper's judge with the ontology, against a "
            "pathologist on 297 answers: 80.5 %, 0.76 (the judge alone 0.73), means 0.32 and 0.49.",
        ),
    )


def _models_table(judged: Mapping[str, int | None], key: Mapping[str, Mapping[str, str]]) -> Table:
    lacking = [name for name in KEY if any(name not in row for row in key.values())]
    if lacking:
        raise InvalidArgumentError(
            f"the key has no column {', '.join(lacking)}; give the key.csv written with the sheet."
        )
    strange = [code for code, grade in judged.items() if grade is not None and code not in key]
    if strange:
        raise InvalidArgumentError(
            f"{len(strange)} of the graded answers, such as {strange[0]!r}, are not in the key; give the key.csv that "
            "was written with that sheet."
        )
    models: dict[tuple[str, str], list[str]] = {}
    for code, row in key.items():
        models.setdefault((row["policy"], row["endpoint"]), []).append(code)
    rows = [_model_row(*model, codes, judged, key) for model, codes in models.items()]
    return Table(
        "judged",
        "HDS with a judge, %",
        (Column("policy", "policy"), Column("endpoint", "endpoint")),
        (
            Block(
                "",
                (
                    Column("items", "items"),
                    Column("unanswered", "un-\nanswered"),
                    Column("ungraded", "not\ngraded"),
                    Column("judge", "judge", 1, 100),
                    Column("onto", "HDS-onto", 1, 100),
                    Column("hds", "HDS", 1, 100),
                ),
            ),
        ),
        tuple(rows),
        (
            "Means over all items: one without a diagnosis is 0. HDS takes of each answer the higher of judge and "
            "ontology, and the ontology's where the judge gave none; the judge alone is shown once all are graded.",
        ),
    )


def _model_row(
    policy: str,
    endpoint: str,
    codes: Sequence[str],
    judged: Mapping[str, int | None],
    key: Mapping[str, Mapping[str, str]],
) -> dict[str, Cell]:
    answered = [code for code in codes if key[code]["answered"] != "no"]
    ungraded = sum(judged.get(code) is None for code in answered)
    given = np.array([judged.get(code) or 0 for code in codes]) / 2
    onto = np.array([int(key[code][GRADE] or 0) for code in codes]) / 2
    return {
        "policy": policy,
        "endpoint": endpoint or None,
        "items": len(codes),
        "unanswered": len(codes) - len(answered),
        "ungraded": ungraded,
        "judge": None if ungraded else float(given.mean()),
        "onto": float(onto.mean()),
        "hds": float(np.maximum(given, onto).mean()),
    }
