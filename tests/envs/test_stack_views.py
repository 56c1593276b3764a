"""StackViews: the last looks, latest last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from wsigym.cohorts import Cohort
from wsigym.envs import LocalizationEnv
from wsigym.envs.blind import BlindImages
from wsigym.envs.concentric_views import SHARES, ConcentricViews
from wsigym.envs.localization import extract_roi
from wsigym.envs.stack_views import StackViews
from wsigym.errors import InvalidArgumentError

BOXES = [(0.0, 0.0, 0.5, 0.5), (0.5, 0.5, 0.25, 0.25), (0.25, 0.0, 0.5, 0.5), (0.0, 0.5, 0.5, 0.5)]


@pytest.fixture(scope="module")
def base(tiny_cohort: Path) -> LocalizationEnv:
    return LocalizationEnv(Cohort.load(tiny_cohort), view_px=36, overview_px=40)


def test_the_last_looks_latest_last(base: LocalizationEnv) -> None:
    env = StackViews(ConcentricViews(base, 36), 3)
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    assert observation["view_quarter"].shape == (36, 36, 9)
    assert observation["overview"].shape == (40, 40, 3)
    assert (observation["view"] == 255).all()
    assert observation["view_box"].tolist() == [0] * 12
    single = ConcentricViews(base, 36)
    single.reset(seed=0)
    looks = [single.step(extract_roi(box))[0] for box in BOXES]
    env.reset(seed=0)
    for number, box in enumerate(BOXES):
        observation, *_ = env.step(extract_roi(box))
        last = looks[max(0, number - 2) : number + 1]
        for name in (*SHARES, "view_box"):
            size = looks[0][name].shape[-1]
            shown = observation[name][..., -size * len(last) :]
            assert (shown == np.concatenate([look[name] for look in last], axis=-1)).all(), name
    before = observation
    observation, *_ = env.step(extract_roi((5, 5, 1, 1)))
    assert all((observation[name] == before[name]).all() for name in observation)


def test_one_look_is_the_environment_itself(base: LocalizationEnv) -> None:
    env = StackViews(base, 1)
    assert env.observation_space == base.observation_space
    observation, _ = env.reset(seed=3)
    assert observation in base.observation_space


def test_stacked_images_are_blinded_too(base: LocalizationEnv) -> None:
    env = BlindImages(StackViews(base, 2))
    env.reset(seed=0)
    observation, *_ = env.step(extract_roi((0, 0, 1, 1)))
    assert (observation["view"] == 255).all()


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "2", 65, 10**6])
def test_numbers_that_are_none(base: LocalizationEnv, number: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="whole numbers of looks, 1 to 64"):
        StackViews(base, number)


def test_environments_without_views() -> None:
    with pytest.raises(InvalidArgumentError, match="has no view"):
        StackViews(gym.make("CartPole-v1"))
