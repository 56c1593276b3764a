"""Cohorts with annotated images for tests of PathView: `pathview/` folders made in code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image
from slides_builder import noise

LABELS = """\
background = ["glass"]

[standard."tumour cell"]
kind = "cell"
raw = ["T"]
aliases = ["neoplastic cell"]
organ_agnostic = true

[standard.lymphocyte]
kind = "cell"
raw = ["L"]
organ_agnostic = true

[standard.hepatocyte]
kind = "cell"
raw = ["H"]

[standard.gland]
kind = "structure"
raw = ["G"]
organ_agnostic = true

[standard.tumour]
kind = "lesion"
raw = ["lesion"]
"""

SIDE = 200
"""Pixels of a test image's side: five thousandths each."""


def build_sources(
    folder: Path, sources: str, files: Mapping[str, str] = {}, *, labels: str = LABELS, images: Sequence[str] = ("a",)
) -> Path:
    """A cohort without slides whose `pathview/` holds the sources, the labels, text files and PNG images of noise."""
    home = folder / "pathview"
    home.mkdir(parents=True, exist_ok=True)
    if not (folder / "cohort.json").exists():
        manifest: dict[str, Any] = {"format": "wsigym-cohort/1", "name": "c", "slides": []}
        (folder / "cohort.json").write_text(json.dumps(manifest))
    (home / "sources.toml").write_text(sources, encoding="utf-8")
    (home / "labels.toml").write_text(labels, encoding="utf-8")
    for name, text in files.items():
        (home / name).write_text(text, encoding="utf-8")
    for place, name in enumerate(images):
        Image.fromarray(noise(SIDE, SIDE, place)).save(home / f"{name}.png")
    return folder


def source(name: str = "s", view: str = "region", form: str = "csv", **more: Any) -> str:
    """One entry of sources.toml; annotations and images have names of their own unless `more` says otherwise."""
    fields = {
        "name": name,
        "view": view,
        "format": form,
        "annotations": "pathview/boxes.csv",
        "images": "pathview/*.png",
        "organ": "liver",
        **more,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in fields.items() if value is not None and key != "classes"]
    classes = (
        [f"classes = {{ {', '.join(f'{k} = {json.dumps(v)}' for k, v in more['classes'].items())} }}"]
        if "classes" in more
        else []
    )
    return "\n".join(["[[source]]", *lines, *classes, ""])


def boxes(*rows: tuple[str, str, float, float, float, float]) -> str:
    """A table of boxes: image, label, x1, y1, x2, y2."""
    return "image,label,x1,y1,x2,y2\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
