"""Localization seen as a microscope is used: one centre at three magnifications.

Observation (Dict): `view` and `context` of the environment below give way to

    view              uint8 (px, px, 3)   around the last ROI's centre, at the query's magnification
    view_quarter      uint8 (px, px, 3)   the same centre at a quarter of it
    view_sixteenth    uint8 (px, px, 3)   the same centre at a sixteenth of it

Outside the search box, and before the first look, they are the slide's background. The ROI's size does not change
them; `view_box` tells it. However large the ROI is, one look is one ROI.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from wsigym.errors import InvalidArgumentError
from wsigym.slides import Box

from .localization import LocalizationEnv, image_px
from .views import Image

__all__ = ["SHARES", "ConcentricViews"]

SHARES = {"view": 1.0, "view_quarter": 1 / 4, "view_sixteenth": 1 / 16}
"""Shares of the query's magnification, by the view's name."""


class ConcentricViews(gym.Wrapper[dict[str, Any], Any, dict[str, Any], Any], RecordConstructorArgs):
    """Three views of each look of a `LocalizationEnv`; the module's docstring is the card.

    Args:
        env: the environment; one that does not `observe` "view" and "context" reads nothing for them.
        px: sides of the views, 36 to 8,192.

    Raises `InvalidArgumentError` for another environment or size.
    """

    def __init__(self, env: gym.Env[Any, Any], px: int = 96) -> None:
        RecordConstructorArgs.__init__(self, px=px)
        gym.Wrapper.__init__(self, env)
        base, below = env.unwrapped, env.observation_space
        if not isinstance(base, LocalizationEnv) or not isinstance(below, spaces.Dict):
            raise InvalidArgumentError(f"ConcentricViews was put on {env}; it needs a LocalizationEnv.")
        self._base, self._px = base, image_px("px", px)
        self._kept = [name for name in below.spaces if name not in ("view", "context")]
        views = {name: spaces.Box(0, 255, (self._px, self._px, 3), np.uint8) for name in SHARES}
        self.observation_space = spaces.Dict({**views, **{name: below[name] for name in self._kept}})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._look(None)
        return self._with_views(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        if info["roi"] is not None and (centre := Box.of(info["roi"]).centre) != self._centre:
            self._look(centre)
        return self._with_views(observation), reward, terminated, truncated, info

    def _look(self, centre: tuple[float, float] | None) -> None:
        self._centre = centre
        self._views: dict[str, Image] = {
            name: self._base.surroundings(share, self._px) for name, share in SHARES.items()
        }

    def _with_views(self, observation: dict[str, Any]) -> dict[str, Any]:
        views = {name: view.copy() for name, view in self._views.items()}
        return {**views, **{name: observation[name] for name in self._kept}}
