"""The rules of the eight tasks on regions: from a field and a target to a question, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .field import Field
from .questions import (
    BOXES,
    CHOOSE,
    COUNT,
    INSUFFICIENT,
    QUADRANTS,
    TERMS,
    Asking,
    NotAskedError,
    Question,
    in_words,
    quadrant_of,
)

__all__ = [
    "classify_object",
    "classify_region",
    "count_objects",
    "densest_quadrant",
    "describe",
    "ground",
    "nearest",
    "trap",
]

DOMINANT_MARGIN = 0.8
"""A category is dominant where the next has at most this share of its objects; between it and 1 is the borderline."""

MAIN_SHARE = 0.05
"""A main object is of a category that has at least this share of all objects."""

MIXED = 0.5
"""A box is of no single category where an object of another covers more than this share of it."""


def certain(field: Field, target: str) -> None:
    """Raise `NotAskedError` where annotations of the target were dropped: all of them are asked about."""
    if field.unsure[target]:
        raise NotAskedError("annotations of the target were dropped")


def ground(field: Field, asking: Asking, target: str) -> Question:
    """OGD: all boxes of an object."""
    certain(field, target)
    boxes = [field.shown_as(place) for place in field.of(target).tolist()]
    return Question(f"Locate all objects of this category: {target}.", BOXES, boxes)


def classify_region(field: Field, asking: Asking, _: str) -> Question:
    """RCL: the dominant category, the picture's own label where it has one."""
    if field.label is not None:
        right = field.label
        notes: dict[str, object] = {"rule": "label of the image"}
    else:
        (right, most), *rest = [*field.counts().most_common(), ("", 0)]
        second = rest[0][1]
        if not most:
            raise NotAskedError("there is no object")
        if second > DOMINANT_MARGIN * most:
            raise NotAskedError("borderline: no category is dominant")
        if second + field.unsure.total() > DOMINANT_MARGIN * most:
            raise NotAskedError("annotations that may change the dominant category were dropped")
        notes = {"rule": "counts", **field.counts()}
    text = "Which category best describes the predominant finding in this image?"
    return Question(text, CHOOSE, right, asking.choices(right, asking.categories(field)), notes=notes)


def classify_object(field: Field, asking: Asking, _: str) -> Question:
    """OCL: the category inside a given box: the category that was right least often so far, so that the commonest is
    not right as often as it is common, and of its objects that are alone in their box one by lot."""
    if field.unsure and field.picture.view == "slide":
        raise NotAskedError("annotations that may lie in the box were dropped")
    place = next((place for place in _by_category(field, asking) if _is_alone(field, place)), None)
    if place is None:
        raise NotAskedError("every object shares its box with another category")
    right, box = field.names[field.labels[place]], field.shown_as(place)
    text = f"Which category best describes the predominant finding in the region {in_words(box)}?"
    return Question(text, CHOOSE, right, asking.choices(right, asking.categories(field)), asked_box=box)


def _by_category(field: Field, asking: Asking, most: int | None = None) -> Iterator[int]:
    """The objects of one category after the other, as often right as they were so far, then by lot; `most` of each."""
    for name in asking.evenly.seldom_right(asking.shuffled(sorted(field.counts()), "category")):
        yield from asking.shuffled(field.of(name).tolist(), "object")[:most]


def _is_alone(field: Field, place: int) -> bool:
    """Whether no object of another category covers more than `MIXED` of the box of this one."""
    box = field.boxes[place]
    rivals = field.boxes[field.labels != field.labels[place]]
    sides = np.minimum(rivals[:, 2:], box[2:]) - np.maximum(rivals[:, :2], box[:2])
    covered = np.prod(np.clip(sides, 0, None), axis=1)
    return not bool((covered > MIXED * np.prod(box[2:] - box[:2])).any())


def count_objects(field: Field, asking: Asking, target: str) -> Question:
    """OCN: how many objects of a category there are."""
    certain(field, target)
    places = field.of(target).tolist()
    text = f"How many objects of this category are present in the image: {target}?"
    return Question(text, COUNT, len(places), boxes=tuple(map(field.shown_as, places)))


def describe(field: Field, asking: Asking, _: str) -> Question:
    """RDS: the standard terms of the main objects."""
    counts = field.counts()
    terms = [name for name in field.names if counts[name] >= MAIN_SHARE * counts.total() and counts[name]]
    if not terms:
        raise NotAskedError("there is no object")
    return Question("Describe what is in the image: name its main objects.", TERMS, terms, notes=dict(counts))


def densest_quadrant(field: Field, asking: Asking, target: str) -> Question:
    """DLO of a region: the quadrant with most centres of boxes."""
    certain(field, target)
    places = field.of(target)
    counts = np.bincount(quadrant_of(field, places), minlength=len(QUADRANTS))
    return quadrant_question(field, target, int(single(counts, "the count")), {"counts": counts.tolist()})


def single(values: npt.NDArray[Any], of: str) -> int:
    """The place of the largest value. Raises `NotAskedError` where it is not the only one."""
    best = np.flatnonzero(values == values.max())
    if len(best) > 1:
        raise NotAskedError(f"not unique: {of} of several quadrants is the largest")
    return int(best[0])


def quadrant_question(field: Field, target: str, right: int, notes: dict[str, object]) -> Question:
    """The question of both tasks on density."""
    return Question(
        f"Which quadrant contains the densest distribution of this category: {target}?",
        CHOOSE,
        QUADRANTS[right],
        (*QUADRANTS, INSUFFICIENT),
        ordered=True,
        boxes=tuple(map(field.shown_as, field.of(target).tolist())),
        notes=notes,
    )


def nearest(field: Field, asking: Asking, _: str) -> Question:
    """SPR: the category nearest to a given box, edge to edge in pixels; ties and overlaps with two are dropped.

    What is to be the nearest is chosen as in `classify_object`; the given box is the one next to an object of it.
    """
    if field.unsure:
        raise NotAskedError("annotations that may be the nearest were dropped")
    if len(np.unique(field.labels)) < 2:
        raise NotAskedError("there are not two categories")
    for wanted in _by_category(field, asking, TRIES):
        place = int(_distances(field, wanted).argmin())
        distance = _distances(field, place)
        by_label = np.full(len(field.names), np.inf)
        np.minimum.at(by_label, field.labels, distance)
        best = np.flatnonzero(np.isclose(by_label, by_label.min(), rtol=0, atol=TIE_PX))
        if best.tolist() == [field.labels[wanted]]:
            break
    else:
        raise NotAskedError("not unique: two categories are equally near")
    right, box = field.names[best[0]], field.shown_as(place)
    here = [field.names[label] for label in np.unique(field.labels)]
    others = here if len(here) > 3 else [*here, *(name for name in asking.categories(field) if name not in here)]
    nearest_box = field.shown_as(int(np.argmin(np.where(field.labels == best[0], distance, np.inf))))
    text = f"The box {in_words(box)} marks a region. Which category is nearest to it?"
    notes = {"distance_px": round(float(by_label[best[0]]), 2)}
    options = asking.choices(right, others)
    return Question(text, CHOOSE, right, options, asked_box=box, boxes=(nearest_box,), notes=notes)


def _distances(field: Field, place: int) -> npt.NDArray[np.float64]:
    """(n,) from the edge of one object's box to those of the others; infinite to itself."""
    gaps = np.maximum(field.boxes[place, :2] - field.boxes[:, 2:], field.boxes[:, :2] - field.boxes[place, 2:])
    distance: npt.NDArray[np.float64] = np.hypot(*np.clip(gaps, 0, None).T)
    distance[place] = np.inf
    return distance


TRIES = 8
"""Objects of a category that are tried as the nearest, in the lot's order."""

TIE_PX = 0.5
"""Distances closer than this are equal: annotations are no more exact."""


def trap(field: Field, asking: Asking, _: str) -> Question:
    """RFT: the organ of a field whose objects look alike in every organ cannot be told."""
    organ = field.picture.organ
    if organ is None:
        raise NotAskedError("its organ is not known, so that it would not be among the options")
    names = {field.label} if field.label is not None else set(field.counts())
    if not names:
        raise NotAskedError("there is no object")
    if not all(asking.labels.standard[name].organ_agnostic for name in names if name is not None):
        raise NotAskedError("it shows what is typical of an organ")
    if field.unsure:
        raise NotAskedError("annotations that may be typical of an organ were dropped")
    options = asking.choices(organ, asking.organs)
    text = "Which organ is this image most likely from?"
    return Question(text, CHOOSE, INSUFFICIENT, options, notes={"organ": organ})
