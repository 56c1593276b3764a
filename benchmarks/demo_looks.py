"""How an expert with any boxes to choose looks: from the overview to the answer in one or two looks, with detours.

The answer is one of the valid boxes, drawn by lot. A wide look, of the geometric mean of its sides and the search
box's, and a close one, a fifth wider than the answer, come before it; both hold the answer, and neither has it in
the middle for certain. The wide look is left out where it would be no wider than the close one, or the budget is short.

A detour is a look of the same size at another place: one of those with the most nuclear stain in the overview, which
touches no valid box and shares less than half with any look before. Then the expert comes back to what it left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np

from wsigym.agents.scripted_search import Density, ranked
from wsigym.slides import Box
from wsigym.slides.geometry import box_from_unit

__all__ = ["Look", "planned_looks"]

CLOSE_SIDES = 1.2
"""The close look's sides in those of the answer."""

WIDE_SIDES = 1.25
"""A wide look is worth an ROI from so many sides of the close look on."""

DETOUR_SIDES = (1.0, 0.5)
"""A detour's sides in those of the answer, where one as large as the coming look has no room."""

FIELDS_RANKED, FIELDS_DRAWN = 24, 3
"""Places of the overview that a detour may go to, and the first how many that are possible it is drawn from."""


@dataclass(frozen=True)
class Look:
    """A level-0 box to look at: on the way to the answer ("wide", "close") or beside it ("detour")."""

    box: Box
    kind: Literal["wide", "close", "detour"]


def planned_looks(
    search_box: Box,
    valid_boxes: Sequence[Box],
    rois: int,
    *,
    overview: Density,
    detours: float,
    rng: np.random.Generator,
) -> tuple[list[Look], Box]:
    """At most `rois` looks, and the answer. `overview` is the nuclear density of the search box's image, and `detours`
    the probability of one before each look, as far as the budget goes."""
    answer = valid_boxes[int(rng.integers(len(valid_boxes)))]
    way = _way(search_box, answer, rng)[-rois:] if rois else []
    looks: list[Look] = []
    for place, step in enumerate(way):
        while len(looks) + len(way) - place < rois and rng.random() < detours:
            seen = [look.box for look in looks] + [look.box for look in way]
            sizes = [(step.box.width, step.box.height)]
            sizes += [_size(share * answer.width, share * answer.height, search_box) for share in DETOUR_SIDES]
            places = (_wrong_places(search_box, size, valid_boxes, seen, overview) for size in sizes)
            wrong = next((found for found in places if found), None)
            if wrong is None:
                break
            looks.append(Look(wrong[int(rng.integers(len(wrong)))], "detour"))
        looks.append(step)
    return looks, answer


def _way(search_box: Box, answer: Box, rng: np.random.Generator) -> list[Look]:
    close = _size(CLOSE_SIDES * answer.width, CLOSE_SIDES * answer.height, search_box)
    wide = _size(math.sqrt(search_box.width * answer.width), math.sqrt(search_box.height * answer.height), search_box)
    if min(wide[0] / close[0], wide[1] / close[1]) < WIDE_SIDES:
        return [Look(_around(answer, close, search_box, rng), "close")]
    wide_box = _around(answer, wide, search_box, rng)
    return [Look(wide_box, "wide"), Look(_around(answer, close, wide_box, rng), "close")]


def _size(width: float, height: float, outer: Box) -> tuple[int, int]:
    return min(outer.width, math.ceil(width)), min(outer.height, math.ceil(height))


def _around(inner: Box, size: tuple[int, int], outer: Box, rng: np.random.Generator) -> Box:
    """A box of that size inside `outer`, anywhere that holds `inner`."""
    width, height = size
    x = rng.integers(max(outer.x, inner.right - width), min(inner.x, outer.right - width), endpoint=True)
    y = rng.integers(max(outer.y, inner.bottom - height), min(inner.y, outer.bottom - height), endpoint=True)
    return Box(int(x), int(y), width, height)


def _wrong_places(
    search_box: Box, size: tuple[int, int], valid_boxes: Sequence[Box], seen: Sequence[Box], overview: Density
) -> list[Box]:
    """The first few boxes of a size that are wrong and new, of those with more stain than the overview as a whole."""
    shares = size[0] / search_box.width, size[1] / search_box.height
    average = float(overview.mean())
    found = []
    for field in islice(ranked(overview, shares), FIELDS_RANKED):
        if field.density <= average:
            break
        box = box_from_unit(field.box, search_box).shifted_inside(search_box)
        wrong = all(box.intersection(valid).is_empty for valid in valid_boxes)
        if wrong and all(2 * box.intersection(other).area < min(box.area, other.area) for other in seen):
            found.append(box)
    return found[:FIELDS_DRAWN]
