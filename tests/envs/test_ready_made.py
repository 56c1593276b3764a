"""The registered environments with wrappers on, in the libraries that people use."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from wsigym.cohorts import Cohort
from wsigym.envs import LocalizationEnv
from wsigym.envs.concentric_views import ConcentricViews
from wsigym.envs.embed_target import EmbedTarget
from wsigym.envs.pan_zoom import PanZoom
from wsigym.envs.stack_views import StackViews
from wsigym.errors import InvalidArgumentError

IDS = ("wsigym/LocalizationPanZoom-v0", "wsigym/LocalizationContinuous-v0")

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture(scope="module")
def kwargs(tiny_cohort: Path) -> dict[str, Any]:
    return {"cohort": str(tiny_cohort), "view_px": 36, "overview_px": 36}


class Length:
    def encode(self, sentences: list[str]) -> Any:
        return [[len(sentence), 1] for sentence in sentences]


def everything(kwargs: dict[str, Any]) -> gym.Env[Any, Any]:
    """All wrappers at once."""
    env = LocalizationEnv(Cohort.load(kwargs["cohort"]), view_px=36, overview_px=36)
    return PanZoom(EmbedTarget(StackViews(ConcentricViews(env, 36), 2), Length()))


def test_what_is_in_them(kwargs: dict[str, Any]) -> None:
    pan_zoom, continuous = (gym.make(env_id, **kwargs) for env_id in IDS)
    assert set(pan_zoom.observation_space) == {  # type: ignore[call-overload]
        *("view", "view_quarter", "view_sixteenth"),
        *("overview", "view_box", "target_magnification", "overview_extent", "budget_left", "rois_left"),
    }
    assert pan_zoom.action_space == gym.spaces.Discrete(7)
    assert set(continuous.observation_space) >= {"overview", "view", "view_box"}  # type: ignore[call-overload]
    assert continuous.action_space == gym.spaces.Box(-1, 1, (5,), np.float32)
    assert gym.make(IDS[0], cohort=kwargs["cohort"]).observation_space["view"].shape == (96, 96, 3)  # type: ignore[index]


@pytest.mark.parametrize("env_id", IDS)
def test_gymnasiums_wrappers(env_id: str, kwargs: dict[str, Any]) -> None:
    env = gym.wrappers.RecordEpisodeStatistics(gym.make(env_id, max_episode_steps=3, **kwargs))
    env.action_space.seed(0)
    ends = []
    for seed in range(8):
        env.reset(seed=seed)
        while True:
            *_, terminated, truncated, info = env.step(env.action_space.sample())
            if terminated or truncated:
                break
        ends.append((terminated, truncated))
        assert 1 <= info["episode"]["l"] <= 3
        assert ("outcome" in info) == terminated
    assert {(True, False), (False, True)} <= set(ends)
    env.close()


@pytest.mark.parametrize("env_id", IDS)
def test_videos(env_id: str, kwargs: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("moviepy", reason="recording videos needs moviepy: pip install moviepy")
    env = gym.wrappers.RecordVideo(gym.make(env_id, render_mode="rgb_array", **kwargs), str(tmp_path / "videos"))
    env.action_space.seed(0)
    env.reset(seed=0)
    while not env.step(env.action_space.sample())[2]:
        pass
    env.close()
    assert [file.suffix for file in (tmp_path / "videos").iterdir()] == [".mp4"]


@pytest.mark.parametrize("env_id", IDS)
def test_images_under_36_px(env_id: str, kwargs: dict[str, Any]) -> None:
    for name in ("view_px", "overview_px"):
        with pytest.raises(InvalidArgumentError, match=f"{name} is 35; allowed are whole numbers from 36"):
            gym.make(env_id, **{**kwargs, name: 35})


@pytest.mark.parametrize("name", ["observe", "context"])
def test_what_pan_and_zoom_sets_itself(name: str, kwargs: dict[str, Any]) -> None:
    for make in (gym.make, gym.make_vec):
        with pytest.raises(
            InvalidArgumentError, match=f"{name}: wsigym/LocalizationPanZoom-v0 sets this itself.*by hand"
        ):
            make(IDS[0], **kwargs, **{name: ["view"]})


def test_the_continuous_one_takes_them_all(kwargs: dict[str, Any]) -> None:
    env = gym.make(IDS[1], **kwargs, observe=["context", "view_box"], context=[5])
    assert set(env.reset(seed=0)[0]) == {"context", "view_box"}


@pytest.mark.parametrize("env_id", [*IDS, "wsigym/Localization-v0", "wsigym/Exploration-v0", "wsigym/Evidence-v0"])
def test_what_is_no_cohort(env_id: str) -> None:
    for make in (gym.make, gym.make_vec):
        with pytest.raises(InvalidArgumentError, match="cohort is 5; allowed is the path of a cohort's folder"):
            make(env_id, cohort=5)


@pytest.mark.parametrize("env_id", IDS)
def test_stable_baselines3_takes_them(env_id: str, kwargs: dict[str, Any]) -> None:
    checker = pytest.importorskip(
        "stable_baselines3.common.env_checker",
        reason="needs stable-baselines3 and sb3-contrib, which are in the extra dev",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checker.check_env(gym.make(env_id, **kwargs), warn=True)


def test_stable_baselines3_takes_all_wrappers_at_once(kwargs: dict[str, Any]) -> None:
    checker = pytest.importorskip(
        "stable_baselines3.common.env_checker",
        reason="needs stable-baselines3 and sb3-contrib, which are in the extra dev",
    )
    checker.check_env(everything(kwargs), warn=True)


@pytest.mark.parametrize(("env_id", "start_method"), [(IDS[0], "forkserver"), (IDS[1], "fork")])
def test_subprocess_vectors_of_stable_baselines3(env_id: str, start_method: str, kwargs: dict[str, Any]) -> None:
    """A worker that is no fork of this process imports what stands before the colon."""
    pytest.importorskip(
        "stable_baselines3", reason="needs stable-baselines3 and sb3-contrib, which are in the extra dev"
    )
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    played = []
    for kind, how in ((DummyVecEnv, {}), (SubprocVecEnv, {"start_method": start_method})):
        vector = make_vec_env(f"wsigym:{env_id}", 2, seed=3, env_kwargs=kwargs, vec_env_cls=kind, vec_env_kwargs=how)
        vector.action_space.seed(0)
        observations: list[Any] = [vector.reset()]
        for _ in range(10):
            observations.append(vector.step(np.stack([vector.action_space.sample() for _ in range(2)]))[0])
        if env_id == IDS[0]:
            assert np.array(vector.env_method("action_masks")).shape == (2, 7)
        vector.close()
        played.append(observations)
    for one, other in zip(*played, strict=True):
        assert all((one[name] == other[name]).all() for name in one)


def test_a_step_of_maskable_ppo(kwargs: dict[str, Any]) -> None:
    """It collects under masks and learns from it; that it learns well is another test's."""
    contrib = pytest.importorskip(
        "sb3_contrib", reason="needs stable-baselines3 and sb3-contrib, which are in the extra dev"
    )
    from stable_baselines3.common.env_util import make_vec_env

    vector = make_vec_env(IDS[0], 2, seed=3, env_kwargs=kwargs)
    model = contrib.MaskablePPO("MultiInputPolicy", vector, n_steps=8, batch_size=8, n_epochs=1, seed=0, device="cpu")
    model.learn(32)
    assert model.num_timesteps == 32
    vector.close()


@pytest.mark.parametrize("env_id", IDS)
def test_torchrl_takes_them(env_id: str, kwargs: dict[str, Any]) -> None:
    pytest.importorskip("torchrl", reason="needs torchrl: pip install torchrl")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchrl's own, on import
        from torchrl.envs import GymWrapper
        from torchrl.envs.utils import check_env_specs

        check_env_specs(GymWrapper(gym.make(env_id, **kwargs)))
