"""Many episodes side by side in one process: one tile cache, slides opened once, pixels read in parallel threads.

Reading and resizing pixels release Python's global lock, so that threads gain where pixels are most of the work, and
nothing is copied between processes. To the caller it is a `SyncVectorEnv`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

from wsigym.errors import EpisodeOverError, InvalidArgumentError, UnknownNameError

__all__ = ["ThreadedVectorEnv", "at_least_one"]

Bools = npt.NDArray[np.bool_]


class _Turn(NamedTuple):
    """What one environment did in one step of the vector."""

    observation: Any
    info: dict[str, Any]
    ending: tuple[float, bool, bool] = (0.0, False, False)
    """Reward, terminated, truncated."""
    final: dict[str, Any] | None = None
    """With autoreset in the same step: the last observation and info of the episode that is over."""


class ThreadedVectorEnv(SyncVectorEnv):
    """`SyncVectorEnv`, its environments stepped and reset in threads: same seeds, same outputs, all autoreset modes.

    Each environment is only ever in one thread at a time; what they share must be safe to share, as slides and cohorts
    are. Every call returns arrays of its own. Where environments raise, the first one's error is raised once all others
    have finished their step.

    Args:
        env_fns: what makes each environment.
        autoreset_mode: as for `SyncVectorEnv`.
        threads: 1 or more; None takes as many as there are processor cores, at most one an environment.

    Raises `InvalidArgumentError` for other values and for actions that are not one an environment, `UnknownNameError`
    for another mode, and `EpisodeOverError` for `reset` and `step` after `close()`.
    """

    def __init__(
        self,
        env_fns: Sequence[Callable[[], gym.Env[Any, Any]]],
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        threads: int | None = None,
    ) -> None:
        if not env_fns:
            raise InvalidArgumentError("0 environments were asked for; 1 or more are needed.")
        threads = None if threads is None else at_least_one("threads", threads, ", or None")
        try:
            autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError:
            modes = [mode.value for mode in AutoresetMode]
            raise UnknownNameError("autoreset_mode", str(autoreset_mode), modes) from None
        super().__init__(env_fns, autoreset_mode=autoreset_mode)
        count = min(self.num_envs, threads or _cores())
        # Each thread takes every n-th environment: one hand-over a thread and step, not one an environment.
        self._shares = [range(first, self.num_envs, count) for first in range(count)]
        self._pool = ThreadPoolExecutor(count - 1, "wsigym-vector") if count > 1 else None

    def reset(self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None) -> Any:
        self._check_open("reset")
        return super().reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, npt.NDArray[np.float64], Bools, Bools, dict[str, Any]]:
        self._check_open("step")
        try:
            each = list(iterate(self.action_space, actions))
        except (TypeError, ValueError, LookupError):
            raise InvalidArgumentError(
                f"the actions are {actions!r}; allowed is what the vector's action_space holds: {self.action_space}."
            ) from None
        if len(each) != self.num_envs:
            raise InvalidArgumentError(f"{len(each)} actions were given for {self.num_envs} environments.")
        turns = self._turns(each)
        infos: dict[str, Any] = {}
        for number, turn in enumerate(turns):
            self._env_obs[number] = turn.observation
            self._rewards[number], self._terminations[number], self._truncations[number] = turn.ending
            if turn.final is not None:
                infos = self._add_info(infos, turn.final, number)
            infos = self._add_info(infos, turn.info, number)
        self._autoreset_envs = np.logical_or(self._terminations, self._truncations)
        empty: Any = create_empty_array(self.single_observation_space, n=self.num_envs, fn=np.empty)
        observations = concatenate(self.single_observation_space, self._env_obs, empty)
        ends = self._terminations.copy(), self._truncations.copy()
        return observations, self._rewards.copy(), *ends, infos

    def close_extras(self, **kwargs: Any) -> None:
        super().close_extras(**kwargs)
        if self._pool is not None:
            self._pool.shutdown()

    def _check_open(self, called: str) -> None:
        if self.closed:
            raise EpisodeOverError(f"{called}() was called on a vector that is closed; make another.")

    def _turns(self, actions: Sequence[Any]) -> list[_Turn]:
        """What each environment did, in their order."""
        turns: list[_Turn | None] = [None] * self.num_envs

        def take(share: range) -> None:
            for number in share:
                turns[number] = self._turn(number, actions[number])

        first, *others = self._shares
        running = [self._pool.submit(take, share) for share in others] if self._pool is not None else []
        try:
            take(first)
        finally:
            wait(running)
        for future in running:
            future.result()
        return turns  # type: ignore[return-value]  # all are there, or one has raised

    def _turn(self, number: int, action: Any) -> _Turn:
        env = self.envs[number]
        if self.autoreset_mode is AutoresetMode.NEXT_STEP and self._autoreset_envs[number]:
            return _Turn(*env.reset())
        observation, reward, terminated, truncated, info = env.step(action)
        ending = (float(reward), terminated, truncated)
        if self.autoreset_mode is AutoresetMode.SAME_STEP and (terminated or truncated):
            return _Turn(*env.reset(), ending, {"final_obs": observation, "final_info": info})
        return _Turn(observation, info, ending)


def at_least_one(name: str, value: object, otherwise: str = "") -> int:
    """`value` if it is a whole number from 1 on. Raises `InvalidArgumentError`; `otherwise` says what else would do."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidArgumentError(f"{name} is {value!r}; allowed are whole numbers, 1 or more{otherwise}.")
    return int(value)


def _cores() -> int:
    """Those that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
