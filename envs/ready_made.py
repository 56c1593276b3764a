"""Environments with their wrappers on, as they are registered; and vectors of them in one process.

    wsigym/LocalizationPanZoom-v0       LocalizationEnv, ConcentricViews, PanZoom: seven actions, three views
    wsigym/LocalizationContinuous-v0    LocalizationEnv, FlatBox: five numbers, overview and view

The arguments are those of `LocalizationEnv`, of which the first sets `observe` and `context` itself; images are 96 px a
side unless said otherwise. Other combinations are made by hand in the same two lines.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TimeLimit

from wsigym.cohorts import Cohort
from wsigym.cohorts.synthetic import default_cohort
from wsigym.errors import InvalidArgumentError

from .concentric_views import ConcentricViews
from .flat_box import FlatBox
from .localization import LocalizationEnv
from .pan_zoom import PanZoom
from .threaded_vector import ThreadedVectorEnv, at_least_one

__all__ = [
    "localization_continuous",
    "localization_continuous_vector",
    "localization_pan_zoom",
    "localization_pan_zoom_vector",
    "localization_vector",
]

Env = gym.Env[Any, Any]


def localization_pan_zoom(*, view_px: int = 96, overview_px: int = 96, **localization: Any) -> Env:
    """`wsigym/LocalizationPanZoom-v0`. Observation: overview, three concentric views of `view_px` a side, view_box,
    target_magnification, overview_extent, budget_left and rois_left. Raises `InvalidArgumentError` for `observe` and
    `context`: what its views need is all that it reads."""
    if own := [name for name in ("observe", "context") if name in localization]:
        raise InvalidArgumentError(
            f"{' and '.join(own)}: wsigym/LocalizationPanZoom-v0 sets this itself, for its three views. Put PanZoom "
            "and other wrappers on a LocalizationEnv by hand to observe something else (docs/rl.md)."
        )
    observe = ("overview", "view_box", "target_magnification", "overview_extent", "budget_left", "rois_left")
    env = LocalizationEnv(view_px=view_px, overview_px=overview_px, observe=observe, **localization)
    return PanZoom(ConcentricViews(env, view_px))


def localization_continuous(*, view_px: int = 96, overview_px: int = 96, **localization: Any) -> Env:
    """`wsigym/LocalizationContinuous-v0`. Observation: as of `wsigym/Localization-v0`."""
    return FlatBox(LocalizationEnv(view_px=view_px, overview_px=overview_px, **localization))


def _vector(
    make: Callable[..., Env],
    num_envs: int = 1,
    *,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    threads: int | None = None,
    max_episode_steps: int | None = None,
    cohort: str | Path | Cohort | None = None,
    **localization: Any,
) -> ThreadedVectorEnv:
    """`num_envs` environments over one loaded cohort, its open slides and the process's tile cache."""
    num_envs = at_least_one("num_envs", num_envs)
    if max_episode_steps is not None:
        max_episode_steps = at_least_one("max_episode_steps", max_episode_steps, ", or None")
    if not isinstance(cohort, Cohort):
        cohort = Cohort.load(default_cohort() if cohort is None else cohort)

    def one() -> Env:
        env = make(cohort=cohort, **localization)
        return env if max_episode_steps is None else TimeLimit(env, max_episode_steps)

    return ThreadedVectorEnv([one] * num_envs, autoreset_mode=autoreset_mode, threads=threads)


localization_vector = partial(_vector, LocalizationEnv)
localization_pan_zoom_vector = partial(_vector, localization_pan_zoom)
localization_continuous_vector = partial(_vector, localization_continuous)
"""What `gymnasium.make_vec(id, num_envs, vectorization_mode="vector_entry_point", **arguments)` calls: the arguments of
the environment, and `autoreset_mode`, `threads` and `max_episode_steps`."""
