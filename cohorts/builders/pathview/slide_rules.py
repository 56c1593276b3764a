"""The rules of the six tasks on macro views of slides."""

from __future__ import annotations

import numpy as np

from .field import Field
from .questions import BOXES, CHOOSE, INSUFFICIENT, QUADRANTS, Asking, NotAskedError, Question, quadrant_of
from .region_rules import certain, quadrant_question, single

__all__ = ["AREAS", "densest_quadrant", "estimate_area", "ground_lesion", "organ", "trap"]

AREAS = ("0%-25%", "25%-50%", "50%-75%", "75%-100%")

AREA_MARGIN = 0.02
"""A fraction this near to 0.25, 0.50 or 0.75 is borderline (protocol, section 5.3)."""

COUNTS = (12, 35, 80, 150, 400, 900, 2500)
"""Counts that the slide trap offers: none can be told from a macro view, whatever they are."""


def organ(field: Field, asking: Asking, _: str) -> Question:
    """ORG: the organ of the slide."""
    right = field.picture.organ
    if right is None:
        raise NotAskedError("its organ is not known")
    text = "Which organ is this image most likely from?"
    return Question(text, CHOOSE, right, asking.choices(right, asking.organs))


def ground_lesion(field: Field, asking: Asking, target: str) -> Question:
    """LGD: the boxes of all foci of a lesion, each its own."""
    certain(field, target)
    boxes = [field.shown_as(place) for place in field.of(target).tolist()]
    return Question(f"Locate all regions of this category: {target}.", BOXES, boxes)


def estimate_area(field: Field, asking: Asking, target: str) -> Question:
    """ARE: the share of the tissue that a target occupies, from its outlines; boxes alone do not tell it."""
    certain(field, target)
    places = field.of(target).tolist()
    if not all(place in field.outlines for place in places):
        raise NotAskedError("its area is not known: only boxes are annotated")
    fraction = asking.fraction_of_tissue([field.outlines[place] for place in places])
    if fraction is None:
        raise NotAskedError("no tissue is found on the image")
    edges = np.array([0.25, 0.5, 0.75])
    if (np.abs(edges - fraction) <= AREA_MARGIN).any():
        raise NotAskedError("borderline: the fraction is within 0.02 of the edge of an option")
    return Question(
        f"What percentage of the tissue area in the image is occupied by this category: {target}?",
        CHOOSE,
        AREAS[int(np.searchsorted(edges, fraction))],
        (*AREAS, INSUFFICIENT),
        ordered=True,
        boxes=tuple(map(field.shown_as, places)),
        notes={"fraction": round(fraction, 4)},
    )


def densest_quadrant(field: Field, asking: Asking, target: str) -> Question:
    """DLO of a slide: the quadrant with most regions and most area of them, where the two agree."""
    certain(field, target)
    places = field.of(target)
    quadrants = quadrant_of(field, places)
    areas = np.array([_area(field, place) for place in places.tolist()])
    counts = np.bincount(quadrants, minlength=len(QUADRANTS))
    sums = np.bincount(quadrants, weights=areas, minlength=len(QUADRANTS))
    by_count, by_area = single(counts, "the count"), single(sums, "the area")
    if by_count != by_area:
        raise NotAskedError("not unique: count and area name different quadrants")
    notes = {"counts": counts.tolist(), "area_px": [round(float(area)) for area in sums]}
    return quadrant_question(field, target, by_count, notes)


def _area(field: Field, place: int) -> float:
    """The area of an object, of its box where no outline is known, in square annotation pixels."""
    if place in field.outlines:
        return sum(
            abs(_signed(shell)) - sum(abs(_signed(hole)) for hole in holes) for shell, *holes in field.outlines[place]
        )
    x1, y1, x2, y2 = field.boxes[place]
    return float((x2 - x1) * (y2 - y1))


def _signed(ring: object) -> float:
    x, y = np.asarray(ring, np.float64).T
    return float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2)


def trap(field: Field, asking: Asking, target: str) -> Question:
    """SFT: cells cannot be counted on a macro view."""
    options = (*(str(count) for count in sorted(asking.shuffled(COUNTS, "counts")[:4])), INSUFFICIENT)
    text = f"How many objects of this category are present in the image: {target}?"
    return Question(text, CHOOSE, INSUFFICIENT, options)
