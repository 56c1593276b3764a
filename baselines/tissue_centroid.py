"""`tissue-centroid`: answers with a box around the centroid of the tissue in the overview, without a look."""

from __future__ import annotations

from typing import Any

import numpy as np

from wsigym.envs.localization import finish_and_report
from wsigym.envs.policy import Info, Observation
from wsigym.slides import tissue_mask_of

__all__ = ["TissueCentroid"]


class TissueCentroid:
    """Where there is no tissue, the centre of the search box."""

    def reset(self, observation: Observation, info: Info) -> None:
        pass

    def act(self, observation: Observation, info: Info) -> dict[str, Any]:
        width, height = info["overview_size"]
        rows, columns = np.nonzero(tissue_mask_of(np.ascontiguousarray(observation["overview"][:height, :width])))
        x = (columns.mean() + 0.5) / width if columns.size else 0.5
        y = (rows.mean() + 0.5) / height if rows.size else 0.5
        return finish_and_report([x - 0.25, y - 0.25, 0.5, 0.5])
