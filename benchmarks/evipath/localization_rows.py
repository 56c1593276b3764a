"""What the tables of evipath/localization share: what is averaged, the order of rows, columns by magnification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from wsigym.envs.budgets import PRESETS, RoiBudget
from wsigym.scoring.localization import HIT_IOU

from ..records import EpisodeRecord
from ..rows import Row, group_by, row_of, unit_of
from ..tables import Column

__all__ = [
    "by_magnification",
    "hit",
    "iou",
    "magnification",
    "metric",
    "ordered_rows",
    "queries",
    "query_note",
    "rois_allowed",
    "scale_columns",
    "units_column",
]


def iou(record: EpisodeRecord) -> float | None:
    """The episode's score; None after an infrastructure error."""
    return record.score


def hit(record: EpisodeRecord) -> float | None:
    """1 for an IoU of at least 0.3, else 0; None after an infrastructure error."""
    return None if record.score is None else float(record.score >= HIT_IOU)


def metric(name: str) -> Callable[[EpisodeRecord], float | None]:
    """The function from a record to one of its metrics; None where it has none."""

    def value(record: EpisodeRecord) -> float | None:
        found = record.metrics.get(name)
        return None if found is None or isinstance(found, str) else float(found)

    return value


def magnification(record: EpisodeRecord) -> float:
    """The query's; every localization query has one."""
    return float(record.groups["magnification"] or 0)


def rois_allowed(records: Sequence[EpisodeRecord]) -> float:
    """The ROIs that the budget of these episodes allows for a query, on average over the queries."""
    asked = {(record.item, record.budget, magnification(record)) for record in records}
    counts = Counter((budget, scale) for _, budget, scale in asked)
    return sum(RoiBudget.of(budget).rois(scale) * count for (budget, scale), count in counts.items()) / len(asked)


def ordered_rows(records: Sequence[EpisodeRecord]) -> list[tuple[Row, list[EpisodeRecord]]]:
    """Policies in order of appearance, each with its budgets from the smallest to the largest."""
    groups = group_by(records, row_of)
    order = list(dict.fromkeys((policy, endpoint) for policy, endpoint, _ in groups))
    presets = list(PRESETS)

    def place(row: Row) -> tuple[int, float, int, str]:
        policy, endpoint, budget = row
        preset = presets.index(budget) if budget in presets else len(presets)
        return order.index((policy, endpoint)), rois_allowed(groups[row]), preset, budget

    return [(row, groups[row]) for row in sorted(groups, key=place)]


def by_magnification(records: Sequence[EpisodeRecord]) -> list[tuple[str, str, list[EpisodeRecord]]]:
    """(suffix of the column's key, its label, its episodes): each magnification, then all of them."""
    groups = group_by(records, magnification)
    each = [(f"_{scale:g}x", f"{scale:g}x", groups.get(scale, [])) for scale in sorted(groups)]
    return [*each, ("", "all", list(records))]


def scale_columns(
    records: Sequence[EpisodeRecord], key: str, digits: int = 3, scale: float = 1, signed: bool = False
) -> tuple[Column, ...]:
    """A column for each magnification and one for all, keyed as `by_magnification` says."""
    columns = [(f"{key}{suffix}", label) for suffix, label, _ in by_magnification(records)]
    return tuple(Column(name, label, digits, scale, signed) for name, label in columns)


def queries(records: Sequence[EpisodeRecord]) -> int:
    """How many queries the episodes ask; several seeds ask the same one."""
    return len({record.item for record in records})


def units_column(records: Sequence[EpisodeRecord]) -> Column:
    """The column of how many patients (slides, where they are unknown) the episodes come from."""
    known = any(unit_of(record)[0] == "patient" for record in records)
    return Column("patients", "patients" if known else "slides")


def query_note(records: Sequence[EpisodeRecord]) -> str:
    """The line under a table that says how many queries there are at each magnification."""
    counts = [f"{queries(group):,} at {label}" for suffix, label, group in by_magnification(records) if suffix]
    return f"{queries(records):,} queries: {', '.join(counts)}; an average over all weighs each query alike."
