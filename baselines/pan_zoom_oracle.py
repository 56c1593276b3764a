"""`pan-zoom-oracle`: the best that pan and zoom can reach within the budget. The ceiling of learned navigators."""

from __future__ import annotations

from typing import Any

from wsigym.cohorts import LocalizationReference
from wsigym.envs.pan_zoom import FINISH, Cursor, smallest_side, structured_action
from wsigym.envs.policy import Info, Observation
from wsigym.slides import Box

from .experts import PanZoomExpert
from .navigator import VIEW_PX

__all__ = ["PanZoomOracle"]


class PanZoomOracle:
    """Plays the shortest way to the best answer that a cursor with views of 96 px can give. Reads the reference."""

    reads_reference = True

    def reset(self, observation: Observation, info: Info) -> None:
        self._info, self._cursor = info, Cursor()

    def see_reference(self, reference: LocalizationReference) -> None:
        info = self._info
        searched, smallest = Box.of(info["search_box"]), smallest_side(info, VIEW_PX)
        self._expert = PanZoomExpert(searched, reference.boxes, smallest, info["rois_left"])

    def act(self, observation: Observation, info: Info) -> dict[str, Any]:
        action = self._expert.action(self._cursor, info["rois_left"])
        structured = structured_action(action, self._cursor)
        if action != FINISH:
            self._cursor = self._cursor.moved(action)
        return structured
