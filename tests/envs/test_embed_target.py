"""EmbedTarget: the target's text as a vector, encoded once."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from wsigym.cohorts import Cohort
from wsigym.envs import LocalizationEnv
from wsigym.envs.embed_target import EmbedTarget
from wsigym.envs.localization import finish_and_report
from wsigym.envs.pan_zoom import PanZoom
from wsigym.errors import InvalidArgumentError


class Letters:
    """How many of each of three letters a text has."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, sentences: list[str]) -> Any:
        self.asked += sentences
        return [[sentence.count(letter) for letter in "aeg"] for sentence in sentences]


def make(cohort: Path, encoder: Any) -> EmbedTarget:
    return EmbedTarget(LocalizationEnv(Cohort.load(cohort), view_px=36, overview_px=36), encoder)


def test_the_vector_is_the_encoders_and_each_text_is_encoded_once(tiny_cohort: Path) -> None:
    encoder = Letters()
    env = make(tiny_cohort, encoder)
    seen = set()
    for seed in range(30):
        observation, info = env.reset(seed=seed)
        assert observation in env.observation_space
        assert observation["target"].tolist() == [info["target"].count(letter) for letter in "aeg"]
        after, *_ = env.step(finish_and_report((0, 0, 1, 1)))
        assert (after["target"] == observation["target"]).all()
        assert not np.shares_memory(after["target"], observation["target"])
        seen.add(info["target"])
    assert len(seen) == 5
    assert sorted(encoder.asked) == sorted([*seen, "target"])


def test_it_goes_under_other_wrappers_and_pickles(tiny_cohort: Path) -> None:
    env = PanZoom(make(tiny_cohort, Letters()))
    copied = pickle.loads(pickle.dumps(env))
    assert (env.reset(seed=1)[0]["target"] == copied.reset(seed=1)[0]["target"]).all()


@pytest.mark.parametrize("encoded", [[1.0, 2.0], [[np.nan]], [[1.0], [2.0]], 3])
def test_encoders_that_give_no_vector(tiny_cohort: Path, encoded: Any) -> None:
    class Bad:
        def encode(self, sentences: list[str]) -> Any:
            return encoded

    with pytest.raises(InvalidArgumentError, match=r"finite numbers of shape \(1, n\) are needed"):
        make(tiny_cohort, Bad())


def test_environments_without_a_target_or_a_dict() -> None:
    with pytest.raises(InvalidArgumentError, match="Dict observations"):
        EmbedTarget(gym.make("CartPole-v1"), Letters())

    class Numbers(gym.ObservationWrapper[Any, Any, Any]):
        observation_space = gym.spaces.Dict({"x": gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)})

        def observation(self, observation: Any) -> Any:
            return {"x": observation}

    with pytest.raises(InvalidArgumentError, match="no text under 'target'"):
        EmbedTarget(Numbers(gym.make("CartPole-v1")), Letters()).reset()
