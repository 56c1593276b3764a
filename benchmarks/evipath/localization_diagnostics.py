"""What went wrong in evipath/localization, and whether the stated confidence knew."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from wsigym.scoring.confidence import COVERAGE, confidence_report
from wsigym.scoring.localization import HIT_IOU
from wsigym.scoring.navigation import CAUSES, MOSTLY_SEEN

from ..records import EpisodeRecord
from ..rows import BUDGET, Row, group_by, group_of, mean_of, row_cells, row_columns, scored, table_of
from ..tables import MISSING, Block, Cell, Column, Table
from .localization_rows import hit, metric, ordered_rows

__all__ = ["causes_table", "confidence_table"]

CAUSE_LABELS = {
    "hit": "hit",
    "never viewed": "never\nviewed",
    "viewed but not chosen": "viewed,\nnot chosen",
    "chosen with IoU < 0.3": "chosen,\nIoU < 0.3",
    "no finish": "no\nfinish",
    "invalid": "invalid",
}
assert tuple(CAUSE_LABELS) == CAUSES


def causes_table(records: Sequence[EpisodeRecord], field: str | None = None) -> Table:
    """What became of the episodes: the share of each cause, and what was seen; with `field`, for each of its groups."""
    rows: list[dict[str, Cell]] = []
    for row, name, episodes in _grouped(records, field):
        causes = [record.metrics.get("cause") for record in episodes]
        looked = [record for record in episodes if metric("rois_used")(record)]
        first_hits = [number for record in looked if (number := metric("first_hit_step")(record)) is not None]
        cells = row_cells(row) | {
            "episodes": len(episodes),
            "looked": len(looked),
            "best_look_iou": mean_of(looked, metric("best_look_iou")),
            "look_would_hit": len(first_hits) / len(looked) if looked else None,
            "first_hit_step": float(median(first_hits)) if first_hits else None,
            "seen_share": mean_of(looked, metric("seen_share")).value,
            "regret": mean_of(looked, metric("regret")),
        }
        shares = {cause: causes.count(cause) / len(causes) if causes else None for cause in CAUSES}
        rows.append(cells | ({field: name} if field else {}) | shares)
    further = (BUDGET, Column(field, field)) if field else (BUDGET,)
    return table_of(
        "causes",
        "What became of the episodes",
        row_columns(records, *further),
        (
            Block("Causes, % of the scored episodes", CAUSE_COLUMNS),
            Block(
                "Looks, each scored as if it were the answer; means over the episodes with at least one look",
                SEEN_COLUMNS,
            ),
        ),
        rows,
        [
            "Never viewed: the answer misses the evidence, and no look found it. Viewed, not chosen: a look would have "
            f"been a hit, or looks covered {100 * MOSTLY_SEEN:.0f} % of the evidence. Chosen: the answer overlaps it, "
            f"IoU under {HIT_IOU}, and no look would have been a hit. No finish: the budget was spent, no answer came.",
            "A look hits: at least one look would have been a hit; first hit: the number of the first one. "
            "Evidence seen: share of the annotated box that looks covered in more detail than the overview. Regret: "
            "IoU of the best look minus that of the answer, at least 0.",
        ],
        records,
    )


CAUSE_COLUMNS = (
    *(Column(cause, label, digits=1, scale=100) for cause, label in CAUSE_LABELS.items()),
    Column("episodes", "episodes"),
)
SEEN_COLUMNS = (
    Column("looked", "with\nlooks"),
    Column("best_look_iou", "best look,\nmean IoU"),
    Column("look_would_hit", "a look\nhits, %", digits=0, scale=100),
    Column("first_hit_step", "first hit\n(median)", digits=1),
    Column("seen_share", "evidence\nseen, %", digits=0, scale=100),
    Column("regret", "regret,\nmean"),
)


def _grouped(records: Sequence[EpisodeRecord], field: str | None) -> list[tuple[Row, str, list[EpisodeRecord]]]:
    """The scored episodes of each row, split by `field` where one is given."""
    if field is None:
        return [(row, "", scored(episodes)) for row, episodes in ordered_rows(records)]
    name_of = group_of(field, records)
    return [
        (row, name, group)
        for row, episodes in ordered_rows(records)
        for name, group in group_by(scored(episodes), name_of).items()
    ]


def confidence_table(records: Sequence[EpisodeRecord], field: str | None = None) -> Table:
    """Whether the stated confidence knows which answers are hits; with `field`, for each of its groups."""
    rows: list[dict[str, Cell]] = []
    for row, name, episodes in _grouped(records, field):
        report = confidence_report(
            [record.confidence for record in episodes], [bool(hit(record)) for record in episodes]
        )
        rows.append(
            row_cells(row)
            | ({field: name} if field else {})
            | {
                "stated": report.n,
                "missing": report.missing,
                "hits": report.accuracy,
                "mean_confidence": report.mean_confidence,
                "auroc": report.auroc,
                "brier": report.brier,
                "risk_coverage_area": report.risk_coverage_area,
                "hits_at_coverage": report.accuracy_at_coverage,
            }
        )
    further = (BUDGET, Column(field, field)) if field else (BUDGET,)
    return table_of(
        "confidence",
        "Does the stated confidence know which answers are hits?",
        row_columns(records, *further),
        (Block("", CONFIDENCE_COLUMNS),),
        rows,
        [
            "AUROC: chance that a hit has more confidence than a miss (0.5 says nothing). Brier: mean squared error of "
            "the confidence (0 is perfect).",
            "Risk-coverage area: mean share of misses when only the most confident answers are kept (lower is better). "
            f"Hits at {100 * COVERAGE:.0f} % coverage: among the {100 * COVERAGE:.0f} % most confident answers.",
            f"An episode without a confidence is counted, never imputed. {MISSING}: undefined, such as an AUROC "
            "without misses.",
        ],
        records,
    )


CONFIDENCE_COLUMNS = (
    Column("stated", "stated"),
    Column("missing", "not\nstated"),
    Column("hits", "hits, %", digits=0, scale=100),
    Column("mean_confidence", "mean\nvalue", digits=2),
    Column("auroc", "AUROC", digits=2),
    Column("brier", "Brier"),
    Column("risk_coverage_area", "risk-cov.\narea"),
    Column("hits_at_coverage", f"hits at {100 * COVERAGE:.0f} %\ncoverage, %", digits=0, scale=100),
)
