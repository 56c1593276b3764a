"""Localization by discrete actions: a cursor that pans and zooms over the search box.

Action (Discrete(7))
    0 pan_left, 1 pan_right, 2 pan_up, 3 pan_down    by half the cursor's width or height
    4 zoom_in, 5 zoom_out                            by 2, keeping the centre
    6 finish                                         answer with the cursor
Each of 0 to 5 moves the cursor and looks there: one ROI, which spends budget as any other.

The cursor starts as the whole search box, which is not looked at: the overview shows it, free of charge, and `view` is
background until the first move. It has the search box's aspect, and never leaves it.

`action_masks()` and `info["action_mask"]` say what is possible. Not possible are
    a pan or a zoom out that would cross the search box's edge,
    a zoom in where the cursor fits into a view at the query's magnification already: there is no more detail to see,
    any move once the budget is spent.
An action that is not possible moves nothing, spends nothing, and is an invalid request with an `error` in the info:
three in a row end the episode, as the environment below says. Reward and ends are the environment's.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from wsigym.errors import EpisodeOverError, InvalidArgumentError
from wsigym.slides import Box, fitted_size

from .localization import LocalizationEnv, extract_roi, finish_and_report

__all__ = [
    "ACTIONS",
    "FINISH",
    "Cursor",
    "PanZoom",
    "action_mask",
    "reason_against",
    "smallest_side",
    "structured_action",
]

ACTIONS = ("pan_left", "pan_right", "pan_up", "pan_down", "zoom_in", "zoom_out", "finish")
ZOOM_IN, FINISH = ACTIONS.index("zoom_in"), ACTIONS.index("finish")

NOWHERE = (float("nan"),) * 4
"""A box that the environment below refuses: how it gets to count an action that is not possible."""


class Cursor(NamedTuple):
    """A part of the search box: its corner and side in 0..1 of the search box's width and height.

    Pans and zooms by powers of 2 keep these numbers exact.
    """

    x: float = 0.0
    y: float = 0.0
    side: float = 1.0

    def moved(self, action: int) -> Cursor:
        """The cursor after one of the first six actions, wherever that is."""
        x, y, side = self
        half = side / 2
        match ACTIONS[action]:
            case "pan_left":
                return Cursor(x - half, y, side)
            case "pan_right":
                return Cursor(x + half, y, side)
            case "pan_up":
                return Cursor(x, y - half, side)
            case "pan_down":
                return Cursor(x, y + half, side)
            case "zoom_in":
                return Cursor(x + side / 4, y + side / 4, half)
            case _:
                return Cursor(x - half, y - half, 2 * side)

    @property
    def is_inside(self) -> bool:
        return min(self.x, self.y) >= 0 and max(self.x, self.y) + self.side <= 1

    @property
    def box_unit(self) -> tuple[float, float, float, float]:
        return self.x, self.y, self.side, self.side


class PanZoom(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A `LocalizationEnv` by seven discrete actions; the module's docstring is the card.

    Observations, rewards and ends pass through. `env` may be wrapped, as long as it takes the structured action; raises
    `InvalidArgumentError` otherwise.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._px: int = structured(env, "PanZoom").view_px
        self.action_space = spaces.Discrete(len(ACTIONS))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._cursor, self._smallest_side = Cursor(), smallest_side(info, self._px)
        return observation, self._seen(info)

    def step(self, action: int) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        action = _checked(action)
        cursor = self.cursor
        reason = reason_against(action, cursor, self._smallest_side, self._rois_left)
        below = extract_roi(NOWHERE) if reason else structured_action(action, cursor)
        observation, reward, terminated, truncated, info = self.env.step(below)
        if reason and self._rois_left:  # without budget, the environment's own answer says it all
            info = info | {"error": f"{ACTIONS[action]} is not possible: {reason}."}
        elif action != FINISH and not reason:
            self._cursor = cursor.moved(action)
        return observation, reward, terminated, truncated, self._seen(info)

    @property
    def cursor(self) -> Cursor:
        """Where the agent stands since its last move: its own state, no secret of the environment's.

        As all that tells of the episode, it raises `EpisodeOverError` before the first `reset`.
        """
        self._check_begun()
        return self._cursor

    @property
    def smallest_side(self) -> float:
        """A cursor of this side or less, in 0..1 of the search box, cannot be zoomed into. Of the episode's query."""
        self._check_begun()
        return self._smallest_side

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """bool (7,): which actions are possible now. What sb3-contrib's MaskablePPO asks for."""
        return action_mask(self.cursor, self._smallest_side, self._rois_left)

    def _check_begun(self) -> None:
        if not hasattr(self, "_cursor"):
            raise EpisodeOverError("PanZoom has no cursor before reset(); call reset() first.")

    def _seen(self, info: dict[str, Any]) -> dict[str, Any]:
        """The info with the mask, now that the budget is known."""
        self._rois_left: int = info["rois_left"]
        return info | {"action_mask": self.action_masks().astype(np.int8)}


def smallest_side(info: Mapping[str, Any], view_px: int) -> float:
    """Of a query's info: a cursor of this side or less, in 0..1 of the search box, cannot be zoomed into.

    Below it a view of `view_px` would show the same pixels, or the cursor's box round to nothing.
    """
    searched = Box.of(info["search_box"])
    shown_px = max(fitted_size(searched, info["magnification"], info["mpp"]))
    return max(view_px / shown_px, 1 / min(searched.width, searched.height))


def action_mask(cursor: Cursor, smallest_side: float, rois_left: int) -> npt.NDArray[np.bool_]:
    """bool (7,): which actions are possible."""
    return np.array([not reason_against(action, cursor, smallest_side, rois_left) for action in range(len(ACTIONS))])


def reason_against(action: int, cursor: Cursor, smallest_side: float, rois_left: int) -> str:
    """Why an action is not possible, "" if it is."""
    if action == FINISH:
        return ""
    if rois_left == 0:
        return "the budget of ROIs is spent"
    if action == ZOOM_IN:
        return "" if cursor.side > smallest_side else "there is no more detail to see"
    return "" if cursor.moved(action).is_inside else "it would leave the search box"


def structured_action(action: int, cursor: Cursor) -> dict[str, Any]:
    """What an action, if it is possible, is to a `LocalizationEnv`."""
    if action == FINISH:
        return finish_and_report(cursor.box_unit)
    return extract_roi(cursor.moved(action).box_unit)


def structured(env: gym.Env[Any, Any], wrapper: str) -> LocalizationEnv:
    """The `LocalizationEnv` under `env`. Raises `InvalidArgumentError` where there is none, or a wrapper above it
    changes its actions."""
    base = env.unwrapped
    if not isinstance(base, LocalizationEnv) or env.action_space != base.action_space:
        raise InvalidArgumentError(
            f"{wrapper} was put on {env}; it needs a LocalizationEnv that still takes the structured action (tool, "
            "box, confidence). Put no other wrapper of actions below it."
        )
    return base


def _checked(action: Any) -> int:
    try:
        number = operator.index(action)
    except TypeError:
        number = -1
    if not 0 <= number < len(ACTIONS):
        named = ", ".join(f"{index} {name}" for index, name in enumerate(ACTIONS))
        raise InvalidArgumentError(f"the action is {action!r}; allowed are {named}.")
    return number
