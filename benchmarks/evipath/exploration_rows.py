"""What the tables of evipath/exploration share: the order of rows, micro rates over slides, how tiles were shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from wsigym.envs.tile_budgets import TileBudget
from wsigym.errors import RunError
from wsigym.scoring.hit_rates import micro_rate
from wsigym.scoring.intervals import Estimate

from ..records import EpisodeRecord
from ..rows import Row, group_by, mean_of, row_columns, row_of, scored, table_of, unit_of
from ..tables import MISSING, Block, Cell, Column, Table

__all__ = [
    "estimate",
    "exploration_table",
    "last_scale",
    "mean",
    "metric",
    "optional_metric",
    "ordered_rows",
    "rate",
    "rate_of",
    "scales_of",
]


def ordered_rows(records: Sequence[EpisodeRecord]) -> list[tuple[Row, list[EpisodeRecord]]]:
    """Policies in order of appearance, each with its budgets from the smallest to the largest."""
    groups = group_by(records, row_of)
    order = list(dict.fromkeys((policy, endpoint) for policy, endpoint, _ in groups))

    def place(row: Row) -> tuple[int, float, str]:
        budget = TileBudget.of(row[2])
        size = budget.tiles or (math.prod(budget.keep) if budget.keep else math.inf)
        return order.index((row[0], row[1])), size, row[2]

    return [(row, groups[row]) for row in sorted(groups, key=place)]


def scales_of(records: Sequence[EpisodeRecord]) -> list[str]:
    """The magnifications of the records, such as "2.5x", rising."""
    names = {key.removeprefix("positives_") for record in records for key in record.metrics if "positives_" in key}
    return sorted(names, key=lambda name: float(name.removesuffix("x")))


def last_scale(records: Sequence[EpisodeRecord]) -> str:
    """The highest of the magnifications. Raises `RunError` where no episode has a score, and so none is known."""
    scales = scales_of(records)
    if not scales:
        raise RunError(
            f"none of these episodes has a score ({len(records):,} infrastructure errors, told in episodes.jsonl); "
            "running again into the same folder repeats them."
        )
    return scales[-1]


def metric(record: EpisodeRecord, key: str) -> float:
    """One of its metrics, 0 where it has none."""
    return optional_metric(record, key) or 0.0


def optional_metric(record: EpisodeRecord, key: str) -> float | None:
    """One of its metrics, None where it has none."""
    value = record.metrics.get(key)
    return None if value is None or isinstance(value, str) else float(value)


def estimate(records: Sequence[EpisodeRecord], key: str) -> Estimate:
    """The mean of a metric over the scored episodes that have it."""
    return mean_of(scored(records), lambda record: optional_metric(record, key))


def mean(records: Sequence[EpisodeRecord], key: str) -> float | None:
    """`estimate` without its interval."""
    return estimate(records, key).value


def rate(records: Sequence[EpisodeRecord], part: str, whole: str, scale: str) -> Estimate:
    """`rate_of` two metrics of one magnification."""
    return rate_of(records, f"{part}_{scale}", f"{whole}_{scale}")


def rate_of(records: Sequence[EpisodeRecord], part: str, whole: str) -> Estimate:
    """The metric `part` over the metric `whole`, both added over the scored episodes first."""
    valued = scored(records)
    return micro_rate(
        [metric(record, part) for record in valued],
        [metric(record, whole) for record in valued],
        [unit_of(record) for record in valued],
    )


def exploration_table(
    name: str,
    title: str,
    keys: tuple[Column, ...],
    blocks: tuple[Block, ...],
    rows: Sequence[Mapping[str, Cell]],
    records: Sequence[EpisodeRecord],
    notes: Sequence[str] = (),
) -> Table:
    """A table whose rows are policies (and endpoints) and `keys`, with the notes on intervals and on tiles."""
    all_notes = (*notes, *_how_asked(records))
    return table_of(name, title, row_columns(records, *keys), blocks, rows, all_notes, records)


def _how_asked(records: Sequence[EpisodeRecord]) -> list[str]:
    """The line that names the tiles, and which rule on empty ones was used."""
    valued = scored(records)
    if not valued:
        return []
    sides = sorted({f"{metric(record, 'tile_px'):g}" for record in valued})
    rules = {bool(record.metrics["skip_empty"]) for record in valued}
    shown = {
        "True": "tiles without tissue are not shown, but count where they are positive (this project's rule)",
        "False": "all tiles are shown, with tissue or without (the paper's rule)",
    }
    rule = "; ".join(text for key, text in shown.items() if (key == "True") in rules)
    notes = [f"Tiles of {' and '.join(sides)} px; {rule}. {MISSING}: no positive tile to divide by."]
    if any(TileBudget.of(record.budget).free for record in valued):
        notes.append(
            "Searches (tiles=...): above the last magnification, kept means opened, and the score of a slide is its "
            "rate at the last magnification alone; of cascades it is the mean over magnifications."
        )
    return notes
