"""Fields of a slide at 40x in which every nucleus is annotated, as the tables that PathView's items are built from.

    pathview/fields/<slide_id>.csv    image, slide_id, x, y, width, height: some fields where something was found, and
                                      some anywhere in tissue
    pathview/nuclei/<slide_id>.csv    image, label, x, y, width, height: the nuclei in them, in level-0 pixels

A nucleus' box is the extent of its darker half in the sprite that was stamped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .scene import NORMAL, Scene
from .sprites import KINDS, ROTATIONS, VARIANTS, sprites

__all__ = ["LABELS", "SOURCES", "write_fields"]

FIELD_PX = 512
ELSEWHERE = 3
"""Fields anywhere in tissue."""

SOURCES = """\
[[source]]
name = "fields"
view = "region"
format = "csv"
annotations = "pathview/nuclei/*.csv"
images = "pathview/fields/*.csv"
magnification = 40

[[source]]
name = "slides"
view = "slide"
format = "geojson"
annotations = "regions/*.geojson"
"""

LABELS = """\
background = ["debris"]

[standard."tumour cell"]
kind = "cell"
raw = ["atypical", "pleomorphic", "giant", "bland", "stratified"]
aliases = ["neoplastic cell", "tumor cell", "cancer cell"]
organ_agnostic = true

[standard."lymphocyte"]
kind = "cell"
aliases = ["lymphoid cell"]
organ_agnostic = true

[standard."plasma cell"]
kind = "cell"
raw = ["plasma"]
organ_agnostic = true

[standard."stromal cell"]
kind = "cell"
raw = ["spindle"]
aliases = ["spindle cell", "fibroblast"]
organ_agnostic = true

[standard."epithelial cell"]
kind = "cell"
raw = ["columnar", "cuboidal"]
organ_agnostic = true

[standard."squamous cell"]
kind = "cell"
raw = ["squamous"]

[standard."hepatocyte"]
kind = "cell"

[standard."vesicular cell"]
kind = "cell"
raw = ["vesicular"]
aliases = ["cell with a vesicular nucleus"]
organ_agnostic = true

[standard."mitotic figure"]
kind = "cell"
raw = ["mitosis"]
aliases = ["mitosis"]
organ_agnostic = true

[standard."histiocyte"]
kind = "cell"
aliases = ["macrophage"]
organ_agnostic = true

[standard."tumour"]
kind = "lesion"
aliases = ["tumor", "neoplasm"]

[standard."lymphoid aggregate"]
kind = "structure"
aliases = ["lymphoid follicle"]
"""


def write_fields(
    folder: Path, slide_id: str, scene: Scene, nodes: Sequence[dict[str, Any]], seed: Sequence[int]
) -> None:
    """Write the two tables of a slide; `seed` is of the fields anywhere, and of nothing else."""
    corners = _corners(scene, nodes, np.random.default_rng(seed))
    fields = ["image,slide_id,x,y,width,height"]
    for number, (left, top) in enumerate(corners, 1):
        fields.append(f"{slide_id}-F{number:02d},{slide_id},{left},{top},{FIELD_PX},{FIELD_PX}")
    nuclei = ["image,label,x,y,width,height"]
    drawn = scene.all_nuclei()
    extents = _extents()
    boxes = extents[drawn.sprite] + np.stack([drawn.x, drawn.y, drawn.x, drawn.y], axis=1)
    within = np.zeros(len(boxes), np.bool_)
    for left, top in corners:
        within |= (
            (boxes[:, 2] > left)
            & (boxes[:, 0] < left + FIELD_PX)
            & (boxes[:, 3] > top)
            & (boxes[:, 1] < top + FIELD_PX)
        )
    within &= (boxes[:, :2] >= 0).all(axis=1) & (boxes[:, 2:] <= scene.size).all(axis=1)
    within &= boxes[:, 2] > boxes[:, 0]  # goblets have no nucleus
    for row in np.flatnonzero(within).tolist():
        x1, y1, x2, y2 = boxes[row].tolist()
        name = KINDS[int(drawn.sprite[row]) // (VARIANTS * ROTATIONS)].name
        nuclei.append(f"{slide_id},{name},{x1},{y1},{x2 - x1},{y2 - y1}")
    for kind, lines in (("fields", fields), ("nuclei", nuclei)):
        path = folder / "pathview" / kind / f"{slide_id}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _corners(scene: Scene, nodes: Sequence[dict[str, Any]], rng: np.random.Generator) -> list[tuple[int, int]]:
    """The top left corners of fields that do not overlap: around the 40x nodes, then anywhere in normal tissue."""
    most = scene.size - FIELD_PX
    wanted = [
        (node["box"][0] + node["box"][2] // 2 - FIELD_PX // 2, node["box"][1] + node["box"][3] // 2 - FIELD_PX // 2)
        for node in nodes
        if node["magnification"] == 40
    ]
    points = rng.uniform(0, most, (200, 2)).astype(np.float32)
    normal = points[scene.owners(points + np.float32(FIELD_PX / 2)) == NORMAL]
    found: list[tuple[int, int]] = []
    for x, y in wanted:
        _add(found, x, y, most)
    enough = len(found) + ELSEWHERE
    for x, y in normal.astype(int).tolist():
        if len(found) < enough:
            _add(found, x, y, most)
    return found


def _add(found: list[tuple[int, int]], x: int, y: int, most: int) -> None:
    """Add a corner, moved inside the slide, unless its field overlaps another."""
    corner = min(max(x, 0), most), min(max(y, 0), most)
    if all(max(abs(corner[0] - left), abs(corner[1] - top)) >= FIELD_PX for left, top in found):
        found.append(corner)


@lru_cache(maxsize=1)
def _extents() -> NDArray[np.int64]:
    """x1, y1, x2, y2 of each sprite's nucleus from its centre; all 0 for one without."""
    found = np.zeros((len(sprites()), 4), np.int64)
    for place, sprite in enumerate(sprites()):
        dark = sprite.nucleus > sprite.nucleus.max() / 2
        if sprite.nucleus.max() == 0:
            continue
        half = sprite.nucleus.shape[0] // 2
        columns, rows = np.flatnonzero(dark.any(axis=0)), np.flatnonzero(dark.any(axis=1))
        found[place] = columns[0] - half, rows[0] - half, columns[-1] + 1 - half, rows[-1] + 1 - half
    return found
