"""Tiny cohorts with tumour regions for tests of exploration, made in code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from shapely import Polygon, box
from shapely.geometry import mapping
from slides_builder import write_slide

SLIDE_PX = 2048
TILE_PX = 32
"""Sides of 512, 128 and 32 level-0 px at 2.5x, 10x and 40x: 4 x 4, 16 x 16 and 64 x 64 tiles a slide."""

TISSUE, TUMOUR, WHITE = (230, 160, 200), (120, 60, 160), (255, 255, 255)

TUMOUR_BOXES = ((100, 100, 420, 300), (1100, 1100, 1300, 1250))
"""Left, top, right, bottom of the tumour on `tumour` slides."""


def write_tumour_slide(
    path: Path,
    tumour: Sequence[tuple[int, int, int, int]] = TUMOUR_BOXES,
    tissue: Sequence[tuple[int, int, int, int]] = ((0, 0, 1400, 2048),),
    size: int = SLIDE_PX,
    mpp: float = 0.25,
    seed: int = 0,
) -> Path:
    """White, with pink tissue and purple tumour boxes; noise of a few grey levels makes every tile its own."""
    image = np.full((size, size, 3), WHITE, np.int16)
    for boxes, colour in ((tissue, TISSUE), (tumour, TUMOUR)):
        for left, top, right, bottom in boxes:
            image[top:bottom, left:right] = colour
    image += np.random.default_rng(seed).integers(-4, 5, image.shape, dtype=np.int16)
    return write_slide(path, np.clip(image, 0, 255).astype(np.uint8), tile_px=256, mpp=mpp)


def write_regions(folder: Path, slide_id: str, areas: Sequence[Polygon], name: str = "tumour") -> None:
    (folder / "regions").mkdir(exist_ok=True)
    features = [
        {"type": "Feature", "geometry": mapping(area), "properties": {"classification": {"name": name}}}
        for area in areas
    ]
    content = {"type": "FeatureCollection", "features": features}
    (folder / "regions" / f"{slide_id}.geojson").write_text(json.dumps(content), encoding="utf-8")


def build_tumour_cohort(folder: Path, slides: Sequence[Mapping[str, Any]] | None = None) -> Path:
    """Write a cohort of a slide with tumour and one without, or of the `slides` named, without pixels."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = slides
    if entries is None:
        entries = [{"slide_id": "positive", "patient_id": "p1"}, {"slide_id": "negative", "patient_id": "p2"}]
        write_tumour_slide(folder / "positive.tiff")
        write_regions(folder, "positive", [box(*corners) for corners in TUMOUR_BOXES])
        write_tumour_slide(folder / "negative.tiff", tumour=(), seed=1)
    manifest = {
        "format": "wsigym-cohort/1",
        "name": "tumours",
        "slides": [{"path": f"{entry['slide_id']}.tiff", **entry} for entry in entries],
    }
    (folder / "cohort.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder
