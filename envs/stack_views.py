"""Memory for policies that have none: the last looks in one observation."""

from __future__ import annotations

from collections import deque
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from wsigym.errors import InvalidArgumentError

__all__ = ["StackViews"]

Looks = dict[str, np.ndarray[Any, Any]]

MAX_LOOKS = 64
"""Three times the largest preset of a budget and more. Every observation has the memory of that many views."""


class StackViews(gym.Wrapper[dict[str, Any], Any, dict[str, Any], Any], RecordConstructorArgs):
    """The last `number` looks of a Localization environment, the latest last.

    Images whose name begins with "view" become uint8 (px, px, 3 * number), channel after channel; `view_box` becomes
    float32 (4 * number,). Fewer looks than that are preceded by what is seen before the first: background, and
    boxes of zeros. A request that was not answered with an ROI adds nothing.

    `number` is 1 to 64. Raises `InvalidArgumentError` for another, or where the observation has no view.
    """

    def __init__(self, env: gym.Env[Any, Any], number: int = 4) -> None:
        RecordConstructorArgs.__init__(self, number=number)
        gym.Wrapper.__init__(self, env)
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MAX_LOOKS:
            raise InvalidArgumentError(f"number is {number!r}; allowed are whole numbers of looks, 1 to {MAX_LOOKS}.")
        below = env.observation_space
        parts = below.spaces if isinstance(below, spaces.Dict) else {}
        stacked = {name: space for name, space in parts.items() if _is_stacked(name, space)}
        if not stacked:
            raise InvalidArgumentError(f"StackViews was put on {env}; its observation has no view, nor a view_box.")
        self._names = tuple(stacked)
        self._looks: deque[Looks] = deque(maxlen=number)
        self.observation_space = spaces.Dict(
            {**parts, **{name: _repeated(space, number) for name, space in stacked.items()}}
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._rois_left: int = info["rois_left"]
        self._looks.extend([self._look(observation)] * (self._looks.maxlen or 0))
        return self._with_looks(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        if info["rois_left"] != self._rois_left:
            self._rois_left = info["rois_left"]
            self._looks.append(self._look(observation))
        return self._with_looks(observation), reward, terminated, truncated, info

    def _look(self, observation: dict[str, Any]) -> Looks:
        return {name: observation[name] for name in self._names}

    def _with_looks(self, observation: dict[str, Any]) -> dict[str, Any]:
        stacked = {name: np.concatenate([look[name] for look in self._looks], axis=-1) for name in self._names}
        return {**observation, **stacked}


def _is_stacked(name: str, space: spaces.Space[Any]) -> bool:
    image = isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3
    return name == "view_box" or (name.startswith("view") and image)


def _repeated(space: spaces.Space[Any], number: int) -> spaces.Box:
    assert isinstance(space, spaces.Box)
    low, high = (np.concatenate([end] * number, axis=-1) for end in (space.low, space.high))
    return spaces.Box(low, high, dtype=space.dtype.type)
