"""Localization: budget, invalid requests, ends, what is shown and what is paid, as its card says."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from cohort_builder import APERIO_40X, NODES, SLIDE_PX, build_cohort, read_lines, write_lines
from hypothesis import given, settings
from hypothesis import strategies as st
from slides_builder import noise, write_slide

from wsigym.cohorts import Cohort
from wsigym.envs import LocalizationEnv
from wsigym.envs.localization import extract_roi, finish_and_report
from wsigym.errors import (
    CohortError,
    EpisodeOverError,
    InvalidArgumentError,
    SlideOpenError,
    UnknownNameError,
    WsigymError,
)
from wsigym.scoring.localization import best_placed_iou
from wsigym.slides import Box, box_from_unit, box_to_unit

WHOLE = (0.0, 0.0, 1.0, 1.0)
INSIDE = (0.25, 0.25, 0.5, 0.5)
OUTSIDE = (1.5, 0.0, 0.5, 0.5)
NAN, INF = math.nan, math.inf

SEARCHED = {
    "crowded": Box(0, 0, SLIDE_PX, SLIDE_PX),
    "glands": Box.of(NODES[0]["box"]),
    "mitosis": Box.of(NODES[1]["box"]),
}
"""Search boxes by target."""


@pytest.fixture(scope="module")
def cohort(tiny_cohort: Path) -> Cohort:
    return Cohort.load(tiny_cohort)


def make(cohort: Cohort | Path | str, **kwargs: Any) -> LocalizationEnv:
    return LocalizationEnv(cohort, **{"view_px": 64, "overview_px": 64, **kwargs})


def query(env: LocalizationEnv, target: str) -> str:
    """The first query with that target."""
    for query_id in env.query_ids:
        _, info = env.reset(options={"query_id": query_id})
        if info["target"] == target:
            return query_id
    raise AssertionError(target)


def start(env: LocalizationEnv, target: str = "glands") -> tuple[dict[str, Any], dict[str, Any]]:
    return env.reset(options={"query_id": query(env, target)})


def play(
    env: LocalizationEnv, actions: Sequence[dict[str, Any]]
) -> Iterator[tuple[Any, float, bool, bool, dict[str, Any]]]:
    for action in actions:
        yield env.step(action)


# -- starts -------------------------------------------------------------------------------------------------------


def test_the_first_observation_and_info(cohort: Cohort) -> None:
    env = make(cohort, context=[5])
    observation, info = start(env)
    assert info == {
        "query_id": info["query_id"],
        "target": "glands",
        "magnification": 10,
        "search_box": (200, 100, 1201, 1100),
        "slide_size": (SLIDE_PX, SLIDE_PX),
        "mpp": 0.25,
        "rois_left": 7,
        "roi": None,
        "overview_size": (64, 59),
        "view_size": None,
    }
    assert (observation["view"] == 255).all()
    assert (observation["context"] == 255).all()
    assert observation["view_box"].tolist() == [0, 0, 0, 0]
    assert observation["view_magnification"].tolist() == [0]
    assert observation["target_magnification"].tolist() == [10]
    assert observation["budget_left"].tolist() == [1]
    assert observation["rois_left"].tolist() == [info["rois_left"]] == [7]
    width, height = info["overview_size"]
    assert observation["overview_extent"].tolist() == [width / env.overview_px, height / env.overview_px]


@pytest.mark.parametrize("target", SEARCHED)
def test_the_search_box_is_the_slide_or_the_parents_never_the_answers(cohort: Cohort, target: str) -> None:
    env = make(cohort)
    _, info = start(env, target)
    assert Box.of(info["search_box"]) == SEARCHED[target]
    answers = [Box.of(node["box"]) for node in NODES if node["finding"] == target]
    assert Box.of(info["search_box"]) not in answers


def test_the_seed_decides_and_options_override(cohort: Cohort) -> None:
    env, other = make(cohort), make(cohort)
    drawn = [env.reset(seed=seed)[1]["query_id"] for seed in range(40)]
    assert drawn == [other.reset(seed=seed)[1]["query_id"] for seed in range(40)]
    assert set(drawn) == set(env.query_ids)
    assert len(env.query_ids) == 10
    assert env.reset(seed=0, options={"query_id": drawn[7]})[1]["query_id"] == drawn[7]
    assert env.reset(seed=3, options={"query_id": None})[1]["query_id"] == drawn[3]
    env.reset(seed=5)
    other.reset(seed=5)
    follow = [env.reset()[1]["query_id"] for _ in range(20)]
    assert follow == [other.reset()[1]["query_id"] for _ in range(20)]
    assert len(set(follow)) > 3


def test_reset_options_that_are_not_allowed(cohort: Cohort) -> None:
    env = make(cohort)
    near = env.query_ids[0][:-1] + "_"
    with pytest.raises(UnknownNameError, match=f"Did you mean '{env.query_ids[0]}'"):
        env.reset(options={"query_id": near})
    with pytest.raises(UnknownNameError, match=r"unknown reset option 'query'\. Did you mean 'query_id'"):
        env.reset(options={"query": env.query_ids[0]})
    with pytest.raises(UnknownNameError):
        env.reset(options={"query_id": ["a"]})


def test_a_reset_that_failed_leaves_no_episode(cohort: Cohort) -> None:
    env = make(cohort)
    env.reset(seed=0)
    with pytest.raises(UnknownNameError):
        env.reset(options={"query_id": "?"})
    with pytest.raises(EpisodeOverError):
        env.step(extract_roi(INSIDE))


def test_steps_outside_an_episode(cohort: Cohort) -> None:
    env = make(cohort, render_mode="rgb_array")
    with pytest.raises(EpisodeOverError, match="call reset"):
        env.step(extract_roi(INSIDE))
    with pytest.raises(EpisodeOverError, match="call reset"):
        env.render()
    env.reset(seed=0)
    env.step(finish_and_report(INSIDE))
    with pytest.raises(EpisodeOverError, match="call reset"):
        env.step(extract_roi(INSIDE))
    assert env.render() is not None


def test_gymnasium_makes_it(tiny_cohort: Path) -> None:
    env = gym.make("wsigym/Localization-v0", cohort=str(tiny_cohort), budget={2.5: 1, 10: 1, 40: 1})
    observation, _ = env.reset(seed=0)
    assert observation["view"].shape == (224, 224, 3)
    assert observation["overview"].shape == (256, 256, 3)
    env.close()


# -- budget and ends ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("target", "rois"), [("crowded", 10), ("glands", 7), ("mitosis", 5)])
def test_spending_the_last_roi_ends_nothing(cohort: Cohort, target: str, rois: int) -> None:
    env = make(cohort)
    start(env, target)
    for left in reversed(range(rois)):
        observation, reward, terminated, truncated, info = env.step(extract_roi(INSIDE))
        assert (reward, terminated, truncated, info["rois_left"]) == (0, False, False, left)
        assert observation["budget_left"] == np.float32(left / rois)
        assert observation["rois_left"] == left
        assert not info.keys() & {"error", "note", "outcome", "iou", "hit"}
    *_, terminated, _, info = env.step(finish_and_report(INSIDE))
    assert terminated
    assert info["outcome"] == "scored"


def test_a_look_over_budget_is_answered_and_counts_as_invalid(cohort: Cohort) -> None:
    env = make(cohort, budget=1)
    start(env)
    shown = env.step(extract_roi(INSIDE))[0]
    for count in (1, 2, 3):
        observation, reward, terminated, truncated, info = env.step(extract_roi(WHOLE))
        assert info["error"] == "The budget of ROIs is spent: finish and report."
        assert (reward, terminated, truncated) == (0, count == 3, False)
        assert (observation["view"] == shown["view"]).all()
        assert info["rois_left"] == 0
        assert ("outcome" in info) == (count == 3)
    assert (info["outcome"], info["iou"], info["hit"]) == ("budget_exhausted", 0, False)


@pytest.mark.parametrize("budget", [0, 1])
def test_no_budget_at_all(cohort: Cohort, budget: int) -> None:
    env = make(cohort, budget=budget)
    observation, info = start(env)
    assert (info["rois_left"], observation["budget_left"].item()) == (budget, budget)
    assert env.step(finish_and_report(INSIDE))[2]


BAD_LOOK, GOOD_LOOK, OVER = extract_roi((NAN, 0, 1, 1)), extract_roi(INSIDE), extract_roi(INSIDE)
BAD_END = finish_and_report(OUTSIDE)


@pytest.mark.parametrize(
    ("budget", "actions", "outcome"),
    [
        (5, [BAD_LOOK] * 3, "invalid"),
        (5, [BAD_END] * 3, "invalid"),
        (5, [BAD_LOOK, BAD_END, BAD_LOOK], "invalid"),
        (0, [OVER] * 3, "budget_exhausted"),
        (0, [OVER, OVER, BAD_END], "invalid"),
        (0, [BAD_END, BAD_END, OVER], "budget_exhausted"),
        (0, [BAD_LOOK] * 3, "budget_exhausted"),  # at budget 0 any look is over budget, whatever its box
        (5, [BAD_LOOK, BAD_LOOK, GOOD_LOOK, BAD_LOOK, BAD_LOOK, GOOD_LOOK, BAD_END, BAD_LOOK, BAD_END], "invalid"),
        (1, [BAD_LOOK, BAD_LOOK, GOOD_LOOK, OVER, OVER, BAD_LOOK], "budget_exhausted"),
    ],
)
def test_three_invalid_requests_in_a_row_end_the_episode(
    cohort: Cohort, budget: int, actions: list[dict[str, Any]], outcome: str
) -> None:
    env = make(cohort, budget=budget)
    start(env)
    *before, last = play(env, actions)
    assert not any(terminated or truncated for _, _, terminated, truncated, _ in before)
    _, reward, terminated, truncated, info = last
    assert (reward, terminated, truncated) == (0, True, False)
    assert (info["outcome"], info["iou"], info["hit"]) == (outcome, 0, False)
    assert "error" in info


def test_an_invalid_request_costs_no_budget_and_shows_nothing_new(cohort: Cohort) -> None:
    env = make(cohort)
    start(env)
    shown, *_ = env.step(extract_roi(INSIDE))
    for action in (BAD_LOOK, BAD_END):
        observation, _, _, _, info = env.step(action)
        assert info["rois_left"] == 6
        assert info["roi"] == tuple(box_from_unit(INSIDE, SEARCHED["glands"]).to_list())
        assert all((observation[key] == shown[key]).all() for key in shown)


# -- requests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("box", "words"),
    [
        ((NAN, 0, 1, 1), "not four finite numbers"),
        ((0, 0, INF, 1), "not four finite numbers"),
        ((0, -INF, 1, 1), "not four finite numbers"),
        ((0, 0, 1, 1e300), "not four finite numbers"),
        (OUTSIDE, "lies outside the search box"),
        ((-1, 0, 0.5, 0.5), "lies outside the search box"),
        ((1, 0, 0.5, 0.5), "lies outside the search box"),
        ((0, 3e38, 0.5, 0.5), "lies outside the search box"),
        ((0.5, 0.5, 0, 0.5), "under one level-0 pixel"),
        ((0.5, 0.5, 0.5, -0.5), "under one level-0 pixel"),
        ((0.5, 0.5, 0.0004, 0.5), "under one level-0 pixel"),
        ((0.5, 0.5, 1e-40, 1e-40), "under one level-0 pixel"),
    ],
)
def test_a_look_that_cannot_be_answered(cohort: Cohort, box: Sequence[float], words: str) -> None:
    env = make(cohort)
    start(env)
    with np.errstate(over="ignore"):
        action = extract_roi(box)
    info = env.step(action)[4]
    assert words in info["error"]
    assert info["rois_left"] == 7
    if "finite" not in words:
        assert "[200, 100, 1201, 1100]" in info["error"]


def test_a_number_too_large_for_float32_is_not_finite(cohort: Cohort) -> None:
    env = make(cohort)
    start(env)
    info = env.step({"tool": 0, "box": np.array([0, 0, 1, 1e300]), "confidence": np.array([NAN])})[4]
    assert "[0.0, 0.0, 1.0, inf] is not four finite numbers" in info["error"]


def test_a_look_partly_outside_is_clipped_and_told_so(cohort: Cohort) -> None:
    env = make(cohort)
    start(env)
    observation, _, _, _, info = env.step(extract_roi((-0.25, 0.5, 0.5, 2e38)))
    x, y, width, height = info["roi"]
    assert (x, y, width, height) == (200, 650, 301, 550)
    assert f"was clipped to {[x, y, width, height]}" in info["note"]
    assert "[-100, 650, 601, " in info["note"]
    assert info["rois_left"] == 6
    np.testing.assert_allclose(observation["view_box"], box_to_unit(Box(x, y, width, height), SEARCHED["glands"]))
    assert "note" not in env.step(extract_roi(INSIDE))[4]


def test_one_level0_pixel_is_enough(cohort: Cohort) -> None:
    env = make(cohort)
    start(env)
    for pixel in (Box(700, 600, 1, 1), Box(200, 100, 1, 1), Box(1400, 1199, 1, 1)):
        observation, *_, info = env.step(extract_roi(box_to_unit(pixel, SEARCHED["glands"])))
        assert info["roi"] == tuple(pixel.to_list())
        assert info["view_size"] == (1, 1)
        assert env.observation_space.contains(observation)


@pytest.mark.parametrize(
    ("box", "ends"),
    [
        ((0.5, 0.5, 0, 0), True),
        ((0.5, 0.5, -1, -1), True),
        ((-9, -9, 19, 19), True),
        ((-1e6, -1e6, 2e6, 2e6), True),
        ((0, 0, 1e-40, 1e-40), True),
        ((1, 1, 0, 0), True),
        ((0.9, 0.9, 0.4, 0.4), False),
        (OUTSIDE, False),
        ((NAN, 0, 1, 1), False),
        ((0, 0, 1, INF), False),
    ],
)
def test_a_final_box_needs_a_finite_centre_inside_whatever_its_size(
    cohort: Cohort, box: Sequence[float], ends: bool
) -> None:
    env = make(cohort)
    start(env)
    *_, terminated, truncated, info = env.step(finish_and_report(box))
    assert (terminated, truncated) == (ends, False)
    assert info.get("outcome") == ("scored" if ends else None)
    assert ("error" in info) != ends


@pytest.mark.parametrize(
    "action",
    [
        None,
        [0, [0, 0, 1, 1], [0.5]],
        0,
        {"tool": 0, "box": [0, 0, 1, 1]},
        {"tool": 0, "confidence": [0.5]},
        {"box": [0, 0, 1, 1], "confidence": [0.5]},
        {"tool": 2, "box": [0, 0, 1, 1], "confidence": [0.5]},
        {"tool": -1, "box": [0, 0, 1, 1], "confidence": [0.5]},
        {"tool": 0.5, "box": [0, 0, 1, 1], "confidence": [0.5]},
        {"tool": "extract_roi", "box": [0, 0, 1, 1], "confidence": [0.5]},
        {"tool": 0, "box": [0, 0, 1], "confidence": [0.5]},
        {"tool": 0, "box": [[0, 0, 1, 1]], "confidence": [0.5]},
        {"tool": 0, "box": 7, "confidence": [0.5]},
        {"tool": 0, "box": None, "confidence": [0.5]},
        {"tool": 0, "box": ["a", 0, 1, 1], "confidence": [0.5]},
        {"tool": 0, "box": [[0], 0, 1, 1], "confidence": [0.5]},
        {"tool": 0, "box": [0, 0, 1, 1], "confidence": [0.5, 0.5]},
        {"tool": 0, "box": [0, 0, 1, 1], "confidence": "high"},
    ],
)
def test_an_action_of_another_form_is_the_callers_mistake(cohort: Cohort, action: Any) -> None:
    env = make(cohort)
    start(env)
    with pytest.raises(InvalidArgumentError, match="allowed is a dict of tool"):
        env.step(action)
    info = env.step(extract_roi(INSIDE))[4]
    assert info["rois_left"] == 6


@pytest.mark.parametrize("confidence", [0.5, [0.5], NAN, [2.0], [-1]])
@pytest.mark.parametrize("box", [list(INSIDE), INSIDE, np.array(INSIDE), np.array(INSIDE, np.float16)])
def test_numbers_of_any_kind_are_taken_and_confidence_scores_nothing(cohort: Cohort, box: Any, confidence: Any) -> None:
    env = make(cohort)
    start(env)
    reward = env.step({"tool": np.int64(1), "box": box, "confidence": confidence})[1]
    start(env)
    assert reward == env.step(finish_and_report(INSIDE))[1]


def test_action_builders_and_spaces(cohort: Cohort) -> None:
    env = make(cohort)
    assert env.action_space.contains(finish_and_report(INSIDE, 0.3))
    assert finish_and_report(INSIDE, 0.3)["confidence"] == np.float32(0.3)
    assert np.isnan(finish_and_report(INSIDE)["confidence"]).all()
    assert np.isnan(extract_roi(INSIDE)["confidence"]).all()


floats = st.floats(width=32) | st.floats(-0.5, 1.5) | st.sampled_from([0, 1, 1e-45, 3.4e38, -3.4e38, 1e-3])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.tuples(floats, floats, floats, floats)), max_size=12))
def test_no_number_breaks_an_episode(cohort: Cohort, requests: list[tuple[int, tuple[float, ...]]]) -> None:
    env = make(cohort, view_px=36, overview_px=36, context=[2.5], reward="shaped")
    env.reset(seed=len(requests))
    for tool, box in requests:
        observation, reward, terminated, truncated, info = env.step({"tool": tool, "box": box, "confidence": NAN})
        assert env.observation_space.contains(observation)
        assert math.isfinite(reward)
        assert not truncated
        json.dumps(info)
        if info["roi"] is not None:
            assert Box.of(info["search_box"]).contains(Box.of(info["roi"]))
        assert terminated == ("outcome" in info)
        if terminated:
            return


@settings(max_examples=300)
@given(st.data())
def test_boxes_survive_the_way_through_an_action(data: st.DataObject) -> None:
    """float32 in 0..1 names every pixel of a search box of up to 200,000 px a side."""
    side = st.integers(1, 200_000)
    search_box = Box(*data.draw(st.tuples(side, side, side, side)))
    width, height = data.draw(st.integers(0, search_box.width)), data.draw(st.integers(0, search_box.height))
    x = data.draw(st.integers(search_box.x, search_box.right - width))
    y = data.draw(st.integers(search_box.y, search_box.bottom - height))
    box = Box(x, y, width, height)
    assert box_from_unit(extract_roi(box_to_unit(box, search_box).tolist())["box"], search_box) == box


# -- what is shown ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", SEARCHED)
@pytest.mark.parametrize("box", [WHOLE, INSIDE, (0.1, 0.2, 0.05, 0.04), (0.5, 0.5, 0.4, 0.02)])
@pytest.mark.parametrize("px", [40, 224])
def test_the_view_is_the_roi_at_the_targets_magnification_or_less(
    cohort: Cohort, target: str, box: Sequence[float], px: int
) -> None:
    env = make(cohort, view_px=px)
    _, info = start(env, target)
    observation, *_, info = env.step(extract_roi(box))
    roi, (width, height) = Box.of(info["roi"]), info["view_size"]
    shown, wanted = float(observation["view_magnification"][0]), info["magnification"]
    assert 0 < shown <= wanted
    assert max(width, height) == px or shown == wanted
    # to the nearest pixel of the view, at 40x = 0.25 um/px
    assert abs(width - roi.width * shown / 40) <= max(0.5, 1 - roi.width * shown / 40) + 1e-4
    assert abs(height - roi.height * shown / 40) <= max(0.5, 1 - roi.height * shown / 40) + 1e-4
    expected = np.full((px, px, 3), 255, np.uint8)
    expected[:height, :width] = cohort.open("s1").read(roi, (width, height))
    assert (observation["view"] == expected).all()
    assert box_from_unit(observation["view_box"], SEARCHED[target]) == roi


@pytest.mark.parametrize("target", SEARCHED)
@pytest.mark.parametrize("px", [40, 256, 1500])
def test_the_overview_is_the_search_box_at_a_quarter_or_less(cohort: Cohort, target: str, px: int) -> None:
    env = make(cohort, overview_px=px)
    observation, info = start(env, target)
    search_box, (width, height) = Box.of(info["search_box"]), info["overview_size"]
    quarter = info["magnification"] / 4
    assert width <= math.floor(search_box.width * quarter / 40 + 0.5)
    assert height <= math.floor(search_box.height * quarter / 40 + 0.5)
    assert max(width, height) == min(px, math.floor(max(search_box.width, search_box.height) * quarter / 40 + 0.5))
    expected = np.full((px, px, 3), 255, np.uint8)
    expected[:height, :width] = cohort.open("s1").read(search_box, (width, height))
    assert (observation["overview"] == expected).all()


def test_padding_is_the_slides_background(tiny_cohort: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cohort = Cohort.load(tiny_cohort)
    for slide_id in ("s1", "s2"):
        monkeypatch.setattr(cohort.open(slide_id), "background", (240, 238, 245))
    env = make(cohort, context=[2.5], render_mode="rgb_array")
    start(env)
    observation, *_ = env.step(extract_roi((0.2, 0.2, 0.5, 0.1)))
    assert (observation["view"][-1] == (240, 238, 245)).all()
    assert (observation["overview"][-1] == (240, 238, 245)).all()
    assert (observation["context"][0, 0] == (240, 238, 245)).all()
    frame = env.render()
    assert frame is not None
    assert (frame[-1] == (240, 238, 245)).all()


def test_context_shows_the_same_centre_inside_the_search_box_never_above_the_target(cohort: Cohort) -> None:
    env = make(cohort, view_px=64, context=[2.5, 10, 40])
    start(env)
    search_box = SEARCHED["glands"]
    middle, corner = Box(780, 630, 41, 41), Box(200, 100, 41, 41)
    observation, *_ = env.step(extract_roi(box_to_unit(middle, search_box)))
    low, native, capped = observation["context"]
    slide = cohort.open("s1")
    assert (native == slide.read(Box(0, 0, 256, 256).centred_on(800.5, 650.5), (64, 64))).all()
    assert (low == slide.read(Box(0, 0, 1024, 1024).centred_on(800.5, 650.5), (64, 64))).all()
    assert (capped == native).all()

    observation, *_ = env.step(extract_roi(box_to_unit(corner, search_box)))
    low, native, _ = observation["context"]
    x, y = (native != 255).any(axis=(0, 2)), (native != 255).any(axis=(1, 2))
    assert (int(x.argmax()), int(y.argmax())) == (27, 27)  # (64 px * 4 / 2 - 20.5) / 4, the first pixel wholly inside
    assert (native[:27] == 255).all()
    assert (native[:, :27] == 255).all()
    around = Box(0, 0, 256, 256).centred_on(220.5, 120.5)
    assert (native[27:, 27:] == slide.read(around, (64, 64))[27:, 27:]).all()


@settings(max_examples=40, deadline=None)
@given(st.tuples(*[st.floats(0, 1)] * 4), st.sampled_from([1.25, 2.5, 7, 10]))
def test_context_never_leaves_the_search_box(outlined: Path, box: tuple[float, ...], magnification: float) -> None:
    """The slide is black outside the search box, so any black pixel would come from there."""
    env = make(outlined, view_px=40, context=[magnification])
    env.reset(options={"query_id": next(each for each in env.query_ids if "10x" in each)})
    observation, *_, info = env.step(extract_roi(box))
    if info["roi"] is not None:
        assert observation["context"].min() > 80
        assert observation["view"].min() > 80
    assert observation["overview"].min() > 80


@pytest.fixture(scope="module")
def outlined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A slide that is black but for the box of its one parent, which is grey."""
    folder = tmp_path_factory.mktemp("outlined")
    nodes = [{**NODES[0], "box": [403, 297, 1201, 1103]}, {**NODES[1], "box": [500, 500, 300, 200]}]
    build_cohort(folder, slides=[{"slide_id": "s1"}], nodes=nodes, paths=[], pixels=False)
    pixels = np.zeros((SLIDE_PX, SLIDE_PX, 3), np.uint8)
    pixels[297 - 16 : 1400 + 16, 403 - 16 : 1604 + 16] = 160  # a margin as wide as a pixel of the coarsest level
    write_slide(folder / "s1.svs", pixels, tile_px=256, aperio=APERIO_40X)
    return folder


def test_returned_arrays_are_the_callers(cohort: Cohort) -> None:
    env = make(cohort)
    first, _ = start(env)
    overview = first["overview"].copy()
    first["overview"][...] = 7
    assert (env.step(extract_roi(INSIDE))[0]["overview"] == overview).all()


# -- reward -------------------------------------------------------------------------------------------------------


def test_the_reference_scores_one_and_any_valid_box_counts(cohort: Cohort) -> None:
    for reward, paid in (("iou", 1.0), ("hit", 1.0)):
        env = make(cohort, reward=reward)
        for node in (NODES[1], NODES[2]):
            start(env)
            answer = finish_and_report(box_to_unit(Box.of(node["box"]), SEARCHED["glands"]))
            _, received, terminated, _, info = env.step(answer)
            assert terminated
            assert (received, info["iou"], info["hit"]) == (paid, 1.0, True)
            assert isinstance(received, float)


@pytest.mark.parametrize(("unit", "hit"), [((0.05, 0.05, 0.3, 0.2), True), ((0.2, 0.2, 0.3, 0.3), False)])
def test_reward_is_iou_or_hit_of_the_final_box_alone(cohort: Cohort, unit: Sequence[float], hit: bool) -> None:
    predicted = box_from_unit(np.array(unit, np.float32), SEARCHED["glands"])
    expected = best_placed_iou(predicted, [Box.of(node["box"]) for node in NODES[1:3]], SEARCHED["glands"])
    assert 0 < expected < 1
    assert hit == (expected >= 0.3)
    for reward, paid in (("iou", expected), ("hit", float(hit))):
        env = make(cohort, reward=reward)
        start(env)
        assert [env.step(extract_roi(box))[1] for box in (INSIDE, WHOLE, OUTSIDE)] == [0, 0, 0]
        *_, info = last = env.step(finish_and_report(unit))
        assert (last[1], info["iou"], info["hit"]) == (paid, expected, hit)


def shaped_episode(env: LocalizationEnv, looks: Sequence[Sequence[float]], last: dict[str, Any]) -> list[float]:
    start(env)
    rewards = [env.step(extract_roi(look))[1] for look in looks]
    if "box" in last:
        return [*rewards, env.step(last)[1]]
    for _ in range(3):
        rewards.append(env.step(BAD_LOOK)[1])
    return rewards


LOOKS: list[list[Sequence[float]]] = [
    [],
    [INSIDE],
    [(0.05, 0.05, 0.3, 0.2), INSIDE, (0.1, 0.1, 0.2, 0.2)],
    [(0.6, 0.6, 0.2, 0.2), OUTSIDE, (0.6, 0.55, 0.3, 0.4), WHOLE],
]


@pytest.mark.parametrize("looks", LOOKS)
@pytest.mark.parametrize("last", [finish_and_report(INSIDE), finish_and_report((0.1, 0.1, 0.3, 0.25)), {}])
def test_shaping_changes_no_return(cohort: Cohort, looks: list[Sequence[float]], last: dict[str, Any]) -> None:
    """The discounted shaping telescopes to -Phi(start) = 0: policies are ordered as they are without it."""
    plain = shaped_episode(make(cohort, reward="iou"), looks, last)
    for gamma in (1.0, 0.99, 0.5, 0.0):
        shaped = shaped_episode(make(cohort, reward="shaped", gamma=gamma), looks, last)
        returns = [sum(gamma**t * reward for t, reward in enumerate(rewards)) for rewards in (shaped, plain)]
        assert returns[0] == pytest.approx(returns[1], abs=1e-12)
    if len(looks) > 1:
        assert any(shaped[t] != 0 for t in range(len(looks)))


def test_shaping_pays_for_a_look_what_it_would_score(cohort: Cohort) -> None:
    env = make(cohort, reward="shaped", gamma=0.9)
    start(env)
    valid = [Box.of(node["box"]) for node in NODES[1:3]]
    reference = box_to_unit(valid[0], SEARCHED["glands"])
    first = best_placed_iou(box_from_unit(INSIDE, SEARCHED["glands"]), valid, SEARCHED["glands"])
    assert env.step(extract_roi(INSIDE))[1] == pytest.approx(0.9 * first)
    assert env.step(extract_roi(reference))[1] == pytest.approx(0.9 - first)
    assert env.step(BAD_LOOK)[1] == pytest.approx(0.9 - 1)
    assert env.step(finish_and_report(reference))[1] == pytest.approx(1 - 1)


# -- nothing of the reference is shown ----------------------------------------------------------------------------


@pytest.mark.parametrize("reward", ["iou", "shaped"])
def test_other_answers_to_the_same_questions_look_the_same(tiny_cohort: Path, tmp_path: Path, reward: str) -> None:
    """Move the boxes, rename and rewrite what is hidden: observations, infos and frames are equal until the end."""
    slides = [{"slide_id": "s1", "path": str(tiny_cohort / "s1.svs")}]
    moved = {"a-1": [310, 210, 401, 300], "a-2": [208, 100, 99, 98], "b-1": [64, 1200, 50, 60]}
    nodes = [{**node, "box": moved.get(node["node_id"], node["box"])} for node in NODES if node["node_id"] != "a-1-1"]
    other_nodes = [dict(node) for node in nodes]
    for node in nodes:
        node["node_id"] = "n" + node["node_id"]
        node["parent_id"] = node["parent_id"] and "n" + node["parent_id"]
    for node in other_nodes:
        if node["node_id"] in moved:
            node["box"] = {each["node_id"]: each["box"] for each in NODES}[node["node_id"]]
    envs = []
    for name, listed in (("one", nodes), ("other", other_nodes)):
        paths = [{"path_id": name, "node_ids": [listed[0]["node_id"]], "diagnosis": name, "category": name}]
        folder = build_cohort(tmp_path / name, slides=slides, nodes=listed, paths=paths, pixels=False, name=name)
        envs.append(make(Cohort.load(folder, allow_outside=True), reward=reward, context=[5], render_mode="rgb_array"))
    assert envs[0].query_ids == envs[1].query_ids
    assert envs[0].observation_space == envs[1].observation_space
    for query_id in envs[0].query_ids:
        seen: list[list[Any]] = []
        for env in envs:
            shown: list[Any] = [*env.reset(options={"query_id": query_id}), env.render()]
            for look in (INSIDE, (0.1, 0.1, 0.2, 0.2), OUTSIDE, WHOLE, (0, 0, 0, 0), (-1, 0, 1.5, 1)):
                observation, _, _, _, info = env.step(extract_roi(look))
                shown += [observation, info, env.render()]
            *_, info = env.step(finish_and_report((0.3, 0.3, 0.1, 0.1)))
            shown += [{key: info[key] for key in info.keys() - {"iou", "hit"}}, env.render()]
            seen.append(shown)
        np.testing.assert_equal(seen[0], seen[1])
    scores = [env.step(finish_and_report((0.3, 0.3, 0.1, 0.1)))[4]["iou"] for env in envs if start(env)]
    assert scores[0] != scores[1]


def test_a_frame_shows_the_overview_with_the_looks_and_the_view(cohort: Cohort) -> None:
    env = make(cohort, view_px=64, overview_px=100, render_mode="rgb_array")
    observation, _ = start(env)
    frame = env.render()
    assert frame is not None
    assert frame.shape == (100, 200, 3)
    assert (frame[:, :100] == observation["overview"]).all()
    assert (frame[:, 100:] == 255).all()
    env.step(extract_roi((0.1, 0.1, 0.2, 0.2)))
    observation, *_ = env.step(extract_roi((0.5, 0.5, 0.3, 0.3)))
    frame = env.render()
    assert frame is not None
    assert (frame[:64, 100:164] == observation["view"]).all()
    changed = (frame[:, :100] != observation["overview"]).any(axis=2)
    assert {tuple(colour) for colour in frame[:, :100][changed].tolist()} == {(30, 90, 220), (220, 40, 40)}
    width, height = env.reset(options={"query_id": query(env, "glands")})[1]["overview_size"]
    assert changed[round(0.1 * height), round(0.1 * width)]
    assert changed[round(0.5 * height), round(0.5 * width)]
    assert make(cohort).render() is None


# -- arguments and cohorts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kwargs", "error", "words"),
    [
        ({"reward": "dense"}, UnknownNameError, "unknown reward 'dense'"),
        ({"reward": None}, UnknownNameError, "unknown reward 'None'"),
        ({"reward": "shape"}, UnknownNameError, "Did you mean 'shaped'"),
        ({"render_mode": "human"}, UnknownNameError, "rgb_array"),
        ({"view_px": 35}, InvalidArgumentError, "view_px is 35; allowed are whole numbers from 36 to 8192"),
        ({"view_px": 224.5}, InvalidArgumentError, "224.5"),
        ({"view_px": "224"}, InvalidArgumentError, "'224'"),
        ({"view_px": True}, InvalidArgumentError, "True"),
        ({"overview_px": 8193}, InvalidArgumentError, "overview_px is 8193"),
        ({"overview_px": NAN}, InvalidArgumentError, "overview_px is nan"),
        ({"context": [0]}, InvalidArgumentError, "above 0"),
        ({"context": [2.5, NAN]}, InvalidArgumentError, "nan"),
        ({"context": 10}, InvalidArgumentError, "context is 10"),
        ({"context": "10"}, InvalidArgumentError, "context is '10'"),
        ({"context": [True]}, InvalidArgumentError, "True"),
        ({"context": [201]}, InvalidArgumentError, "up to 200"),
        ({"gamma": 1.01}, InvalidArgumentError, "gamma is 1.01"),
        ({"gamma": NAN}, InvalidArgumentError, "gamma is nan"),
        ({"gamma": "1"}, InvalidArgumentError, "gamma is '1'"),
        ({"split": "dev"}, UnknownNameError, "unknown split 'dev'"),
        ({"split": "train"}, InvalidArgumentError, "no slide in split 'train'"),
        ({"budget": "bsae"}, UnknownNameError, "Did you mean 'base'"),
        ({"budget": -1}, InvalidArgumentError, "-1"),
        ({"budget": {10: 7}}, InvalidArgumentError, "says nothing for a query at 2.5x; add 2.5=N"),
    ],
)
def test_arguments_that_are_not_allowed(
    cohort: Cohort, kwargs: dict[str, Any], error: type[WsigymError], words: str
) -> None:
    with pytest.raises(error) as caught:
        make(cohort, **kwargs)
    assert words in str(caught.value)


def test_a_cohort_is_a_folder_or_loaded_and_an_empty_name_is_none(tiny_cohort: Path, tmp_path: Path) -> None:
    loaded = Cohort.load(tiny_cohort)
    assert make(str(tiny_cohort)).query_ids == make(tiny_cohort).query_ids == make(loaded).query_ids
    with pytest.raises(CohortError, match="no such file"):
        make(tmp_path)
    with pytest.raises(CohortError, match="no such file"):
        make("")


def test_a_slide_that_does_not_bear_its_annotations_is_told_on_reset(tiny_cohort: Path, tmp_path: Path) -> None:
    slides = [{"slide_id": "s1", "path": str(tiny_cohort / "s1.svs")}]
    nodes = [NODES[0], {**NODES[4], "box": [2000, 0, 49, 9]}, {**NODES[1], "magnification": 50}]
    folder = build_cohort(tmp_path, slides=slides, nodes=nodes, paths=[], pixels=False)
    env = make(Cohort.load(folder, allow_outside=True))
    for _ in range(2):
        with pytest.raises(CohortError) as caught:
            env.reset(seed=0)
        assert [(fault.line, fault.field) for fault in caught.value.faults] == [(2, "box"), (3, "magnification")]


def test_a_slide_that_is_not_there(tiny_cohort: Path, tmp_path: Path) -> None:
    folder = build_cohort(tmp_path, pixels=False)
    with pytest.raises(SlideOpenError, match="no such file"):
        make(folder)


def test_a_slide_without_tissue(tmp_path: Path, shared_cases: Path) -> None:
    nodes = [{**NODES[0], "box": [10, 10, 300, 300]}, {**NODES[1], "box": [20, 20, 30, 30]}]
    slides = [{"slide_id": "white", "path": str(shared_cases / "all_white.tif")}]
    folder = build_cohort(tmp_path, slides=slides, nodes=nodes, paths=[], pixels=False)
    env = make(Cohort.load(folder, allow_outside=True), render_mode="rgb_array")
    for query_id in env.query_ids:
        observation, _ = env.reset(options={"query_id": query_id})
        assert observation["overview"].min() > 250
        assert env.step(extract_roi(INSIDE))[0]["view"].min() > 250
        assert env.render() is not None
        assert env.step(finish_and_report(INSIDE))[2]


def test_a_scan_of_20x_and_a_target_ten_percent_above_it(tmp_path: Path) -> None:
    nodes = [{**NODES[0], "magnification": 5}, {**NODES[1], "magnification": 22}]
    folder = build_cohort(tmp_path, slides=[{"slide_id": "s1", "mpp": 0.5}], nodes=nodes, paths=[], pixels=False)
    write_slide(folder / "s1.svs", noise(SLIDE_PX, SLIDE_PX), tile_px=256, aperio=APERIO_40X)
    env = make(folder)
    start(env)
    observation, *_, info = env.step(extract_roi(box_to_unit(Box(400, 300, 20, 10), SEARCHED["glands"])))
    assert observation["view_magnification"] == 22
    assert info["view_size"] == (22, 11)
    assert info["mpp"] == 0.5


def test_nodes_in_any_order_give_the_same_queries(tiny_cohort: Path, tmp_path: Path) -> None:
    slides = [{"slide_id": name, "path": str(tiny_cohort / f"{name}.svs")} for name in ("s1", "s2")]
    folder = build_cohort(tmp_path, slides=slides, pixels=False)
    write_lines(folder / "nodes.jsonl", read_lines(folder / "nodes.jsonl")[::-1])
    assert set(make(Cohort.load(folder, allow_outside=True)).query_ids) == set(make(tiny_cohort).query_ids)
