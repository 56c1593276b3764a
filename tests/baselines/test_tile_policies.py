"""Policies of exploration on scores that are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tile_player import Scripted, play
from tumour_builder import TUMOUR_BOXES, build_tumour_cohort

from wsigym.baselines import make_policy
from wsigym.baselines.registry import EXPLORATION, POLICIES, chooses_next
from wsigym.baselines.tile_policies import BeamSearch, BestFirst
from wsigym.baselines.tile_scorers import RandomScores, StainDensity, TissueDensity
from wsigym.cohorts import Cohort
from wsigym.cohorts.exploration import exploration_references
from wsigym.envs.tile_search import STOP
from wsigym.errors import InvalidArgumentError, UnknownNameError
from wsigym.slides import Box

PINK, PURPLE, WHITE = (
    np.full((40, 40, 3), colour, np.uint8) for colour in ((230, 160, 200), (120, 60, 160), (255,) * 3)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tumour_cohort(tmp_path_factory.mktemp("tumours"))


def test_densities_rank_and_say_yes() -> None:
    half = PINK.copy()
    half[:, 20:] = 255
    tissue = TissueDensity().suspicions(np.stack([WHITE, half, PINK]), {})
    assert tissue[0] == 0.5
    assert tissue[1] == pytest.approx(0.75, abs=0.02)
    assert tissue[2] == 1
    stain = StainDensity().suspicions(np.stack([WHITE, PINK, PURPLE]), {})
    assert 0.5 == stain[0] < stain[1] < stain[2] <= 1


def test_random_depends_on_the_seed_alone() -> None:
    scorer = RandomScores()
    drawn = []
    for seed in (1, 2, 1):
        scorer.seed(seed)
        drawn.append(scorer.suspicions(np.stack([PINK] * 9), {}).tolist())
    assert drawn[0] == drawn[2] != drawn[1]
    assert all(0.5 <= value <= 1 for value in drawn[0])


def test_the_oracle_keeps_nothing_but_positives(folder: Path) -> None:
    _, info = play(folder, make_policy("oracle", EXPLORATION))
    reference = exploration_references(Cohort.load(folder))["positive"]
    assert all(reference.share(Box.of(tile)) > 0.05 for level in info["retained"] for tile in level)
    assert [len(level) for level in info["retained"]] == [2, 6, 12]


def test_stain_density_goes_where_the_purple_is(folder: Path) -> None:
    _, info = play(folder, make_policy("stain-density", EXPLORATION))
    tumours = [Box(left, top, right - left, bottom - top) for left, top, right, bottom in TUMOUR_BOXES]
    for tumour in tumours:
        assert any(tumour.contains(Box.of(tile)) for tile in info["retained"][2])


def opened(shown: list[tuple[int, ...]]) -> list[tuple[int, int]]:
    """The first tile of each page below the first magnification: the corner and width of what was opened."""
    pages = [shown[start] for start in range(12, len(shown), 16)]
    return [(tile[0], tile[1]) for tile in pages]


SCORES = {
    (0, 0, 512): 0.9,
    (512, 0, 512): 0.8,
    (0, 512, 512): 0.3,
    (0, 0, 128): 0.7,
    (128, 0, 128): 0.2,
    (512, 0, 128): 0.75,
}


def test_best_first_returns_to_what_it_left(folder: Path) -> None:
    shown, _ = play(folder, BestFirst(Scripted(SCORES)), schedule="free", budget=f"tiles={12 + 6 * 16}")
    # 0.9; then 0.8 beats the child of 0.7; then 0.75, back to 0.7, then the tile of 0.3 before the child of 0.2.
    assert opened(shown) == [(0, 0), (512, 0), (512, 0), (0, 0), (0, 512), (128, 0)]


def test_beam_goes_down_and_begins_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wsigym.baselines.tile_policies.BEAM_WIDTH", 2)
    shown, _ = play(folder, BeamSearch(Scripted(SCORES)), schedule="free", budget=f"tiles={12 + 6 * 16}")
    # Two of the first magnification, the best two of the second, and back on top: 0.3, then the first of 0.1.
    assert opened(shown) == [(0, 0), (512, 0), (512, 0), (0, 0), (0, 512), (1024, 0)]


def test_a_search_stops_when_nothing_is_open(folder: Path) -> None:
    shown, info = play(folder, BestFirst(Scripted({})), schedule="free", budget="tiles=all")
    assert len(shown) == len(set(shown)) == len(info["viewed"]) == info["tiles_allowed"]
    policy = BestFirst(Scripted({}))
    empty = {
        "tile_mask": np.zeros(16, np.int8),
        "tiles": np.zeros((16, 36, 36, 3), np.uint8),
        "frontier": np.zeros((64, 5), np.float32),
        "frontier_mask": np.zeros(64, np.int8),
    }
    assert policy.act(empty, {"tiles": ()})["next"] == STOP


def test_names_and_their_arguments() -> None:
    assert isinstance(make_policy("best-first:stain-density", EXPLORATION), BestFirst)
    for name in ("random:x", "best-first", "beam:"):
        with pytest.raises(InvalidArgumentError, match="asked for as"):
            make_policy(name, EXPLORATION)
    with pytest.raises(UnknownNameError, match="Did you mean 'stain-density'"):
        make_policy("best-first:stain-densiti", EXPLORATION)
    with pytest.raises(UnknownNameError, match="unknown policy 'search-centre'"):
        make_policy("search-centre", EXPLORATION)
    assert chooses_next("beam:oracle")
    assert not chooses_next("oracle")
    assert set(POLICIES) >= {"wsigym/Localization-v0", "wsigym/Exploration-v0"}
