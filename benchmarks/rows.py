"""From episode records to the rows of a table: joining runs, grouping, and means with intervals over patients."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from wsigym.errors import InvalidArgumentError, RunError, UnknownNameError
from wsigym.scoring.intervals import DRAWS, FEW_UNITS, MIN_UNITS, SEED, Estimate, mean_estimate

from .records import EpisodeKey, EpisodeRecord
from .run_folder import Run
from .tables import MISSING, Block, Cell, Column, Table

__all__ = [
    "BUDGET",
    "UNKNOWN",
    "Row",
    "common_items",
    "differing_rows_note",
    "group_by",
    "group_of",
    "held_against",
    "interval_note",
    "join_runs",
    "mean_of",
    "row_cells",
    "row_columns",
    "row_of",
    "scored",
    "table_of",
    "unit_of",
    "where",
]

UNKNOWN = "unknown"
"""The group of records that state none, such as a slide without an organ."""

Row = tuple[str, str | None, str]
"""What makes a row: policy, endpoint, budget."""

BUDGET = Column("budget", "budget")

_K = TypeVar("_K")
_V = TypeVar("_V")


def join_runs(runs: Sequence[Run], *, common: bool = False) -> list[EpisodeRecord]:
    """The episodes of several runs of one task, policies in the order in which the runs name them.

    `common` keeps only the items that every row has a score for. Raises `RunError` where there is no episode, the
    tasks or the environment's arguments differ, one episode is in two runs, or (unless `common`) the runs ask different
    items or hold different references for them.
    """
    tasks = {f"{run.config.suite}/{run.config.task}": run.name for run in runs}
    if len(tasks) > 1:
        found = ", ".join(f"{task} ({name})" for task, name in tasks.items())
        raise RunError(f"one table shows one task; found {found}.")
    _check_unique(runs)
    records = [record for run in runs for record in run.records]
    if not records:
        raise RunError(f"no episode has finished in {', '.join(run.name for run in runs)}; run it first.")
    order = {policy: i for i, policy in enumerate(dict.fromkeys(name for run in runs for name in run.config.policies))}
    records.sort(key=lambda record: order.get(record.policy, len(order)))
    _check_same_environment(runs)
    if common:
        return common_items(records)
    if len({run.items_sha256 for run in runs}) > 1:
        listed = ", ".join(f"{run.name} ({run.config.items.count} items of subset {run.config.subset})" for run in runs)
        raise RunError(
            f"the runs ask different items: {listed}. Means over different items cannot be compared; "
            "--common keeps only the items that all have."
        )
    if len({run.config.references_sha256 for run in runs}) > 1:
        raise RunError(
            f"the references of {', '.join(run.name for run in runs)} differ: the cohort's annotations were changed "
            "between them. Run one again on the other's cohort."
        )
    return records


def _check_same_environment(runs: Sequence[Run]) -> None:
    first = runs[0]
    for run in runs[1:]:
        names = [name for name in {**first.config.env, **run.config.env} if _env(first, name) != _env(run, name)]
        if names:
            told = "; ".join(f"{name} is {_env(first, name)} and {_env(run, name)}" for name in names)
            raise RunError(
                f"{first.name} and {run.name} have different environments, whose scores do not compare: {told}. Show "
                "them in two tables, or run one again with the other's arguments."
            )


def _env(run: Run, name: str) -> str:
    return json.dumps(run.config.env.get(name))


def _check_unique(runs: Sequence[Run]) -> None:
    seen: dict[EpisodeKey, Run] = {}
    for run in runs:
        for record in run.records:
            other = seen.setdefault(record.key, run)
            if other is not run:
                parts = record.key._asdict().items()
                key = ", ".join(f"{name} {value}" for name, value in parts if value is not None)
                raise RunError(
                    f"one episode is in both {other.name} and {run.name}: {key}. Leave one run out, or repeat it with "
                    "another seed, budget or policy."
                )


def common_items(records: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
    """Only the episodes of items that every row has a score for. Raises `RunError` where no item is left.

    A row without any score, such as one whose every episode met an infrastructure error, does not count.
    """
    rows = group_by(scored(records), row_of)
    kept = set.intersection(*({record.item for record in group} for group in rows.values())) if rows else set()
    if not kept:
        raise RunError("no item has a score in every row, so there is nothing in common to show.")
    return [record for record in records if record.item in kept]


def where(records: Sequence[EpisodeRecord], field: str, names: Sequence[str]) -> list[EpisodeRecord]:
    """The episodes whose group of `field` has one of these names, such as "10x" (or "10") and "40x" of magnification.

    Raises `UnknownNameError` where no record has the field, or none of them the name.
    """
    name_of = group_of(field, records)
    known = dict.fromkeys(name_of(record) for record in records)
    chosen = [f"{name}x" if name not in known and f"{name}x" in known else name for name in names]
    for name in chosen:
        if name not in known:
            raise UnknownNameError(field, name, known)
    return [record for record in records if name_of(record) in chosen]


def row_of(record: EpisodeRecord) -> Row:
    return record.policy, record.endpoint, record.budget


def row_columns(records: Sequence[EpisodeRecord], *further: Column) -> tuple[Column, ...]:
    """The columns that say what a row is; the endpoint only where one was used."""
    endpoint = (Column("endpoint", "endpoint"),) if any(record.endpoint is not None for record in records) else ()
    return (Column("policy", "policy"), *endpoint, *further)


def row_cells(row: Row) -> dict[str, Cell]:
    """The cells of the columns that say what a row is."""
    policy, endpoint, budget = row
    return {"policy": policy, "endpoint": endpoint, "budget": budget}


def held_against(rows: Mapping[Row, _V], policy: str) -> list[tuple[Row, _V, _V]]:
    """Each row of another policy, what it has, and what `policy` has at the same budget.

    Of a policy with several endpoints every endpoint is one. Raises `UnknownNameError` where it did not play,
    `InvalidArgumentError` where no other played at a budget of its own.
    """
    theirs = {row: value for row, value in rows.items() if row[0] == policy}
    if not theirs:
        raise UnknownNameError("policy to hold others against", policy, dict.fromkeys(name for name, _, _ in rows))
    others = [row for row in rows if row not in theirs]
    found = [(row, rows[row], value) for row in others for other, value in theirs.items() if other[2] == row[2]]
    if not found:
        played, asked = (", ".join(dict.fromkeys(row[2] for row in each)) for each in (others, theirs))
        raise InvalidArgumentError(
            f"nothing to hold against {policy}: it played at {asked}, other policies at {played or 'none'}, and only "
            "equal budgets compare. Play another at its budget into the same run, or name that run too."
        )
    return found


def unit_of(record: EpisodeRecord) -> tuple[str, str]:
    """What intervals resample: the patient, or where it is unknown the case, slide, set or source; else the item."""
    for kind in ("patient", "case", "slide", "set", "source"):
        unit = record.groups.get(kind)
        if unit is not None:
            return kind, str(unit)
    return "item", record.item


def group_of(field: str, records: Sequence[EpisodeRecord]) -> Callable[[EpisodeRecord], str]:
    """The function from a record to its group's name, such as "Lung", "10x" or "unknown".

    Raises `UnknownNameError` where no record has the field.
    """
    known = sorted({name for record in records for name in record.groups})
    if field not in known:
        raise UnknownNameError("field", field, known)

    def name(record: EpisodeRecord) -> str:
        value = record.groups.get(field)
        if value is None:
            return UNKNOWN
        if isinstance(value, str):
            return value
        return f"{value:g}x" if field == "magnification" else f"{value:g}"

    return name


def group_by(records: Iterable[EpisodeRecord], key: Callable[[EpisodeRecord], _K]) -> dict[_K, list[EpisodeRecord]]:
    """Records by what `key` says of them, in order of first appearance."""
    groups: dict[_K, list[EpisodeRecord]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def scored(records: Iterable[EpisodeRecord]) -> list[EpisodeRecord]:
    """The episodes that have a score: all but infrastructure errors, which are counted apart."""
    return [record for record in records if record.score is not None]


def mean_of(records: Iterable[EpisodeRecord], value: Callable[[EpisodeRecord], float | None]) -> Estimate:
    """The mean over episodes of `value`, with its interval over patients; episodes where it is None are left out."""
    pairs = [(number, unit_of(record)) for record in records if (number := value(record)) is not None]
    return mean_estimate([float(number) for number, _ in pairs], [unit for _, unit in pairs], seed=SEED)


def interval_note(records: Sequence[EpisodeRecord], estimates: Iterable[Cell]) -> str:
    """The line under a table that says what its intervals are, and whether they rest on few patients."""
    kinds = {unit_of(record)[0] for record in records}
    units = " and ".join(f"{kind}s" for kind in sorted(kinds))
    units = "slides (patients unknown)" if kinds == {"slide"} else units
    note = f"[low, high]: 95 % percentile bootstrap over {units}, {DRAWS:,} draws, seed {SEED}"
    counts = {cell.units for cell in estimates if isinstance(cell, Estimate) and cell.n}
    if counts and min(counts) < MIN_UNITS:
        note += f"; [{MISSING}] under {MIN_UNITS} of them"
    rough = [count for count in counts if MIN_UNITS <= count < FEW_UNITS]
    if rough:
        note += f"; rough where they rest on fewer than {FEW_UNITS} of them (the smallest such cell: {min(rough)})"
    return note + "."


def differing_rows_note(records: Sequence[EpisodeRecord], items: str = "queries") -> list[str]:
    """A line where rows rest on different items, as in a run that goes on or after infrastructure errors; else none."""
    asked = {frozenset(record.item for record in group) for group in group_by(scored(records), row_of).values()}
    if len(asked) < 2:
        return []
    return [f"Rows rest on different {items} (see their numbers); --common keeps those that every row has."]


def table_of(
    name: str,
    title: str,
    keys: tuple[Column, ...],
    blocks: Sequence[Block],
    rows: Sequence[Mapping[str, Cell]],
    notes: Sequence[str],
    records: Sequence[EpisodeRecord],
) -> Table:
    """A table with the note on its intervals, where it has some."""
    cells = [cell for row in rows for cell in row.values() if isinstance(cell, Estimate)]
    interval = [interval_note(records, cells)] if cells else []
    return Table(name, title, keys, tuple(blocks), tuple(rows), (*interval, *notes))
