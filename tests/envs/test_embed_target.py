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


class Gives:
    """Gives one thing after the other."""

    def __init__(self, *encoded: Any) -> None:
        self.encoded = list(encoded)

    def encode(self, sentences: list[str]) -> Any:
        return self.encoded.pop(0)


@pytest.mark.parametrize(
    ("encoded", "told"),
    [
        ([1.0, 2.0], r"an array of shape \(2,\)"),
        ([[1.0], [2.0]], r"an array of shape \(2, 1\)"),
        (np.zeros((1, 0)), r"an array of shape \(1, 0\)"),
        (3, r"an array of shape \(\)"),
        ([[np.nan]], "numbers that are not finite"),
        ([[1e300]], "numbers that are not finite in float32"),
        ([["a", "b"]], r"\[\['a', 'b'\]\] for one text"),
        ([[1j]], r"\[\[1j\]\] for"),
        ([[1.0], [2.0, 3.0]], r"\[\[1.0\], \[2.0, 3.0\]\] for"),
        (None, "None for one text"),
        (np.array([[object()]]), r"array\(\[\[<obj"),
    ],
)
def test_encoders_that_give_no_vector(tiny_cohort: Path, encoded: Any, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"gave {told}.*finite numbers of shape \(1, n\), n at least 1"):
        make(tiny_cohort, Gives(encoded))


def test_vectors_are_of_one_length(tiny_cohort: Path) -> None:
    env = make(tiny_cohort, Gives([[1, 2, 3]], [[1, 2, 3, 4]]))
    with pytest.raises(InvalidArgumentError, match=r"gave 4 numbers for '.*', and 3 for the text before"):
        env.reset(seed=0)


@pytest.mark.parametrize("encoder", [None, "all-MiniLM-L6-v2", 5, Letters])
def test_what_is_no_encoder(tiny_cohort: Path, encoder: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"encoder is .*; needed is an object with a method encode\("):
        make(tiny_cohort, encoder)


def test_tensors_of_torch(tiny_cohort: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install torch")
    learned = torch.tensor([[0.5, 2.0]], requires_grad=True)
    env = make(tiny_cohort, Gives(learned, learned.bfloat16()))
    observation, _ = env.reset(seed=0)
    assert observation["target"].tolist() == [0.5, 2.0]
    assert observation in env.observation_space


def test_environments_without_a_target_or_a_dict() -> None:
    with pytest.raises(InvalidArgumentError, match="Dict observations"):
        EmbedTarget(gym.make("CartPole-v1"), Letters())

    class Numbers(gym.ObservationWrapper[Any, Any, Any]):
        observation_space = gym.spaces.Dict({"x": gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)})

        def observation(self, observation: Any) -> Any:
            return {"x": observation}

    with pytest.raises(InvalidArgumentError, match="no text under 'target'"):
        EmbedTarget(Numbers(gym.make("CartPole-v1")), Letters()).reset()
