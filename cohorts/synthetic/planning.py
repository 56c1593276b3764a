"""Where lesions, nests and foci lie, before anything is drawn.

Some nests and foci are annotated and become nodes, others are distractors. What is planned claims its place, so that
the normal tissue is built around it.
"""

from __future__ import annotations

import cv2
import numpy as np

from .entities import ENTITIES, Entity, of_category
from .findings import Wording, high, low, mid
from .lesions import Focus, Lesion, Nest
from .scene import GRID, NORMAL, Scene
from .shapes import Points, blob, bounds

__all__ = ["place", "plan_lesions"]

_CRUSHED_NEST, _CRUSHED_FOCUS = 0.45, 0.45
"""How often a lesion and a nest hold a crush artefact, which is darker than the target and has no nuclei."""

_LAYOUTS: tuple[tuple[tuple[str, ...], ...], ...] = (
    (("twin",),),
    (("one", "one"),),
    (("one",), ("one",)),
    (("twin", "one"),),
    (("twin",), ("one",)),
    (("one", "one"), ("one",)),
    (("twin", "one"), ("one",)),
    (("one",), ("two",), ("one",)),
    (("like", "like"),),
    (("like", "like"), ("one",)),
)
"""Lesions, their annotated nests, and the foci of each: one, two unlike, two alike (twin); like: nests alike."""


def plan_lesions(scene: Scene, organ: str, category: str, scale: float) -> list[Lesion]:
    """Choose, place and claim the lesions of a slide of `category`; lengths are multiplied by `scale`."""
    rng = scene.rng
    layout = _LAYOUTS[rng.integers(len(_LAYOUTS))]
    wording = Wording(rng)
    lesions: list[Lesion] = []
    circles: list[tuple[float, float, float]] = []
    for nests in layout:
        entity = _entity(rng, organ, category, lesions)
        size = rng.uniform(880, 1500 if len(layout) < 3 else 1250) * scale
        aspect = rng.uniform(0.78, 1.28)
        radius_x, radius_y = size * aspect**0.5, size / aspect**0.5
        x, y = place(scene, max(radius_x, radius_y), circles)
        circles.append((x, y, max(radius_x, radius_y) * 1.1))
        outline = _clipped(scene, blob(rng, (x, y), radius_x, radius_y, rough=0.13))
        lesion = Lesion(outline, entity, scene.new_owner(outline))
        lesions.append(lesion)
        _plan_nests(scene, lesion, nests, scale, wording)
        lesion.finding = wording.choose(low(organ, lesion), float(np.ptp(lesion.outline[:, 0])))
    return lesions


def _entity(rng: np.random.Generator, organ: str, category: str, others: list[Lesion]) -> Entity:
    """The first lesion is of the slide's category; a further one is another diagnosis half of the time."""
    if others:
        known = {lesion.entity.diagnosis for lesion in others}
        rest = [entity for entity in ENTITIES[organ] if entity.diagnosis not in known]
        if category != "malignant":
            rest = [entity for entity in rest if entity.category != "malignant"]
        return rest[rng.integers(len(rest))] if rest and rng.random() < 0.5 else others[0].entity
    options = of_category(organ, category) or of_category(organ, "malignant")
    return options[rng.integers(len(options))]


def _clipped(scene: Scene, outline: Points) -> Points:
    """Kept 1.5 % inside the slide."""
    margin = 0.015 * scene.size
    return np.clip(outline, margin, scene.size - margin).astype(np.float32)


def place(scene: Scene, radius: float, circles: list[tuple[float, float, float]]) -> tuple[float, float]:
    """A place in the tissue for a disc of `radius`, clear of `circles` (x, y, radius) as far as there is room."""
    rng = scene.rng
    inside = (scene.owner == NORMAL).astype(np.float32)
    small = cv2.resize(inside, (inside.shape[0] // 4, inside.shape[0] // 4), interpolation=cv2.INTER_AREA)
    unit = GRID * 4
    span = max(1, int(1.7 * radius / unit))
    share = np.asarray(cv2.blur(small, (span, span), borderType=cv2.BORDER_CONSTANT))
    low, high = min(radius * 0.95, scene.size * 0.5), max(scene.size - radius * 0.95, scene.size * 0.5)
    points = rng.uniform(low, high + 1, (900, 2))
    value = share[
        np.clip((points[:, 1] / unit).astype(int), 0, share.shape[0] - 1),
        np.clip((points[:, 0] / unit).astype(int), 0, share.shape[0] - 1),
    ]
    value = np.minimum(value, 0.90)
    for x, y, other in circles:
        gap = np.hypot(points[:, 0] - x, points[:, 1] - y) - other - radius
        value = value + np.minimum(0, gap) / radius
    best = value.max()
    good = np.flatnonzero(value >= best - 0.05)
    chosen = points[rng.choice(good)]
    return float(chosen[0]), float(chosen[1])


def _place_in(
    scene: Scene, outline: Points, radius: float, owner: int, share: float, circles: list[tuple[float, float, float]]
) -> tuple[float, float] | None:
    """A centre within `outline` whose disc lies to `share` on `owner`, clear of `circles`; None if there is no room."""
    rng = scene.rng
    left, top, right, bottom = bounds(outline)
    theta = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    probe = np.concatenate(
        [[(0.0, 0.0)], *(r * radius * np.stack([np.cos(theta), np.sin(theta)], 1) for r in (0.55, 1.0))]
    )
    for _ in range(250):
        point = rng.uniform((left + radius * 0.8, top + radius * 0.8), (right - radius * 0.8, bottom - radius * 0.8))
        if any(np.hypot(point[0] - x, point[1] - y) < other + radius for x, y, other in circles):
            continue
        spots = np.clip(point + probe, 0, scene.size - 1).astype(np.float32)
        if (scene.owners(spots) == owner).mean() >= share:
            return float(point[0]), float(point[1])
    return None


def _plan_nests(scene: Scene, lesion: Lesion, plans: tuple[str, ...], scale: float, wording: Wording) -> None:
    rng = scene.rng
    circles: list[tuple[float, float, float]] = []
    names = [lesion.entity.nests[i] for i in rng.permutation(len(lesion.entity.nests))]
    model: Nest | None = None
    for i, plan in enumerate(plans):
        name = model.name if plan == "like" and model else names[i % len(names)]
        size = rng.uniform(370, 500 if len(plans) > 1 else 540) * scale
        nest = _plan_nest(scene, lesion, name, size, circles, annotated=True)
        if nest is None:
            continue
        _plan_foci(scene, lesion.entity, nest, plan, scale, wording)
        if plan == "like" and model:
            nest.finding = model.finding
        else:
            nest.finding = wording.choose(mid(lesion.entity, nest), float(np.ptp(nest.outline[:, 0])))
        model = nest
    for _ in range(int(rng.integers(1, 3))):
        _plan_nest(scene, lesion, "lymphocytes", rng.uniform(200, 330) * scale, circles, annotated=False)
    if rng.random() < _CRUSHED_NEST:
        _plan_nest(scene, lesion, "crush", rng.uniform(330, 440) * scale, circles, annotated=False)


def _plan_nest(
    scene: Scene, lesion: Lesion, name: str, size: float, circles: list[tuple[float, float, float]], *, annotated: bool
) -> Nest | None:
    rng = scene.rng
    aspect = rng.uniform(0.8, 1.25)
    radius_x, radius_y = size * aspect**0.5, size / aspect**0.5
    spot = None
    for share in (0.8, 0.65, 0.5) if annotated else (0.8,):
        spot = spot or _place_in(scene, lesion.outline, max(radius_x, radius_y), lesion.owner, share, circles)
    if spot is None:
        if not annotated or lesion.nests:
            return None
        spot = (float(lesion.outline[:, 0].mean()), float(lesion.outline[:, 1].mean()))
    circles.append((*spot, max(radius_x, radius_y) * 1.08))
    rough = 0.28 if name == "crush" else 0.09
    outline = _clipped(scene, blob(rng, spot, radius_x, radius_y, rough=rough))
    nest = Nest(outline, name, scene.new_owner(outline), annotated)
    lesion.nests.append(nest)
    return nest


def _plan_foci(scene: Scene, entity: Entity, nest: Nest, plan: str, scale: float, wording: Wording) -> None:
    rng = scene.rng
    names = [entity.foci[i] for i in rng.permutation(len(entity.foci))]
    circles: list[tuple[float, float, float]] = []
    size = rng.uniform(128, 180) * scale
    model: Focus | None = None
    for i in range(2 if plan in {"two", "twin"} else 1):
        if model is not None and plan == "twin":
            focus = _plan_focus(scene, nest, model.name, model.count, size * rng.uniform(0.95, 1.05), circles)
            if focus:
                focus.finding = model.finding
            continue
        name = names[i % len(names)]
        radius = size if i == 0 else rng.uniform(125, 172) * scale
        focus = _plan_focus(scene, nest, name, _count(rng, name, radius), radius, circles)
        if focus:
            focus.finding = wording.choose(high(nest, focus), float(np.ptp(focus.outline[:, 0])))
        model = focus
    distractors = ["lymphocytes"] * int(rng.integers(0, 3))
    if rng.random() < _CRUSHED_FOCUS:
        distractors.insert(0, "crush")
    for name in distractors:
        radius = (rng.uniform(125, 160) if name == "crush" else rng.uniform(60, 100)) * scale
        spot = _place_in(scene, nest.outline, radius, nest.owner, 0.85, circles)
        if spot:
            circles.append((*spot, radius * 1.05))
            rough = 0.28 if name == "crush" else 0.1
            outline = blob(rng, spot, radius, radius * rng.uniform(0.75, 1.0), rough=rough)
            nest.foci.append(Focus(outline, name, 0, scene.new_owner(outline), annotated=False))


def _count(rng: np.random.Generator, name: str, radius: float) -> int:
    area = np.pi * radius**2
    if name == "pleomorphic":
        return max(4, round(area / 2525 / 5) * 5)
    if name == "giant-cell":
        return int(rng.integers(10, 17))
    return int(rng.integers(3, 7))


def _plan_focus(
    scene: Scene, nest: Nest, name: str, count: int, radius: float, circles: list[tuple[float, float, float]]
) -> Focus | None:
    rng = scene.rng
    aspect = rng.uniform(0.82, 1.22)
    radius_x, radius_y = radius * aspect**0.5, radius / aspect**0.5
    spot = None
    for share in (0.9, 0.75, 0.6):
        spot = spot or _place_in(scene, nest.outline, max(radius_x, radius_y), nest.owner, share, circles)
    if spot is None:
        if nest.foci:
            return None
        spot = (float(nest.outline[:, 0].mean()), float(nest.outline[:, 1].mean()))
    circles.append((*spot, max(radius_x, radius_y) * 1.1))
    left, top, right, bottom = bounds(nest.outline)
    outline = np.clip(blob(rng, spot, radius_x, radius_y, rough=0.07), (left, top), (right, bottom)).astype(np.float32)
    focus = Focus(outline, name, count, scene.new_owner(outline), annotated=True)
    nest.foci.append(focus)
    return focus
