"""FlatBox: five numbers say what the structured action says."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsigym.cohorts import Cohort
from wsigym.envs import LocalizationEnv
from wsigym.envs.flat_box import FlatBox
from wsigym.envs.localization import EXTRACT_ROI, FINISH_AND_REPORT
from wsigym.errors import EpisodeOverError, InvalidArgumentError


@pytest.fixture(scope="module")
def env(tiny_cohort: Path) -> FlatBox:
    return FlatBox(LocalizationEnv(Cohort.load(tiny_cohort), view_px=36, overview_px=36))


@pytest.mark.parametrize(
    ("flat", "tool", "box"),
    [
        ((-1, 0, 0, 1, 1), EXTRACT_ROI, (0, 0, 1, 1)),
        ((0, 0, 0, 0, 0), EXTRACT_ROI, (0.25, 0.25, 0.5, 0.5)),
        ((0.1, -1, 1, 0, -0.5), FINISH_AND_REPORT, (-0.25, 0.875, 0.5, 0.25)),
        ((1, 0.5, 0, -1, -1), FINISH_AND_REPORT, (0.75, 0.5, 0, 0)),
    ],
)
def test_what_five_numbers_say(env: FlatBox, flat: tuple[float, ...], tool: int, box: tuple[float, ...]) -> None:
    env.reset(options={"query_id": env.unwrapped.query_ids[0]})  # type: ignore[attr-defined]
    action = env.action(np.array(flat, np.float32))
    assert action["tool"] == tool
    assert action["box"].tolist() == pytest.approx(box, abs=1 / 2048)
    assert np.isnan(action["confidence"]).all()


@given(st.lists(st.floats(-1, 1, width=32) | st.just(1.0), min_size=5, max_size=5), st.integers(0, 20))
@settings(max_examples=80)
def test_what_is_in_the_action_space_is_refused_for_no_place(env: FlatBox, flat: list[float], seed: int) -> None:
    """At the edges too, where clipped actions lie: rounding to level-0 pixels takes no centre outside."""
    env.reset(seed=seed)
    *_, info = env.step(np.array(flat, np.float32))
    assert "error" not in info or "under one level-0 pixel" in info["error"]


def test_numbers_that_are_not_finite_are_the_environments_to_answer(env: FlatBox) -> None:
    env.reset(seed=0)
    *_, info = env.step(np.array([-1, math.nan, 0, 0, 0], np.float32))
    assert "finite" in info["error"]


@pytest.mark.parametrize("action", [None, 3, [0, 0, 0, 0], ["a"] * 5, np.zeros((5, 2))])
def test_actions_that_are_none(env: FlatBox, action: Any) -> None:
    env.reset(seed=0)
    with pytest.raises(InvalidArgumentError, match="five numbers"):
        env.step(action)


def test_nothing_goes_before_the_first_reset(tiny_cohort: Path) -> None:
    env = FlatBox(LocalizationEnv(Cohort.load(tiny_cohort), view_px=36, overview_px=36))
    for asked in (env.step, env.action):
        with pytest.raises(EpisodeOverError, match=r"before reset\(\); call reset\(\) first"):
            asked(np.zeros(5, np.float32))
