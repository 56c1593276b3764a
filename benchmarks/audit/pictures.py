"""Pictures of an audit, each read once: a small grey square to compare, and the texts that its file holds.

Files of images are decoded no larger than is needed where the format can; boxes of slides are read at the pyramid level
that is near.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image

from wsigym.cohorts import Asked, Cohort, ImageSpec
from wsigym.cohorts.item_files import NOT_AN_IMAGE
from wsigym.cohorts.transparency import on_white
from wsigym.envs.item_images import item_image
from wsigym.errors import SlideError, UnknownNameError

from .embedded import texts_in
from .hashing import SIDE_PX, alike, flat

__all__ = ["PICTURE_SUFFIXES", "Key", "Pictures", "Progress", "pictures_of", "pictures_under", "plain"]

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".gif")

MAX_SIDE_PX = 2 * SIDE_PX
"""Read at about this size, then shrunk by area, so that neither the file's nor the slide's way of shrinking matters."""

Progress = Callable[[int, int], None]
Key = ImageSpec | str
"""A picture of an item, or the path of one in a corpus."""


@dataclass
class Pictures:
    """`grey` (n, side, side) of the pictures `keys`; `blank` ones and `unreadable` ones (with the reason) have none.

    `texts` are what files hold beside their pixels, by name of where it stands.
    """

    keys: list[Key] = field(default_factory=list)
    grey: npt.NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, SIDE_PX, SIDE_PX), np.float32))
    blank: list[Key] = field(default_factory=list)
    unreadable: dict[Key, str] = field(default_factory=dict)
    texts: dict[Key, Mapping[str, str]] = field(default_factory=dict)

    @cached_property
    def same(self) -> list[list[Key]]:
        """Groups of two pictures or more that show the same."""
        groups: dict[int, list[int]] = {}
        for first, other in alike(self.grey):
            groups.setdefault(first, [first]).append(other)
        return [[self.keys[place] for place in places] for places in groups.values()]


def pictures_of(cohort: Cohort, asked: Iterable[Asked], progress: Progress | None = None) -> Pictures:
    """Every picture that items show, each once whatever its magnification is said to be."""
    specs: dict[ImageSpec, None] = {}
    for each in asked:
        for image in each.item.images:
            for part in image.parts:
                specs.setdefault(plain(part))
    return _read_all(list(specs), lambda spec: _read_part(cohort, spec), progress)


def pictures_under(folder: Path, progress: Progress | None = None) -> tuple[Pictures, list[str]]:
    """The pictures of a folder and those below, by their path in it; and the files that are no pictures by name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [path.relative_to(folder).as_posix() for path in files]
    pictures = [name for name in names if name.lower().endswith(PICTURE_SUFFIXES)]
    found = _read_all(pictures, lambda name: _read_file(folder / str(name)), progress)
    return found, [name for name in names if not name.lower().endswith(PICTURE_SUFFIXES)]


def plain(spec: ImageSpec) -> ImageSpec:
    """The part without what does not change its pixels: the magnification said of a file."""
    return spec if spec.file is None else ImageSpec(file=spec.file)


Read = tuple[npt.NDArray[np.float32], Mapping[str, str]]


def _read_all(keys: Sequence[Key], read: Callable[[Key], Read | str], progress: Progress | None) -> Pictures:
    found, greys = Pictures(), []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done, (key, result) in enumerate(zip(keys, pool.map(read, keys), strict=True), 1):
            if isinstance(result, str):
                found.unreadable[key] = result
            else:
                grey, texts = result
                if texts:
                    found.texts[key] = texts
                if flat(grey):
                    found.blank.append(key)
                else:
                    found.keys.append(key)
                    greys.append(grey)
            if progress is not None:
                progress(done, len(keys))
    if greys:
        found.grey = np.stack(greys)
    return found


def _read_part(cohort: Cohort, spec: Key) -> Read | str:
    assert isinstance(spec, ImageSpec)
    if spec.file is not None:
        return cohort.outside(spec.file) or _read_file(cohort.root / spec.file)
    try:
        return _small(cv2.cvtColor(item_image(cohort, spec, MAX_SIDE_PX).image, cv2.COLOR_RGB2GRAY)), {}
    except (SlideError, UnknownNameError) as error:
        return str(error)


def _read_file(path: Path) -> Read | str:
    if not path.is_file():
        return "is no file"
    try:
        with Image.open(path) as image:
            image.draft("L", (MAX_SIDE_PX, MAX_SIDE_PX))
            image.load()  # a PNG's text may stand behind its pixels
            return _small(np.asarray(on_white(image).convert("L"))), texts_in(image)
    except NOT_AN_IMAGE as error:
        return f"cannot be read as an image ({error})"


def _small(grey: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    small = cv2.resize(grey.astype(np.float32), (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.float32)
