"""Episodes as an expert plays them, with looks at wrong places now and then: what demonstrations are made of.

The order is that of the diagnostic trees: the query of a root, on the whole slide, then those inside its box, down to
the leaves. What two paths share is played once.

A detour is a move that leads away from the best place: a pan aside, or a zoom where none is needed, sooner to where the
overview shows much nuclear stain. From there the expert goes on to the best place that it can still reach, which takes
it back. Detours spend the budget, and so they cost: they are made only where what is left is enough for an answer that
scores at most `DETOUR_COST` less than the best without any.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from wsigym.cohorts import Cohort, LocalizationQuery, LocalizationReference, localization_queries
from wsigym.envs.pan_zoom import ACTIONS, Cursor
from wsigym.envs.views import Image
from wsigym.errors import CohortError, InvalidArgumentError
from wsigym.slides import nuclear_density_of

from .experts import PanZoomExpert, PanZoomExperts, check_split

__all__ = [
    "DETOUR_COST",
    "Demonstration",
    "TreeQuery",
    "episode_seed",
    "episodes_to_play",
    "play_expert",
    "tree_queries",
]

DETOUR_COST = 0.2
"""Of an IoU. At the base budget every ROI counts: without any cost there would hardly be a detour."""

WRONG_MOVES = tuple(number for number, name in enumerate(ACTIONS) if name.startswith("pan") or name == "zoom_in")
"""Zooming out is the way back, not a look at a wrong place."""

STAIN_OF_GLASS = 0.01
"""What a place without nuclear stain counts when a detour is drawn by it, so that any may be."""


@dataclass(frozen=True)
class TreeQuery:
    """A query with its reference, and the ids of the queries from the root of its tree down to it."""

    query: LocalizationQuery
    reference: LocalizationReference
    path: tuple[str, ...]


@dataclass(frozen=True)
class Demonstration:
    """One episode of pan and zoom.

    Of T steps, arrays of T + 1 rows say what was seen before each action, and, in the last row, after the end.

    Attributes:
        query_id, target, path: which query, and the queries from its tree's root down to it.
        seed: with `options={"query_id": ...}`, what the environment's `reset` was given.
        score: the episode's, 0..1.
        observations: by part, (T + 1, ...), dtypes as the environment's.
        actions: int64 (T,), 0 to 6.
        rewards: float64 (T,).
        masks: bool (T + 1, 7), the actions possible.
        optimal: bool (T + 1, 7), the expert's moves from there, whatever was done; none in the last row.
        detours: bool (T,), whether the action was a detour: not one to imitate.
        rois_left: int64 (T + 1,).
    """

    query_id: str
    target: str
    path: tuple[str, ...]
    seed: int
    score: float
    observations: Mapping[str, npt.NDArray[Any]]
    actions: npt.NDArray[np.int64]
    rewards: npt.NDArray[np.float64]
    masks: npt.NDArray[np.bool_]
    optimal: npt.NDArray[np.bool_]
    detours: npt.NDArray[np.bool_]
    rois_left: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.actions)

    def pairs(self) -> Iterator[tuple[dict[str, npt.NDArray[Any]], int]]:
        """Each observation with the action that followed it."""
        for step, action in enumerate(self.actions):
            yield {name: part[step] for name, part in self.observations.items()}, int(action)


def tree_queries(cohort: Cohort, split: str) -> list[TreeQuery]:
    """All queries of a split, from the root of each tree down, a child after its parent.

    Raises like `check_split`, and `InvalidArgumentError` where there is none.
    """
    check_split(split)
    asked = localization_queries(cohort, split)
    parent_of = {
        (entry.slide_id, node.node_id): node.parent_id
        for entry in cohort.in_split(split)
        for node in cohort.nodes_of(entry.slide_id)
    }
    of_node = {
        (query.slide_id, node_id): query.query_id for query, reference in asked for node_id in reference.node_ids
    }

    below: dict[str | None, list[tuple[LocalizationQuery, LocalizationReference]]] = {}
    for query, reference in asked:
        parent_id = parent_of[query.slide_id, reference.node_ids[0]]
        above = None if parent_id is None else of_node[query.slide_id, parent_id]
        below.setdefault(above, []).append((query, reference))

    def walk(above: str | None, path: tuple[str, ...]) -> Iterator[TreeQuery]:
        for query, reference in below.get(above, ()):
            here = (*path, query.query_id)
            yield TreeQuery(query, reference, here)
            yield from walk(query.query_id, here)

    return list(walk(None, ()))


def play_expert(
    env: gym.Env[Any, Any], experts: PanZoomExperts, asked: TreeQuery, seed: int, rate: float
) -> Demonstration:
    """Play a query by its expert in `env`, a `PanZoom` or wrappers around one.

    Of several moves that are as good one is drawn by `seed`. `rate` is the probability of a detour at each step
    where one can be afforded.
    """
    observation, info = env.reset(seed=seed, options={"query_id": asked.query.query_id})
    expert, rng = experts.of(env, info), np.random.default_rng(seed)
    least = expert.best_score(Cursor(), info["rois_left"]) - DETOUR_COST
    stain = nuclear_density_of(_overview(env))
    observations, infos, optimals = [observation], [info], []
    actions: list[int] = []
    rewards: list[float] = []
    detours: list[bool] = []
    terminated = False
    while not terminated:
        cursor, rois_left = env.get_wrapper_attr("cursor"), info["rois_left"]
        optimal = expert.actions_optimal(cursor, rois_left)
        wrong = _detours(expert, cursor, rois_left, info["action_mask"], optimal, least)
        detours.append(bool(wrong) and rng.random() < rate)
        if detours[-1]:
            chances = np.array([STAIN_OF_GLASS + _mean_inside(stain, cursor.moved(action)) for action in wrong])
            action = int(rng.choice(wrong, p=chances / chances.sum()))
        else:
            action = int(rng.choice(np.flatnonzero(optimal)))
        observation, reward, terminated, _, info = env.step(action)
        observations.append(observation)
        infos.append(info)
        optimals.append(optimal)
        actions.append(action)
        rewards.append(float(reward))
    return Demonstration(
        query_id=asked.query.query_id,
        target=asked.query.target,
        path=asked.path,
        seed=seed,
        score=float(info["iou"]),
        observations={name: np.stack([each[name] for each in observations]) for name in observation},
        actions=np.array(actions, np.int64),
        rewards=np.array(rewards, np.float64),
        masks=np.stack([each["action_mask"] for each in infos]).astype(np.bool_),
        optimal=np.stack([*optimals, np.zeros(len(ACTIONS), np.bool_)]),
        detours=np.array(detours, np.bool_),
        rois_left=np.array([each["rois_left"] for each in infos], np.int64),
    )


def episode_seed(seed: int, query_id: str, number: int) -> int:
    """0 to 2**31 - 1: of a query's episode of that number, whichever others there are."""
    text = json.dumps([seed, query_id, number])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def episodes_to_play(
    cohort: Cohort, *, split: str, per_query: int, detours: float, seed: int
) -> list[tuple[TreeQuery, int]]:
    """Each query of a split `per_query` times, tree by tree each time, with the seed of the episode.

    Raises `UnknownNameError` for another split than train and val, `InvalidArgumentError` for numbers out of range and
    where there is no query, and `CohortError` with every fault of the split's slides.
    """
    if not 0 <= detours <= 1:
        raise InvalidArgumentError(
            f"the rate of detours is {detours:g}; allowed is 0 (none) to 1 (wherever one can be)."
        )
    if per_query < 1:
        raise InvalidArgumentError(f"per_query is {per_query}; each query is demonstrated once or more.")
    if seed < 0:
        raise InvalidArgumentError(f"seed is {seed}; a seed is 0 or more.")
    check_split(split)
    if faults := cohort.check_slides(split):
        raise CohortError(faults)
    asked = tree_queries(cohort, split)
    return [(each, episode_seed(seed, each.query.query_id, number)) for number in range(per_query) for each in asked]


def _overview(env: gym.Env[Any, Any]) -> Image:
    image: Image = env.get_wrapper_attr("image")("overview", env.get_wrapper_attr("overview_px")).image
    return image


def _detours(
    expert: PanZoomExpert,
    cursor: Cursor,
    rois_left: int,
    mask: npt.NDArray[np.int8],
    optimal: npt.NDArray[np.bool_],
    least: float,
) -> list[int]:
    """The wrong moves after which `least` can still be reached."""
    return [
        action
        for action in WRONG_MOVES
        if mask[action] and not optimal[action] and expert.best_score(cursor.moved(action), rois_left - 1) >= least
    ]


def _mean_inside(stain: npt.NDArray[np.float32], cursor: Cursor) -> float:
    """The mean of a map of the search box inside a cursor, of one pixel at least."""
    rows, columns = stain.shape
    top, left = min(rows - 1, int(cursor.y * rows)), min(columns - 1, int(cursor.x * columns))
    inside = stain[top : top + max(1, round(cursor.side * rows)), left : left + max(1, round(cursor.side * columns))]
    return float(inside.mean())
