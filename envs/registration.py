"""Every environment id, in one table. Entry points are strings, so that registering imports nothing."""

from __future__ import annotations

from typing import NamedTuple

import gymnasium as gym

__all__ = ["ENVIRONMENTS", "EntryPoints", "register_all"]


class EntryPoints(NamedTuple):
    """What makes one environment, and what makes a vector of them in one process (None: gymnasium's own vectors)."""

    one: str
    vector: str | None = None


ENVIRONMENTS = {
    "wsigym/Evidence-v0": EntryPoints("wsigym.envs.evidence:EvidenceEnv"),
    "wsigym/Exploration-v0": EntryPoints("wsigym.envs.exploration:ExplorationEnv"),
    "wsigym/Localization-v0": EntryPoints(
        "wsigym.envs.localization:LocalizationEnv", "wsigym.envs.ready_made:localization_vector"
    ),
    "wsigym/LocalizationContinuous-v0": EntryPoints(
        "wsigym.envs.ready_made:localization_continuous", "wsigym.envs.ready_made:localization_continuous_vector"
    ),
    "wsigym/LocalizationPanZoom-v0": EntryPoints(
        "wsigym.envs.ready_made:localization_pan_zoom", "wsigym.envs.ready_made:localization_pan_zoom_vector"
    ),
}


def register_all() -> None:
    """Make every id known to `gymnasium.make`. Called by `import wsigym`; a second call changes nothing."""
    for env_id, entry_points in ENVIRONMENTS.items():
        if env_id not in gym.registry:
            gym.register(id=env_id, entry_point=entry_points.one, vector_entry_point=entry_points.vector)
