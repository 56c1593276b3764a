"""What fools a search for stain density: benign lymphoid aggregates, tissue folds, pen marks."""

from __future__ import annotations

import cv2
import numpy as np

from .patterns import Area, scatter, sheet
from .planning import place
from .scene import MAP, Scene
from .shapes import Points, blob, scaled

__all__ = ["Aggregate", "add_fold", "add_pen", "draw_aggregate", "plan_aggregate"]

_INKS = ((52, 78, 176), (38, 118, 84), (58, 58, 66))
"""What blue, green and black ink let through, RGB."""

Aggregate = tuple[Points, int]
"""Outline and owner."""


def plan_aggregate(scene: Scene, radius: float, circles: list[tuple[float, float, float]]) -> Aggregate:
    """Claim a place for a benign lymphoid aggregate, clear of the lesions in `circles` where there is room."""
    rng = scene.rng
    x, y = place(scene, radius, circles)
    circles.append((x, y, radius))
    aspect = rng.uniform(0.7, 1.0)
    outline = blob(rng, (x, y), radius, radius * aspect, rough=0.14)
    outline = np.clip(outline, 0.02 * scene.size, 0.98 * scene.size).astype(np.float32)
    return outline, scene.new_owner(outline)


def draw_aggregate(scene: Scene, aggregate: Aggregate) -> None:
    """Small dark round nuclei, crowded in the middle and thinning out."""
    outline, owner = aggregate
    n = scene.tissue.shape[0]
    mask = np.zeros((n, n), np.uint8)
    cv2.fillPoly(mask, [np.round(outline / MAP).astype(np.int32)], 255)
    soft = np.asarray(cv2.GaussianBlur(mask.astype(np.float32) / 255, (0, 0), 3))
    scene.tissue = np.maximum(scene.tissue, np.clip(soft * 4 - 1.6, -1, 1)).astype(np.float32)
    scene.eosin += (70 - scene.eosin) * soft
    scene.haematoxylin += (22 - scene.haematoxylin) * soft
    core = scaled(outline, 0.86)
    scene.claim(core, 250)
    sheet(scene, Area.of(core, 250), "lymphocyte", 34, drop=0.12)
    scatter(scene, Area.of(outline, owner), "lymphocyte", 3800)


def add_fold(scene: Scene, circles: list[tuple[float, float, float]]) -> None:
    """A band where the section lies double, across normal tissue as far as there is room."""
    rng = scene.rng
    length = rng.uniform(0.12, 0.24) * scene.size
    x, y = place(scene, length * 0.45, circles)
    line = _stroke(scene, (x, y), length, rng.uniform(0, np.pi), 0.18)
    n = scene.fold.shape[0]
    band = np.zeros((n, n), np.float32)
    width = max(2, int(rng.uniform(0.010, 0.022) * scene.size / MAP))
    cv2.polylines(band, [np.round(line / MAP).astype(np.int32)], False, 1.0, width, cv2.LINE_8)
    scene.fold = np.maximum(scene.fold, np.asarray(cv2.GaussianBlur(band, (0, 0), 1.3)))


def add_pen(scene: Scene) -> None:
    """Ink on the glass: a line or an arc near the edge of the tissue."""
    rng = scene.rng
    edge = np.argwhere(np.abs(scene.tissue) < 0.6)
    row, column = edge[rng.integers(len(edge))]
    width = int(rng.uniform(0.018, 0.034) * scene.size)
    line = _stroke(
        scene, (float(column * MAP), float(row * MAP)), rng.uniform(0.25, 0.5) * scene.size, rng.uniform(0, np.pi), 0.5
    )
    scene.ink.append((np.clip(line, width, scene.size - width).astype(np.float32), width))
    scene.ink_colour = _INKS[rng.integers(len(_INKS))]


def _stroke(scene: Scene, centre: tuple[float, float], length: float, angle: float, bend: float) -> Points:
    """A smooth line through `centre` that turns by up to `bend` radians a quarter of its length."""
    rng = scene.rng
    steps = 48
    turn = np.cumsum(rng.normal(0, bend / 3, steps)) + np.linspace(-1, 1, steps) * rng.uniform(-bend, bend) * 2
    heading = angle + np.convolve(turn, np.ones(9) / 9, mode="same")
    step = length / steps
    x, y = np.cumsum(np.cos(heading)) * step, np.cumsum(np.sin(heading)) * step
    return np.stack([x - x.mean() + centre[0], y - y.mean() + centre[1]], 1).astype(np.float32)
