"""Items with their answers as chats for supervised fine-tuning: JSONL, one item a line, of the train split alone.

    {"item_id", "suite", "task", "split": "train",
     "messages": [{"role": "user", "content": [{"type": "text", ...}, {"type": "image", ...}, ...]},
                  {"role": "assistant", "content": the answer as a reply}]}

An image part holds what the item holds of it (file; or slide_id, box in level-0 pixels, magnification; or tiles), or
with `images="files"` an `image`, a PNG beside the JSONL.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from wsigym.agents.messages import item_text
from wsigym.baselines.evidence_policies import in_words
from wsigym.cohorts import Asked, Cohort, ImageSpec
from wsigym.envs.item_images import item_image
from wsigym.errors import InvalidArgumentError, UnknownNameError

from .review import items_of

__all__ = ["ItemExport", "export_items"]

FORMATS, IMAGES = ("chat",), ("refs", "files")

IMAGE_PX = 1024
"""Longest side of an image that is written."""

TRAIN = "train"
KEPT_APART = ("patient", "case", "slide")


@dataclass(frozen=True)
class ItemExport:
    """What was written where."""

    path: Path
    items: int
    images: int


def export_items(
    name: str, cohort: Cohort, out: Path, *, split: str = TRAIN, form: str = "chat", images: str = "refs"
) -> ItemExport:
    """Write the train items of `SUITE` or `SUITE/TASK`; the file is written whole or not at all.

    Raises `InvalidArgumentError` for another split than train, whose items are there to test with; where there are no
    such items; and where a patient, case or slide of theirs is in val or test too.
    """
    if form not in FORMATS:
        raise UnknownNameError("format", form, FORMATS)
    if images not in IMAGES:
        raise UnknownNameError("form of images", images, IMAGES)
    if split != TRAIN:
        raise InvalidArgumentError(
            f"--split {split}: only train is exported; a model that learned from val or test cannot be tested there."
        )
    asked = items_of(cohort, name)
    chosen = [each for each in asked if each.item.split == TRAIN]
    if not chosen:
        raise InvalidArgumentError(f"no item of {name} is in split train; `wsigym items build` puts them into splits.")
    _check_apart(items_of(cohort, name.partition("/")[0]), chosen)
    pictures = _Pictures(cohort, out.with_name(f"{out.stem}-images")) if images == "files" else None
    aside = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("w", encoding="utf-8") as file:
            for each in chosen:
                file.write(json.dumps(_chat(each, pictures), ensure_ascii=False) + "\n")
        aside.replace(out)
    except OSError as error:
        raise InvalidArgumentError(
            f"{out} cannot be written ({error.strerror or error}); choose another --out."
        ) from None
    finally:
        aside.unlink(missing_ok=True)
    return ItemExport(out, len(chosen), 0 if pictures is None else pictures.written)


def _check_apart(asked: Sequence[Asked], chosen: Sequence[Asked]) -> None:
    """Nothing that is learned from may be tested on."""
    train = {(kind, each.item.group[kind]) for each in chosen for kind in each.item.group if kind in KEPT_APART}
    for each in asked:
        shared = train & set(each.item.group.items()) if each.item.split in ("val", "test") else set()
        if shared:
            kind, value = sorted(shared)[0]
            raise InvalidArgumentError(
                f"{kind} {value!r} of train items is in split {each.item.split} too (item {each.item.item_id!r} of "
                f"{each.item.task}); build the items anew, so that splits share nothing."
            )


def _chat(asked: Asked, pictures: _Pictures | None) -> dict[str, Any]:
    item = asked.item
    content: list[dict[str, Any]] = []
    for number, image in enumerate(item.images, start=1):
        content.append({"type": "text", "text": f"Image {number}:"})
        content.append(
            {"type": "image", **(_fields(image) if pictures is None else {"image": pictures.file_of(image)})}
        )
    content.append({"type": "text", "text": item_text(item.text, item.options, item.answer.words)})
    answer = in_words(item.answer.kind, asked.reference.answer)
    return {
        "item_id": item.item_id,
        "suite": item.suite,
        "task": item.task,
        "split": item.split,
        "messages": [{"role": "user", "content": content}, {"role": "assistant", "content": answer}],
    }


def _fields(image: ImageSpec) -> dict[str, Any]:
    fields: dict[str, Any] = image.model_dump(mode="json", exclude_defaults=True)
    return fields


class _Pictures:
    """The images of items as PNG files, each once."""

    def __init__(self, cohort: Cohort, folder: Path) -> None:
        self._cohort, self._folder = cohort, folder
        self._known: dict[ImageSpec, str] = {}

    @property
    def written(self) -> int:
        return len(self._known)

    def file_of(self, image: ImageSpec) -> str:
        """The file's path from the JSONL."""
        if image not in self._known:
            digest = hashlib.sha256(json.dumps(_fields(image), sort_keys=True).encode()).hexdigest()[:16]
            self._folder.mkdir(parents=True, exist_ok=True)
            pixels = item_image(self._cohort, image, IMAGE_PX).image
            Image.fromarray(np.ascontiguousarray(pixels)).save(self._folder / f"{digest}.png")
            self._known[image] = f"{self._folder.name}/{digest}.png"
        return self._known[image]
