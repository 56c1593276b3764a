"""PanZoom: where actions lead, what the mask forbids, and that reward, ends and budget stay the environment's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsigym.cohorts import Cohort
from wsigym.envs import LocalizationEnv
from wsigym.envs.flat_box import FlatBox
from wsigym.envs.localization import extract_roi, finish_and_report
from wsigym.envs.pan_zoom import ACTIONS, PanZoom
from wsigym.errors import EpisodeOverError, InvalidArgumentError
from wsigym.slides import Box

LEFT, RIGHT, UP, DOWN, IN, OUT, FINISH = range(7)


@pytest.fixture(scope="module")
def cohort(tiny_cohort: Path) -> Cohort:
    return Cohort.load(tiny_cohort)


def make(cohort: Cohort, **kwargs: Any) -> PanZoom:
    return PanZoom(LocalizationEnv(cohort, **{"view_px": 36, "overview_px": 36, **kwargs}))


def start(env: gym.Env[Any, Any], target: str = "glands") -> tuple[Any, dict[str, Any]]:
    """Reset to the first query of that target: "glands" is sought at 10x in (200, 100, 1201, 1100)."""
    for query_id in env.get_wrapper_attr("query_ids"):
        observation, info = env.reset(options={"query_id": query_id})
        if info["target"] == target:
            return observation, info
    raise AssertionError(target)


def possible(info: dict[str, Any]) -> set[str]:
    return {ACTIONS[index] for index in np.flatnonzero(info["action_mask"])}


def test_the_actions_are_named_in_order() -> None:
    assert ACTIONS == ("pan_left", "pan_right", "pan_up", "pan_down", "zoom_in", "zoom_out", "finish")


def test_where_actions_lead(cohort: Cohort) -> None:
    env = make(cohort)
    observation, info = start(env)
    assert info["roi"] is None
    assert (observation["view"] == 255).all()
    at = []
    for action in (IN, RIGHT, DOWN, IN, LEFT, UP, OUT):
        observation, *_, info = env.step(action)
        at.append(observation["view_box"].tolist())
    exact = [
        [0.25, 0.25, 0.5, 0.5],
        [0.5, 0.25, 0.5, 0.5],
        [0.5, 0.5, 0.5, 0.5],
        [0.625, 0.625, 0.25, 0.25],
        [0.5, 0.625, 0.25, 0.25],
        [0.5, 0.5, 0.25, 0.25],
        [0.375, 0.375, 0.5, 0.5],
    ]
    assert np.allclose(at, exact, atol=1 / 1000)  # ROIs are whole level-0 pixels
    assert info["rois_left"] == 0


def test_the_mask_at_the_edge_of_the_search_box(cohort: Cohort) -> None:
    env = make(cohort, budget=20)
    _, info = start(env)
    assert possible(info) == {"zoom_in", "finish"}
    (*_, info) = env.step(IN)
    assert possible(info) == set(ACTIONS)
    (*_, info) = env.step(LEFT)
    assert possible(info) == set(ACTIONS) - {"pan_left", "zoom_out"}
    (*_, info) = env.step(UP)
    assert possible(info) == {"pan_right", "pan_down", "zoom_in", "finish"}


def test_the_mask_at_the_querys_magnification(cohort: Cohort) -> None:
    """1,201 level-0 pixels at 40x are 300 pixels at 10x: 36 are reached by the fourth zoom, which is the last."""
    env = make(cohort, budget=20)
    _, info = start(env)
    for _ in range(4):
        assert "zoom_in" in possible(info)
        observation, *_, info = env.step(IN)
    assert observation["view_magnification"] == 10
    assert "zoom_in" not in possible(info)
    *_, info = env.step(IN)
    assert info["error"] == "zoom_in is not possible: there is no more detail to see."


def test_the_mask_without_budget(cohort: Cohort) -> None:
    env = make(cohort, budget=1)
    start(env)
    *_, info = env.step(IN)
    assert possible(info) == {"finish"}
    for _ in range(3):
        *_, terminated, _, info = env.step(RIGHT)
        assert info["error"] == "The budget of ROIs is spent: finish and report."
    assert terminated
    assert info["outcome"] == "budget_exhausted"


def test_what_is_not_possible_moves_and_spends_nothing_and_counts(cohort: Cohort) -> None:
    env = make(cohort)
    start(env)
    env.step(IN)
    before, *_, info = env.step(LEFT)
    for count in (1, 2, 3):
        after, reward, terminated, truncated, info = env.step(LEFT)
        assert info["error"] == "pan_left is not possible: it would leave the search box."
        assert (reward, terminated, truncated, info["rois_left"]) == (0, count == 3, False, 5)
        assert all((before[name] == after[name]).all() for name in before)
    assert info["outcome"] == "invalid"


def test_a_narrow_search_box_never_rounds_to_nothing(cohort: Cohort) -> None:
    env = make(cohort, budget=20)
    base = env.unwrapped
    assert isinstance(base, LocalizationEnv)
    (query, reference) = next(each for each in base._queries.values() if each[0].magnification == 40)
    object.__setattr__(query, "search_box", Box(10, 10, 2000, 3))
    base._queries = {query.query_id: (query, reference)}
    _, info = env.reset(options={"query_id": query.query_id})
    while "zoom_in" in possible(info):
        *_, info = env.step(IN)
        assert "error" not in info
    assert info["roi"][3] == 1


def test_the_masks_are_also_a_method_through_other_wrappers(cohort: Cohort) -> None:
    env = gym.wrappers.RecordEpisodeStatistics(make(cohort))
    _, info = start(env)
    masks = env.get_wrapper_attr("action_masks")()
    assert masks.dtype == bool
    assert masks.tolist() == [bool(each) for each in info["action_mask"]]


@pytest.mark.parametrize("action", [7, -1, 1.5, None, "finish", np.array([1, 2])])
def test_actions_that_are_none(cohort: Cohort, action: Any) -> None:
    env = make(cohort)
    start(env)
    with pytest.raises(InvalidArgumentError, match=r"allowed are 0 pan_left, .* 6 finish"):
        env.step(action)


@pytest.mark.parametrize(
    "asked",
    [
        lambda env: env.step(IN),
        lambda env: env.step(FINISH),
        lambda env: env.action_masks(),
        lambda env: env.cursor,
        lambda env: env.smallest_side,
    ],
)
def test_nothing_goes_before_the_first_reset(cohort: Cohort, asked: Callable[[PanZoom], Any]) -> None:
    with pytest.raises(EpisodeOverError, match=r"before reset\(\); call reset\(\) first"):
        asked(make(cohort))


def test_it_needs_the_structured_action(cohort: Cohort) -> None:
    with pytest.raises(InvalidArgumentError, match=r"PanZoom was put on .*structured action"):
        PanZoom(make(cohort))
    with pytest.raises(InvalidArgumentError, match=r"PanZoom was put on .*LocalizationEnv"):
        PanZoom(gym.make("CartPole-v1"))
    with pytest.raises(InvalidArgumentError, match=r"FlatBox was put on .*structured action"):
        FlatBox(make(cohort))


@given(st.lists(st.integers(0, 6), max_size=12), st.integers(0, 3))
@settings(max_examples=40)
def test_the_mask_tells_exactly_which_actions_are_refused(cohort: Cohort, actions: list[int], seed: int) -> None:
    env = make(cohort)
    _, info = env.reset(seed=seed)
    for action in actions:
        allowed = info["action_mask"][action]
        *_, terminated, _, info = env.step(action)
        assert ("error" in info) == (not allowed)
        if terminated:
            break


@given(st.lists(st.integers(0, 5), max_size=7), st.integers(0, 20))
@settings(max_examples=40)
def test_it_is_the_structured_action_and_no_other(cohort: Cohort, actions: list[int], seed: int) -> None:
    """The same boxes asked of the environment below give the same observations, rewards and ends."""
    env, base = make(cohort, reward="shaped"), LocalizationEnv(cohort, view_px=36, overview_px=36, reward="shaped")
    env.reset(seed=seed)
    base.reset(seed=seed)
    for action in actions:
        if not env.action_masks()[action]:
            continue
        observation, reward, *_ = env.step(action)
        same, same_reward, *_ = base.step(extract_roi(env._cursor.box_unit))
        assert reward == same_reward
        assert all((observation[name] == same[name]).all() for name in same)
    *_, info = env.step(FINISH)
    *_, same_info = base.step(finish_and_report(env._cursor.box_unit))
    assert info["iou"] == same_info["iou"]
    assert info["outcome"] == "scored"


# -- rewards ------------------------------------------------------------------------------------------------------


def returns(env: gym.Env[Any, Any], actions: list[Any], seed: int, gamma: float) -> float:
    env.reset(seed=seed)
    total, discount = 0.0, 1.0
    for action in actions:
        _, reward, terminated, truncated, _ = env.step(action)
        total += discount * float(reward)
        discount *= gamma
        if terminated or truncated:
            break
    return total


@given(st.lists(st.integers(0, 6), max_size=12), st.integers(0, 20), st.sampled_from([0.5, 0.9, 1.0]))
@settings(max_examples=40)
def test_shaping_changes_no_return_of_panning_and_zooming(
    cohort: Cohort, actions: list[int], seed: int, gamma: float
) -> None:
    """Phi is 0 at the start and at the end, so that the constant by which returns differ is 0."""
    plain, shaped = (make(cohort, reward=reward, gamma=gamma) for reward in ("iou", "shaped"))
    ended = [*actions, FINISH]
    assert returns(shaped, ended, seed, gamma) == pytest.approx(returns(plain, ended, seed, gamma), abs=1e-6)


@given(st.lists(st.lists(st.floats(-1, 1, width=32), min_size=5, max_size=5), max_size=6), st.integers(0, 20))
@settings(max_examples=40)
def test_shaping_changes_no_return_of_continuous_control(cohort: Cohort, actions: list[Any], seed: int) -> None:
    plain, shaped = (
        FlatBox(LocalizationEnv(cohort, view_px=36, overview_px=36, reward=reward, gamma=0.9))
        for reward in ("iou", "shaped")
    )
    ended = [np.array(action, np.float32) for action in [*actions, [1, 0, 0, 0, 0]]]
    assert returns(shaped, ended, seed, 0.9) == pytest.approx(returns(plain, ended, seed, 0.9), abs=1e-6)


def test_a_cut_off_episode_differs_by_the_potential_of_its_end_alone(cohort: Cohort) -> None:
    """Where an episode goes on, shaped and plain returns differ by gamma**n Phi(s_n), whatever way led to s_n."""
    gamma, found = 0.9, set()
    for way in ([IN, RIGHT, LEFT, IN], [IN, DOWN, UP, IN]):
        env = make(cohort, reward="shaped", gamma=gamma)
        start(env)
        total = sum(gamma**number * float(env.step(action)[1]) for number, action in enumerate(way))
        base = env.unwrapped
        assert isinstance(base, LocalizationEnv)
        assert total == pytest.approx(gamma ** len(way) * base._potential())
        found.add(round(total, 9))
    assert len(found) == 1
    assert found != {0}
