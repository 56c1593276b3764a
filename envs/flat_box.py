"""Localization by continuous control: the structured action as one Box.

Action (Box, float32 (5,), each -1..1, as algorithms for continuous control like it)
    0     answer with the box if above 0, else look at it
    1, 2  the box's centre, x and y: -1 and 1 are the search box's edges
    3, 4  the box's width and height: -1 is none, 1 is the search box's
A box that crosses the search box's edge is clipped there when it is looked at, as any other. The confidence, which
scores nothing, is not stated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from wsigym.errors import EpisodeOverError, InvalidArgumentError
from wsigym.slides import Box, box_from_unit, box_to_unit

from .localization import extract_roi, finish_and_report
from .pan_zoom import structured

__all__ = ["FlatBox"]


class FlatBox(gym.ActionWrapper[Any, npt.NDArray[np.float32], dict[str, Any]], RecordConstructorArgs):
    """A `LocalizationEnv` by five numbers; the module's docstring is the card.

    Observations, infos, rewards and ends pass through. `env` may be wrapped, as long as it takes the structured action;
    raises `InvalidArgumentError` otherwise. Numbers beyond -1..1, and such as are not finite, are the environment's to
    answer: they may be an invalid request.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        gym.ActionWrapper.__init__(self, env)
        structured(env, "FlatBox")
        self.action_space = spaces.Box(-1, 1, (5,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._search_box = Box.of(info["search_box"])
        return observation, info

    def action(self, action: npt.NDArray[np.float32]) -> dict[str, Any]:
        """The structured action. Raises `EpisodeOverError` before the first `reset`."""
        if not hasattr(self, "_search_box"):
            raise EpisodeOverError("FlatBox has no search box before reset(); call reset() first.")
        try:
            finish, x, y, width, height = (float(number) for number in action)
        except (TypeError, ValueError):
            raise InvalidArgumentError(
                f"the action is {action!r}; allowed are five numbers in -1..1: whether to answer, the box's centre x "
                "and y, its width and height."
            ) from None
        width, height = (width + 1) / 2, (height + 1) / 2
        box_unit = _centred((x + 1) / 2, (y + 1) / 2, width, height, self._search_box)
        return finish_and_report(box_unit) if finish > 0 else extract_roi(box_unit)


def _centred(x: float, y: float, width: float, height: float, searched: Box) -> Sequence[float]:
    """The box of that centre and size, all in 0..1 of `searched`: a centre inside stays inside when rounded."""
    if not (all(math.isfinite(number) for number in (x, y, width, height)) and 0 <= x <= 1 and 0 <= y <= 1):
        return x - width / 2, y - height / 2, width, height
    size = box_from_unit((0, 0, width, height), searched)
    box = size.centred_on(searched.x + x * searched.width, searched.y + y * searched.height)
    beyond_x, beyond_y = box.centre[0] > searched.right, box.centre[1] > searched.bottom
    unit: list[float] = box_to_unit(Box(box.x - beyond_x, box.y - beyond_y, box.width, box.height), searched).tolist()
    return unit
