"""The tables of evipath/exploration: hit rates by magnification, what they cost, where positives were lost.

Rates are micro: tiles are added over slides (and seeds) first; intervals are over patients. A rate whose denominator is
empty is undefined and shown as missing. An infrastructure error has no tiles and is counted apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from PIL import Image

from wsigym.envs.tile_budgets import KEPT_AT_THE_END, TileBudget
from wsigym.errors import InvalidArgumentError
from wsigym.scoring.hit_rates import carried_over, micro_rate
from wsigym.scoring.intervals import Estimate

from ..curves import Curve, curves_picture
from ..published_facts import published_facts
from ..records import EpisodeRecord
from ..rows import Row, group_by, group_of, mean_of, row_of, scored, table_of, unit_of
from ..tables import MISSING, Block, Cell, Column, Table, TableOptions

__all__ = ["exploration_curve", "exploration_tables"]

MIN_GROUP = 20
"""Groups of fewer slides are flagged."""

BUDGET = Column("budget", "budget")

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

    Raises `UnknownNameError` where no record has the field, `InvalidArgumentError` for the confidence table: tiles
    have a suspicion, episodes no confidence.
    """
    if options.against is not None:
        raise InvalidArgumentError(
            "evipath/exploration holds searches against the cascade already; --against is not for it."
        )
    if options.confidence:
        raise InvalidArgumentError(
            "evipath/exploration has no stated confidence; how well tile scores rank is in --causes (AUROC)."
        )
    tables = [_by_table(records, options.by) if options.by else _main_table(records)]
    if versus := _search_table(records):
        tables.append(versus)
    if options.causes:
        tables.append(_causes_table(records))
    if options.budgets:
        tables.append(_curve_table(records))
    if options.published:
        tables.append(_published_table(records))
    return tables


def exploration_curve(records: Sequence[EpisodeRecord]) -> Image.Image:
    """The unconditional hit rate of the last magnification against the tiles viewed: a line a policy."""
    last = _scales(records)[-1]
    curves: dict[str, Curve] = {}
    for (policy, endpoint, _), episodes in _rows(records):
        rate, viewed = _rate(episodes, "retained", "positives", last), _mean(episodes, "tiles_viewed")
        if rate.value is not None and viewed is not None:
            curves.setdefault(policy if endpoint is None else f"{policy}, {endpoint}", []).append((viewed, rate))
    ordered = {name: sorted(curve, key=lambda point: point[0]) for name, curve in curves.items()}
    title = f"Hit rate at {last} in %, against tiles viewed"
    return curves_picture(title, "tiles viewed a slide", [("", ordered)], size=CURVE_PX, scale=100)


def _main_table(records: Sequence[EpisodeRecord]) -> Table:
    rows = [_row_cells(row) | _rates(episodes) | _effort(episodes) for row, episodes in _rows(records)]
    return _table("exploration", "evipath/exploration", (BUDGET,), _rate_blocks(records), rows, records)


def _by_table(records: Sequence[EpisodeRecord], field: str) -> Table:
    name_of = group_of(field, records)
    rows: list[dict[str, Cell]] = []
    for row, episodes in _rows(records):
        for name, group in sorted(group_by(episodes, name_of).items()):
            few = len({record.item for record in scored(group)}) < MIN_GROUP
            flag = f"n < {MIN_GROUP}" if few else ""
            rows.append(_row_cells(row) | {field: name, "flag": flag} | _rates(group) | _effort(group))
    blocks = (*_rate_blocks(records), Block("", (Column("flag", "few slides"),)))
    return _table("by", f"evipath/exploration by {field}", (BUDGET, Column(field, field)), blocks, rows, records)


def _rate_blocks(records: Sequence[EpisodeRecord]) -> tuple[Block, ...]:
    scales = _scales(records)
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
    for scale in _scales(episodes):
        cells[f"unconditional_{scale}"] = _rate(episodes, "retained", "positives", scale)
        cells[f"conditional_{scale}"] = _rate(episodes, "retained", "reached", scale)
    return cells


def _effort(episodes: Sequence[EpisodeRecord]) -> dict[str, Cell]:
    valued = scored(episodes)
    return {
        "score": mean_of(valued, _slide_rate),
        "tiles_viewed": _mean(episodes, "tiles_viewed"),
        "seconds": mean_of(valued, lambda record: record.seconds).value,
        "slides": len({record.item for record in valued}),
        "episodes": len(valued),
        "invalid": sum(record.outcome == "invalid" for record in episodes),
        "infrastructure_error": len(episodes) - len(valued),
    }


def _slide_rate(record: EpisodeRecord) -> float | None:
    """The score of a slide, None where it has no positive tile that the score could be of."""
    scales = _scales([record])
    asked = scales[-1:] if TileBudget.of(record.budget).free else scales
    return record.score if any(_metric(record, f"positives_{scale}") for scale in asked) else None


def _score_label(records: Sequence[EpisodeRecord]) -> str:
    """What a slide's score is: of the cascade its mean rate, of a search its rate at the last magnification."""
    last = f"rate at {_scales(records)[-1]}, %"
    searches = [TileBudget.of(record.budget).free for record in records]
    return last if all(searches) else f"mean rate, %\nsearches: {last}" if any(searches) else "mean rate, %"


def _search_table(records: Sequence[EpisodeRecord]) -> Table | None:
    """Each search minus the cascade of its scorer with the same K, on the slides that both have; None without any."""
    last = _scales(records)[-1]
    groups = dict(_rows(records))
    rows: list[dict[str, Cell]] = []
    for (policy, endpoint, budget), episodes in groups.items():
        for scorer, cascade in _cascades_of(policy, endpoint, budget, episodes, groups):
            theirs = {(record.item, record.seed): record for record in scored(cascade)}
            mine = [record for record in scored(episodes) if (record.item, record.seed) in theirs]
            pairs = [(record, theirs[record.item, record.seed]) for record in mine]
            rows.append(
                {
                    "policy": policy,
                    "endpoint": endpoint,
                    "against": f"{scorer} at {_cascade_budget(budget)}",
                    "difference": micro_rate(
                        [_metric(a, f"retained_{last}") - _metric(b, f"retained_{last}") for a, b in pairs],
                        [_metric(a, f"positives_{last}") for a, _ in pairs],
                        [unit_of(a) for a, _ in pairs],
                    ),
                    "order": micro_rate(
                        [_metric(a, f"retained_{last}") - _metric(b, "best_viewed") for a, b in pairs],
                        [_metric(a, f"positives_{last}") for a, _ in pairs],
                        [unit_of(a) for a, _ in pairs],
                    ),
                    "viewed": _mean([a for a, _ in pairs], "tiles_viewed"),
                    "viewed_cascade": _mean([b for _, b in pairs], "tiles_viewed"),
                    "slides": len({a.item for a, _ in pairs}),
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
        "* the interval excludes 0. Paired: the same slides and seeds.",
        f"A search keeps the {KEPT_AT_THE_END} best-scored tiles that it viewed, wherever they lie, the cascade no "
        "more than K a parent; the second difference gives both the search's rule, so that only the order of looking "
        "is left.",
        "A search may view as many tiles of a slide as the cascade with the same scorer and K does.",
    ]
    keys = (Column("against", "against"),)
    return _table(
        "searches", "What searching brings over the cascade", keys, (Block("", columns),), rows, records, notes
    )


def _cascades_of(
    policy: str,
    endpoint: str | None,
    budget: str,
    search: Sequence[EpisodeRecord],
    groups: Mapping[Row, list[EpisodeRecord]],
) -> list[tuple[str, list[EpisodeRecord]]]:
    """The cascades that a search is held against: that of its scorer, by name.

    Where the name tells none (adaptive:FILE), the cascade that viewed on every slide as many tiles as the search might.
    """
    if not TileBudget.of(budget).free:
        return []
    same = {
        name: episodes
        for (name, other, spent), episodes in groups.items()
        if (other, spent) == (endpoint, _cascade_budget(budget))
    }
    scorer = policy.partition(":")[2]
    if scorer in same:
        return [(scorer, same[scorer])]
    if not policy.startswith("adaptive:"):
        return []
    return [(name, episodes) for name, episodes in same.items() if _gave_budget(episodes, search)]


def _gave_budget(cascade: Sequence[EpisodeRecord], search: Sequence[EpisodeRecord]) -> bool:
    viewed = {(record.item, record.seed): _optional(record, "tiles_viewed") for record in scored(cascade)}
    allowed = {(record.item, record.seed): _optional(record, "tiles_allowed") for record in scored(search)}
    both = viewed.keys() & allowed.keys()
    return bool(both) and all(viewed[key] == allowed[key] for key in both)


def _cascade_budget(budget: str) -> str:
    return budget.replace("tiles=", "K=")


def _causes_table(records: Sequence[EpisodeRecord]) -> Table:
    """Where the positive tiles of each magnification went, and how well the scores rank, free of the cascade.

    A cascade shows the tiles that its scorer picked, so that figures of ranking on them alone would be of another
    question; they are given where every tile was scored.
    """
    scales = _scales(records)
    causes = [("retained", "kept"), ("said_no", "said No"), ("outranked", "outranked"), ("not_shown", "not\nshown")]
    rows: list[dict[str, Cell]] = []
    for row, episodes in _rows(records):
        for level, scale in enumerate(scales):
            cells: dict[str, Cell] = {name: _rate(episodes, name, "positives", scale).value for name, _ in causes}
            for above in scales[:level]:
                cells[f"pruned_{above}"] = _rate(episodes, f"pruned_{above}", "positives", scale).value
            cells["positives"] = sum(int(_metric(record, f"positives_{scale}")) for record in scored(episodes))
            cells["scored"] = _rate(episodes, "viewed", "may_be_shown", scale).value
            if cells["scored"] == 1:
                cells["auroc"] = _estimate(episodes, f"auroc_{scale}")
                cells["recall_at_k"] = _rate(episodes, "best_k", "best_k_of", scale)
            rows.append(_row_cells(row) | {"magnification": scale} | cells)
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
    return _table("causes", "Where positive tiles were lost", keys, blocks, rows, records, notes)


def _curve_table(records: Sequence[EpisodeRecord]) -> Table:
    last = _scales(records)[-1]
    rows = [
        _row_cells(row)
        | {
            "tiles_viewed": _mean(episodes, "tiles_viewed"),
            "rate": _rate(episodes, "retained", "positives", last),
            "best_viewed": _rate_of(episodes, "best_viewed", f"positives_{last}"),
            "retained": _mean(episodes, f"retained_{last}"),
        }
        for row, episodes in _rows(records)
    ]
    columns = (
        Column("tiles_viewed", "tiles\nviewed", digits=1),
        Column("rate", f"hit rate\nat {last}, %", digits=2, scale=100),
        Column("best_viewed", f"of the {KEPT_AT_THE_END}\nbest viewed, %", digits=2, scale=100),
        Column("retained", "positives\nkept", digits=1),
    )
    return _table("budgets", "Hit rate against tiles viewed", (BUDGET,), (Block("", columns),), rows, records)


def _published_table(records: Sequence[EpisodeRecord]) -> Table:
    facts = published_facts("evipath_prose_facts")
    groups = dict(_rows(records))
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
            cell = _rate(groups.get((policy, None, budget), []), "retained", "positives", scale)
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


# -- from records --------------------------------------------------------------------------------------------------


def _rows(records: Sequence[EpisodeRecord]) -> list[tuple[Row, list[EpisodeRecord]]]:
    """Policies in order of appearance, each with its budgets from the smallest to the largest."""
    groups = group_by(records, row_of)
    order = list(dict.fromkeys((policy, endpoint) for policy, endpoint, _ in groups))

    def place(row: Row) -> tuple[int, float, str]:
        budget = TileBudget.of(row[2])
        size = budget.tiles or (math.prod(budget.keep) if budget.keep else math.inf)
        return order.index((row[0], row[1])), size, row[2]

    return [(row, groups[row]) for row in sorted(groups, key=place)]


def _row_cells(row: Row) -> dict[str, Cell]:
    policy, endpoint, budget = row
    return {"policy": policy, "endpoint": endpoint, "budget": budget}


def _scales(records: Sequence[EpisodeRecord]) -> list[str]:
    """The magnifications of the records, such as "2.5x", rising."""
    names = {key.removeprefix("positives_") for record in records for key in record.metrics if "positives_" in key}
    return sorted(names, key=lambda name: float(name.removesuffix("x")))


def _metric(record: EpisodeRecord, key: str) -> float:
    return _optional(record, key) or 0.0


def _optional(record: EpisodeRecord, key: str) -> float | None:
    value = record.metrics.get(key)
    return None if value is None or isinstance(value, str) else float(value)


def _estimate(records: Sequence[EpisodeRecord], key: str) -> Estimate:
    return mean_of(scored(records), lambda record: _optional(record, key))


def _mean(records: Sequence[EpisodeRecord], key: str) -> float | None:
    return _estimate(records, key).value


def _rate(records: Sequence[EpisodeRecord], part: str, whole: str, scale: str) -> Estimate:
    return _rate_of(records, f"{part}_{scale}", f"{whole}_{scale}")


def _rate_of(records: Sequence[EpisodeRecord], part: str, whole: str) -> Estimate:
    valued = scored(records)
    return micro_rate(
        [_metric(record, part) for record in valued],
        [_metric(record, whole) for record in valued],
        [unit_of(record) for record in valued],
    )


def _table(
    name: str,
    title: str,
    keys: tuple[Column, ...],
    blocks: tuple[Block, ...],
    rows: Sequence[Mapping[str, Cell]],
    records: Sequence[EpisodeRecord],
    notes: Sequence[str] = (),
) -> Table:
    endpoint = (Column("endpoint", "endpoint"),) if any(record.endpoint is not None for record in records) else ()
    all_keys = (Column("policy", "policy"), *endpoint, *keys)
    return table_of(name, title, all_keys, blocks, rows, (*notes, *_how_asked(records)), records)


def _how_asked(records: Sequence[EpisodeRecord]) -> list[str]:
    """The line that names the tiles, and which rule on empty ones was used."""
    valued = scored(records)
    if not valued:
        return []
    sides = sorted({f"{_metric(record, 'tile_px'):g}" for record in valued})
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
