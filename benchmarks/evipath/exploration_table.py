"""The tables of evipath/exploration: hit rates by magnification, what they cost, where positives were lost.

Rates are micro: tiles are added over slides (and seeds) first; intervals are over patients. A rate whose denominator is
empty is undefined and shown as missing. An infrastructure error has no tiles and is counted apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image

from wsigym.envs.tile_budgets import KEPT_AT_THE_END, TileBudget
from wsigym.errors import InvalidArgumentError
from wsigym.scoring.hit_rates import carried_over

from ..curves import Curve, curves_picture
from ..published_facts import published_facts
from ..records import EpisodeRecord
from ..rows import BUDGET, group_by, group_of, mean_of, row_cells, scored
from ..tables import Block, Cell, Column, Table, TableOptions
from .exploration_pairs import against_table, search_table
from .exploration_rows import (
    estimate,
    exploration_table,
    last_scale,
    mean,
    metric,
    ordered_rows,
    rate,
    rate_of,
    scales_of,
)

__all__ = ["exploration_curve", "exploration_tables"]

MIN_GROUP = 20
"""Groups of fewer slides are flagged."""

CURVE_PX = (560, 320)
"""The curve's plot area."""

PUBLISHED = {
    "T3B.random.2.5x": "random tiles, 2.5x",
    "T3B.full.Gemini.uncond": "Gemini, 2.5x, 10x, 40x",
    "T3B.sweep.Gemini.uncond.6-3-2": "Gemini at K=6,3,2 (sweep)",
    "T3B.sweep.Qwen.uncond.6-3-2": "Qwen at K=6,3,2 (sweep)",
    "T3B.sweep.Qwen.40x.10-5-3": "Qwen at K=10,5,3, 40x",
    "T3B.oracle.40x.6-3-2": "oracle at K=6,3,2, 40x",
    "T3B.oracle.40x.10-5-3": "oracle at K=10,5,3, 40x",
}
"""The paper's unconditional hit rates in %, and what each is of."""


def exploration_tables(records: Sequence[EpisodeRecord], options: TableOptions) -> list[Table]:
    """The main table (or the one by a field), searches against the cascade, and whatever else `options` ask for.

    Raises `UnknownNameError` where no record has the field or no policy the name, `InvalidArgumentError` where no other
    policy played at a budget of the one named, and for the confidence table: tiles have a suspicion, episodes no
    confidence.
    """
    if options.confidence:
        raise InvalidArgumentError(
            "evipath/exploration has no stated confidence; how well tile scores rank is in --causes (AUROC)."
        )
    tables = [_by_table(records, options.by) if options.by else _main_table(records)]
    if versus := search_table(records):
        tables.append(versus)
    if options.against is not None:
        tables.append(against_table(records, options.against))
    if options.causes:
        tables.append(_causes_table(records))
    if options.budgets:
        tables.append(_curve_table(records))
    if options.published:
        tables.append(_published_table(records))
    return tables


def exploration_curve(records: Sequence[EpisodeRecord]) -> Image.Image:
    """The unconditional hit rate of the last magnification against the tiles viewed: a line a policy."""
    last = last_scale(records)
    curves: dict[str, Curve] = {}
    for (policy, endpoint, _), episodes in ordered_rows(records):
        hits, viewed = rate(episodes, "retained", "positives", last), mean(episodes, "tiles_viewed")
        if hits.value is not None and viewed is not None:
            curves.setdefault(policy if endpoint is None else f"{policy}, {endpoint}", []).append((viewed, hits))
    ordered = {name: sorted(curve, key=lambda point: point[0]) for name, curve in curves.items()}
    title = f"Hit rate at {last} in %, against tiles viewed"
    return curves_picture(title, "tiles viewed a slide", [("", ordered)], size=CURVE_PX, scale=100)


def _main_table(records: Sequence[EpisodeRecord]) -> Table:
    rows = [row_cells(row) | _rates(episodes) | _effort(episodes) for row, episodes in ordered_rows(records)]
    return exploration_table("exploration", "evipath/exploration", (BUDGET,), _rate_blocks(records), rows, records)


def _by_table(records: Sequence[EpisodeRecord], field: str) -> Table:
    name_of = group_of(field, records)
    rows: list[dict[str, Cell]] = []
    for row, episodes in ordered_rows(records):
        for name, group in sorted(group_by(episodes, name_of).items()):
            few = len({record.item for record in scored(group)}) < MIN_GROUP
            flag = f"n < {MIN_GROUP}" if few else ""
            rows.append(row_cells(row) | {field: name, "flag": flag} | _rates(group) | _effort(group))
    blocks = (*_rate_blocks(records), Block("", (Column("flag", "few slides"),)))
    return exploration_table(
        "by", f"evipath/exploration by {field}", (BUDGET, Column(field, field)), blocks, rows, records
    )


def _rate_blocks(records: Sequence[EpisodeRecord]) -> tuple[Block, ...]:
    scales = scales_of(records)
    return (
        Block(
            "Unconditional hit rate: kept positive tiles / all, %",
            tuple(Column(f"unconditional_{scale}", scale, digits=2, scale=100) for scale in scales),
        ),
        Block(
            "Conditional hit rate: kept positive tiles / those under a kept parent, %",
            tuple(Column(f"conditional_{scale}", scale, digits=2, scale=100) for scale in scales),
        ),
        Block(
            "A slide",
            (
                Column("score", _score_label(records), digits=2, scale=100),
                Column("tiles_viewed", "tiles\nviewed", digits=1),
                Column("seconds", "seconds", digits=2),
                Column("slides", "slides"),
                Column("episodes", "episodes"),
                Column("invalid", "invalid"),
                Column("infrastructure_error", "infra.\nerrors"),
            ),
        ),
    )


def _rates(episodes: Sequence[EpisodeRecord]) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    for scale in scales_of(episodes):
        cells[f"unconditional_{scale}"] = rate(episodes, "retained", "positives", scale)
        cells[f"conditional_{scale}"] = rate(episodes, "retained", "reached", scale)
    return cells


def _effort(episodes: Sequence[EpisodeRecord]) -> dict[str, Cell]:
    valued = scored(episodes)
    return {
        "score": mean_of(valued, _slide_rate),
        "tiles_viewed": mean(episodes, "tiles_viewed"),
        "seconds": mean_of(valued, lambda record: record.seconds).value,
        "slides": len({record.item for record in valued}),
        "episodes": len(valued),
        "invalid": sum(record.outcome == "invalid" for record in episodes),
        "infrastructure_error": len(episodes) - len(valued),
    }


def _slide_rate(record: EpisodeRecord) -> float | None:
    """The score of a slide, None where it has no positive tile that the score could be of."""
    scales = scales_of([record])
    asked = scales[-1:] if TileBudget.of(record.budget).free else scales
    return record.score if any(metric(record, f"positives_{scale}") for scale in asked) else None


def _score_label(records: Sequence[EpisodeRecord]) -> str:
    """What a slide's score is: of the cascade its mean rate, of a search its rate at the last magnification."""
    last = f"rate at {last_scale(records)}, %"
    searches = [TileBudget.of(record.budget).free for record in records]
    return last if all(searches) else f"mean rate, %\nsearches: {last}" if any(searches) else "mean rate, %"


def _causes_table(records: Sequence[EpisodeRecord]) -> Table:
    """Where the positive tiles of each magnification went, and how well the scores rank, free of the cascade.

    A cascade shows the tiles that its scorer picked, so that figures of ranking on them alone would be of another
    question; they are given where every tile was scored.
    """
    scales = scales_of(records)
    causes = [("retained", "kept"), ("said_no", "said No"), ("outranked", "outranked"), ("not_shown", "not\nshown")]
    rows: list[dict[str, Cell]] = []
    for row, episodes in ordered_rows(records):
        for level, scale in enumerate(scales):
            cells: dict[str, Cell] = {name: rate(episodes, name, "positives", scale).value for name, _ in causes}
            for above in scales[:level]:
                cells[f"pruned_{above}"] = rate(episodes, f"pruned_{above}", "positives", scale).value
            cells["positives"] = sum(int(metric(record, f"positives_{scale}")) for record in scored(episodes))
            cells["scored"] = rate(episodes, "viewed", "may_be_shown", scale).value
            if cells["scored"] == 1:
                cells["auroc"] = estimate(episodes, f"auroc_{scale}")
                cells["recall_at_k"] = rate(episodes, "best_k", "best_k_of", scale)
            rows.append(row_cells(row) | {"magnification": scale} | cells)
    blocks = (
        Block(
            "Share of the positive tiles, %",
            (
                *(Column(name, label, digits=1, scale=100) for name, label in causes),
                *(Column(f"pruned_{above}", f"pruned\nat {above}", digits=1, scale=100) for above in scales[:-1]),
                Column("positives", "positives"),
            ),
        ),
        Block(
            "How well the scores rank tiles, whatever was kept",
            (
                Column("scored", "tiles\nscored, %", digits=1, scale=100),
                Column("auroc", "AUROC", always=True),
                Column("recall_at_k", "recall at K, %", digits=1, scale=100, always=True),
            ),
        ),
    )
    notes = [
        "not shown: the tile has no tissue, or the search ended before it; pruned at M: an ancestor was not kept at M.",
        "AUROC (mean over slides) and recall at K (6, 3, 2; of each parent's tiles, whatever the verdict) stand where "
        "all tiles that may be shown were scored (100 %). Elsewhere the scorer itself picked them, and the figures "
        "would not compare; `wsigym run ... --budget K=all` scores all.",
    ]
    keys = (BUDGET, Column("magnification", ""))
    return exploration_table("causes", "Where positive tiles were lost", keys, blocks, rows, records, notes)


def _curve_table(records: Sequence[EpisodeRecord]) -> Table:
    last = last_scale(records)
    rows = [
        row_cells(row)
        | {
            "tiles_viewed": mean(episodes, "tiles_viewed"),
            "rate": rate(episodes, "retained", "positives", last),
            "best_viewed": rate_of(episodes, "best_viewed", f"positives_{last}"),
            "retained": mean(episodes, f"retained_{last}"),
        }
        for row, episodes in ordered_rows(records)
    ]
    columns = (
        Column("tiles_viewed", "tiles\nviewed", digits=1),
        Column("rate", f"hit rate\nat {last}, %", digits=2, scale=100),
        Column("best_viewed", f"of the {KEPT_AT_THE_END}\nbest viewed, %", digits=2, scale=100),
        Column("retained", "positives\nkept", digits=1),
    )
    return exploration_table(
        "budgets", "Hit rate against tiles viewed", (BUDGET,), (Block("", columns),), rows, records
    )


def _published_table(records: Sequence[EpisodeRecord]) -> Table:
    facts = published_facts("evipath_prose_facts")
    groups = dict(ordered_rows(records))
    ours = {
        "T3B.random.2.5x": ("random", "K=6,3,2", "2.5x"),
        "T3B.oracle.40x.6-3-2": ("oracle", "K=6,3,2", "40x"),
        "T3B.oracle.40x.10-5-3": ("oracle", "K=10,5,3", "40x"),
    }
    rows: list[dict[str, Cell]] = []
    for key, label in PUBLISHED.items():
        cell: Cell = None
        if key in ours:
            policy, budget, scale = ours[key]
            cell = rate(groups.get((policy, None, budget), []), "retained", "positives", scale)
        value = facts[key].value
        left = carried_over([float(rate) for rate in str(value).split(",")])
        told = ", ".join(f"{share:.1%}".replace("%", " %") for share in left if share is not None)
        rows.append({"fact": label, "paper": str(value), "left": told or None, "ours": cell})
    return Table(
        "published",
        "The paper beside these runs (EviPathBench, arXiv 2607.19261): unconditional hit rates, %",
        (Column("fact", "figure"),),
        (
            Block(
                "",
                (
                    Column("paper", "paper"),
                    Column("left", "left of the rate at the\nmagnification before"),
                    Column("ours", "here", digits=2, scale=100),
                ),
            ),
        ),
        tuple(rows),
        ("The paper's figures are on its own 190 slides, which are not public. They compare with no other slides.",),
    )
