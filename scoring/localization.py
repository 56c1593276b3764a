"""How well a box locates annotated evidence (EviPathBench task 3, mode A; section "Mode A" of the paper)."""

from __future__ import annotations

from collections.abc import Sequence

from wsigym.slides import Box

__all__ = ["HIT_IOU", "best_box_iou", "best_placed_iou", "box_iou", "placed_iou"]

HIT_IOU = 0.3
"""An IoU of at least this is a hit (the paper's threshold)."""


def box_iou(first: Box, second: Box) -> float:
    """Intersection over union of two boxes as they are, in 0..1. An empty box has none with anything."""
    common = first.intersection(second).area
    return common / (first.area + second.area - common) if common else 0.0


def placed_iou(predicted: Box, valid: Box, search_box: Box) -> float:
    """IoU of `valid` with a box of its size placed on the centre of `predicted`, in 0..1.

    The predicted box keeps its centre and takes the valid box's width w and height h, so that only the position
    counts; it is shifted inside the search box. With the offsets dx and dy of the two boxes,
    I = max(0, w - |dx|) * max(0, h - |dy|) and IoU = I / (2wh - I). All boxes are in level-0 pixels.
    """
    x = _placed(predicted.x + predicted.width / 2, valid.width, search_box.x, search_box.right)
    y = _placed(predicted.y + predicted.height / 2, valid.height, search_box.y, search_box.bottom)
    common = max(0.0, valid.width - abs(x - valid.x)) * max(0.0, valid.height - abs(y - valid.y))
    return common / (2 * valid.area - common)


def _placed(centre: float, side: int, low: int, high: int) -> float:
    """Where an interval of length `side` around `centre` starts once it is shifted inside low..high."""
    return max(low, min(centre - side / 2, high - side))


def best_placed_iou(predicted: Box, valid_boxes: Sequence[Box], search_box: Box) -> float:
    """The highest `placed_iou` over several valid boxes: the episode's score."""
    return max(placed_iou(predicted, valid, search_box) for valid in valid_boxes)


def best_box_iou(predicted: Box, valid_boxes: Sequence[Box]) -> float:
    """The highest `box_iou` over several valid boxes: a diagnostic, as the size then counts too."""
    return max(box_iou(predicted, valid) for valid in valid_boxes)
