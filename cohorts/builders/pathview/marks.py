"""The annotations of one source, in columns: 38 bytes each, whatever their files look like.

A reader adds them in any order; then those of one image are given out at a time. What is dropped on the way is written
to a log with its reason, one line each, and only counted here.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

from .faults import Faults

__all__ = ["Drops", "Marks", "MarksOfImage", "Outline"]

Outline: TypeAlias = Sequence[Sequence[Sequence[tuple[float, float]]]]
"""Polygons that together are an area: each its outer ring, then its holes; rings of (x, y) in annotation pixels."""

MAX_LABELS = 65_535


class Drops(Protocol):
    """Where dropped annotations and items are told."""

    def annotation(self, source: str, image: str, label: str, where: str, reason: str) -> None:
        """An annotation that is in no item."""

    def item(self, task: str, source: str, image: str, label: str, reason: str) -> None:
        """An item that would have been asked."""


@dataclass(frozen=True)
class MarksOfImage:
    """The annotations of one image in the order of their files: `labels` (n,) are places in `Marks.labels`, `boxes`
    (n, 4) are x1, y1, x2, y2 in annotation pixels, `places` (n,) are those that `Marks.where` takes. `outlines` has
    those that are known, by place here; `faulty` counts annotations whose box could not be read, by label. `frame` is
    the (width, height) in pixels of what was annotated, None where the files do not say it."""

    labels: npt.NDArray[np.uint16]
    boxes: npt.NDArray[np.float64]
    places: npt.NDArray[np.intp]
    outlines: dict[int, Outline]
    faulty: Counter[str]
    frame: tuple[float, float] | None


class Marks:
    """Annotations of the images of one source."""

    def __init__(self, source: str, drops: Drops) -> None:
        self.source = source
        self.unusable = Faults()
        """Annotations dropped because their box or outline is none: a build goes on without them, a check tells them.
        """
        self.labels: list[str] = []
        """Raw labels, by the places that annotations name."""
        self.first: list[str] = []
        """Where each of them stands first, as file and row."""
        self._drops = drops
        self._label_of: dict[str, int] = {}
        self._image_of: dict[str, int] = {}
        self._images = array("i")
        self._labels = array("H")
        self._boxes = array("d")
        self._rows = array("i")
        self._files: list[str] = []
        self._starts: list[int] = []  # of each file its first annotation
        self._outlines: dict[int, Outline] = {}
        self._faulty: dict[str, Counter[str]] = {}
        self._frames: dict[str, tuple[float, float]] = {}
        self._order: npt.NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self._labels)

    def add(
        self,
        file: str,
        row: int,
        image: str,
        label: str,
        box: tuple[float, float, float, float],
        outline: Outline | None = None,
    ) -> str | None:
        """Add an annotation from a row, or a place in a list, of a file. One without area is dropped; so is one whose
        numbers make no box, and why is returned."""
        x1, y1, x2, y2 = box
        why = None
        if not math.isfinite(x1 + y1 + x2 + y2):
            why = "its box is not finite"
            self.drop(file, row, image, label, why)
        elif x1 > x2 or y1 > y2:
            why = "its box has a negative side"
            self.drop(file, row, image, label, why)
        elif x1 == x2 or y1 == y2:
            self.drop(file, row, image, label, "its box has no area")
        else:
            if outline is not None:
                self._outlines[len(self._labels)] = outline
            self._images.append(self._image_of.setdefault(image, len(self._image_of)))
            self._labels.append(self._place_of(label, file, row))
            self._boxes.extend((x1, y1, x2, y2))
            self._rows.append(row)
            if not self._files or self._files[-1] != file:
                self._files.append(file)
                self._starts.append(len(self) - 1)
        return why

    def where(self, place: int) -> str:
        """The file and row of an annotation."""
        return _place(self._files[bisect_right(self._starts, place) - 1], self._rows[place])

    def frame(self, image: str, width: float, height: float) -> None:
        """Say how large the image was when it was annotated, in annotation pixels."""
        self._frames[image] = (width, height)

    def drop(self, file: str, row: int, image: str, label: str, reason: str) -> None:
        """Tell of an annotation that cannot be used."""
        self._place_of(label, file, row)
        self._faulty.setdefault(image, Counter())[label] += 1
        self._drops.annotation(self.source, image, label, _place(file, row), reason)

    def _place_of(self, label: str, file: str, row: int) -> int:
        place = self._label_of.get(label)
        if place is None:
            place = self._label_of[label] = len(self.labels)
            self.labels.append(label)
            self.first.append(_place(file, row))
            if place > MAX_LABELS:
                raise InvalidArgumentError(f"source {self.source!r} has more than {MAX_LABELS:,} raw labels.")
        return place

    @property
    def images(self) -> Iterator[str]:
        """The names of the images that something is annotated on."""
        yield from dict.fromkeys([*self._image_of, *self._faulty])

    def called(self, names: Sequence[str]) -> str:
        """The first of the names that something is annotated under; the first of all where nothing is."""
        return next((name for name in names if name in self._image_of or name in self._faulty), names[0])

    def of_image(self, image: str) -> MarksOfImage:
        """The annotations of an image; none where it has none."""
        if self._order is None:
            images = np.frombuffer(self._images, np.intc) if len(self) else np.zeros(0, np.intc)
            self._order = np.argsort(images, kind="stable")
            self._bounds = np.searchsorted(images[self._order], np.arange(len(self._image_of) + 1))
        faulty, frame = self._faulty.get(image, Counter()), self._frames.get(image)
        place = self._image_of.get(image)
        if place is None:
            empty = np.zeros(0, np.intp)
            return MarksOfImage(empty.astype(np.uint16), np.zeros((0, 4)), empty, {}, faulty, frame)
        chosen = self._order[self._bounds[place] : self._bounds[place + 1]]
        labels = np.frombuffer(self._labels, np.uint16)[chosen]
        boxes = np.frombuffer(self._boxes, np.float64).reshape(-1, 4)[chosen]
        outlines = (
            {place: self._outlines[at] for place, at in enumerate(chosen.tolist()) if at in self._outlines}
            if self._outlines
            else {}
        )
        return MarksOfImage(labels, boxes, chosen, outlines, faulty, frame)


def _place(file: str, row: int) -> str:
    return f"{file}:{row}"
