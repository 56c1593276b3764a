"""ConcentricViews: one centre at three magnifications, no more detail than the query allows, one ROI a look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from wsigym.cohorts import Cohort
from wsigym.envs import LocalizationEnv
from wsigym.envs.concentric_views import SHARES, ConcentricViews
from wsigym.envs.localization import extract_roi, finish_and_report
from wsigym.errors import InvalidArgumentError
from wsigym.slides import Box, Slide

PX = 40


@pytest.fixture(scope="module")
def cohort(tiny_cohort: Path) -> Cohort:
    return Cohort.load(tiny_cohort)


def make(cohort: Cohort, **kwargs: Any) -> ConcentricViews:
    return ConcentricViews(LocalizationEnv(cohort, view_px=36, overview_px=36, **kwargs), PX)


def start(env: gym.Env[Any, Any], target: str = "glands") -> tuple[Any, dict[str, Any], Slide]:
    for query_id in env.get_wrapper_attr("query_ids"):
        observation, info = env.reset(options={"query_id": query_id})
        if info["target"] == target:
            return observation, info, env.get_wrapper_attr("cohort").open(query_id.split("/")[0])
    raise AssertionError(target)


def test_the_observation(cohort: Cohort) -> None:
    env = make(cohort, context=[5])
    others = {"overview", "view_box", "view_magnification", "target_magnification", "overview_extent"}
    others |= {"budget_left", "rois_left"}
    assert set(env.observation_space.spaces) == {"view", "view_quarter", "view_sixteenth"} | others
    observation, *_ = start(env)
    assert all((observation[name] == 255).all() and observation[name].shape == (PX, PX, 3) for name in SHARES)
    assert observation in env.observation_space


def test_three_magnifications_of_the_rois_centre(cohort: Cohort) -> None:
    """At 10x a pixel is 4 level-0 pixels, at 2.5x 16 and at 0.625x 64. The search box is (200, 100, 1201, 1100)."""
    env = make(cohort)
    _, _, slide = start(env)
    observation, *_, info = env.step(extract_roi((0.4, 0.4, 0.2, 0.2)))
    x, y = Box.of(info["roi"]).centre
    assert info["rois_left"] == 6
    for name, pixel in (("view", 4), ("view_quarter", 16)):
        box = Box(0, 0, PX * pixel, PX * pixel).centred_on(x, y)
        assert Box(200, 100, 1201, 1100).contains(box)
        assert (observation[name] == slide.read(box, (PX, PX))).all(), name
    around = Box(0, 0, PX * 64, PX * 64).centred_on(x, y)
    # Of pixels of 64 level-0 pixels, those that lie wholly inside the search box are shown.
    columns = [n for n in range(PX) if around.x + 64 * n >= 200 and around.x + 64 * (n + 1) <= 1401]
    rows = [n for n in range(PX) if around.y + 64 * n >= 100 and around.y + 64 * (n + 1) <= 1200]
    shown = np.zeros((PX, PX), bool)
    shown[np.ix_(rows, columns)] = True
    whole = slide.read(around, (PX, PX)).astype(int)
    assert (observation["view_sixteenth"][~shown] == 255).all()
    cut = observation["view_sixteenth"][np.ix_(rows, columns)]
    same, moved = (np.abs(cut - whole[np.ix_([row + by for row in rows], columns)]).mean() for by in (0, 1))
    assert same < 4  # noise is resized differently when it is cut out first
    assert moved > 2 * same
    assert (len(rows), len(columns)) == (16, 18)


def test_the_size_of_the_roi_changes_no_view(cohort: Cohort) -> None:
    env = make(cohort)
    start(env)
    small, *_ = env.step(extract_roi((0.45, 0.45, 0.1, 0.1)))
    large, *_, info = env.step(extract_roi((0.2, 0.2, 0.6, 0.6)))
    centre = Box.of(info["roi"]).centre
    assert abs(centre[0] - (200 + 1201 / 2)) <= 1
    assert all(np.abs(small[name].astype(int) - large[name]).mean() < 30 for name in SHARES)
    assert small["view_box"][2] < large["view_box"][2]


def test_no_look_no_new_views(cohort: Cohort) -> None:
    env = make(cohort)
    start(env)
    seen, *_ = env.step(extract_roi((0.1, 0.1, 0.3, 0.3)))
    for action in (extract_roi((2, 2, 1, 1)), finish_and_report((0, 0, 1, 1))):
        same, *_ = env.step(action)
        assert all((same[name] == seen[name]).all() for name in SHARES)
    again, *_ = start(env)
    assert all((again[name] == 255).all() for name in SHARES)


def test_the_environment_below_reads_nothing_that_is_not_observed(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    read = Slide.read
    monkeypatch.setattr(Slide, "read", lambda *args, **kwargs: reads.append(1) or read(*args, **kwargs))
    env = make(cohort, observe=["view_box", "budget_left"])
    start(env)
    assert not reads
    env.step(extract_roi((0.4, 0.4, 0.2, 0.2)))
    assert len(reads) == len(SHARES)
    env.step(extract_roi((0.4, 0.4, 0.2, 0.2)))  # the same centre shows the same
    assert len(reads) == len(SHARES)


def test_what_it_does_not_take(cohort: Cohort) -> None:
    with pytest.raises(InvalidArgumentError, match=r"ConcentricViews was put on .*LocalizationEnv"):
        ConcentricViews(gym.make("CartPole-v1"))
    with pytest.raises(InvalidArgumentError, match="px is 35; allowed are whole numbers from 36"):
        ConcentricViews(LocalizationEnv(cohort), px=35)
