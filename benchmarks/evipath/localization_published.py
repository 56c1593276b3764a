"""What the paper states on evipath/localization beside the same figures of our runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from wsigym.envs.budgets import PRESETS
from wsigym.scoring.localization import HIT_IOU

from ..episodes import BLIND_MARK
from ..published_facts import facts_table, published_facts
from ..records import EpisodeRecord
from ..rows import group_by, mean_of, row_of, scored
from ..tables import Cell, Table
from .localization_rows import iou, magnification

__all__ = ["published_table"]

LABELS = {
    "T3A.slides": ("slides", ""),
    "T3A.budget": ("ROIs, base budget", ""),
    "T3A.iou_threshold": ("IoU of a hit", "at least"),
    "T3A.parent_centre_iou.10x40x": ("centre of the search box, mean IoU", "at 10x and 40x; here: search-centre"),
    "T3A.max_vlm_iou": ("best model, mean IoU", "here: policies with an endpoint, base budget"),
    "T3A.parent_centre_ratio": ("centre over best model", "at 10x and 40x"),
    "T3A.Patho-R1": ("Patho-R1, mean IoU", ""),
    "organ.T3A.Colorectum": ("colorectum, mean IoU", "mean over the paper's models"),
    "latency.T3A_s": ("seconds", "here: a query, mean; policies with an endpoint"),
}
"""The paper's facts on this task: what each is called, and what to know of it beside the paper's own note."""

CENTRE_POLICY = "search-centre"
CENTRE_SCALES = (10.0, 40.0)


def published_table(records: Sequence[EpisodeRecord]) -> Table:
    """What the paper states on this task beside the same figure of these runs; "-" where there is none."""
    facts = published_facts("evipath_prose_facts")
    ours = _our_facts(records)
    rows: list[dict[str, Cell]] = []
    for key, (label, further) in LABELS.items():
        fact = facts[key]
        note = "; ".join(text for text in (fact.note, further) if text)
        rows.append({"fact": label, "paper": str(fact.value), "ours": ours.get(key), "note": note})
    return facts_table(
        "EviPathBench, arXiv 2607.19261",
        rows,
        "The paper's figures are on its own slides, from its text: its tables are not public. "
        "They compare with a run on the same slides only.",
    )


def _our_facts(records: Sequence[EpisodeRecord]) -> dict[str, str]:
    facts = {
        "T3A.slides": f"{len({record.groups['slide'] for record in records}):,}",
        "T3A.iou_threshold": f"{HIT_IOU:g}",
        "T3A.budget": ",".join(map(str, PRESETS["base"])),
    }
    centre = group_by((record for record in records if record.policy == CENTRE_POLICY), magnification)
    centre_means = _means(centre.get(scale, []) for scale in CENTRE_SCALES)
    models = group_by(
        (
            record
            for record in scored(records)
            if record.endpoint and BLIND_MARK not in record.policy and record.budget == "base"
        ),
        row_of,
    )
    model_means = _means(models.values())
    if centre_means:
        facts["T3A.parent_centre_iou.10x40x"] = _range(centre_means, 2)
    if model_means:
        facts["T3A.max_vlm_iou"] = f"{max(model_means):.2f}"
        facts["latency.T3A_s"] = _range([fmean(record.seconds for record in group) for group in models.values()], 1)
        if centre_means and max(model_means) > 0:
            facts["T3A.parent_centre_ratio"] = _range([mean / max(model_means) for mean in centre_means], 1) + "x"
    return facts


def _means(groups: Iterable[Sequence[EpisodeRecord]]) -> list[float]:
    """The mean IoU of each group that has one."""
    return [mean.value for group in groups if (mean := mean_of(group, iou)).value is not None]


def _range(values: Sequence[float], digits: int) -> str:
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low}-{high}"
