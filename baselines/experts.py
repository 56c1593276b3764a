"""Experts: the best that a cursor which pans and zooms can do, move by move, for learners to imitate.

An expert reads the reference. It serves training: of the train split, and of val to watch the training.

A cursor can be at few places (`envs/pan_zoom.py`): its sides are powers of 2, and its corner lies on the grid that pans
and zooms make. All of them within the budget are found once and shared by all queries with as many levels and ROIs; a
query then takes the score of each place, and one pass a ROI over them (value iteration): 7 ms and less at the base
budget. With twenty ROIs and seven levels of zoom there are 350,000 places, and a query takes 0.2 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from wsigym.cohorts import Cohort, localization_queries
from wsigym.envs.pan_zoom import ACTIONS, FINISH, Cursor
from wsigym.errors import InvalidArgumentError, UnknownNameError
from wsigym.slides import Box

__all__ = ["SPLITS", "PanZoomExpert", "PanZoomExperts", "check_split"]

SPLITS = ("train", "val")
"""The splits whose references an expert may read."""

MAX_PLACES = 2_000_000
"""More would take half a minute to find. Slides of 200,000 px at the loose budget have 1.5 million."""

MOVES = len(ACTIONS) - 1
NOWHERE = -1
NOT_POSSIBLE = -1
"""What a move is worth that cannot be made: less than any place, which is worth 0 or more."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class PanZoomExpert:
    """One query's best moves, from wherever the cursor is.

    The best reachable place is the one whose box scores highest as the answer (`best_placed_iou`), of equal ones the
    nearest. Draws no random numbers.

    Args:
        search_box: the query's, level-0 pixels.
        valid_boxes: the reference's, level-0 pixels, one or more.
        smallest_side: as `PanZoom.smallest_side` says after `reset`.
        budget: the ROIs that the episode began with.

    Raises `InvalidArgumentError` where the budget reaches more than 2 million places.
    """

    def __init__(self, search_box: Box, valid_boxes: Sequence[Box], smallest_side: float, budget: int) -> None:
        self.budget = budget
        self._places = _places(_levels(smallest_side, budget), budget)
        self._scores = _scores(self._places, search_box, valid_boxes)
        self._worth = self._value_iteration()

    def action(self, cursor: Cursor, rois_left: int) -> int:
        """The first move of a shortest path to the best reachable place, FINISH there: 0 to 6, the lowest of several.

        Raises `InvalidArgumentError` for a cursor that cannot be reached with what of the budget is spent.
        """
        return int(self.actions_optimal(cursor, rois_left).argmax())

    def actions_optimal(self, cursor: Cursor, rois_left: int) -> npt.NDArray[np.bool_]:
        """bool (7,): every first move of a shortest path to a best reachable place; FINISH alone where that is here.

        Raises like `action`.
        """
        place = self._place(cursor, rois_left)
        worth = self._worth_with(rois_left)[place]
        optimal = np.zeros(len(ACTIONS), np.bool_)
        if worth == self._worth[0][place]:
            optimal[FINISH] = True
        else:
            optimal[:MOVES] = self._worth_with(rois_left - 1)[self._places.after[place]] == worth + 1
        return optimal

    def score(self, cursor: Cursor) -> float:
        """The score, 0..1, of finishing at a cursor. Raises like `action`."""
        return float(self._scores[self._place(cursor, 0)])

    def best_score(self, cursor: Cursor, rois_left: int) -> float:
        """The highest score, 0..1, that can still be reached. Raises like `action`."""
        worth = self._worth_with(rois_left)[self._place(cursor, rois_left)]
        return float(self._ranked[-(-worth // (self.budget + 1))])

    def _place(self, cursor: Cursor, rois_left: int) -> int:
        place = self._places.index(cursor)
        if place == NOWHERE or rois_left < 0 or place >= self._places.within(self.budget - rois_left):
            raise InvalidArgumentError(
                f"{cursor} cannot be reached with {self.budget - rois_left} of {self.budget} ROIs; ask with the cursor "
                "and the ROIs left of the episode that the expert was made for."
            )
        return place

    def _worth_with(self, rois_left: int) -> Ints:
        return self._worth[min(rois_left, len(self._worth) - 1)]

    def _value_iteration(self) -> list[Ints]:
        """Of each place, by the ROIs left: the best reachable score's rank, less the looks that it takes.

        A rank weighs more than any number of looks. Places that need more ROIs than are spent are left out, the last
        entry stands for "not possible", and the list ends early where more ROIs change nothing.
        """
        self._ranked, rank = np.unique(self._scores, return_inverse=True)
        stay = rank.astype(np.int64) * (self.budget + 1)
        worth = [np.append(stay, NOT_POSSIBLE)]
        for spent in range(self.budget - 1, -1, -1):
            count = self._places.within(spent)
            moved = worth[-1][self._places.after[:count]].max(axis=1) - 1
            better = np.append(np.maximum(stay[:count], moved), NOT_POSSIBLE)
            if np.array_equal(better[:-1], worth[-1][:count]):
                break
            worth.append(better)
        return worth


class PanZoomExperts:
    """The experts of a split's queries, by episode.

    Raises `UnknownNameError` for another split than train and val, `InvalidArgumentError` where it has no query.
    """

    def __init__(self, cohort: Cohort, split: str) -> None:
        check_split(split)
        self._boxes = {
            query.query_id: (query.search_box, reference.boxes)
            for query, reference in localization_queries(cohort, split)
        }

    def of(self, env: gym.Env[Any, Any], info: dict[str, Any]) -> PanZoomExpert:
        """The expert of an episode: of `env`, a `PanZoom` or wrappers around one, and the info that its `reset` gave.

        Raises `UnknownNameError` for a query of another split.
        """
        query_id = info["query_id"]
        if query_id not in self._boxes:
            raise UnknownNameError("query of the expert's split", query_id, self._boxes)
        search_box, boxes = self._boxes[query_id]
        return PanZoomExpert(search_box, boxes, env.get_wrapper_attr("smallest_side"), info["rois_left"])


def check_split(split: str) -> None:
    """Raises `UnknownNameError` for a split whose references no expert may read: a policy that learned from test
    slides cannot be tested."""
    if split not in SPLITS:
        raise UnknownNameError("split to learn from (test is there to test with)", str(split), SPLITS)


class _Places:
    """The cursors that a budget reaches, nearest first, and where each move leads.

    `x` and `y` are corners in grid steps, `level` counts halvings of the side, and a search box is `grid` steps wide.
    """

    def __init__(self, levels: int, budget: int) -> None:
        self.levels, self.grid = levels, 2 << levels  # a pan at the deepest level is one step
        layers = [self._codes(*np.zeros((3, 1), np.int64))]
        for _ in range(budget):
            around = np.concatenate([codes[possible] for codes, possible in self._moves(layers[-1])])
            # Every move can be taken back, so that nothing nearer than the layer before lies around.
            new = np.setdiff1d(around, np.concatenate(layers[-2:]))
            if not new.size:
                break
            layers.append(new)
            if sum(layer.size for layer in layers) > MAX_PLACES:
                raise InvalidArgumentError(
                    f"with {budget} ROIs and {levels} levels of zoom a cursor reaches more than {MAX_PLACES:,} places, "
                    "too many for an expert; lower the budget, or show larger views."
                )
        codes = np.concatenate(layers)
        self._ends = np.cumsum([layer.size for layer in layers])
        self._order = np.argsort(codes)
        self._sorted = codes[self._order]
        self.level, self.x, self.y = self._parts(codes)
        after = [np.where(possible, self._find(there), NOWHERE) for there, possible in self._moves(codes)]
        self.after = np.stack(after, axis=1).astype(np.int32)

    def within(self, looks: int) -> int:
        """How many places are at most so many looks away from the start: the first so many."""
        return int(self._ends[min(looks, len(self._ends) - 1)]) if looks >= 0 else 0

    def index(self, cursor: Cursor) -> int:
        """The number of a cursor, or -1."""
        x, y = (part * self.grid for part in cursor[:2])
        level = -np.log2(cursor.side) if cursor.side > 0 else -1.0
        if not all(float(part).is_integer() for part in (x, y, level)):
            return NOWHERE
        if not (0 <= x < self.grid and 0 <= y < self.grid and 0 <= level <= self.levels):
            return NOWHERE
        return int(self._find(self._codes(*np.array([[level], [x], [y]], np.int64)))[0])

    def _codes(self, level: Ints, x: Ints, y: Ints) -> Ints:
        return (level * self.grid + x) * self.grid + y

    def _parts(self, codes: Ints) -> tuple[Ints, Ints, Ints]:
        return codes // self.grid**2, codes // self.grid % self.grid, codes % self.grid

    def _find(self, codes: Ints) -> Ints:
        """The number of each code, or -1."""
        place = np.minimum(np.searchsorted(self._sorted, codes), self._sorted.size - 1)
        return np.where(self._sorted[place] == codes, self._order[place], NOWHERE)

    def _moves(self, codes: Ints) -> list[tuple[Ints, npt.NDArray[np.bool_]]]:
        """By move, in the order of ACTIONS: the codes of where it leads, and whether it is possible.

        The rules are `Cursor.moved`, `Cursor.is_inside` and `PanZoom`'s mask, on whole arrays.
        """
        level, x, y = self._parts(codes)
        side = self.grid >> level
        half, quarter = side // 2, side // 4
        moves = [
            (level, x - half, y),
            (level, x + half, y),
            (level, x, y - half),
            (level, x, y + half),
            (level + 1, x + quarter, y + quarter),
            (level - 1, x - half, y - half),
        ]
        found = []
        for deep, left, top in moves:
            ends = np.maximum(left, top) + (2 * self.grid >> deep + 1)
            possible = (deep >= 0) & (deep <= self.levels) & (np.minimum(left, top) >= 0) & (ends <= self.grid)
            found.append((self._codes(deep, left, top), possible))
        return found


@lru_cache(maxsize=16)
def _places(levels: int, budget: int) -> _Places:
    return _Places(levels, budget)


def _levels(smallest_side: float, budget: int) -> int:
    """How often a cursor can be zoomed into, starting from the whole search box."""
    levels = 0
    while levels < budget and 0.5**levels > smallest_side:
        levels += 1
    return levels


def _scores(places: _Places, search_box: Box, valid_boxes: Sequence[Box]) -> Floats:
    """float64 (places,): `best_placed_iou` of each place's box, in the same steps, so that the numbers are the same."""
    side = np.exp2(-places.level, dtype=np.float64)
    centre_x = search_box.x + _rounded(places.x / places.grid * search_box.width)
    centre_y = search_box.y + _rounded(places.y / places.grid * search_box.height)
    centre_x += _rounded(side * search_box.width) / 2
    centre_y += _rounded(side * search_box.height) / 2
    best = np.zeros(side.size)
    for valid in valid_boxes:
        x = np.clip(centre_x - valid.width / 2, search_box.x, search_box.right - valid.width)
        y = np.clip(centre_y - valid.height / 2, search_box.y, search_box.bottom - valid.height)
        common = np.maximum(0, valid.width - abs(x - valid.x)) * np.maximum(0, valid.height - abs(y - valid.y))
        np.maximum(best, common / (2 * valid.area - common), out=best)
    return best


def _rounded(values: Floats) -> Floats:
    return np.floor(values + 0.5)
