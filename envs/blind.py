"""Controls: the same environment without its text, or without its images (and features).

A policy that scores as well blind as seeing did not use what was hidden. The wrappers leave spaces, budget, reward
and scoring as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from .views import Image, View

__all__ = ["BLINDS", "BlindImages", "BlindText"]

BACKGROUND = 255
"""Brightfield background, white, on every channel."""

TEXT_KEYS = ("target", "question")
"""What the text of a task is called in `info`."""


class BlindText(gym.Wrapper[Any, Any, Any, Any]):
    """The text of the task is replaced by "" in `info`."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, _without_text(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, _without_text(info)


class BlindImages(gym.ObservationWrapper[Any, Any, Any]):
    """Every image of a Dict observation (uint8, channels last) is white throughout, and so is every `image()`.

    There are no features.
    """

    def observation(self, observation: Mapping[str, Any]) -> dict[str, Any]:
        assert isinstance(self.observation_space, spaces.Dict)
        return {
            name: np.full_like(value, BACKGROUND) if _is_image(self.observation_space[name]) else value
            for name, value in observation.items()
        }

    def image(self, name: str, side_px: int) -> View:
        """The environment's image of that name, its every pixel white; raises as that does."""
        view: View = self.env.get_wrapper_attr("image")(name, side_px)
        return replace(view, image=np.full_like(view.image, BACKGROUND))

    def surroundings(self, share: float, px: int) -> Image:
        """As the environment's, its every pixel white."""
        return np.full((px, px, 3), BACKGROUND, np.uint8)

    def features(self) -> None:
        """None, whatever the environment has."""


def _without_text(info: dict[str, Any]) -> dict[str, Any]:
    return info | {key: "" for key in TEXT_KEYS if key in info}


def _is_image(space: spaces.Space[Any]) -> bool:
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) >= 3


BLINDS: Mapping[str, type[gym.Wrapper[Any, Any, Any, Any]]] = {"text": BlindText, "images": BlindImages}
"""What `--blind` takes."""
