"""`give_up()`: how an episode ends whose policy has no answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tumour_builder import TILE_PX, build_tumour_cohort

from wsigym.envs import LocalizationEnv
from wsigym.envs.exploration import ExplorationEnv
from wsigym.envs.localization import extract_roi
from wsigym.errors import EpisodeOverError


@pytest.fixture(params=["localization", "exploration"])
def episode(request: pytest.FixtureRequest, tiny_cohort: Path, tmp_path: Path) -> tuple[Any, Any]:
    """An environment before its reset, and an action that ends no episode."""
    if request.param == "localization":
        return LocalizationEnv(tiny_cohort), extract_roi([0.1, 0.1, 0.3, 0.2])
    env = ExplorationEnv(build_tumour_cohort(tmp_path), tile_px=TILE_PX, page_size=16, skip_empty=False)
    return env, np.ones(16, np.float32)


@pytest.mark.parametrize("steps", [0, 2])
def test_the_episode_is_over_with_score_0(episode: tuple[Any, Any], steps: int) -> None:
    env, action = episode
    with pytest.raises(EpisodeOverError):
        env.give_up("refused")
    env.reset(seed=0)
    for _ in range(steps):
        env.step(action)
    info = env.give_up("refused")
    assert (info["outcome"], info.get("iou", info.get("score"))) == ("refused", 0)
    for call in (lambda: env.step(action), lambda: env.give_up("refused")):
        with pytest.raises(EpisodeOverError):
            call()
    env.reset(seed=0)
    env.step(action)


def test_exploration_keeps_nothing_and_tells_what_was_viewed(tmp_path: Path) -> None:
    env = ExplorationEnv(build_tumour_cohort(tmp_path), tile_px=TILE_PX, page_size=16, skip_empty=False)
    env.reset(seed=0)
    env.step(np.ones(16, np.float32))
    info = env.give_up("unparsed")
    assert info["retained"] == ((), (), ())
    assert [(tile.level, tile.kept) for tile in info["viewed"]] == [(0, False)] * 16
