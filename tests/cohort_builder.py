"""Tiny cohorts on disk for tests, made in code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from slides_builder import noise, write_slide

SLIDE_PX = 2048
APERIO_40X = "|AppMag = 40|MPP = 0.25"

NODES: tuple[dict[str, Any], ...] = (
    {"node_id": "a", "parent_id": None, "magnification": 2.5, "box": [200, 100, 1201, 1100], "finding": "crowded"},
    {"node_id": "a-1", "parent_id": "a", "magnification": 10, "box": [300, 200, 401, 300], "finding": "glands"},
    {"node_id": "a-2", "parent_id": "a", "magnification": 10, "box": [900, 700, 350, 420], "finding": "glands"},
    {"node_id": "a-1-1", "parent_id": "a-1", "magnification": 40, "box": [310, 333, 97, 83], "finding": "mitosis"},
    {"node_id": "b", "parent_id": None, "magnification": 2.5, "box": [64, 1200, 900, 700], "finding": "necrosis"},
    {"node_id": "b-1", "parent_id": "b", "magnification": 10, "box": [600, 1500, 257, 301], "finding": "debris"},
)
"""Two roots, two valid boxes for one query at 10x, one node at 40x: five queries a slide."""

PATHS: tuple[dict[str, Any], ...] = (
    {"path_id": "p", "node_ids": ["a", "a-1", "a-1-1"], "diagnosis": "carcinoma", "category": "malignant"},
    {"path_id": "q", "node_ids": ["b", "b-1"], "diagnosis": "necrosis"},
)


def build_cohort(
    folder: Path,
    *,
    slides: Sequence[Mapping[str, Any]] = ({"slide_id": "s1"}, {"slide_id": "s2"}),
    nodes: Iterable[Mapping[str, Any]] | None = None,
    paths: Iterable[Mapping[str, Any]] | None = None,
    pixels: bool = True,
    name: str = "tiny",
) -> Path:
    """Write a cohort and, with `pixels`, its slides: 40x, 2,048 px a side, levels 1, 4 and 16, each seeded apart.

    A slide needs only its `slide_id`. Nodes and paths may leave out `slide_id`: they then stand on every slide; `NODES`
    and `PATHS` by default.
    """
    folder.mkdir(parents=True, exist_ok=True)
    entries = [{"path": f"{slide['slide_id']}.svs", **slide} for slide in slides]
    if pixels:
        for seed, entry in enumerate(entries):
            image = noise(SLIDE_PX, SLIDE_PX, seed)
            write_slide(folder / entry["path"], image, tile_px=256, compression="jpeg", aperio=APERIO_40X)
    manifest = {"format": "wsigym-cohort/1", "name": name, "slides": entries}
    (folder / "cohort.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    ids = [entry["slide_id"] for entry in entries]
    write_lines(folder / "nodes.jsonl", _on_slides(NODES if nodes is None else nodes, ids))
    write_lines(folder / "paths.jsonl", _on_slides(PATHS if paths is None else paths, ids))
    return folder


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _on_slides(lines: Iterable[Mapping[str, Any]], slide_ids: Iterable[str]) -> list[dict[str, Any]]:
    kept = [dict(line) for line in lines]
    return [
        {"slide_id": slide_id, **line}
        for slide_id in slide_ids
        for line in kept
        if line.get("slide_id", slide_id) == slide_id
    ]
