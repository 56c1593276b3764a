"""The budget curve of evipath/localization as a picture: mean IoU against the ROIs allowed, a panel a magnification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PIL import Image

from ..curves import Curve, curves_picture
from ..records import EpisodeRecord
from ..rows import mean_of
from .localization_rows import by_magnification, iou, ordered_rows, rois_allowed

__all__ = ["budget_curve"]


def budget_curve(records: Sequence[EpisodeRecord]) -> Image.Image:
    """An RGB picture: a line a policy, bars for 95 % intervals over patients; a panel a magnification, then all."""
    panels = [
        (label if suffix else "all queries", _curves(group)) for suffix, label, group in by_magnification(records)
    ]
    if len(panels) == 2:
        panels = panels[:1]
    return curves_picture("Mean IoU against the budget", "ROIs allowed", panels)


def _curves(records: Sequence[EpisodeRecord]) -> Mapping[str, Curve]:
    rows = ordered_rows(records)
    curves: dict[str, Curve] = {}
    for (policy, endpoint, _), episodes in rows:
        mean = mean_of(episodes, iou)
        if mean.value is not None:
            name = policy if endpoint is None else f"{policy}, {endpoint}"
            curves.setdefault(name, []).append((rois_allowed(episodes), mean))
    return curves
