"""Playing policies of exploration on the tiny tumour cohort, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tumour_builder import TILE_PX

from wsigym.baselines.tile_scorers import TileScorer
from wsigym.cohorts import Cohort
from wsigym.cohorts.exploration import exploration_references
from wsigym.envs.exploration import ExplorationEnv


def play(folder: Path, policy: Any, seed: int = 0, **arguments: Any) -> tuple[list[tuple[int, ...]], dict[str, Any]]:
    """Every tile in the order in which it was shown, and the last info."""
    shown: list[tuple[int, ...]] = []
    with ExplorationEnv(folder, tile_px=TILE_PX, view_px=36, overview_px=64, **arguments) as env:
        observation, info = env.reset(seed=seed, options={"slide_id": "positive"})
        policy.seed(seed)
        policy.reset(observation, info)
        if policy.reads_reference:
            policy.see_reference(exploration_references(Cohort.load(folder))["positive"])
        over = False
        while not over:
            shown += info["tiles"]
            observation, _, over, _, info = env.step(policy.act(observation, info))
            assert "error" not in info
    return shown, info


class Scripted(TileScorer):
    """Scores by the tile's corner and width; else 0.1."""

    def __init__(self, scores: dict[tuple[int, int, int], float]) -> None:
        self.scores = scores

    def suspicions(self, tiles: np.ndarray, info: Any) -> np.ndarray:
        return np.array([self.scores.get((x, y, width), 0.1) for x, y, width, _ in info["tiles"]])
