"""The expert of pan and zoom, against a plain search over the cursor's own rules, and in the environment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from cohort_builder import build_cohort
from hypothesis import given, settings
from hypothesis import strategies as st

from wsigym.baselines.experts import PanZoomExpert, PanZoomExperts
from wsigym.baselines.pan_zoom_oracle import PanZoomOracle
from wsigym.cohorts import Cohort, localization_queries
from wsigym.envs import LocalizationEnv
from wsigym.envs.localization import extract_roi
from wsigym.envs.pan_zoom import ACTIONS, FINISH, ZOOM_IN, Cursor
from wsigym.errors import InvalidArgumentError, UnknownNameError
from wsigym.scoring.localization import best_placed_iou
from wsigym.slides import Box
from wsigym.slides.geometry import box_from_unit

SEARCHED = Box(37, 1001, 1003, 777)
MOVES = range(len(ACTIONS) - 1)


def neighbours(cursor: Cursor, smallest_side: float) -> Iterator[tuple[int, Cursor]]:
    """The moves of PanZoom's card."""
    for action in MOVES:
        after = cursor.moved(action)
        if cursor.side > smallest_side if action == ZOOM_IN else after.is_inside:
            yield action, after


def score(cursor: Cursor, search_box: Box, valid: list[Box]) -> float:
    box = box_from_unit(extract_roi(cursor.box_unit)["box"], search_box)
    return best_placed_iou(box, valid, search_box)


def best(
    cursor: Cursor, rois: int, smallest_side: float, search_box: Box, valid: list[Box]
) -> tuple[float, int, set[int]]:
    """By plain recursion: the best score, minus the looks that it takes, and every first move."""
    found = [(score(cursor, search_box, valid), 0, FINISH)]
    if rois:
        for action, after in neighbours(cursor, smallest_side):
            reached, looks, _ = best(after, rois - 1, smallest_side, search_box, valid)
            found.append((reached, looks - 1, action))
    top = max(each[:2] for each in found)
    return (*top, {action for *worth, action in found if tuple(worth) == top})


boxes = st.builds(
    lambda x, y, w, h: Box(SEARCHED.x + x, SEARCHED.y + y, w, h),
    st.integers(0, 800),
    st.integers(0, 600),
    st.integers(1, 203),
    st.integers(1, 177),
)


@settings(max_examples=100)
@given(
    valid=st.lists(boxes, min_size=1, max_size=3),
    levels=st.integers(0, 4),
    walk=st.lists(st.integers(0, 5), max_size=4),
    rois=st.integers(0, 4),
)
def test_it_is_the_plain_search(valid: list[Box], levels: int, walk: list[int], rois: int) -> None:
    """From the start and from wherever a walk leads, also away from the best path."""
    smallest, cursor, spent = 0.5**levels, Cursor(), 0
    for wanted in walk:
        possible = dict(neighbours(cursor, smallest))
        if wanted in possible:
            cursor, spent = possible[wanted], spent + 1
    expert = PanZoomExpert(SEARCHED, valid, smallest, spent + rois)
    reached, _, actions = best(cursor, rois, smallest, SEARCHED, valid)
    assert expert.score(cursor) == score(cursor, SEARCHED, valid)
    assert expert.best_score(cursor, rois) == reached
    assert set(np.flatnonzero(expert.actions_optimal(cursor, rois)).tolist()) == actions
    assert expert.action(cursor, rois) == min(actions)


def test_a_path_of_known_length() -> None:
    """The lower right sixteenth: zoom in twice, and pan by half a side where that is largest."""
    expert = PanZoomExpert(Box(0, 0, 1024, 1024), [Box(768, 768, 256, 256)], 0.25, 10)
    cursor, rois, actions = Cursor(), 10, []
    while (action := expert.action(cursor, rois)) != FINISH:
        actions.append(ACTIONS[action])
        cursor, rois = cursor.moved(action), rois - 1
    assert cursor == Cursor(0.75, 0.75, 0.25)
    assert sorted(actions) == ["pan_down", "pan_down", "pan_right", "pan_right", "zoom_in", "zoom_in"]
    assert expert.best_score(Cursor(), 10) == 1
    assert expert.best_score(Cursor(), 5) < 1


def test_many_rois_change_nothing() -> None:
    few, many = (PanZoomExpert(SEARCHED, [Box(90, 1100, 80, 70)], 0.25, rois) for rois in (20, 500))
    assert few.best_score(Cursor(), 20) == many.best_score(Cursor(), 500)
    assert few.action(Cursor(), 20) == many.action(Cursor(), 500)


@pytest.mark.parametrize(
    ("cursor", "rois_left"),
    [
        (Cursor(0.25, 0.25, 0.5), 5),  # with nothing spent
        (Cursor(0.25, 0.25, 0.5), -1),
        (Cursor(0.3, 0.25, 0.5), 0),  # off the grid
        (Cursor(0.25, 0.25, 0.4), 0),
        (Cursor(0.25, 0.25, 2.0), 0),
        (Cursor(0.25, 0.25, 0.0), 0),
        (Cursor(-0.25, 0.25, 0.5), 0),
        (Cursor(0.4375, 0.4375, 0.125), 0),  # zoomed deeper than the query allows
    ],
)
def test_a_cursor_out_of_reach(cursor: Cursor, rois_left: int) -> None:
    expert = PanZoomExpert(SEARCHED, [Box(90, 1100, 80, 70)], 0.25, 5)
    with pytest.raises(InvalidArgumentError, match="cannot be reached with"):
        expert.action(cursor, rois_left)


def test_too_many_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wsigym.baselines.experts.MAX_PLACES", 1000)
    with pytest.raises(InvalidArgumentError, match="lower the budget, or show larger views"):
        PanZoomExpert(SEARCHED, [SEARCHED], 0.5**12, 11)


@pytest.fixture(scope="module")
def split_cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    slides = [{"slide_id": f"s{number}", "split": split} for number, split in enumerate(("train", "val", "test"))]
    return Cohort.load(build_cohort(tmp_path_factory.mktemp("splits"), slides=slides))


def play(env: gym.Env[Any, Any], experts: PanZoomExperts, query_id: str, wandering: float) -> None:
    """Play the expert's moves, or a random one at the rate of `wandering`; the score is the best that was left."""
    _, info = env.reset(options={"query_id": query_id})
    expert, rng, terminated = experts.of(env, info), np.random.default_rng(0), False
    while not terminated:
        cursor, rois = env.get_wrapper_attr("cursor"), info["rois_left"]
        action = expert.action(cursor, rois)
        promised = expert.best_score(cursor, rois)
        if rois and rng.random() < wandering:
            action = int(rng.choice(np.flatnonzero(info["action_mask"][:FINISH])))
        assert info["action_mask"][action]
        *_, terminated, _, info = env.step(action)
        if action != FINISH and not wandering:
            assert expert.best_score(env.get_wrapper_attr("cursor"), rois - 1) == promised
    assert info["outcome"] == "scored"
    assert info["iou"] == promised == expert.score(cursor)


@pytest.mark.parametrize("budget", ["base", "loose"])
@pytest.mark.parametrize("split", ["train", "val"])
def test_the_environment_pays_what_was_promised(split_cohort: Cohort, split: str, budget: str) -> None:
    env = gym.make("wsigym/LocalizationPanZoom-v0", cohort=split_cohort, split=split, budget=budget, view_px=36)
    experts = PanZoomExperts(split_cohort, split)
    for query_id in env.unwrapped.query_ids:  # type: ignore[attr-defined]
        play(env, experts, query_id, wandering=0.0)
        play(env, experts, query_id, wandering=0.4)


@pytest.mark.parametrize("split", ["test", None, "all"])
def test_splits_that_are_not_learned_from(split_cohort: Cohort, split: Any) -> None:
    with pytest.raises(UnknownNameError, match=r"test is there to test with.*Known: train, val"):
        PanZoomExperts(split_cohort, split)


def test_a_query_of_another_split(split_cohort: Cohort) -> None:
    env = gym.make("wsigym/LocalizationPanZoom-v0", cohort=split_cohort, split="test")
    _, info = env.reset(seed=0)
    with pytest.raises(UnknownNameError, match="expert's split"):
        PanZoomExperts(split_cohort, "train").of(env, info)


@pytest.mark.parametrize("budget", ["tight", "base"])
def test_its_policy_reaches_the_ceiling_in_a_run(split_cohort: Cohort, budget: str) -> None:
    views = gym.make("wsigym/LocalizationPanZoom-v0", cohort=split_cohort, split="train", budget=budget)
    env, policy, experts = (
        LocalizationEnv(split_cohort, "train", budget),
        PanZoomOracle(),
        PanZoomExperts(split_cohort, "train"),
    )
    for query, reference in localization_queries(split_cohort, "train"):
        options = {"query_id": query.query_id}
        _, info = views.reset(options=options)
        ceiling = experts.of(views, info).best_score(Cursor(), info["rois_left"])
        observation, info = env.reset(options=options)
        policy.reset(observation, info)
        policy.see_reference(reference)
        terminated = False
        while not terminated:
            observation, _, terminated, _, info = env.step(policy.act(observation, info))
        assert (info["outcome"], info["iou"]) == ("scored", ceiling)
