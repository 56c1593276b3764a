"""One synthetic slide: who it comes from, its scene, its annotations, and its files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from .decoys import add_fold, add_pen, draw_aggregate, plan_aggregate
from .drawing import draw_lesion
from .entities import Entity
from .fields import write_fields
from .lesions import Focus, Lesion, Nest
from .organs import ORGANS, build, lay_out
from .planning import plan_lesions
from .pyramid import MPP, write_slide
from .scene import Scene, Stain
from .shapes import Points, bounds

__all__ = ["MAGNIFICATIONS", "Annotations", "Source", "draw_slide", "make_slide", "source_of"]

MAGNIFICATIONS = (2.5, 10, 40)

_SPLITS = ("train", "test", "val", "train", "test", "train", "train", "val", "test", "train")
"""Splits of patients in turn: five train, two val, three test of ten; the first three patients have one each."""

_MAIN_CATEGORIES = (
    "malignant",
    "malignant",
    "in situ",
    "malignant",
    "inflammatory",
    "malignant",
    "benign",
    "malignant",
)
"""Main categories of patients in turn."""

_SLIDES_OF = (1, 1, 1, 2, 2, 3)
"""How many slides six patients in turn have, in random order. So six slides come from three patients or more."""

_PATIENT, _SLIDE, _COHORT, _FIELDS = 1, 2, 3, 4
"""Which random stream a seed is for."""


@dataclass(frozen=True)
class Source:
    """What is known of a slide before it is made."""

    slide_id: str
    patient_id: str
    organ: str
    split: str
    category: str
    index: int
    patient: int

    def manifest(self) -> dict[str, Any]:
        """Its entry in cohort.json."""
        return {
            "slide_id": self.slide_id,
            "path": f"slides/{self.slide_id}.tif",
            "patient_id": self.patient_id,
            "organ": self.organ,
            "split": self.split,
            "mpp": MPP,
        }


@dataclass(frozen=True)
class Annotations:
    """What is known of a slide once it is made, as the lines of the cohort's files."""

    nodes: list[dict[str, Any]]
    paths: list[dict[str, Any]]
    regions: dict[str, Any]


def source_of(seed: int, index: int) -> Source:
    """Patient, organ, split and category of slide `index`; they do not depend on how many slides are made."""
    patient, first = 0, 0
    while True:
        group, place = divmod(patient, len(_SLIDES_OF))
        count = int(np.random.default_rng([seed, _COHORT, group, 0]).permutation(_SLIDES_OF)[place])
        if index < first + count:
            break
        patient, first = patient + 1, first + count
    order = np.random.default_rng([seed, _COHORT, patient // len(ORGANS), 1]).permutation(sorted(ORGANS))
    organ = str(order[patient % len(ORGANS)])
    category = _MAIN_CATEGORIES[patient % len(_MAIN_CATEGORIES)]
    rng = np.random.default_rng([seed, _SLIDE, index, 1])
    if index > first and rng.random() < 0.2:
        category = str(rng.choice(["benign", "inflammatory"]))
    return Source(
        f"S{index + 1:04d}", f"P{patient + 1:04d}", organ, _SPLITS[patient % len(_SPLITS)], category, index, patient
    )


def make_slide(folder: Path, seed: int, index: int, size_px: int, check: Callable[[], None]) -> Annotations:
    """Write slide `index` into the cohort `folder` and return its annotations; `check` may raise to stop."""
    source = source_of(seed, index)
    scene, annotations = draw_slide(source, seed, size_px)
    write_slide(folder / source.manifest()["path"], scene, check)
    (folder / "regions" / f"{source.slide_id}.geojson").write_text(json.dumps(annotations.regions), encoding="utf-8")
    write_fields(folder, source.slide_id, scene, annotations.nodes, [seed, _FIELDS, index])
    return annotations


def draw_slide(source: Source, seed: int, size_px: int) -> tuple[Scene, Annotations]:
    """The scene of a slide, ready to render, and what is annotated on it."""
    rng = np.random.default_rng([seed, _SLIDE, source.index])
    scene = Scene(size_px, rng, _stain(np.random.default_rng([seed, _PATIENT, source.patient, 1])))
    scale = float((size_px / 8192) ** (0.75 if size_px < 8192 else 0.5))
    lay_out(scene, source.organ)
    lesions = plan_lesions(scene, source.organ, source.category, scale)
    circles = [_circle(lesion) for lesion in lesions]
    aggregates = [
        plan_aggregate(scene, rng.uniform(420, 900) * scale, circles)
        for _ in range(int(rng.choice([0, 1, 2], p=[0.4, 0.35, 0.25])))
    ]
    build(scene, source.organ)
    for aggregate in aggregates:
        draw_aggregate(scene, aggregate)
    for lesion in lesions:
        draw_lesion(scene, lesion)
    if rng.random() < 0.5:
        add_fold(scene, circles)
    if rng.random() < 0.4:
        add_pen(scene)
    return scene, _annotations(source, lesions, [outline for outline, _ in aggregates], size_px)


def _stain(rng: np.random.Generator) -> Stain:
    """The stain of a patient's laboratory: the usual reference vectors of Macenko et al. 2009, varied a little."""
    haematoxylin = np.array([0.5626, 0.7201, 0.4062]) * rng.uniform(0.92, 1.08) * (1 + rng.normal(0, 0.025, 3))
    eosin = np.array([0.2159, 0.8012, 0.5581]) * rng.uniform(0.85, 1.12) * (1 + rng.normal(0, 0.06, 3))
    glass = rng.integers(240, 249, 3)
    return Stain(_triple(haematoxylin), _triple(eosin), (int(glass[0]), int(glass[1]), int(glass[2])))


def _triple(values: NDArray[np.float64]) -> tuple[float, float, float]:
    return float(values[0]), float(values[1]), float(values[2])


def _circle(lesion: Lesion) -> tuple[float, float, float]:
    left, top, right, bottom = lesion.region.bounds
    return (left + right) / 2, (top + bottom) / 2, max(right - left, bottom - top) / 2 * 1.05


# Annotations -------------------------------------------------------------------------------------------------------


def _annotations(source: Source, lesions: list[Lesion], aggregates: list[Points], size_px: int) -> Annotations:
    nodes: list[dict[str, Any]] = []
    paths: list[dict[str, Any]] = []
    features: list[dict[str, Any]] = []

    def node(parent: dict[str, Any] | None, level: int, box: list[int], finding: str) -> dict[str, Any]:
        made = {
            "slide_id": source.slide_id,
            "node_id": f"N{len(nodes) + 1:02d}",
            "parent_id": parent and parent["node_id"],
            "magnification": MAGNIFICATIONS[level],
            "box": _inside(box, parent["box"] if parent else [0, 0, size_px, size_px]),
            "finding": finding,
        }
        nodes.append(made)
        return made

    for lesion in lesions:
        left, top, right, bottom = lesion.region.bounds
        low = node(None, 0, _box((left, top, right, bottom), 0.03), lesion.finding)
        for nest in lesion.nests:
            if not nest.annotated:
                continue
            mid = node(low, 1, _box(bounds(nest.outline), 0.04), nest.finding)
            for focus in nest.foci:
                if not focus.annotated:
                    continue
                high = node(mid, 2, _box(bounds(focus.outline), 0.06), focus.finding)
                paths.append(
                    {
                        "slide_id": source.slide_id,
                        "path_id": f"D{len(paths) + 1:02d}",
                        "node_ids": [low["node_id"], mid["node_id"], high["node_id"]],
                        "diagnosis": lesion.entity.diagnosis,
                        "category": lesion.entity.category,
                        "details": _details(lesion.entity, nest, focus),
                    }
                )
        if lesion.entity.category in {"malignant", "in situ"}:
            features.append(_feature(lesion.region, "tumour", (200, 0, 0)))
    features.extend(
        _feature(shapely.Polygon(outline.astype(float)).buffer(0), "lymphoid aggregate", (0, 0, 200))
        for outline in aggregates
    )
    return Annotations(nodes, paths, {"type": "FeatureCollection", "features": features})


def _box(extent: tuple[float, float, float, float], margin: float) -> list[int]:
    """The extent with a margin (share of each side), as whole level-0 px x, y, width, height."""
    left, top, right, bottom = extent
    pad_x, pad_y = margin * (right - left), margin * (bottom - top)
    x, y = int(np.floor(left - pad_x)), int(np.floor(top - pad_y))
    return [x, y, int(np.ceil(right + pad_x)) - x, int(np.ceil(bottom + pad_y)) - y]


def _inside(box: list[int], parent: list[int]) -> list[int]:
    """The part of `box` within `parent`."""
    x, y = max(box[0], parent[0]), max(box[1], parent[1])
    right = min(box[0] + box[2], parent[0] + parent[2])
    bottom = min(box[1] + box[3], parent[1] + parent[3])
    return [x, y, right - x, bottom - y]


def _feature(region: shapely.Polygon, name: str, colour: tuple[int, int, int]) -> dict[str, Any]:
    rounded = shapely.set_precision(region, 1)
    if rounded.geom_type != "Polygon":
        rounded = max(rounded.geoms, key=lambda part: part.area)
    return {
        "type": "Feature",
        "geometry": shapely.geometry.mapping(rounded),
        "properties": {"objectType": "annotation", "classification": {"name": name, "color": list(colour)}},
    }


_GRADES = {
    "pleomorphic": "high",
    "giant": "high",
    "comedo": "high",
    "mitoses": "intermediate",
    "necrosis": "intermediate",
}
"""Grades by focus, others low; so that no grade is much more frequent than the others."""


def _details(entity: Entity, nest: Nest, focus: Focus) -> dict[str, str | None]:
    tumour = entity.category in {"malignant", "in situ"}
    invasion = None
    if entity.category == "malignant":
        invasion = "lymphovascular invasion" if focus.name == "embolus" else "stromal invasion"
    elif entity.category == "in situ":
        invasion = "no invasion"
    grade = marker = None
    if tumour:
        grade = _GRADES.get(focus.name, "low")
        marker = "high proliferation" if focus.name == "mitoses" else "low proliferation"
    return {
        "subtype": entity.subtype,
        "invasion": invasion,
        "grade": grade,
        "marker": marker,
        "morphology": nest.name.replace("-", " "),
    }
