"""ThreadedVectorEnv: what SyncVectorEnv gives, from threads; errors, memory, ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from wsigym.envs.registration import ENVIRONMENTS
from wsigym.envs.threaded_vector import ThreadedVectorEnv
from wsigym.errors import EpisodeOverError, InvalidArgumentError, UnknownNameError

Vector = VectorEnv[Any, Any, Any]
VECTORS = [env_id for env_id, entry_points in ENVIRONMENTS.items() if entry_points.vector]
NUMBER = 5
SMALL: dict[str, Any] = {"view_px": 36, "overview_px": 36, "reward": "shaped"}


def outputs(vector: Vector, steps: int = 25) -> Iterator[Any]:
    """What resets and steps of random actions return; under DISABLED those that are over are reset by mask."""
    vector.action_space.seed(3)
    yield vector.reset(seed=7)
    for _ in range(steps):
        output = vector.step(vector.action_space.sample())
        yield output
        over = output[2] | output[3]
        if vector.metadata["autoreset_mode"] is AutoresetMode.DISABLED and over.any():
            yield vector.reset(options={"reset_mask": over})
    yield vector.reset(seed=[1, None, 2, None, 3])
    yield vector.reset()
    vector.close()


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("threads", [1, 2, 4, None])
@pytest.mark.parametrize("env_id", VECTORS)
def test_it_is_a_sync_vector(env_id: str, threads: int | None, mode: AutoresetMode, tiny_cohort: Path) -> None:
    kwargs = {"cohort": str(tiny_cohort), **SMALL}
    sync = gym.make_vec(env_id, NUMBER, "sync", {"autoreset_mode": mode}, **kwargs)
    ours = gym.make_vec(env_id, NUMBER, "vector_entry_point", autoreset_mode=mode, threads=threads, **kwargs)
    assert isinstance(ours.unwrapped, ThreadedVectorEnv)
    assert ours.metadata["autoreset_mode"] is mode
    assert (ours.observation_space, ours.action_space) == (sync.observation_space, sync.action_space)
    resets = 0
    for number, (one, other) in enumerate(zip(outputs(sync), outputs(ours), strict=True)):
        assert data_equivalence(one, other), number
        resets += "final_obs" in one[-1]
    assert (resets > 0) == (mode is AutoresetMode.SAME_STEP)


def test_it_is_what_make_vec_makes_and_wraps(tiny_cohort: Path) -> None:
    vector = gym.make_vec(VECTORS[0], 2, cohort=str(tiny_cohort), max_episode_steps=2, **SMALL)
    assert isinstance(vector.unwrapped, ThreadedVectorEnv)
    counted = gym.wrappers.vector.RecordEpisodeStatistics(vector)
    counted.action_space.seed(0)
    counted.reset(seed=0)
    lengths = []
    for _ in range(8):
        *_, truncated, info = counted.step(counted.action_space.sample())
        lengths += info["episode"]["l"][truncated].tolist() if "episode" in info else []
    assert lengths
    assert set(lengths) <= {2}
    counted.close()


def test_the_cohort_and_its_slides_are_shared(tiny_cohort: Path) -> None:
    vector: Any = gym.make_vec(VECTORS[0], 3, cohort=str(tiny_cohort), **SMALL)
    assert len({id(cohort) for cohort in vector.get_attr("cohort")}) == 1
    vector.close()


def test_no_two_calls_share_memory(tiny_cohort: Path) -> None:
    vector = gym.make_vec(VECTORS[0], 2, cohort=str(tiny_cohort), **SMALL)
    vector.action_space.seed(0)
    kept = [vector.reset(seed=0)[0]]
    for _ in range(3):
        observation, *arrays, _ = vector.step(vector.action_space.sample())
        kept.append({**observation, **{str(index): array for index, array in enumerate(arrays)}})
    for index, one in enumerate(kept):
        for other in kept[index + 1 :]:
            assert not any(np.shares_memory(one[name], other[name]) for name in one if name in other)
    vector.close()


class Counter(gym.Env[Any, Any]):
    """Waits for its neighbours in `step`, or raises."""

    observation_space = gym.spaces.Discrete(1000)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, meet: Callable[[], Any] = lambda: None) -> None:
        self.steps, self.meet = 0, meet

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: int) -> Any:
        if action == 1:
            raise ZeroDivisionError("an environment's own error")
        self.meet()
        self.steps += 1
        return self.steps, 0.0, False, False, {}


def test_environments_run_at_the_same_time() -> None:
    barrier = threading.Barrier(3)
    vector = ThreadedVectorEnv([lambda: Counter(lambda: barrier.wait(20))] * 3, threads=3)
    vector.reset()
    assert vector.step(np.zeros(3, int))[0].tolist() == [1, 1, 1]
    vector.close()


@pytest.mark.parametrize("number", range(4))
def test_an_environments_error_is_raised_when_all_others_are_done(number: int) -> None:
    vector = ThreadedVectorEnv([lambda: Counter(lambda: time.sleep(0.05))] * 4, threads=4)
    vector.reset()
    actions = np.zeros(4, int)
    actions[number] = 1
    with pytest.raises(ZeroDivisionError, match="own error"):
        vector.step(actions)
    assert vector.get_attr("steps") == tuple(int(index != number) for index in range(4))
    assert vector.step(np.zeros(4, int))[0].tolist() == [1 + int(index != number) for index in range(4)]
    vector.close()
    vector.close()


def test_bad_input(tiny_cohort: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="0 environments"):
        ThreadedVectorEnv([])
    for threads in (0, -1, 1.5, True, "2"):
        with pytest.raises(InvalidArgumentError, match=r"threads is .*1 or more, or None"):
            ThreadedVectorEnv([Counter], threads=threads)  # type: ignore[arg-type]
    vector = ThreadedVectorEnv([Counter] * 2)
    vector.reset()
    with pytest.raises(InvalidArgumentError, match="3 actions were given for 2 environments"):
        vector.step(np.zeros(3, int))
    assert isinstance(vector, SyncVectorEnv)
    with pytest.raises(TypeError, match="colour"):
        gym.make_vec(VECTORS[0], 2, cohort=str(tiny_cohort), colour=1)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        *(({"num_envs": value}, "num_envs is .*whole numbers, 1 or more") for value in (0, -1, 1.5, "a", None, True)),
        *(
            ({"autoreset_mode": value}, f"unknown autoreset_mode '{value}'.* Known: NextStep, SameStep, Disabled")
            for value in ("x", None, 5)
        ),
        *(
            ({"max_episode_steps": value}, "max_episode_steps is .*whole numbers, 1 or more, or None")
            for value in (0, -1, 1.5, "a", True)
        ),
    ],
)
@pytest.mark.parametrize("env_id", VECTORS)
def test_bad_arguments(env_id: str, tiny_cohort: Path, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=told):
        gym.make_vec(env_id, **{"num_envs": 2, "cohort": str(tiny_cohort), **SMALL, **arguments})


@pytest.mark.parametrize("env_id", VECTORS)
def test_actions_that_are_none(env_id: str, tiny_cohort: Path) -> None:
    vector = gym.make_vec(env_id, 2, cohort=str(tiny_cohort), **SMALL)
    vector.reset(seed=0)
    for actions in (None, 5, [], {}, {"tool": 3}, "ab", np.zeros(3), [None, None]):
        with pytest.raises(InvalidArgumentError, match="action"):
            vector.step(actions)
    vector.step(vector.action_space.sample())
    vector.close()


@pytest.mark.parametrize("env_id", VECTORS)
def test_nothing_goes_before_the_first_reset_or_after_the_end(env_id: str, tiny_cohort: Path) -> None:
    vector = gym.make_vec(env_id, 2, cohort=str(tiny_cohort), threads=2, **SMALL)
    with pytest.raises(EpisodeOverError, match=r"call reset\(\) first"):
        vector.step(vector.action_space.sample())
    vector.reset(seed=0)
    vector.close()
    with pytest.raises(EpisodeOverError, match=r"step\(\) was called on a vector that is closed; make another"):
        vector.step(vector.action_space.sample())
    with pytest.raises(EpisodeOverError, match=r"reset\(\) was called on a vector that is closed; make another"):
        vector.reset()
