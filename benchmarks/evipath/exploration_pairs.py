"""Paired tables of evipath/exploration: searches against the cascade, and every policy against the one named.

A pair is one slide with one seed, played by both. `join_runs` has seen to it that both looked for the same class of
region with the same tiles. A difference of rates is micro: tiles are added over the slides of the pairs first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wsigym.envs.tile_budgets import KEPT_AT_THE_END, TileBudget
from wsigym.scoring.hit_rates import micro_difference
from wsigym.scoring.intervals import Estimate

from ..records import EpisodeRecord
from ..rows import BUDGET, Row, held_against, row_cells, scored, unit_of
from ..tables import Block, Cell, Column, Table
from .exploration_rows import exploration_table, last_scale, mean, metric, optional_metric, ordered_rows, scales_of

__all__ = ["against_table", "search_table"]

Pair = tuple[EpisodeRecord, EpisodeRecord]

EXCLUDES_ZERO = "* the interval excludes 0."


def against_table(records: Sequence[EpisodeRecord], policy: str) -> Table:
    """Each policy minus the one named, at the same budget, on the slides and seeds that both have.

    Searches are held against each other only on slides where both might view as many tiles: `tiles=6,3,2` is another
    number for another scorer. Raises as `held_against` does.
    """
    scales = scales_of(records)
    groups = dict(ordered_rows(records))
    compared = held_against(groups, policy)
    rows: list[dict[str, Cell]] = []
    for row, episodes, theirs in compared:
        played = _pairs(episodes, theirs)
        pairs = [pair for pair in played if len({optional_metric(each, "tiles_allowed") for each in pair}) == 1]
        cells: dict[str, Cell] = {
            f"difference_{name}_{scale}": _difference(pairs, f"retained_{scale}", f"{whole}_{scale}")
            for name, whole in (("unconditional", "positives"), ("conditional", "reached"))
            for scale in scales
        }
        cells |= _viewed(pairs, "against") | {
            "slides": len({record.item for record, _ in pairs}),
            "pairs": len(pairs),
            "unpaired": len(scored(episodes)) + len(scored(theirs)) - 2 * len(played),
            "other_budget": len(played) - len(pairs),
        }
        rows.append(row_cells(row) | cells)
    blocks = (
        *(
            Block(
                f"{name} hit rate, difference in percentage points",
                tuple(
                    Column(f"difference_{name.lower()}_{scale}", scale, digits=2, scale=100, signed=True)
                    for scale in scales
                ),
            )
            for name in ("Unconditional", "Conditional")
        ),
        Block(
            "What was compared",
            (
                Column("viewed", "tiles\nviewed", digits=1),
                Column("viewed_against", "by the\nother", digits=1),
                Column("slides", "slides"),
                Column("pairs", "pairs"),
                Column("unpaired", "without\na pair", always=False),
                Column("other_budget", "unequal\nbudgets", always=False),
            ),
        ),
    )
    notes = [
        f"{EXCLUDES_ZERO} A pair: one slide with one seed, played by both at the same budget. Tiles are added over the "
        "pairs' slides first; a conditional rate is of the tiles that each policy reached itself.",
        *_left_out(rows, [row for row in groups if row[0] != policy], policy),
    ]
    title = f"Minus {policy} at the same budget: difference of hit rates on the same slides"
    return exploration_table("against", title, (BUDGET,), blocks, rows, records, notes)


def _left_out(rows: Sequence[Mapping[str, Cell]], others: Sequence[Row], policy: str) -> list[str]:
    """What is in no difference, and why: a line for each kind that there is."""
    notes = []
    if any(row["unpaired"] for row in rows):
        notes.append("Without a pair, left out: episodes of a slide and seed that only one of the two has a score for.")
    if any(row["other_budget"] for row in rows):
        notes.append(
            "Unequal budgets, left out: pairs of searches that might view different numbers of tiles, as tiles=6,3,2 "
            "is what each one's scorer views in the cascade; with tiles=N all might view N."
        )
    compared = {(row["policy"], row["endpoint"], row["budget"]) for row in rows}
    alone: dict[str, list[str]] = {}
    for name, _, budget in (row for row in others if row not in compared):
        alone.setdefault(name, []).append(budget)
    if alone:
        told = "; ".join(f"{name} at {', '.join(dict.fromkeys(budgets))}" for name, budgets in alone.items())
        notes.append(f"Left out, as {policy} did not play at their budgets: {told}.")
    return notes


def search_table(records: Sequence[EpisodeRecord]) -> Table | None:
    """Each search minus the cascade of its scorer with the same K, on the slides that both have; None without any."""
    groups = dict(ordered_rows(records))
    rows: list[dict[str, Cell]] = []
    last = last_scale(records)
    for row, episodes in groups.items():
        for scorer, cascade in _cascades_of(row, episodes, groups):
            pairs = _pairs(episodes, cascade)
            rows.append(
                {
                    "policy": row[0],
                    "endpoint": row[1],
                    "against": f"{scorer} at {_cascade_budget(row[2])}",
                    "difference": _difference(pairs, f"retained_{last}", f"positives_{last}"),
                    "order": _difference(pairs, f"retained_{last}", f"positives_{last}", kept_against="best_viewed"),
                    **_viewed(pairs, "cascade"),
                    "slides": len({record.item for record, _ in pairs}),
                }
            )
    if not rows:
        return None
    columns = (
        Column("difference", f"hit rate at {last},\ndifference in %", digits=2, scale=100, signed=True),
        Column("order", "if both keep\nthe best viewed", digits=2, scale=100, signed=True),
        Column("viewed", "tiles\nviewed", digits=1),
        Column("viewed_cascade", "by the\ncascade", digits=1),
        Column("slides", "slides"),
    )
    notes = [
        f"{EXCLUDES_ZERO} Paired: the same slides and seeds.",
        f"A search keeps the {KEPT_AT_THE_END} best-scored tiles that it viewed, wherever they lie, the cascade no "
        "more than K a parent; the second difference gives both the search's rule, so that only the order of looking "
        "is left.",
        "A search may view as many tiles of a slide as the cascade with the same scorer and K does.",
    ]
    keys = (Column("against", "against"),)
    title = "What searching brings over the cascade"
    return exploration_table("searches", title, keys, (Block("", columns),), rows, records, notes)


def _cascades_of(
    search: Row, episodes: Sequence[EpisodeRecord], groups: Mapping[Row, list[EpisodeRecord]]
) -> list[tuple[str, list[EpisodeRecord]]]:
    """The cascades that a search is held against: that of its scorer, by name.

    Where the name tells none (adaptive:FILE), the cascade that viewed on every slide as many tiles as the search might.
    """
    policy, endpoint, budget = search
    if not TileBudget.of(budget).free:
        return []
    same = {
        name: played
        for (name, other, spent), played in groups.items()
        if (other, spent) == (endpoint, _cascade_budget(budget))
    }
    scorer = policy.partition(":")[2]
    if scorer in same:
        return [(scorer, same[scorer])]
    if not policy.startswith("adaptive:"):
        return []
    return [(name, played) for name, played in same.items() if _gave_budget(played, episodes)]


def _gave_budget(cascade: Sequence[EpisodeRecord], search: Sequence[EpisodeRecord]) -> bool:
    pairs = _pairs(cascade, search)
    return bool(pairs) and all(
        optional_metric(given, "tiles_viewed") == optional_metric(taken, "tiles_allowed") for given, taken in pairs
    )


def _cascade_budget(budget: str) -> str:
    return budget.replace("tiles=", "K=")


def _pairs(first: Sequence[EpisodeRecord], second: Sequence[EpisodeRecord]) -> list[Pair]:
    """The scored episodes of the same slide and seed."""
    others = {(record.item, record.seed): record for record in scored(second)}
    return [
        (record, others[record.item, record.seed]) for record in scored(first) if (record.item, record.seed) in others
    ]


def _difference(pairs: Sequence[Pair], kept: str, of: str, kept_against: str | None = None) -> Estimate:
    """The rate of each pair's first minus that of its second, whose kept tiles are `kept_against` where given."""
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    return micro_difference(
        ([metric(record, kept) for record in first], [metric(record, of) for record in first]),
        ([metric(record, kept_against or kept) for record in second], [metric(record, of) for record in second]),
        [unit_of(record) for record in first],
    )


def _viewed(pairs: Sequence[Pair], other: str) -> dict[str, Cell]:
    return {
        "viewed": mean([record for record, _ in pairs], "tiles_viewed"),
        f"viewed_{other}": mean([record for _, record in pairs], "tiles_viewed"),
    }
