"""Outlines: irregular blobs, Voronoi cells, points on a jittered grid. Everything is float32 level-0 pixels (n, 2)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import Voronoi

__all__ = ["Points", "along", "blob", "bounds", "cells", "hex_points", "resampled", "scaled", "smoothed"]

Points = NDArray[np.float32]
Angles = NDArray[np.float32]


def blob(
    rng: np.random.Generator,
    centre: tuple[float, float],
    radius_x: float,
    radius_y: float,
    *,
    rough: float = 0.10,
    points: int = 56,
) -> Points:
    """A closed irregular outline around `centre`; `rough` is the relative size of its lobes."""
    theta = np.linspace(0, 2 * np.pi, points, endpoint=False)
    radius = np.ones_like(theta)
    for wave in range(2, 9):
        radius += rough * rng.normal(0, 1.1) / wave**0.8 * np.cos(wave * theta + rng.uniform(0, 2 * np.pi))
    radius = np.clip(radius, 0.6, 1.5)
    x = centre[0] + radius_x * radius * np.cos(theta)
    y = centre[1] + radius_y * radius * np.sin(theta)
    return np.stack([x, y], 1).astype(np.float32)


def bounds(points: Points) -> tuple[float, float, float, float]:
    """Left, top, right, bottom."""
    (left, top), (right, bottom) = points.min(0), points.max(0)
    return float(left), float(top), float(right), float(bottom)


def scaled(points: Points, factor: float) -> Points:
    """The outline shrunk or grown about its mean."""
    centre = points.mean(0)
    return np.asarray(centre + (points - centre) * factor, dtype=np.float32)


def smoothed(points: Points, rounds: int = 2) -> Points:
    """Corners cut by Chaikin's rule, as often as `rounds`."""
    for _ in range(rounds):
        after = np.roll(points, -1, 0)
        points = np.stack([0.75 * points + 0.25 * after, 0.25 * points + 0.75 * after], 1).reshape(-1, 2)
    return points.astype(np.float32)


def hex_points(
    rng: np.random.Generator, box: tuple[float, float, float, float], spacing: float, jitter: float = 0.28
) -> Points:
    """A jittered hexagonal grid over `box` (left, top, right, bottom); `jitter` is in units of `spacing`."""
    left, top, right, bottom = box
    step_y = spacing * 0.866
    rows = max(1, int(np.ceil((bottom - top) / step_y)) + 1)
    columns = max(1, int(np.ceil((right - left) / spacing)) + 1)
    y, x = np.mgrid[0:rows, 0:columns].astype(np.float32)
    x = left + (x + 0.5 * (y % 2)) * spacing
    y = top + y * step_y
    points = np.stack([x.ravel(), y.ravel()], 1)
    points += rng.normal(0, jitter * spacing, points.shape)
    return points.astype(np.float32)


def cells(
    rng: np.random.Generator, box: tuple[float, float, float, float], spacing: float, jitter: float = 0.22
) -> Iterator[tuple[Points, Points]]:
    """Voronoi cells of a jittered grid as (seed (2,), outline (n, 2)), smoothed; neighbours touch."""
    points = hex_points(rng, (box[0] - spacing, box[1] - spacing, box[2] + spacing, box[3] + spacing), spacing, jitter)
    if len(points) < 5:
        return
    diagram = Voronoi(points)
    left, top, right, bottom = box
    vertices = diagram.vertices.astype(np.float32)
    for seed, region in zip(points, diagram.point_region, strict=True):
        corners = diagram.regions[region]
        if not corners or -1 in corners or not (left <= seed[0] <= right and top <= seed[1] <= bottom):
            continue
        outline = vertices[corners]
        if np.ptp(outline, 0).max() < 3 * spacing:
            yield seed, smoothed(outline)


def along(rng: np.random.Generator, outline: Points, spacing: float, jitter: float = 0.15) -> tuple[Points, Angles]:
    """Points each `spacing` px along a closed outline, and the direction across the outline at each (radians)."""
    x, y, length = _walk(outline)
    count = max(3, int(length[-1] / spacing))
    where = (np.arange(count) + rng.uniform(0, 1) + rng.normal(0, jitter, count)) * (length[-1] / count)
    where %= length[-1]
    reach = spacing / 2
    ahead, behind = (where + reach) % length[-1], (where - reach) % length[-1]
    dx = np.interp(ahead, length, x) - np.interp(behind, length, x)
    dy = np.interp(ahead, length, y) - np.interp(behind, length, y)
    points = np.stack([np.interp(where, length, x), np.interp(where, length, y)], 1)
    return points.astype(np.float32), (np.arctan2(dy, dx) + np.pi / 2).astype(np.float32)


def resampled(outline: Points, count: int) -> Points:
    """The closed outline with `count` points at equal distances."""
    x, y, length = _walk(outline)
    where = np.linspace(0, length[-1], count, endpoint=False)
    return np.stack([np.interp(where, length, x), np.interp(where, length, y)], 1).astype(np.float32)


def _walk(outline: Points) -> tuple[Angles, Angles, Angles]:
    """x and y of a closed outline, and how far along it each point lies."""
    closed = np.vstack([outline, outline[:1]])
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(closed, axis=0).T))])
    return closed[:, 0], closed[:, 1], length.astype(np.float32)
