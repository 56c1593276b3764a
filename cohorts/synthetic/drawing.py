"""How lesions, nests and foci look. Everything draws into the places that were claimed when they were planned."""

from __future__ import annotations

from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from .entities import Entity
from .lesions import Focus, Lesion, Nest
from .patterns import Area, cords, cribriform, gland, glands, islands, scatter, sheet, vessel
from .scene import MAP, Scene, Shape
from .shapes import Points, along, blob, bounds, hex_points, scaled

__all__ = ["draw_lesion"]

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
