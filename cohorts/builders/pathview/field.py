"""What can be asked of one picture: its annotations with standard labels, after the protocol's filters.

PathView-Bench (section 3.2.2 and 3.2.3) drops annotations that are invalid, out of bounds, overlapping too much, of
zero area, of the background or not observable at the view, and does not print its thresholds. Those here are this
project's. What is dropped for a fault of its own is remembered by label: the true count of that label is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from wsigym.errors import CohortError, Fault

from .labels import Labels
from .marks import Drops, Marks, Outline
from .sources import Picture

__all__ = ["BACKGROUND", "GRID", "MIN_SIDE", "OVERLAP", "Field", "field_of"]

GRID = 1000
"""Boxes of answers are in thousandths of the picture's width and height."""

MIN_SIDE = 4
"""Thousandths: what is narrower cannot be seen, nor told in such coordinates."""

OVERLAP = 0.9
"""IoU above which two boxes are of one thing: the later is dropped, or both where their labels differ."""

OUTSIDE = 0.5
"""A part of a slide has an object if at least this share of its box is inside; others are no objects of it."""

SLACK_PX = 1.0
"""Some writers count the last pixel's far edge, some its near one; boxes may be this far out of bounds."""

BACKGROUND = -1


@dataclass(frozen=True)
class Field:
    """`labels` (n,) are places in `names`, the standard labels; `boxes` (n, 4) x1, y1, x2, y2 in annotation pixels from
    the picture's top left; `shown` (n, 4) the same in whole thousandths of its sides. `outlines` are known areas by
    place, in the pixels of `boxes`. `unsure` counts the dropped annotations of each label that may be real objects.
    `label` is the standard label of the whole picture, where it is given."""

    picture: Picture
    names: tuple[str, ...]
    labels: npt.NDArray[np.intp]
    boxes: npt.NDArray[np.float64]
    shown: npt.NDArray[np.intp]
    outlines: Mapping[int, Outline]
    unsure: Counter[str]
    label: str | None

    @property
    def size(self) -> tuple[float, float]:
        """(width, height) in the pixels of `boxes`."""
        return self.picture.box[2], self.picture.box[3]

    def counts(self) -> Counter[str]:
        """How many objects of each label it has."""
        found = np.bincount(self.labels, minlength=len(self.names))
        return Counter({name: int(count) for name, count in zip(self.names, found, strict=True) if count})

    def of(self, label: str) -> npt.NDArray[np.intp]:
        """The places of a label's objects."""
        return np.flatnonzero(self.labels == self.names.index(label))

    def shown_as(self, place: int) -> list[int]:
        """A box as answers have it."""
        return [int(value) for value in self.shown[place]]


def field_of(
    picture: Picture, marks: Marks, standard: npt.NDArray[np.intp], labels: Labels, label: str | None, drops: Drops
) -> Field:
    """The field of a picture. `standard` (raw labels of `marks`) are places in `labels.standard`, or `BACKGROUND`."""
    names = tuple(labels.standard)
    found = marks.of_image(marks.called(picture.annotated_as))
    boxes, scale = found.boxes, _scale(picture, found.frame)
    left, top, width, height = picture.box
    boxes = boxes * np.tile(scale, 2)
    beyond = (boxes[:, :2] < -SLACK_PX).any(axis=1) | (boxes[:, 2:] > np.add(picture.frame, SLACK_PX)).any(axis=1)
    boxes = boxes - [left, top, left, top]
    clipped = np.clip(boxes, 0, [width, height, width, height])
    inside = np.asarray((clipped[:, 2:] > clipped[:, :2]).all(axis=1))
    kinds = np.array([kind.kind == "cell" for kind in labels.standard.values()])
    place_of = standard[found.labels]
    shown = np.rint(clipped / [width, height, width, height] * GRID).astype(np.intp)
    sides = (shown[:, 2:] - shown[:, :2]).min(axis=1, initial=GRID)
    share = np.prod(clipped[:, 2:] - clipped[:, :2], axis=1) / np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    is_cell: npt.NDArray[np.bool_] = kinds[place_of] & (place_of != BACKGROUND)

    alive = np.ones(len(boxes), np.bool_)
    if picture.of_slide:  # what lies elsewhere on the slide is no fault
        alive &= inside | beyond
    unsure: Counter[str] = Counter()
    for raw, count in found.faulty.items():
        place = standard[marks.labels.index(raw)]
        if place != BACKGROUND:
            unsure[names[place]] += count

    def drop(which: Any, reason: str, *, is_doubt: bool = True) -> None:
        for row in np.flatnonzero(which & alive).tolist():
            where = marks.where(int(found.places[row]))
            drops.annotation(picture.source, picture.name, marks.labels[found.labels[row]], where, reason)
            if is_doubt and place_of[row] != BACKGROUND:
                unsure[names[place_of[row]]] += 1
        alive[which] = False

    drop(place_of == BACKGROUND, "background", is_doubt=False)
    drop(beyond, "its box is out of bounds")
    drop(~inside, "its box has no area inside the image")
    drop(is_cell & (picture.view == "slide"), "a cell is not observable on a macro view", is_doubt=False)
    drop(share < OUTSIDE, "more than half of it is outside of the view", is_doubt=False)
    drop(sides < MIN_SIDE, f"not observable: narrower than {MIN_SIDE} thousandths of the view")
    twins, rivals = _overlapping(clipped, place_of, alive)
    drop(twins, "overlaps another of its label too much", is_doubt=False)
    drop(rivals, "overlaps another label too much")
    kept = np.flatnonzero(alive)
    outlines = {
        place: _moved(found.outlines[row], scale, left, top)
        for place, row in enumerate(kept.tolist())
        if row in found.outlines
    }
    return Field(picture, names, place_of[kept], clipped[kept], shown[kept], outlines, unsure, label)


def _scale(picture: Picture, frame: tuple[float, float] | None) -> npt.NDArray[np.float64]:
    """From annotation pixels to the picture's: 1, unless a smaller copy of all of it was annotated."""
    if frame is None:
        return np.ones(2)
    scale = np.divide(picture.frame, frame)
    if max(scale) / min(scale) > 1.01:
        file, _, line = picture.where.rpartition(":")
        width, height = (f"{side:g}" for side in picture.frame)
        message = (
            f"{picture.name!r} is {width} x {height} px, but was annotated on {frame[0]:g} x {frame[1]:g} px, another "
            "shape; annotations are needed of the image itself"
        )
        raise CohortError([Fault(file or picture.where, int(line) if line.isdigit() else None, "image", message)])
    return scale


def _overlapping(
    boxes: npt.NDArray[np.float64], labels: npt.NDArray[np.intp], alive: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which are the later of two of one label, and which are among two of different labels, that overlap too much."""
    twins, rivals = np.zeros(len(boxes), np.bool_), np.zeros(len(boxes), np.bool_)
    rows = np.flatnonzero(alive)
    if len(rows) < 2:
        return twins, rivals
    shapes = shapely.box(*boxes[rows].T)
    first, second = rows[shapely.STRtree(shapes).query(shapes)]
    ordered = first < second
    first, second = first[ordered], second[ordered]
    low = np.maximum(boxes[first, :2], boxes[second, :2])
    high = np.minimum(boxes[first, 2:], boxes[second, 2:])
    both = np.prod(np.clip(high - low, 0, None), axis=1)
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    much = both > OVERLAP * (areas[first] + areas[second] - both)
    alike = labels[first] == labels[second]
    twins[second[much & alike]] = True
    rivals[first[much & ~alike]] = rivals[second[much & ~alike]] = True
    return twins, rivals


def _moved(outline: Outline, scale: npt.NDArray[np.float64], left: float, top: float) -> Outline:
    return [[[(x * scale[0] - left, y * scale[1] - top) for x, y in ring] for ring in polygon] for polygon in outline]
