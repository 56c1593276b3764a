"""Normal tissue of seven organs. Each builder fills what belongs to owner `NORMAL`, and says what it is made of.

`lay_out` first puts pieces of tissue on the glass; lesions and decoys then claim their places; `build` fills the rest.
"""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np

from .patterns import Area, airspaces, fat, gland, glands, scatter, sheet, vessel
from .scene import MAP, NORMAL, Scene, SoftMap, fractal
from .shapes import blob, hex_points, scaled

__all__ = ["ORGANS", "build", "lay_out"]


def lay_out(scene: Scene, organ: str) -> None:
    """Pieces of tissue with irregular outlines, and the direction of the fibres."""
    rng = scene.rng
    n = scene.side // MAP
    used = scene.size / MAP
    rows, columns = np.mgrid[0:n, 0:n].astype(np.float32)
    ragged = fractal(rng, n, n / 5, 4)
    field = np.full((n, n), -1.0, np.float32)
    for x, y, radius_x, radius_y, angle in _pieces(rng):
        u, v = columns - x * used, rows - y * used
        c, s = np.cos(angle), np.sin(angle)
        distance = (
            (np.abs(u * c + v * s) / (radius_x * used)) ** 3 + (np.abs(v * c - u * s) / (radius_y * used)) ** 3
        ) ** (1 / 3)
        field = np.maximum(field, 1 - distance + 0.09 * ragged)
    margin = np.minimum.reduce([columns, rows, used - 1 - columns, used - 1 - rows]) / used
    field = np.minimum(field, (margin - 0.018) * 12)
    scene.tissue = np.clip(field * 14, -1, 1).astype(np.float32)
    scene.angle = ((0.9 * fractal(rng, n, n / 3, 3)) % np.pi).astype(np.float32)
    grid = cv2.resize(scene.tissue, scene.owner.shape[::-1], interpolation=cv2.INTER_LINEAR)
    scene.owner[:] = (np.asarray(grid) > 0.02).astype(np.uint8) * NORMAL


def _pieces(rng: np.random.Generator) -> list[tuple[float, float, float, float, float]]:
    """Centre, radii (shares of the slide's side) and angle of one to three pieces that fill about half of the slide."""
    count = int(rng.choice([1, 2, 2, 3]))
    jitter = rng.uniform(-0.02, 0.02, (3, 2))
    if count == 1:
        return [
            (
                0.5 + jitter[0, 0],
                0.5 + jitter[0, 1],
                rng.uniform(0.38, 0.44),
                rng.uniform(0.36, 0.43),
                rng.uniform(-0.3, 0.3),
            )
        ]
    if count == 2:
        split = rng.uniform(0.44, 0.56)
        pieces = [
            (0.5 + jitter[0, 0], split / 2 + 0.01, rng.uniform(0.38, 0.46), split / 2 - 0.035, rng.uniform(-0.1, 0.1)),
            (
                0.5 + jitter[1, 0],
                (1 + split) / 2 - 0.01,
                rng.uniform(0.36, 0.46),
                (1 - split) / 2 - 0.035,
                rng.uniform(-0.1, 0.1),
            ),
        ]
    else:
        split = rng.uniform(0.48, 0.56)
        pieces = [
            (0.26 + jitter[0, 0], split / 2, 0.22, split / 2 - 0.03, rng.uniform(-0.15, 0.15)),
            (0.75 + jitter[1, 0], split / 2, 0.22, split / 2 - 0.03, rng.uniform(-0.15, 0.15)),
            (
                0.5 + jitter[2, 0],
                (1 + split) / 2,
                rng.uniform(0.38, 0.45),
                (1 - split) / 2 - 0.03,
                rng.uniform(-0.08, 0.08),
            ),
        ]
    if rng.random() < 0.5:
        pieces = [(y, x, ry, rx, angle) for x, y, rx, ry, angle in pieces]
    if rng.random() < 0.5:
        pieces = [(1 - x, 1 - y, rx, ry, angle) for x, y, rx, ry, angle in pieces]
    return pieces


def build(scene: Scene, organ: str) -> None:
    """Fill all normal tissue of the slide with the organ's architecture."""
    ORGANS[organ](scene, Area(NORMAL, (0, 0, scene.size, scene.size)))


def _zone(scene: Scene, share: float, feature: float) -> SoftMap:
    """A soft map that is 1 on about `share` of the slide, in patches of about `feature` level-0 px."""
    n = scene.side // MAP
    noise = fractal(scene.rng, n, feature / MAP, 3)
    level = np.quantile(noise, 1 - share)
    return np.asarray(np.clip((noise - level) * 5 + 0.5, 0, 1), dtype=np.float32)


def _depth(scene: Scene) -> SoftMap:
    """Level-0 px from the nearest glass outside, at the soft maps' scale."""
    inside = (scene.tissue > 0).astype(np.uint8)
    return (cv2.distanceTransform(np.pad(inside, 1), cv2.DIST_L2, 5)[1:-1, 1:-1] * MAP).astype(np.float32)


def _surface(scene: Scene) -> SoftMap:
    """1 near those edges of the tissue that face the slide's upper or left side: where a surface epithelium lies."""
    soft = cv2.GaussianBlur(scene.tissue, (0, 0), 12)
    slope_y, slope_x = cv2.Sobel(soft, cv2.CV_32F, 0, 1), cv2.Sobel(soft, cv2.CV_32F, 1, 0)
    facing = slope_y + 0.35 * slope_x
    return np.asarray(np.clip(facing * 60, 0, 1), dtype=np.float32)


def _vessels(scene: Scene, area: Area, count: float, radius: tuple[float, float]) -> None:
    rng = scene.rng
    share = (area.box[2] - area.box[0]) * (area.box[3] - area.box[1]) / 8192**2
    for _ in range(max(1, int(count * share))):
        centre = rng.uniform(area.box[:2], area.box[2:])
        size = rng.uniform(*radius)
        ring = blob(rng, (float(centre[0]), float(centre[1])), size * 1.6, size * 1.6)
        if scene.within(ring, area.owner) and scene.free(ring).all():
            vessel(
                scene,
                (float(centre[0]), float(centre[1])),
                size,
                size * rng.uniform(0.25, 0.6),
                blood=rng.random() < 0.6,
            )


def _breast(scene: Scene, area: Area) -> None:
    rng = scene.rng
    fatty = _zone(scene, 0.42, 2600)
    for centre in hex_points(rng, area.box, 1250, 0.25):
        if scene.owners(centre[None])[0] != NORMAL or scene.sample(fatty, centre[None])[0] > 0.6:
            continue
        lobule = blob(
            rng, (float(centre[0]), float(centre[1])), rng.uniform(260, 420), rng.uniform(260, 420), rough=0.14
        )
        if not scene.within(lobule, NORMAL):
            continue
        if rng.random() < 0.25:
            duct = blob(
                rng, (float(centre[0]), float(centre[1])), rng.uniform(110, 200), rng.uniform(100, 170), rough=0.12
            )
            gland(scene, duct, "cuboidal", lumen=0.72, spacing=25, layers=2, myoepithelium=True, scallop=0.1)
            continue
        scene.paint(lobule, 66, 8)
        scene.claim(lobule, 255)
        glands(
            scene, Area.of(lobule, 255), "cuboidal", pitch=138, gap=34, lumen=0.34, myoepithelium=True, loose_edge=True
        )
        scatter(scene, Area.of(lobule, 255), "spindle", 1500)
        scatter(scene, Area.of(lobule, 255), "lymphocyte", 350)
        scene.claim(lobule, NORMAL)
        scene.take(lobule)
    fat(scene, area, pitch=275, where=fatty)
    _vessels(scene, area, 26, (30, 90))
    scene.eosin += 22
    scatter(scene, area, "spindle", 900, aligned=True)


def _colon(scene: Scene, area: Area) -> None:
    depth, facing = _depth(scene), _surface(scene)
    spread = cv2.dilate(facing, np.ones((3, 3), np.uint8), iterations=40)
    mucosa = ((depth < 1500) & (spread > 0.3)).astype(np.float32)
    scene.eosin -= 24 * cv2.GaussianBlur(mucosa, (0, 0), 3)
    scene.haematoxylin += 9 * mucosa
    glands(
        scene, area, "columnar", pitch=250, gap=46, lumen=0.30, where=mucosa, spacing=21, eosin=60, haematoxylin=16,
        basal=0.22, content=(10, 10), loose_edge=True,
    )  # fmt: skip
    scatter(scene, area, "lymphocyte", 2600, where=mucosa)
    scatter(scene, area, "plasma", 1500, where=mucosa)
    muscle = np.clip((depth - 2100) / 200, 0, 1).astype(np.float32)
    scene.eosin += 40 * muscle
    fat(scene, area, pitch=260, where=((1 - mucosa) * (1 - muscle) * _zone(scene, 0.25, 1500)).astype(np.float32))
    _vessels(scene, area, 30, (35, 100))
    scatter(scene, area, "spindle", 700, aligned=True)
    scatter(scene, area, "spindle", 1300, aligned=True, where=muscle)


def _lung(scene: Scene, area: Area) -> None:
    rng = scene.rng
    for centre in hex_points(rng, area.box, 3000, 0.3):
        spot = (float(centre[0]), float(centre[1]))
        sheath = blob(rng, spot, rng.uniform(380, 560), rng.uniform(330, 480), rough=0.12)
        if not scene.within(sheath, NORMAL):
            continue
        scene.claim(sheath, 254)
        bronchiole = blob(rng, (spot[0] - 90, spot[1]), rng.uniform(170, 240), rng.uniform(150, 210), rough=0.12)
        gland(scene, bronchiole, "columnar", lumen=0.74, spacing=17, layers=2, eosin=96, scallop=0.12)
        vessel(scene, (spot[0] + 240, spot[1] + 60), rng.uniform(60, 95), rng.uniform(22, 40), blood=True)
        scatter(scene, Area.of(sheath, 254), "spindle", 1800, aligned=True)
        scene.take(sheath)
    scene.eosin += 6
    airspaces(scene, area, pitch=520, septum=34)
    scatter(scene, area, "spindle", 1200)


def _prostate(scene: Scene, area: Area) -> None:
    scene.eosin += 34
    glands(
        scene, area, "columnar", pitch=640, gap=170, lumen=0.70, keep=0.82, spacing=21, eosin=58, haematoxylin=10,
        basal=0.35, scallop=0.30, myoepithelium=True, content=(0, 0), ragged=0.03,
    )  # fmt: skip
    _vessels(scene, area, 20, (30, 80))
    scatter(scene, area, "spindle", 2100, aligned=True)


def _skin(scene: Scene, area: Area) -> None:
    rng = scene.rng
    depth, facing = _depth(scene), _surface(scene)
    spread = cv2.dilate(facing, np.ones((3, 3), np.uint8), iterations=26)
    n = depth.shape[0]
    thickness = 330 + 150 * fractal(rng, n, 420 / MAP, 2)
    at_surface = spread > 0.3
    keratin = ((depth < 90) & at_surface).astype(np.float32)
    epidermis = ((depth >= 80) & (depth < np.maximum(thickness, 170)) & at_surface).astype(np.float32)
    epidermis = np.asarray(cv2.GaussianBlur(epidermis, (0, 0), 1.2))
    scene.eosin += 40 * keratin + 26 - 34 * epidermis
    scene.haematoxylin += 34 * epidermis
    points = hex_points(rng, area.box, 46, 0.22)
    points = points[(scene.owners(points) == NORMAL) & (scene.sample(epidermis, points) > 0.5)]
    scene.nuclei("squamous", points)
    basal = ((depth >= np.maximum(thickness, 170) - 60) & (epidermis > 0.3)).astype(np.float32)
    extra = hex_points(rng, area.box, 30, 0.2)
    extra = extra[(scene.owners(extra) == NORMAL) & (scene.sample(basal, extra) > 0.5)]
    scene.nuclei("columnar", extra)
    mask = cv2.resize(epidermis, scene.taken.shape[::-1], interpolation=cv2.INTER_LINEAR)
    scene.taken[(np.asarray(mask) > 0.4) & (scene.owner == NORMAL)] = 1
    dermis = (depth > 900).astype(np.float32)
    for centre in hex_points(rng, area.box, 1500, 0.3):
        spot = (float(centre[0]), float(centre[1]))
        if scene.sample(dermis, centre[None])[0] < 0.5 or rng.random() < 0.25:
            continue
        home = blob(rng, spot, 300, 300)
        if not scene.within(home, NORMAL):
            continue
        if rng.random() < 0.4:
            for _ in range(int(rng.integers(5, 10))):
                x, y = np.array(spot) + rng.normal(0, 110, 2)
                coil = blob(rng, (x, y), rng.uniform(38, 60), rng.uniform(34, 52))
                gland(scene, coil, "cuboidal", lumen=0.3, spacing=24, eosin=96)
        elif rng.random() < 0.5:
            sebum = blob(rng, spot, rng.uniform(180, 280), rng.uniform(150, 230), rough=0.16)
            scene.claim(sebum, 253)
            scene.paint(sebum, 42, 8)
            fat(scene, Area.of(sebum, 253), pitch=74)
            sheet(scene, Area.of(sebum, 253), "cuboidal", 84)
            scene.claim(sebum, NORMAL)
            scene.take(sebum)
        else:
            for share, eosin, haematoxylin in ((1.0, 120, 10), (0.86, 76, 40), (0.5, 112, 26), (0.3, 180, 0)):
                scene.fill(scaled(blob(rng, spot, 190, 150, rough=0.05), share), eosin, haematoxylin)
            for share in (0.82, 0.72, 0.62):
                ring = blob(rng, spot, 190 * share, 150 * share, rough=0.03)
                scene.nuclei("columnar", ring[::1])
    fat(scene, area, pitch=300, where=((depth > 1900).astype(np.float32) * _zone(scene, 0.6, 1800)).astype(np.float32))
    _vessels(scene, area, 26, (25, 70))
    scatter(scene, area, "spindle", 620, aligned=True)


def _liver(scene: Scene, area: Area) -> None:
    rng = scene.rng
    scene.eosin -= 42
    for i, centre in enumerate(hex_points(rng, area.box, 1500, 0.16)):
        spot = (float(centre[0]), float(centre[1]))
        if i % 3 == 0:
            home = blob(rng, spot, 120, 110)
            if scene.within(home, NORMAL):
                vessel(scene, spot, rng.uniform(60, 100), 9, blood=rng.random() < 0.5)
            continue
        portal = blob(rng, spot, rng.uniform(170, 260), rng.uniform(140, 220), rough=0.22)
        if not scene.within(portal, NORMAL):
            continue
        scene.claim(portal, 252)
        scene.paint(portal, 96, 6)
        vessel(scene, (spot[0] - 60, spot[1]), rng.uniform(45, 70), 10, blood=True)
        gland(scene, blob(rng, (spot[0] + 70, spot[1] - 40), 36, 32), "cuboidal", lumen=0.45, spacing=19)
        vessel(scene, (spot[0] + 60, spot[1] + 60), 16, 14, blood=False)
        scatter(scene, Area.of(portal, 252), "lymphocyte", 1800)
        scatter(scene, Area.of(portal, 252), "spindle", 1500)
        scene.take(portal)
    cords_of_liver(scene, area)


def cords_of_liver(scene: Scene, area: Area, kind: str = "hepatocyte", spacing: float = 88) -> None:
    """Plates of hepatocytes: cells on a grid, with pale sinusoids and their flat nuclei between."""
    rng = scene.rng
    points = hex_points(rng, area.box, spacing, 0.16)
    points = points[(scene.owners(points) == area.owner) & scene.free(points)]
    ridges = np.abs(fractal(rng, scene.side // MAP, 150 / MAP, 2))
    points = points[scene.sample(ridges, points) > 0.16]
    scene.nuclei(kind, points)
    twins = points[rng.random(len(points)) < 0.12]
    scene.nuclei(kind, twins + np.float32(26))
    scatter(scene, area, "spindle", 420)


def _kidney(scene: Scene, area: Area) -> None:
    rng = scene.rng
    scene.eosin -= 14
    for centre in hex_points(rng, area.box, 1150, 0.26):
        spot = (float(centre[0]), float(centre[1]))
        capsule = blob(rng, spot, rng.uniform(300, 380), rng.uniform(290, 370), rough=0.04)
        if rng.random() < 0.3 or not scene.within(capsule, NORMAL):
            continue
        scene.fill(capsule, 0, 0, rim_eosin=120, rim_px=7)
        tuft = blob(rng, spot, 255, 250, rough=0.10)
        scene.paint(tuft, 88, 12)
        scene.claim(capsule, 251)
        around = (spot[0] - 260, spot[1] - 260, spot[0] + 260, spot[1] + 260)
        knots = hex_points(rng, around, 70, 0.25)
        for knot in knots[np.hypot(*(knots - centre).T) < 205]:
            scene.paint(blob(rng, (float(knot[0]), float(knot[1])), 20, 15), 20)
        nuclei = hex_points(rng, around, 41, 0.3)
        scene.nuclei("cuboidal", nuclei[np.hypot(*(nuclei - centre).T) < 232])
        scene.take(capsule)
    glands(
        scene, area, "cuboidal", pitch=212, gap=20, lumen=0.36, spacing=52, eosin=122, haematoxylin=6, basal=0.5,
        loose_edge=True,
    )  # fmt: skip
    _vessels(scene, area, 20, (40, 100))
    scatter(scene, area, "spindle", 700)


ORGANS: dict[str, Callable[[Scene, Area], None]] = {
    "breast": _breast,
    "colon": _colon,
    "kidney": _kidney,
    "liver": _liver,
    "lung": _lung,
    "prostate": _prostate,
    "skin": _skin,
}
"""Builders of normal tissue by organ."""
