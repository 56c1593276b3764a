"""Lesions: where they lie, how they are drawn, and what a pathologist would write of them.

A lesion (2.5x) holds nests (10x), a nest holds foci (40x). Some nests and foci are annotated and become nodes, others
are distractors of middling density. `plan_lesions` chooses and claims places before the normal tissue is built;
`draw_lesion` fills them afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import cv2
import numpy as np
import shapely
from numpy.typing import NDArray

from .entities import BESIDE, CYTOLOGY, ENTITIES, FOCI, HOSTS, NESTS, WITHIN, Entity, of_category
from .patterns import Area, cords, cribriform, gland, glands, islands, scatter, sheet, vessel
from .scene import GRID, MAP, NORMAL, Scene, Shape
from .shapes import Points, along, blob, bounds, hex_points, scaled

__all__ = ["Focus", "Lesion", "Nest", "Wording", "draw_lesion", "place", "plan_lesions"]


@dataclass
class Focus:
    """A 40x structure. `annotated` foci become nodes."""

    outline: Points
    name: str
    count: int
    owner: int
    annotated: bool
    finding: str = ""


@dataclass
class Nest:
    """A 10x structure with its foci."""

    outline: Points
    name: str
    owner: int
    annotated: bool
    foci: list[Focus] = field(default_factory=list)
    finding: str = ""


@dataclass
class Lesion:
    """A 2.5x structure with its nests. `outline` becomes the union with what protrudes from it."""

    outline: Points
    entity: Entity
    owner: int
    nests: list[Nest] = field(default_factory=list)
    finding: str = ""

    @property
    def region(self) -> shapely.Polygon:
        """The lesion and its nests as one valid polygon without holes, level-0 px."""
        parts = [shapely.Polygon(self.outline.astype(float)).buffer(0)]
        parts += [shapely.Polygon(nest.outline.astype(float)).buffer(0) for nest in self.nests]
        union = shapely.union_all(parts)
        if union.geom_type != "Polygon":
            union = max(union.geoms, key=lambda part: part.area)
        return shapely.Polygon(union.exterior).simplify(4)


class Wording:
    """Gives findings out, so that unlike places of one slide never share a sentence."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._used: set[str] = set()

    def choose(self, candidates: list[str], width_px: float) -> str:
        """One of the sentences that is still free; if none is, one with the structure's true width added."""
        order = [candidates[i] for i in self._rng.permutation(len(candidates))]
        free = [text for text in order if text not in self._used]
        text = free[0] if free else f"{order[0]}, about {round(width_px / 4)} um wide"
        while text in self._used:
            text += ", yet another"
        self._used.add(text)
        return text


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
        lesion.finding = wording.choose(_low(organ, lesion), float(np.ptp(lesion.outline[:, 0])))
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
            nest.finding = wording.choose(_mid(lesion.entity, nest), float(np.ptp(nest.outline[:, 0])))
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
            focus.finding = wording.choose(_high(nest, focus), float(np.ptp(focus.outline[:, 0])))
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


def _spelled(count: int) -> str:
    words = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[count] if count < len(words) else str(count)


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


# Words -------------------------------------------------------------------------------------------------------------


def _low(organ: str, lesion: Lesion) -> list[str]:
    """Candidate sentences for 2.5x, most of them with the true extent."""
    left, top, right, bottom = lesion.region.bounds
    mm = f"{max(right - left, bottom - top) / 4000:.2f}".rstrip("0")
    nests = sum(nest.annotated for nest in lesion.nests)
    dense = "a denser spot" if nests == 1 else f"{_spelled(nests)} denser spots"
    low = lesion.entity.low[0].upper() + lesion.entity.low[1:]
    return [
        f"{low}, about {mm} mm across, with {dense}",
        *(f"{low}, replacing {host} over {mm} mm" for host in HOSTS[organ]),
    ]


def _mid(entity: Entity, nest: Nest) -> list[str]:
    """Candidate sentences for 10x; what else lies in the nest is added if there is something."""
    plain = [text.format(cytology=cytology) for text in NESTS[nest.name] for cytology in CYTOLOGY[entity.kind]]
    there = {focus.name for focus in nest.foci}
    beside = [text for name, text in BESIDE.items() if name in there]
    return [f"{text}, {also}" for text in plain for also in beside] or plain


def _high(nest: Nest, focus: Focus) -> list[str]:
    """Candidate sentences for 40x, half of them with what lies around."""
    plain = [text.format(count=_spelled(focus.count)) for text in FOCI[focus.name]]
    plain = [text[0].upper() + text[1:] for text in plain]
    return plain + [f"{text}, {WITHIN[nest.name]}" for text in plain]


# Drawing -----------------------------------------------------------------------------------------------------------

_SPACING = {
    "atypical": 47.0,
    "bland": 42.0,
    "columnar": 34.0,
    "cuboidal": 34.0,
    "histiocyte": 54.0,
    "lymphocyte": 32.0,
    "stratified": 40.0,
    "vesicular": 56.0,
}


def draw_lesion(scene: Scene, lesion: Lesion) -> None:
    """Draw the lesion: its stroma and scattered field, then its nests, then their foci."""
    _stroma(scene, lesion)
    _field(scene, lesion)
    for nest in lesion.nests:
        _draw_nest(scene, lesion.entity, nest)
        for focus in nest.foci:
            _draw_focus(scene, lesion.entity, focus)
    area = Area.of(lesion.outline, lesion.owner)
    scatter(scene, area, "spindle", 900, aligned=True)
    scatter(scene, area, "lymphocyte", 260)
    for nest in lesion.nests:
        scatter(scene, Area.of(nest.outline, nest.owner), "spindle", 700, aligned=True)


def _stroma(scene: Scene, lesion: Lesion) -> None:
    """Tissue under the lesion, with a stroma of its own: pale and slightly blue."""
    n = scene.tissue.shape[0]
    mask = np.zeros((n, n), np.uint8)
    for outline in [lesion.outline, *(nest.outline for nest in lesion.nests)]:
        cv2.fillPoly(mask, [np.round(outline / MAP).astype(np.int32)], 255)
    soft = np.asarray(cv2.GaussianBlur(mask.astype(np.float32) / 255, (0, 0), 2.5))
    scene.tissue = np.maximum(scene.tissue, np.clip(soft * 4 - 1.6, -1, 1)).astype(np.float32)
    pale = {"infiltrate": 74.0, "acini": 96.0, "ducts": 98.0}.get(lesion.entity.field, 84.0)
    scene.eosin += (pale - scene.eosin) * soft
    scene.haematoxylin += (6 - scene.haematoxylin) * soft


def _field(scene: Scene, lesion: Lesion) -> None:
    area, kind = Area.of(lesion.outline, lesion.owner), lesion.entity.kind
    spacing = _SPACING[kind]
    match lesion.entity.field:
        case "nests":
            islands(scene, area, kind, spacing, pitch=250, gap=105, keep=0.6, ragged=0.10)
        case "round-nests":
            islands(scene, area, kind, spacing + 4, pitch=230, gap=70, keep=0.7, ragged=0.03)
        case "files":
            cords(scene, area, kind, spacing, pitch=120)
        case "glands":
            glands(
                scene, area, kind, pitch=270, gap=110, lumen=0.42, keep=0.62, ragged=0.05, spacing=27, haematoxylin=20
            )
        case "tubules":
            glands(scene, area, kind, pitch=230, gap=66, lumen=0.30, keep=0.7, spacing=24, haematoxylin=20)
        case "plates":
            cords(scene, area, kind, spacing * 1.25, pitch=105, width=2)
        case "ducts":
            glands(
                scene,
                area,
                "cuboidal",
                pitch=420,
                gap=230,
                lumen=0.6,
                keep=0.6,
                spacing=25,
                layers=2,
                myoepithelium=True,
            )
        case "acini":
            glands(scene, area, kind, pitch=210, gap=105, lumen=0.42, keep=0.7, spacing=25, myoepithelium=True)
        case "infiltrate":
            scatter(scene, area, "lymphocyte", 1500)
            scatter(scene, area, "plasma", 500)
        case other:
            raise ValueError(other)


def _draw_nest(scene: Scene, entity: Entity, nest: Nest) -> None:
    area, kind, rng = Area.of(nest.outline, nest.owner), entity.kind, scene.rng
    spacing = _SPACING[kind]
    match nest.name:
        case "lymphocytes":
            scatter(scene, area, "lymphocyte", rng.uniform(2500, 7000))
        case "crush":
            _crush(scene, nest.outline, rng.uniform(82, 106))
        case "solid":
            scene.paint(nest.outline, 58, 22)
            sheet(scene, area, kind, spacing)
        case "crowded-glands":
            glands(
                scene,
                area,
                kind,
                pitch=185,
                gap=16,
                lumen=0.34,
                ragged=0.04,
                spacing=24,
                layers=2,
                haematoxylin=24,
                loose_edge=True,
            )
        case "cribriform":
            scene.paint(nest.outline, 62, 22)
            cribriform(scene, area, kind, spacing, hole_px=30, pitch=150)
        case "nests":
            islands(scene, area, kind, spacing, pitch=165, gap=22)
        case "bland-nests":
            islands(scene, area, kind, spacing, pitch=190, gap=22, ragged=0.02)
        case "files":
            cords(scene, area, kind, spacing * 0.95, pitch=52)
        case "trabeculae":
            cords(scene, area, kind, spacing * 1.02, pitch=58, width=2)
        case "duct-solid" | "duct-cribriform":
            scene.shapes.append(_duct(nest.outline))
            if nest.name == "duct-solid":
                sheet(scene, area, kind, spacing)
            else:
                cribriform(scene, area, kind, spacing, hole_px=34, pitch=160)
        case "lobule":
            glands(scene, area, kind, pitch=128, gap=22, lumen=0.32, spacing=23, loose_edge=True)
        case "follicle":
            _follicle(scene, nest)
        case "cuff":
            vessel(scene, cast("tuple[float, float]", tuple(nest.outline.mean(0).tolist())), 60, 24, blood=True)
            sheet(scene, area, "lymphocyte", 40)
        case "granuloma":
            _granuloma(scene, nest)
        case other:
            raise ValueError(other)


def _crush(scene: Scene, outline: Points, haematoxylin: float) -> None:
    """Crush artefact: nuclei smeared into a smooth purple field. As dark as a cell-rich field, without its nuclei."""
    n = scene.smear.shape[0]
    mask = np.zeros((n, n), np.uint8)
    cv2.fillPoly(mask, [np.round(outline / MAP).astype(np.int32)], 255)
    soft = np.asarray(cv2.GaussianBlur(mask.astype(np.float32) / 255, (0, 0), 1.2))
    scene.smear = np.maximum(scene.smear, haematoxylin * soft)
    scene.take(outline)


def _duct(outline: Points) -> Shape:
    return Shape(outline, 62, 20, rim_eosin=150, rim_px=9)


def _ring(points: Points, outline: Points) -> NDArray[np.float32]:
    """Distance from the outline's mean as a share of the mean radius."""
    centre = outline.mean(0)
    radius = np.hypot(*(outline - centre).T).mean()
    return np.asarray(np.hypot(*(points - centre).T) / radius, dtype=np.float32)


def _follicle(scene: Scene, nest: Nest) -> None:
    scene.paint(nest.outline, 62, 26)
    area = Area.of(nest.outline, nest.owner)
    points = hex_points(scene.rng, area.box, 33, 0.24)
    points = points[scene.owners(points) == nest.owner]
    far = _ring(points, nest.outline)
    scene.nuclei("lymphocyte", points[(far > 0.62) & (far < 1.2)])
    core = hex_points(scene.rng, area.box, 50, 0.24)
    core = core[scene.owners(core) == nest.owner]
    scene.nuclei("vesicular", core[_ring(core, nest.outline) <= 0.62])


def _granuloma(scene: Scene, nest: Nest) -> None:
    scene.paint(scaled(nest.outline, 0.8), 84, 10)
    area = Area.of(nest.outline, nest.owner)
    points = hex_points(scene.rng, area.box, 56, 0.26)
    points = points[scene.owners(points) == nest.owner]
    scene.nuclei("histiocyte", points[_ring(points, nest.outline) < 0.76])
    rim = hex_points(scene.rng, area.box, 40, 0.3)
    rim = rim[scene.owners(rim) == nest.owner]
    scene.nuclei("lymphocyte", rim[_ring(rim, nest.outline) >= 0.78])


def _draw_focus(scene: Scene, entity: Entity, focus: Focus) -> None:
    area, rng = Area.of(focus.outline, focus.owner), scene.rng
    centre = focus.outline.mean(0)
    kind = entity.kind
    crowded = "atypical" if entity.category in {"malignant", "in situ"} else kind
    match focus.name:
        case "lymphocytes":
            sheet(scene, area, "lymphocyte", 36)
        case "crush":
            _crush(scene, focus.outline, rng.uniform(110, 134))
        case "pleomorphic":
            scene.paint(focus.outline, 60, 30)
            sheet(scene, area, "pleomorphic", 54, drop=0.0)
        case "mitoses":
            scene.paint(focus.outline, 60, 28)
            figures = _spread(scene, focus, focus.count, 44)
            for figure in figures:
                scene.fill(blob(rng, (float(figure[0]), float(figure[1])), 30, 27, rough=0.05), 30, 6)
            scene.nuclei("mitosis", figures)
            sheet(scene, area, crowded, 38, drop=0.0)
        case "giant":
            scene.paint(focus.outline, 60, 28)
            giants = _spread(scene, focus, focus.count, 100)
            for giant in giants:
                scene.take(blob(rng, (float(giant[0]), float(giant[1])), 56, 50))
            scene.nuclei("giant", giants)
            sheet(scene, area, crowded, 46, drop=0.0)
        case "necrosis" | "comedo":
            scene.paint(focus.outline, 60, 26)
            scene.fill(
                scaled(
                    blob(rng, (float(centre[0]), float(centre[1])), *(np.ptp(focus.outline, 0) / 2), rough=0.12), 0.5
                ),
                130,
                12,
            )
            inner = blob(rng, (float(centre[0]), float(centre[1])), *(np.ptp(focus.outline, 0) * 0.24), rough=0.1)
            dust = hex_points(rng, bounds(inner), 24, 0.4)
            scene.nuclei("debris", dust[(_ring(dust, inner) < 1) & (rng.random(len(dust)) < 0.85)])
            sheet(scene, area, crowded, 34, drop=0.0)
        case "embolus":
            scene.fill(focus.outline, 0, 0, rim_eosin=140, rim_px=6)
            plug = scaled(focus.outline, 0.88)
            scene.paint(plug, 64, 30)
            points = hex_points(rng, bounds(plug), 33, 0.2)
            scene.nuclei(crowded, points[_ring(points, plug) < 0.93])
            lining, angle = along(rng, focus.outline, 90)
            scene.nuclei("spindle", lining, angle + np.float32(np.pi / 2))
        case "rosette":
            scene.paint(focus.outline, 66, 28)
            for spot in _spread(scene, focus, focus.count, 88):
                ring = blob(rng, (float(spot[0]), float(spot[1])), 46, 42, rough=0.06)
                gland(scene, ring, "stratified", lumen=0.26, spacing=20, eosin=70, haematoxylin=28)
                outer, angle = along(rng, scaled(ring, 1.1), 24)
                scene.nuclei("stratified", outer, angle)
            sheet(scene, area, "stratified", 36, drop=0.0)
        case "calcification":
            scene.paint(focus.outline, 80, 14)
            for spot in _spread(scene, focus, focus.count, 90):
                stone = blob(
                    rng, (float(spot[0]), float(spot[1])), rng.uniform(34, 52), rng.uniform(32, 48), rough=0.06
                )
                for share, dark in ((1.0, 150), (0.8, 215), (0.6, 165), (0.42, 225), (0.22, 180)):
                    scene.fill(scaled(stone, share), 60, dark)
            sheet(scene, area, kind, _SPACING[kind] + 4)
        case "compact":
            scene.paint(focus.outline, 66, 22)
            sheet(scene, area, kind, 30, drop=0.0)
        case "cyst":
            gland(scene, focus.outline, "cuboidal", lumen=0.84, spacing=24, content=(120, 0), eosin=90)
        case "knot":
            scene.paint(focus.outline, 60, 40)
            sheet(scene, area, "lymphocyte", 27, drop=0.0)
        case "apoptosis":
            scene.paint(focus.outline, 60, 28)
            bodies = _spread(scene, focus, focus.count, 46)
            for body in bodies:
                scene.fill(blob(rng, (float(body[0]), float(body[1])), 24, 22, rough=0.03), 8, 0)
                scene.fill(blob(rng, (float(body[0]), float(body[1])), 13, 12, rough=0.05), 150, 90)
                scene.nuclei("debris", body + rng.normal(0, 4, (2, 2)).astype(np.float32))
            sheet(
                scene,
                area,
                crowded if crowded != "lymphocyte" else "lymphocyte",
                42 if crowded != "lymphocyte" else 29,
                drop=0.0,
            )
        case "plasma":
            scene.paint(focus.outline, 84, 20)
            sheet(scene, area, "plasma", 28, drop=0.0)
        case "giant-cell":
            body = scaled(focus.outline, 0.62)
            sheet(scene, area, "lymphocyte", 36)
            scene.fill(body, 104, 10)
            wreath, angle = along(rng, scaled(body, 0.78), float(np.ptp(body, 0).mean() * 0.78 * np.pi / focus.count))
            scene.nuclei("bland", wreath, angle)
        case "abscess":
            scene.paint(focus.outline, 96, 30)
            debris = hex_points(rng, area.box, 19, 0.3)
            scene.nuclei("debris", debris[scene.owners(debris) == focus.owner])
        case other:
            raise ValueError(other)


def _spread(scene: Scene, focus: Focus, count: int, apart: float) -> Points:
    """`count` points within the focus, `apart` px from each other where there is room."""
    rng = scene.rng
    chosen: list[NDArray[np.float64]] = []
    half = np.ptp(focus.outline, 0) / 2
    centre = focus.outline.mean(0)
    for attempt in range(4000):
        theta, radius = rng.uniform(0, 2 * np.pi), rng.uniform(0, 0.78) ** 0.5
        point = centre + half * radius * 0.8 * np.array([np.cos(theta), np.sin(theta)])
        near = apart * (1 - attempt / 4500)
        if all(np.hypot(*(point - other)) > near for other in chosen):
            chosen.append(point)
            if len(chosen) == count:
                break
    return np.array(chosen, np.float32).reshape(-1, 2)
