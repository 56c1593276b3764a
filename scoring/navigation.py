"""How a localization episode went: what the looks showed, and what went wrong.

These diagnostics are this project's; the score beside them is the paper's. A look is scored as if its ROI were the
answer (`best_placed_iou`), so that finding and choosing come apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import shapely

from wsigym.slides import Box

from .localization import HIT_IOU, best_box_iou, best_placed_iou

__all__ = ["CAUSES", "MOSTLY_SEEN", "OVERVIEW_SHARE", "Cause", "Look", "Navigation", "navigation", "seen_share"]

Cause = Literal["hit", "never viewed", "viewed but not chosen", "chosen with IoU < 0.3", "no finish", "invalid"]

CAUSES: tuple[Cause, ...] = (
    "hit",
    "never viewed",
    "viewed but not chosen",
    "chosen with IoU < 0.3",
    "no finish",
    "invalid",
)
"""Every way an episode can have gone; each scored episode has exactly one."""

MOSTLY_SEEN = 0.5
"""A valid box was viewed once this share of it was covered by looks."""

OVERVIEW_SHARE = 0.25
"""The overview shows at most this share of the target magnification; a look must show more to count as seeing."""


@dataclass(frozen=True)
class Look:
    """One answered look: the ROI in level-0 pixels, and the magnification at which it was shown."""

    roi: Box
    magnification: float


@dataclass(frozen=True)
class Navigation:
    """Numbers of one episode; all IoUs and shares in 0..1.

    `iou` is the score: 0 without an answer. `iou_as_given` compares the answer with its own size. `best_look_iou`
    is the highest IoU over the looks, 0 without any; `regret` how much of it the answer gave away, at least 0.
    `first_hit_step` counts looks from 1; None where none would have hit. `seen_share` is `seen_share(...)`.
    """

    iou: float
    hit: bool
    iou_as_given: float
    best_look_iou: float
    first_hit_step: int | None
    seen_share: float
    regret: float
    cause: Cause


def navigation(
    outcome: str,
    answer: Box | None,
    looks: Sequence[Look],
    valid_boxes: Sequence[Box],
    search_box: Box,
    target_magnification: float,
) -> Navigation:
    """Score an episode's answer and looks against the valid boxes. Boxes are in level-0 pixels.

    `answer` is the final box of a scored episode, None for any other `outcome`.
    """
    iou = best_placed_iou(answer, valid_boxes, search_box) if answer else 0.0
    look_ious = [best_placed_iou(look.roi, valid_boxes, search_box) for look in looks]
    best_look_iou = max(look_ious, default=0.0)
    seen = seen_share(looks, valid_boxes, target_magnification)
    return Navigation(
        iou=iou,
        hit=iou >= HIT_IOU,
        iou_as_given=best_box_iou(answer, valid_boxes) if answer else 0.0,
        best_look_iou=best_look_iou,
        first_hit_step=next((number for number, value in enumerate(look_ious, start=1) if value >= HIT_IOU), None),
        seen_share=seen,
        regret=max(0.0, best_look_iou - iou),
        cause=_cause(outcome, iou, best_look_iou, seen),
    )


def _cause(outcome: str, iou: float, best_look_iou: float, seen: float) -> Cause:
    if iou >= HIT_IOU:
        return "hit"
    if outcome in ("invalid", "unparsed", "refused"):
        return "invalid"
    if outcome == "budget_exhausted":
        return "no finish"
    if best_look_iou >= HIT_IOU or (iou == 0 and seen >= MOSTLY_SEEN):
        return "viewed but not chosen"
    return "chosen with IoU < 0.3" if iou > 0 else "never viewed"


def seen_share(looks: Sequence[Look], valid_boxes: Sequence[Box], target_magnification: float) -> float:
    """The largest share, over the valid boxes, that the union of the looks covered; exact.

    Only looks with more detail than an overview may have count: above a quarter of the target magnification.
    """
    close = [look.roi for look in looks if look.magnification > OVERVIEW_SHARE * target_magnification]
    if not close:
        return 0.0
    union = shapely.union_all([shapely.box(roi.x, roi.y, roi.right, roi.bottom) for roi in close])
    covered = (shapely.intersection(union, shapely.box(box.x, box.y, box.right, box.bottom)) for box in valid_boxes)
    return float(max(part.area / box.area for part, box in zip(covered, valid_boxes, strict=True)))
