"""`random`: looks at random ROIs until the budget is spent, then answers with a random box."""

from __future__ import annotations

from typing import Any

import numpy as np

from wsigym.envs.localization import extract_roi, finish_and_report
from wsigym.envs.policy import Info, Observation, SeededPolicy

__all__ = ["RandomLooks"]

MIN_SIDE, MAX_SIDE = 0.1, 0.5
"""Sides of the boxes drawn, as shares of the search box."""


class RandomLooks(SeededPolicy):
    """Sides uniform in 0.1..0.5 of the search box, then a position uniform among those inside it."""

    def reset(self, observation: Observation, info: Info) -> None:
        pass

    def act(self, observation: Observation, info: Info) -> dict[str, Any]:
        width, height = self.rng.uniform(MIN_SIDE, MAX_SIDE, size=2)
        box_unit = [self.rng.uniform(0, 1 - width), self.rng.uniform(0, 1 - height), width, height]
        if info["rois_left"] > 0:
            return extract_roi(box_unit)
        return finish_and_report(np.clip(box_unit, 0, 1))
