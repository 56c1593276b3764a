"""The tables of evipath/localization: how well the evidence was found, and what a larger budget brings.

Means are over episodes, all seeds pooled; intervals are over patients (`wsigym.scoring.intervals`). An infrastructure
error has no score and is counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import get_args

from wsigym.scoring.intervals import Estimate, paired_difference
from wsigym.scoring.localization import HIT_IOU

from ..records import EpisodeRecord, Outcome
from ..rows import (
    BUDGET,
    UNKNOWN,
    Row,
    differing_rows_note,
    group_by,
    group_of,
    held_against,
    mean_of,
    row_cells,
    row_columns,
    scored,
    table_of,
    unit_of,
)
from ..tables import MISSING, Block, Cell, Column, Table, TableOptions
from .localization_diagnostics import causes_table, confidence_table
from .localization_published import published_table
from .localization_rows import (
    by_magnification,
    hit,
    iou,
    magnification,
    metric,
    ordered_rows,
    queries,
    query_note,
    rois_allowed,
    scale_columns,
    units_column,
)

__all__ = [
    "MIN_GROUP",
    "against_table",
    "budget_table",
    "by_tables",
    "localization_tables",
    "main_table",
    "paired_table",
    "policy_difference",
]

MIN_GROUP = 20
"""Groups of fewer queries are flagged, and left out of the spread over groups."""

BAR_CELLS = 30

OUTCOME_LABELS = {
    "scored": "scored",
    "unparsed": "unparsed",
    "invalid": "invalid",
    "refused": "refused",
    "budget_exhausted": "over\nbudget",
    "infrastructure_error": "infra.\nerrors",
}
assert tuple(OUTCOME_LABELS) == get_args(Outcome)


def localization_tables(records: Sequence[EpisodeRecord], options: TableOptions) -> list[Table]:
    """The main table (or the one by a field), differences between budgets, and whatever else `options` ask for.

    Raises `UnknownNameError` where no record has the field, or no policy the name.
    """
    tables = by_tables(records, options.by) if options.by else [main_table(records)]
    paired = paired_table(records)
    if paired:
        tables.append(paired)
    if options.against is not None:
        tables.append(against_table(records, options.against))
    if options.causes:
        tables.append(causes_table(records, options.by))
    if options.confidence:
        tables.append(confidence_table(records, options.by))
    if options.budgets:
        tables.append(budget_table(records))
    if options.published:
        tables.append(published_table(records))
    return tables


def main_table(records: Sequence[EpisodeRecord]) -> Table:
    """Mean IoU and hits for each magnification and overall, ROIs used, outcomes; one row a policy and budget."""
    rows: list[dict[str, Cell]] = []
    for row, episodes in ordered_rows(records):
        cells = row_cells(row) | _counts(episodes)
        for suffix, _, group in by_magnification(episodes):
            cells |= {f"iou{suffix}": mean_of(group, iou), f"hit{suffix}": mean_of(group, hit)}
        outcomes = Counter(record.outcome for record in episodes)
        rows.append(cells | {outcome: outcomes[outcome] for outcome in get_args(Outcome)})
    blocks = (
        Block("Mean IoU, 0 to 1", scale_columns(records, "iou")),
        Block(
            f"Hits: share of answers with an IoU of {HIT_IOU} or more, %",
            scale_columns(records, "hit", digits=0, scale=100),
        ),
        Block(
            "Looks (regions of interest, ROIs) and how the episodes ended; endings that never occurred are left out",
            (
                *_count_columns(records),
                *(Column(outcome, label, always=outcome == "scored") for outcome, label in OUTCOME_LABELS.items()),
            ),
        ),
    )
    notes = [query_note(records), *differing_rows_note(records)]
    lost = sum(record.score is None for record in records)
    if lost:
        notes.append(
            f"Infrastructure errors ({lost:,}) have no score and are in no mean; resuming the run repeats them."
        )
    keys = row_columns(records, BUDGET)
    return table_of("localization", "evipath/localization", keys, blocks, rows, notes, records)


def _counts(episodes: Sequence[EpisodeRecord]) -> dict[str, Cell]:
    valued = scored(episodes)
    return {
        "queries": queries(valued),
        "episodes": len(valued),
        "patients": len({unit_of(record) for record in valued}),
        "rois_used": mean_of(valued, metric("rois_used")).value,
    }


def _count_columns(records: Sequence[EpisodeRecord]) -> tuple[Column, ...]:
    return (
        Column("rois_used", "ROIs\nused", digits=1),
        Column("queries", "queries"),
        Column("episodes", "episodes"),
        units_column(records),
    )


def by_tables(records: Sequence[EpisodeRecord], field: str) -> list[Table]:
    """One row a policy, budget and group of `field`, small groups flagged; and the spread over the larger groups,
    where there are two of them.

    Raises `UnknownNameError` where no record has the field.
    """
    name_of = group_of(field, records)
    values = {name_of(record): record.groups.get(field) for record in records}
    names = sorted(values, key=lambda name: (name == UNKNOWN, isinstance(values[name], str), values[name] or 0, name))
    rows: list[dict[str, Cell]] = []
    spreads: list[dict[str, Cell]] = []
    for row, episodes in ordered_rows(records):
        groups = group_by(episodes, name_of)
        means: dict[str, float] = {}
        for name in (name for name in names if name in groups):
            cells: dict[str, Cell] = {"iou": mean_of(groups[name], iou), "hit": mean_of(groups[name], hit)}
            counts = _counts(groups[name])
            small = queries(scored(groups[name])) < MIN_GROUP
            rows.append(row_cells(row) | {field: name, "flag": f"n < {MIN_GROUP}" if small else ""} | cells | counts)
            if isinstance(cells["iou"], Estimate) and cells["iou"].value is not None and not small and name != UNKNOWN:
                means[name] = cells["iou"].value
        spreads.append(row_cells(row) | _spread(means))
    group_column = Column(field, field)
    columns = (
        Column("iou", "mean IoU"),
        Column("hit", "hits, %", digits=0, scale=100),
        *_count_columns(records),
        Column("flag", ""),
    )
    title = f"evipath/localization by {field}"
    keys = row_columns(records, BUDGET, group_column)
    each = table_of("by", title, keys, (Block("", columns),), rows, [query_note(records)], records)
    if all(row.get("spread") is None for row in spreads):
        return [each]
    spread = Table(
        "spread",
        f"Spread of mean IoU over {field}",
        row_columns(records, BUDGET),
        (Block("", SPREAD_COLUMNS),),
        tuple(spreads),
        (
            f"Over groups of {MIN_GROUP} queries or more whose {field} is known; "
            f"{MISSING} where there are fewer than two of them.",
        ),
    )
    return [each, spread]


SPREAD_COLUMNS = (
    Column("spread", "max - min"),
    Column("highest", "highest"),
    Column("highest_iou", "mean IoU"),
    Column("lowest", "lowest"),
    Column("lowest_iou", "mean IoU"),
    Column("groups", "groups"),
)


def _spread(means: Mapping[str, float]) -> dict[str, Cell]:
    if len(means) < 2:
        return {"groups": len(means)}
    highest, lowest = max(means, key=lambda name: means[name]), min(means, key=lambda name: means[name])
    return {
        "spread": means[highest] - means[lowest],
        "highest": highest,
        "highest_iou": means[highest],
        "lowest": lowest,
        "lowest_iou": means[lowest],
        "groups": len(means),
    }


def paired_table(records: Sequence[EpisodeRecord]) -> Table | None:
    """Each policy's larger budget minus its smaller one, on the queries that both have; None with one budget each."""
    rows: list[dict[str, Cell]] = []
    scores = _scores(records)
    for policy, endpoint in dict.fromkeys((policy, endpoint) for policy, endpoint, _ in scores):
        budgets = [budget for name, other, budget in scores if (name, other) == (policy, endpoint)]
        for smaller, larger in combinations(budgets, 2):
            pairs = _pairs(scores[policy, endpoint, larger], scores[policy, endpoint, smaller])
            named: dict[str, Cell] = {"policy": policy, "endpoint": endpoint, "budgets": f"{larger} - {smaller}"}
            rows.append(named | _differences(pairs))
    if not rows:
        return None
    title = "What a larger budget brings: difference of mean IoU on the same queries"
    return _difference_table("paired", title, Column("budgets", "budgets"), rows, records)


def against_table(records: Sequence[EpisodeRecord], policy: str) -> Table:
    """Each policy minus the one named, at the same budget, on the queries that both have.

    Raises as `held_against` does.
    """
    compared = held_against(_scores(records), policy)
    rows = [row_cells(row) | _differences(_pairs(mine, theirs)) for row, mine, theirs in compared]
    title = f"Minus {policy} at the same budget: difference of mean IoU on the same queries"
    return _difference_table("against", title, BUDGET, rows, records)


def _differences(pairs: Sequence[tuple[_Query, _Query]]) -> dict[str, Cell]:
    cells: dict[str, Cell] = {"queries": len(pairs), "difference": _paired(pairs)}
    for scale in {query.magnification for query, _ in pairs}:
        cells[f"difference_{scale:g}x"] = _paired([pair for pair in pairs if pair[0].magnification == scale])
    return cells


def _difference_table(
    name: str, title: str, key: Column, rows: Sequence[dict[str, Cell]], records: Sequence[EpisodeRecord]
) -> Table:
    *scales, overall = scale_columns(records, "difference", signed=True)
    return table_of(
        name,
        title,
        row_columns(records, key),
        (Block("Over all queries", (overall, Column("queries", "queries"))), Block("By magnification", tuple(scales))),
        rows,
        ["* the interval excludes 0. A query's seeds are averaged first."],
        records,
    )


@dataclass(frozen=True)
class _Query:
    """One query's score under one policy and budget: the mean over its seeds."""

    score: float
    magnification: float
    unit: tuple[str, str]


def _query_scores(records: Sequence[EpisodeRecord]) -> dict[tuple[str, int], _Query]:
    seeds = group_by(scored(records), lambda record: (record.item, record.rotation))
    return {
        key: _Query(sum(record.score or 0 for record in group) / len(group), magnification(group[0]), unit_of(group[0]))
        for key, group in seeds.items()
    }


def _scores(records: Sequence[EpisodeRecord]) -> dict[Row, dict[tuple[str, int], _Query]]:
    """The scores of each row, budgets from the smallest to the largest."""
    return {row: _query_scores(episodes) for row, episodes in ordered_rows(records)}


def _pairs(
    first: Mapping[tuple[str, int], _Query], second: Mapping[tuple[str, int], _Query]
) -> list[tuple[_Query, _Query]]:
    return [(first[key], second[key]) for key in sorted(first.keys() & second.keys())]


def _paired(pairs: Sequence[tuple[_Query, _Query]]) -> Estimate:
    firsts, seconds = [first.score for first, _ in pairs], [second.score for _, second in pairs]
    return paired_difference(firsts, seconds, [first.unit for first, _ in pairs])


def policy_difference(first: Sequence[EpisodeRecord], second: Sequence[EpisodeRecord]) -> Estimate:
    """Mean IoU of `first` minus that of `second` on the queries that both have a score for, paired, over patients.

    Each side is the episodes of one policy and budget; a query's seeds are averaged first.
    """
    return _paired(_pairs(_query_scores(first), _query_scores(second)))


def budget_table(records: Sequence[EpisodeRecord]) -> Table:
    """The budget curve as text: mean IoU over all queries against the ROIs allowed."""
    rows: list[dict[str, Cell]] = []
    for row, episodes in ordered_rows(records):
        mean = mean_of(episodes, iou)
        cells = {
            "rois_allowed": rois_allowed(episodes),
            "rois_used": mean_of(scored(episodes), metric("rois_used")).value,
        }
        rows.append(row_cells(row) | cells | {"iou": mean, "bar": _bar(mean.value)})
    return table_of(
        "budgets",
        "Mean IoU against the budget",
        row_columns(records, BUDGET),
        (Block("", BUDGET_COLUMNS),),
        rows,
        ["ROIs allowed and used: mean over the queries, whose budgets depend on the magnification."],
        records,
    )


BUDGET_COLUMNS = (
    Column("rois_allowed", "ROIs\nallowed", digits=1),
    Column("rois_used", "ROIs\nused", digits=1),
    Column("iou", "mean IoU"),
    Column("bar", "0" + " " * (BAR_CELLS - 2) + "1"),
)


def _bar(value: float | None) -> str:
    """A bar of `value` (0 to 1) in eighths of a character."""
    if value is None:
        return ""
    eighths = round(max(0.0, min(value, 1.0)) * BAR_CELLS * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
