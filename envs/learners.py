"""Whether a learner's library can take an environment, told before it fails deep inside or silently does worse.

    check_for_sb3(env)      stable-baselines3 2.9 and sb3-contrib

torchrl takes every environment of this project. RLlib has no encoder for Dicts of its own: see docs/clusters.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from wsigym.errors import InvalidArgumentError

__all__ = ["check_for_sb3"]

TAKEN = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box)

SMALLEST_PX = 36
"""Three convolutions of its NatureCNN leave nothing of a smaller image."""


def check_for_sb3(env: gym.Env[Any, Any]) -> None:
    """Raises `InvalidArgumentError` with every part of the environment's spaces that stable-baselines3 cannot take, or
    takes for something else, and what to put in its place; or where `env` is no environment."""
    if not isinstance(env, gym.Env):
        raise InvalidArgumentError(
            f"check_for_sb3 was given {env!r}; needed is one environment, as gymnasium.make gives it."
        )
    found = [*_actions(env.action_space), *_observations(env.observation_space)]
    if found:
        raise InvalidArgumentError(f"stable-baselines3 cannot learn in {env}: {'; '.join(found)}.")


def _actions(space: spaces.Space[Any]) -> Iterator[str]:
    if not isinstance(space, TAKEN):
        yield (
            f"its actions are a {type(space).__name__}, and only Discrete, MultiDiscrete, MultiBinary and Box can be; "
            "put PanZoom (discrete) or FlatBox (continuous) on top"
        )
    elif isinstance(space, spaces.Box) and not space.is_bounded():
        yield "its actions have no bounds, and each number needs two that are finite"
    elif isinstance(space, spaces.Box) and 0 in space.shape:
        yield f"its actions have the shape {space.shape}, in which there is nothing"
    else:
        yield from _counted("its actions", space)


def _observations(space: spaces.Space[Any]) -> Iterator[str]:
    parts = space.spaces if isinstance(space, spaces.Dict) else {"the observation": space}
    for name, part in parts.items():
        if not isinstance(part, TAKEN):
            yield f"{name} is a {type(part).__name__}, and parts can be numbers and images alone; leave it out"
        elif isinstance(part, spaces.Box) and 0 in part.shape:
            yield f"{name} has the shape {part.shape}, in which there is nothing; leave it out"
        elif isinstance(part, spaces.Box) and (part.dtype == np.uint8 or len(part.shape) >= 3):
            yield from _image(name, part)
        else:
            yield from _counted(name, part)


def _counted(name: str, space: spaces.Space[Any]) -> Iterator[str]:
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete) and np.any(space.start):
        yield f"{name}: the numbers start at {space.start}, and are taken to start at 0"


def _image(name: str, space: spaces.Box) -> Iterator[str]:
    shape = space.shape
    if len(shape) == 3 and (space.dtype != np.uint8 or space.low.any() or (space.high != 255).any()):
        yield f"{name} is no uint8 of 0 to 255, the one kind of image, so that it makes one long vector of it"
    elif len(shape) != 3:
        yield (
            f"{name} has the shape {shape}, of which it makes one long vector, and an image has three sides; "
            "ConcentricViews gives such views as images of their own"
        )
    elif min(sorted(shape)[1:]) < SMALLEST_PX:
        yield f"{name} has the shape {shape}, and images are {SMALLEST_PX} px a side or more"
