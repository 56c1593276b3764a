"""How tissue is built: each function fills the part of an area that belongs to one owner with one architecture.

All take the scene, whose RNG they draw from, and an `Area`. They paint outlines and add nuclei; lengths are level-0 px.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .scene import Scene, SoftMap
from .shapes import Points, along, blob, bounds, cells, hex_points, resampled, scaled, smoothed

__all__ = [
    "Area",
    "airspaces",
    "cords",
    "cribriform",
    "fat",
    "gland",
    "glands",
    "islands",
    "scatter",
    "sheet",
    "vessel",
]


@dataclass(frozen=True)
class Area:
    """Where to build: the owner's number, and a box (left, top, right, bottom) around it."""

    owner: int
    box: tuple[float, float, float, float]

    @staticmethod
    def of(outline: Points, owner: int) -> Area:
        """The area of one outline."""
        return Area(owner, bounds(outline))


def _mine(scene: Scene, area: Area, points: Points) -> Points:
    mine: Points = points[scene.owners(points) == area.owner]
    return mine


def sheet(scene: Scene, area: Area, kind: str, spacing: float, *, drop: float = 0.08, jitter: float = 0.24) -> Points:
    """Nuclei of `kind` shoulder to shoulder, `spacing` apart, a share `drop` left out. Returns where they lie."""
    points = _mine(scene, area, hex_points(scene.rng, area.box, spacing, jitter))
    points = points[scene.free(points)]
    points = points[scene.rng.random(len(points)) >= drop]
    scene.nuclei(kind, points)
    return points


def scatter(
    scene: Scene,
    area: Area,
    kind: str,
    per_mm2: float,
    *,
    aligned: bool = False,
    where: SoftMap | None = None,
) -> None:
    """Nuclei of `kind` at random where nothing is painted, `aligned` along the fibres; `where` weighs by a soft map."""
    left, top, right, bottom = area.box
    count = int(per_mm2 * (right - left) * (bottom - top) / 16e6)
    rng = scene.rng
    points = rng.uniform((left, top), (right, bottom), (count, 2)).astype(np.float32)
    if where is not None:
        points = points[rng.random(count) < scene.sample(where, points)]
    points = _mine(scene, area, points)
    points = points[scene.free(points)]
    angle = None
    if aligned:
        angle = (scene.sample(scene.angle, points) + rng.normal(0, 0.25, len(points))).astype(np.float32)
    scene.nuclei(kind, points, angle)


def gland(
    scene: Scene,
    outline: Points,
    kind: str,
    *,
    lumen: float = 0.5,
    spacing: float = 22,
    layers: int = 1,
    eosin: float = 92,
    haematoxylin: float = 14,
    content: tuple[float, float] = (0, 0),
    scallop: float = 0.0,
    basal: float = 0.35,
    myoepithelium: bool = False,
) -> None:
    """An epithelial ring with nuclei in `layers` palisades around a lumen.

    `lumen` is the lumen's share of the radius, `content` its eosin and haematoxylin, `basal` how far the outermost
    nuclei stand from the base as a share of the epithelium, `scallop` the folding of the luminal edge.
    """
    rng = scene.rng
    outline = resampled(outline, 40)
    scene.fill(outline, eosin, haematoxylin, rim_eosin=130, rim_px=3)
    if lumen > 0.05:
        centre = outline.mean(0)
        theta = np.linspace(0, 2 * np.pi, len(outline), endpoint=False)
        radius = np.full(len(outline), lumen)
        for wave in (3, 5, 7, 9) if scallop else (2, 3):
            radius += (scallop or 0.05) * lumen * rng.normal(0, 0.6) * np.cos(wave * theta + rng.uniform(0, 6.3))
        inner = centre + (outline - centre) * np.clip(radius, 0.05, 0.92)[:, None]
        scene.fill(smoothed(inner.astype(np.float32), 1), content[0], content[1])
    for layer in range(layers):
        depth = basal + layer * (0.9 - basal) / max(1, layers) if layers > 1 else basal
        ring = scaled(outline, 1 - (1 - lumen) * depth)
        points, angle = along(rng, ring, spacing * (1 + 0.1 * layer))
        points += rng.normal(0, 1.5 + 1.5 * (layers > 1), points.shape).astype(np.float32)
        scene.nuclei(kind, points, angle + rng.normal(0, 0.18, len(angle)).astype(np.float32))
    if myoepithelium:
        points, angle = along(rng, scaled(outline, 1.03), 84)
        scene.nuclei("spindle", points, angle + np.float32(np.pi / 2))


def glands(
    scene: Scene,
    area: Area,
    kind: str,
    *,
    pitch: float,
    gap: float,
    lumen: float = 0.45,
    keep: float = 1.0,
    ragged: float = 0.0,
    loose_edge: bool = False,
    where: SoftMap | None = None,
    **ring: object,
) -> int:
    """Glands packed `pitch` apart with `gap` px of stroma between; a share `keep` of them is drawn. Returns how many.

    `loose_edge` admits glands that only their centre ties to the owner; `where` keeps those on a soft map above 0.5.
    """
    rng = scene.rng
    count = 0
    for seed, cell in cells(rng, area.box, pitch):
        radius = float(np.hypot(*(cell - seed).T).mean())
        share = 1 - gap / 2 / radius
        if share < 0.25 or rng.random() > keep:
            continue
        outline = scaled(cell, share)
        if ragged:
            outline = (seed + (outline - seed) * (1 + ragged * rng.normal(0, 1, (len(outline), 1)))).astype(np.float32)
        if where is not None and scene.sample(where, seed[None])[0] < 0.5:
            continue
        owned = scene.within(outline, area.owner)
        if not owned and not (loose_edge and scene.owners(seed[None])[0] == area.owner):
            continue
        size = float(np.clip(lumen * (1 + 0.25 * rng.standard_normal()), 0.0, 0.88)) if lumen else 0.0
        gland(scene, outline, kind, lumen=size, **ring)  # type: ignore[arg-type]
        count += 1
    return count


def cribriform(scene: Scene, area: Area, kind: str, spacing: float, *, hole_px: float, pitch: float) -> int:
    """A solid sheet with round punched-out lumens `pitch` apart. Returns how many lumens."""
    rng = scene.rng
    count = 0
    for point in _mine(scene, area, hex_points(rng, area.box, pitch, 0.2)):
        radius = hole_px * rng.uniform(0.7, 1.25)
        hole = blob(rng, (float(point[0]), float(point[1])), radius, radius * rng.uniform(0.75, 1.2), rough=0.05)
        if scene.within(scaled(hole, 1.6), area.owner):
            scene.fill(hole, 6 if rng.random() < 0.7 else 60, 2)
            ring, angle = along(rng, scaled(hole, 1 + 20 / radius), spacing * 0.75)
            scene.nuclei(kind, ring, angle)
            scene.take(scaled(hole, 1 + 34 / radius))
            count += 1
    sheet(scene, area, kind, spacing)
    return count


def islands(
    scene: Scene,
    area: Area,
    kind: str,
    spacing: float,
    *,
    pitch: float,
    gap: float,
    keep: float = 1.0,
    ragged: float = 0.08,
) -> int:
    """Solid nests of cells `pitch` apart with `gap` px of stroma between. Returns how many."""
    rng = scene.rng
    count = 0
    for seed, cell in cells(rng, area.box, pitch, 0.3):
        radius = float(np.hypot(*(cell - seed).T).mean())
        share = 1 - gap * rng.uniform(0.7, 1.4) / 2 / radius
        if share < 0.2 or rng.random() > keep:
            continue
        wave = share * (1 + ragged * rng.normal(0, 1, (len(cell), 1)))
        outline = (seed + (cell - seed) * wave).astype(np.float32)
        if not scene.within(outline, area.owner):
            continue
        points = hex_points(rng, bounds(outline), spacing, 0.22)
        points = points[_inside(scaled(outline, 0.95), points) & scene.free(points)]
        scene.fill(outline, 62, 24, rim_eosin=22, rim_px=5)
        scene.nuclei(kind, points)
        count += 1
    return count


def cords(scene: Scene, area: Area, kind: str, spacing: float, *, pitch: float, width: int = 1) -> None:
    """Files of cells, `width` abreast, that follow the fibres, `pitch` px apart."""
    rng = scene.rng
    for start in hex_points(rng, area.box, pitch * 2.2, 0.3):
        if scene.owners(start[None])[0] != area.owner:
            continue
        point = start.astype(np.float64)
        angle = float(scene.sample(scene.angle, start[None])[0]) + rng.normal(0, 0.3)
        line = []
        for _ in range(int(rng.integers(4, 12))):
            line.append(point.copy())
            angle += rng.normal(0, 0.16)
            point = point + spacing * np.array([np.cos(angle), np.sin(angle)])
        track = np.array(line, np.float32)
        normal = np.array([-np.sin(angle), np.cos(angle)], np.float32)
        for abreast in range(width):
            points = track + normal * np.float32((abreast - (width - 1) / 2) * spacing * 0.8)
            points = points[(scene.owners(points) == area.owner) & scene.free(points)]
            points += rng.normal(0, 2.5, points.shape).astype(np.float32)
            scene.nuclei(kind, points, np.full(len(points), angle, np.float32))


def fat(scene: Scene, area: Area, *, pitch: float = 270, where: SoftMap | None = None) -> None:
    """Fat: white vacuoles with thin rims, and a flat nucleus here and there."""
    rng = scene.rng
    for seed, cell in cells(rng, area.box, pitch, 0.25):
        if where is not None and scene.sample(where, seed[None])[0] < 0.5:
            continue
        if scene.clear(cell, area.owner) and scene.free(scaled(cell, 0.8)).all():
            outline = scaled(cell, 1 - rng.uniform(5, 11) / float(np.hypot(*(cell - seed).T).mean()))
            scene.fill(outline, 0, 0)
            if rng.random() < 0.35:
                points, angle = along(rng, scaled(outline, 1.03), 700)
                scene.nuclei("spindle", points[:1], angle[:1] + np.float32(np.pi / 2))


def airspaces(scene: Scene, area: Area, *, pitch: float, septum: float) -> None:
    """Alveoli: wide air spaces between thin septa, with flat nuclei in the septa and a few macrophages inside."""
    rng = scene.rng
    for seed, cell in cells(rng, area.box, pitch, 0.3):
        if not scene.clear(cell, area.owner) or not scene.free(scaled(cell, 0.8)).all():
            continue
        radius = float(np.hypot(*(cell - seed).T).mean())
        outline = scaled(cell, 1 - septum * rng.uniform(0.6, 1.3) / 2 / radius)
        outline = smoothed(resampled(outline, 30) + rng.normal(0, 0.025 * radius, (30, 2)).astype(np.float32))
        scene.fill(outline, 0, 0)
        points, angle = along(rng, scaled(outline, 1.0 + septum * 0.35 / radius), 62, 0.5)
        inside = scene.owners(points) == area.owner
        points, angle = points[inside], angle[inside]
        some = rng.random(len(points)) < 0.7
        scene.nuclei("spindle", points[some], angle[some] + np.float32(np.pi / 2))
        scene.nuclei("cuboidal", points[~some][::2])
        if rng.random() < 0.4:
            where = seed + rng.normal(0, radius * 0.4, (int(rng.integers(1, 4)), 2))
            scene.nuclei("histiocyte", where.astype(np.float32))


def vessel(scene: Scene, centre: tuple[float, float], radius: float, wall: float, *, blood: bool) -> None:
    """A blood vessel in cross-section: muscular wall, flat endothelium, empty or filled with red cells."""
    rng = scene.rng
    outer = blob(rng, centre, radius + wall, (radius + wall) * rng.uniform(0.7, 1.0), rough=0.07)
    inner = scaled(outer, radius / (radius + wall))
    scene.fill(outer, 128, 4)
    scene.fill(inner, 165 if blood else 0, 0)
    points, angle = along(rng, scaled(inner, 1 + 5 / radius), 55)
    scene.nuclei("spindle", points, angle + np.float32(np.pi / 2))
    if wall > 20:
        points, angle = along(rng, scaled(outer, 1 - wall * 0.4 / (radius + wall)), 60)
        scene.nuclei("spindle", points, angle + np.float32(np.pi / 2))


def _inside(outline: Points, points: Points) -> NDArray[np.bool_]:
    """True for the points within a closed outline (even-odd rule)."""
    x, y = points[:, :1], points[:, 1:]
    x1, y1 = outline.T
    x2, y2 = np.roll(outline, -1, 0).T
    crosses = (y1 > y) != (y2 > y)
    slope = (x2 - x1) / np.where(y2 == y1, 1e-9, y2 - y1)
    return np.asarray((crosses & (x < x1 + (y - y1) * slope)).sum(1) % 2 == 1)
