"""The tables of evidence tasks: what was right, by magnification, by how much evidence was shown, and how it ended.

A row is a policy (and endpoint) with an amount of evidence; the runner's budget is that amount. Items weigh alike,
whatever the number of their rotations; intervals are over what items are grouped by. An infrastructure error has no
score and is counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import get_args

from wsigym.baselines.registry import EVIDENCE, POLICIES
from wsigym.envs.item_transforms import Evidence
from wsigym.errors import InvalidArgumentError
from wsigym.scoring.intervals import SEED, Estimate, mean_estimate, paired_difference

from .episodes import BLIND_MARK
from .evidence_measures import ACCURACY, ACCURACY_BY_ITEM, CHANCE, TOP_LETTER, ByItem, Measure
from .evidence_task import EvidenceTask
from .records import EpisodeRecord, Outcome
from .rows import (
    Row,
    differing_rows_note,
    group_by,
    group_of,
    row_cells,
    row_columns,
    row_of,
    scored,
    table_of,
    unit_of,
)
from .tables import Block, Cell, Column, Table, TableOptions

__all__ = ["evidence_tables", "is_model", "ordered_rows", "paired", "paired_accuracy", "parts_of"]

SHOWN = Column("budget", "evidence")


def evidence_tables(task: EvidenceTask, records: Sequence[EpisodeRecord], options: TableOptions) -> list[Table]:
    """The main table, and those asked for: by a field, and the evidence compared where there are several amounts.

    Raises `InvalidArgumentError` for tables that only other tasks have.
    """
    if options.causes or options.confidence or options.against is not None:
        raise InvalidArgumentError(
            f"{task.name} has no table of --causes, --confidence or --against; those are of "
            "evipath/localization and evipath/exploration."
        )
    tables = [main_table(task, records)]
    if options.by is not None:
        tables.append(by_table(task, records, options.by))
    if options.published:
        if task.published is None:
            raise InvalidArgumentError(f"{task.name} has no published figures to show.")
        tables.append(task.published(records))
    if options.budgets or len({record.budget for record in records}) > 1:
        tables.append(evidence_table(task, records))
        for name, holds in task.parts:
            some = [record for record in records if holds(record)]
            if 0 < len(some) < len(records):
                tables.append(evidence_table(task, some, name))
    return tables


def main_table(task: EvidenceTask, records: Sequence[EpisodeRecord]) -> Table:
    """One row a policy and amount of evidence: the task's measures, by magnification, and how the episodes ended."""
    measures = _measures(task, records)
    parts = parts_of(records, task.split_by)
    split = [measure for measure in measures if measure.split and len(parts) > 1]
    rows = []
    for row, episodes in ordered_rows(records):
        cells: dict[str, Cell] = row_cells(row) | _cells(measures, episodes) | _counts(episodes)
        for measure in split:
            for part, group in parts_of(episodes, task.split_by).items():
                cells[f"{measure.key}_{part}"] = measure.of(scored(group)) if scored(group) else None
        outcomes = Counter(record.outcome for record in episodes)
        rows.append(cells | {outcome: outcomes[outcome] for outcome in get_args(Outcome)})
    blocks = [Block("", tuple(map(_column, measures)))]
    for measure in split:
        columns = [Column(f"{measure.key}_{name}", name, measure.digits, measure.scale) for name in parts]
        blocks.append(Block(f"{measure.label[0].upper()}{measure.label[1:]} by {task.split_by}", tuple(columns)))
    endings = [Column(outcome, outcome.replace("_", "\n"), always=outcome == "scored") for outcome in get_args(Outcome)]
    blocks.append(
        Block(
            "What was asked, and how the episodes ended; endings that never occurred are left out",
            (Column("items", "items"), Column("episodes", "episodes"), _units_column(records), *endings),
        )
    )
    notes = [_percent_note(measures), *_averages(measures, rows), *differing_rows_note(records, "items")]
    lost = sum(record.score is None for record in records)
    if lost:
        notes.append(
            f"Infrastructure errors ({lost:,}) have no score and are in no figure; resuming the run repeats them."
        )
    return table_of("evidence", task.name, row_columns(records, SHOWN), blocks, rows, notes, records)


def by_table(task: EvidenceTask, records: Sequence[EpisodeRecord], field: str) -> Table:
    """The measures for each group of a field, such as organ, set, split or what a suite's references add."""
    name_of = group_of(field, records)
    measures = _measures(task, records)
    rows = []
    for row, episodes in ordered_rows(records):
        groups = group_by(episodes, name_of)
        for name in sorted(groups):
            rows.append(row_cells(row) | {field: name} | _cells(measures, groups[name]) | _counts(groups[name]))
    columns = (*map(_column, measures), Column("items", "items"), _units_column(records))
    keys = (*row_columns(records, SHOWN), Column(field, field))
    return table_of(
        "by", f"{task.name} by {field}", keys, [Block("", columns)], rows, [_percent_note(measures)], records
    )


def evidence_table(task: EvidenceTask, records: Sequence[EpisodeRecord], of: str = "") -> Table:
    """What each amount of evidence brings against all of it, paired over items; and all of it against the best single
    magnification, as EviPathBench reports it. `of` says which of the task's items the records are."""
    first, *_ = task.compared
    fulls: set[str] = set()
    has_best = False
    rows: list[dict[str, Cell]] = []
    for (policy, endpoint), episodes in group_by(records, lambda record: (record.policy, record.endpoint)).items():
        arms = group_by(scored(episodes), lambda record: record.budget)
        full = _full(list(arms))
        for budget in sorted(arms, key=_amount):
            cells: dict[str, Cell] = {"items": _items(arms[budget])}
            for each in task.compared:
                cells[each.key] = _mean(each, arms[budget])
                if full is not None and budget != full:
                    fulls.add(full)
                    cells[_difference(each, task)] = paired(each, arms[budget], arms[full])
            rows.append(row_cells((policy, endpoint, budget)) | cells)
        singles = [budget for budget in arms if _subset(budget) and budget == f"{_subset(budget)[0]:g}x"]
        if full is not None and singles:
            best = max(singles, key=lambda budget: _mean(first, arms[budget]).value or 0)
            gain = paired(first, arms[full], arms[best])
            rows.append(row_cells((policy, endpoint, f"{full} - {best} (best single)")) | {"difference": gain})
            has_best = True
    columns = [
        column
        for each in task.compared
        for column in (
            Column(each.key, each.label, 1, 100),
            Column(_difference(each, task), "difference", 1, 100, signed=True, always=False),
        )
    ]
    notes = []
    if fulls:
        against = "all of the evidence" if fulls == {"all"} else "the most that was shown"
        notes.append(
            f"Differences are percentage points against {against}, paired over items; * where the interval excludes 0."
        )
    if has_best:
        notes.append(
            "The last row of a policy has all of it against its best single magnification, which is chosen on the same "
            "items and so favoured."
        )
    title = f"{task.name}: evidence shown{of and f', {of}'}"
    blocks = [Block("", (*columns, Column("items", "items")))]
    return table_of(f"evidence_shown{of and '_part'}", title, row_columns(records, SHOWN), blocks, rows, notes, records)


def _difference(compared: ByItem, task: EvidenceTask) -> str:
    return "difference" if compared == task.compared[0] else f"difference_{compared.key}"


def _mean(compared: ByItem, records: Sequence[EpisodeRecord]) -> Estimate:
    values = compared.of(records).values()
    return mean_estimate([value for value, _ in values], [unit for _, unit in values], seed=SEED)


def paired(compared: ByItem, first: Sequence[EpisodeRecord], second: Sequence[EpisodeRecord]) -> Estimate:
    """The mean difference over the items that both have, with its interval."""
    one, other = compared.of(first), compared.of(second)
    common = [item for item in one if item in other]
    return paired_difference(
        [one[item][0] for item in common], [other[item][0] for item in common], [one[item][1] for item in common]
    )


def paired_accuracy(first: Sequence[EpisodeRecord], second: Sequence[EpisodeRecord]) -> Estimate:
    """The mean difference of accuracy over the items that both have, with its interval."""
    return paired(ACCURACY_BY_ITEM, first, second)


# -- rows and columns ---------------------------------------------------------------------------------------------


def ordered_rows(records: Sequence[EpisodeRecord]) -> list[tuple[Row, list[EpisodeRecord]]]:
    """Policies in order of appearance, each with its amounts of evidence from the least to all."""
    groups = group_by(records, row_of)
    order = list(dict.fromkeys((policy, endpoint) for policy, endpoint, _ in groups))
    return [
        (row, groups[row]) for row in sorted(groups, key=lambda row: (order.index((row[0], row[1])), _amount(row[2])))
    ]


def parts_of(records: Sequence[EpisodeRecord], field: str) -> dict[str, list[EpisodeRecord]]:
    """Episodes by a field of their groups, numbers rising, such as "2.5x"; without those that have none."""
    known = [record for record in records if record.groups.get(field) is not None]
    if not known:
        return {}
    groups = group_by(sorted(known, key=lambda record: _value(record.groups[field])), group_of(field, known))
    return dict(groups)


def _value(value: str | float | None) -> tuple[float, str]:
    return (value, "") if isinstance(value, int | float) else (0.0, str(value))


def _subset(budget: str) -> tuple[float, ...]:
    keep = Evidence.of(budget).keep
    return keep if isinstance(keep, tuple) else ()


def _amount(budget: str) -> tuple[int, int, str]:
    """A sort key: no image, single magnifications, several, everything else, all."""
    subset = _subset(budget)
    rank = {"text": 0, "all": 4}.get(budget, 1 if subset else 3)
    return rank, len(subset), f"{subset[0]:09.3f} {budget}" if subset else budget


def _full(budgets: Sequence[str]) -> str | None:
    """What holds all of the evidence: "all", or the largest subset of magnifications; None where nothing does."""
    if "all" in budgets:
        return "all"
    largest = max(budgets, key=lambda budget: len(_subset(budget)), default=None)
    return largest if largest is not None and len(_subset(largest)) > 1 else None


def _measures(task: EvidenceTask, records: Sequence[EpisodeRecord]) -> tuple[Measure, ...]:
    with_options = all(record.metrics.get("options") for record in scored(records))
    return (*task.measures, *((CHANCE, TOP_LETTER) if with_options and ACCURACY in task.measures else ()))


def _cells(measures: Sequence[Measure], episodes: Sequence[EpisodeRecord]) -> dict[str, Cell]:
    valued = scored(episodes)
    return {measure.key: measure.of(valued) if valued else None for measure in measures}


def _column(measure: Measure) -> Column:
    return Column(measure.key, measure.label, measure.digits, measure.scale)


def _items(records: Sequence[EpisodeRecord]) -> int:
    return len({record.item for record in records})


def _counts(episodes: Sequence[EpisodeRecord]) -> dict[str, Cell]:
    valued = scored(episodes)
    units = len({unit_of(record) for record in valued})
    return {"items": _items(valued), "episodes": len(valued), "units": units}


def _units_column(records: Sequence[EpisodeRecord]) -> Column:
    kinds = {unit_of(record)[0] for record in records}
    return Column("units", f"{kinds.pop()}s" if len(kinds) == 1 else "units")


def _percent_note(measures: Sequence[Measure]) -> str:
    named = [measure.label.replace("\n", " ").removesuffix(", %") for measure in measures if measure.scale == 100]
    letter = " Top letter: the one answered most often, and its share." if TOP_LETTER in measures else ""
    return f"In per cent: {', '.join(named)}.{letter} Items weigh alike."


def is_model(policy: str) -> bool:
    """Whether rows of a policy count in means over models: not the baselines, nor a model that was shown less."""
    return BLIND_MARK not in policy and policy not in POLICIES[EVIDENCE]


def _averages(measures: Sequence[Measure], rows: Sequence[Mapping[str, Cell]]) -> list[str]:
    """The mean over models of each measure that is averaged, where several have a value."""
    notes = []
    for measure in measures:
        of_budget: dict[str, list[float]] = {}
        for row in rows:
            value = row[measure.key]
            if measure.averaged and is_model(str(row["policy"])) and isinstance(value, float):
                of_budget.setdefault(str(row["budget"]), []).append(value)
        for budget, values in of_budget.items():
            if len(values) > 1:
                label = measure.label.replace("\n", " ")
                mean = f"{measure.scale * sum(values) / len(values):.{measure.digits}f}"
                notes.append(f"{label}, the mean over {len(values)} models with a value (evidence {budget}): {mean}.")
    return notes
