"""`oracle`: answers with the reference. The upper bound of a table, and a proof that the scorer can reach 1."""

from __future__ import annotations

from typing import Any

from wsigym.cohorts import LocalizationReference
from wsigym.envs.localization import finish_and_report
from wsigym.envs.policy import Info, Observation
from wsigym.slides import Box
from wsigym.slides.geometry import box_to_unit

__all__ = ["Oracle"]


class Oracle:
    """Reads the reference through the door that only the runner opens; every other policy goes without."""

    reads_reference = True

    def reset(self, observation: Observation, info: Info) -> None:
        self._reference: LocalizationReference | None = None

    def see_reference(self, reference: LocalizationReference) -> None:
        self._reference = reference

    def act(self, observation: Observation, info: Info) -> dict[str, Any]:
        assert self._reference is not None, "the runner calls see_reference after reset"
        box_unit = box_to_unit(self._reference.boxes[0], Box.of(info["search_box"]))
        return finish_and_report(box_unit.tolist(), confidence=1.0)
