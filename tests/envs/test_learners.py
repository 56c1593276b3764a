"""What stable-baselines3 can take is let through, what it cannot is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from wsigym.cohorts import Cohort
from wsigym.envs import LocalizationEnv
from wsigym.envs.learners import check_for_sb3
from wsigym.envs.pan_zoom import PanZoom
from wsigym.envs.ready_made import localization_continuous, localization_pan_zoom
from wsigym.errors import InvalidArgumentError


@pytest.fixture(scope="module")
def cohort(tiny_cohort: Path) -> Cohort:
    return Cohort.load(tiny_cohort)


TWO = spaces.Discrete(2)


class Spaces(gym.Env[Any, Any]):
    def __init__(self, observation: spaces.Space[Any], action: spaces.Space[Any] = TWO) -> None:
        self.observation_space, self.action_space = observation, action


def test_the_ready_made_ones_can_be_learned_in(cohort: Cohort) -> None:
    check_for_sb3(localization_pan_zoom(cohort=cohort, view_px=36, overview_px=36))
    check_for_sb3(localization_continuous(cohort=cohort, view_px=36, overview_px=36))


def test_the_structured_action(cohort: Cohort) -> None:
    with pytest.raises(InvalidArgumentError, match=r"its actions are a Dict, .* put PanZoom"):
        check_for_sb3(LocalizationEnv(cohort))


def test_context_is_no_image(cohort: Cohort) -> None:
    env = PanZoom(LocalizationEnv(cohort, context=[5], view_px=64))
    with pytest.raises(InvalidArgumentError, match=r"context has the shape \(1, 64, 64, 3\), .* ConcentricViews"):
        check_for_sb3(env)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (spaces.Text(10), "target is a Text"),
        (spaces.Dict({"a": spaces.Discrete(2)}), "target is a Dict"),
        (spaces.Box(0, 255, (20, 64, 3), np.uint8), "36 px a side or more"),
        (spaces.Box(0, 1, (64, 64, 3), np.float32), "target is no uint8 of 0 to 255"),
        (spaces.Box(0, 1, (64, 64, 3), np.uint8), "target is no uint8 of 0 to 255"),
        (spaces.Box(0, 1, (0,), np.float32), r"target has the shape \(0,\), in which there is nothing"),
        (spaces.Discrete(3, start=1), "target: the numbers start at 1"),
    ],
)
def test_other_parts(part: spaces.Space[Any], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        check_for_sb3(Spaces(spaces.Dict({"target": part, "number": spaces.Discrete(3)})))


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (spaces.Box(-np.inf, 1, (2,), np.float32), "no bounds"),
        (spaces.Discrete(3, start=1), "its actions: the numbers start at 1"),
        (spaces.Text(3), "its actions are a Text"),
        (spaces.Box(0, 1, (0,), np.float32), r"its actions have the shape \(0,\)"),
    ],
)
def test_actions(action: spaces.Space[Any], said: str) -> None:
    seen = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    check_for_sb3(Spaces(seen))
    with pytest.raises(InvalidArgumentError, match=said):
        check_for_sb3(Spaces(seen, action))


@pytest.mark.parametrize("env", [None, 5, "wsigym/LocalizationPanZoom-v0", PanZoom])
def test_what_is_no_environment(env: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"was given .*; needed is one environment, as gymnasium\.make"):
        check_for_sb3(env)


def test_a_vector_is_no_environment(cohort: Cohort) -> None:
    vector = gym.make_vec("wsigym/LocalizationPanZoom-v0", 1, cohort=cohort, view_px=36, overview_px=36)
    with pytest.raises(InvalidArgumentError, match=r"ThreadedVectorEnv.*; needed is one environment"):
        check_for_sb3(vector)  # type: ignore[arg-type]
    vector.close()
