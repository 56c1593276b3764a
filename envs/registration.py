"""Every environment id, in one table. Entry points are strings, so that registering imports nothing."""

from __future__ import annotations

import gymnasium as gym

__all__ = ["ENVIRONMENTS", "register_all"]

ENVIRONMENTS = {
    "wsigym/Evidence-v0": "wsigym.envs.evidence:EvidenceEnv",
    "wsigym/Exploration-v0": "wsigym.envs.exploration:ExplorationEnv",
    "wsigym/Localization-v0": "wsigym.envs.localization:LocalizationEnv",
}
"""Id to entry point."""


def register_all() -> None:
    """Make every id known to `gymnasium.make`. Called by `import wsigym`; a second call changes nothing."""
    for env_id, entry_point in ENVIRONMENTS.items():
        if env_id not in gym.registry:
            gym.register(id=env_id, entry_point=entry_point)
