"""Exploration on tiny slides whose tumour is known."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from shapely import Polygon, box
from tumour_builder import TILE_PX, TUMOUR_BOXES, build_tumour_cohort, write_regions, write_tumour_slide

import wsigym  # noqa: F401  # registers the ids
from wsigym.baselines import make_policy
from wsigym.baselines.registry import EXPLORATION
from wsigym.cohorts import Cohort
from wsigym.cohorts.exploration import exploration_references
from wsigym.cohorts.tiles import Tile, TileGrid
from wsigym.envs.conformance import check_environment
from wsigym.envs.exploration import ExplorationEnv
from wsigym.envs.leaks import secrets_of
from wsigym.envs.verdicts import suspicion
from wsigym.errors import (
    CohortError,
    EpisodeOverError,
    InvalidArgumentError,
    UnknownNameError,
    UpsamplingError,
    WsigymWarning,
)
from wsigym.slides import Box, Slide

Score = Callable[[tuple[int, ...]], float]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tumour_cohort(tmp_path_factory.mktemp("tumours"))


def make(folder: Path | Cohort, **arguments: Any) -> ExplorationEnv:
    return ExplorationEnv(folder, **({"tile_px": TILE_PX, "view_px": 36, "overview_px": 64} | arguments))


def play(env: ExplorationEnv, score: Score, slide_id: str = "positive") -> tuple[list[float], dict[str, Any]]:
    """One episode of the cascade in which each tile gets the score of its level-0 box; rewards and the last info."""
    _, info = env.reset(seed=0, options={"slide_id": slide_id})
    rewards, over = [], False
    while not over:
        action = np.zeros(env.page_size, np.float32)
        action[: len(info["tiles"])] = [score(tile) for tile in info["tiles"]]
        _, reward, over, truncated, info = env.step(action)
        assert not truncated
        rewards.append(reward)
    return rewards, info


def oracle(folder: Path, slide_id: str = "positive") -> Score:
    reference = exploration_references(Cohort.load(folder))[slide_id]
    return lambda tile: suspicion(yes=reference.share(Box(*tile)) > 0.05, score=reference.share(Box(*tile)))


def test_the_oracle_by_hand(folder: Path) -> None:
    """Tumour on x 100-420, y 100-300 and x 1100-1300, y 1100-1250. Tiles of 512, 128 and 32 px.

    2.5x: the first lies in tile (0, 0), the second in (2, 2): 2 positives, both kept.
    10x: columns 0-3 of rows 0-2 touch the first; (row 0, y 100-128) covers 28/128 = 22 % of a column's width or less:
    col 0: x 100-128 (22 %) x 22 % = 4.8 %, no positive; so 3 + 4 + 4 = 11. The second: x 1100-1300 is in columns
    8 (52 px), 9, 10 (20 px) and y 1100-1250 in rows 8 (52 px) and 9 (98 px): 52*52, 52*128, 52*20 = 6.3 % ...
    all six above 5 %. 17 positives, of which the best 3 of each parent are kept: 6.
    40x: each of these 6 has 16 children, of which 2 are kept: 12.
    """
    with make(folder) as env:
        rewards, info = play(env, oracle(folder))
        positives = [level.sum() for level in env._positives]
    assert positives[:2] == [2, 17]
    kept = [len(level) for level in info["retained"]]
    assert kept == [2, 6, 12]
    rates = [2 / 2, 6 / 17, 12 / positives[2]]
    assert info["outcome"] == "scored"
    assert info["score"] == pytest.approx(sum(rates) / 3)
    assert sum(rewards) == pytest.approx(info["score"])
    # Pages: one with the tissue of the first level (12 tiles), 2 and then 6 parents.
    assert len(rewards) == 1 + 2 + 6
    assert [index for index, reward in enumerate(rewards) if reward] == [0, 2, 8]
    assert rewards[0] == pytest.approx(1 / 3)
    assert rewards[2] == pytest.approx(6 / 17 / 3)


def test_what_is_shown(folder: Path) -> None:
    with make(folder) as env:
        observation, info = env.reset(seed=0, options={"slide_id": "positive"})
        assert observation in env.observation_space
        # Tissue is on x 0-1400: three of four columns.
        assert info["tiles"][:4] == ((0, 0, 512, 512), (512, 0, 512, 512), (1024, 0, 512, 512), (0, 512, 512, 512))
        assert observation["tile_mask"].tolist() == [1] * 12 + [0] * 4
        assert observation["tile_boxes"][1].tolist() == [0.25, 0, 0.25, 0.25]
        assert not observation["tile_boxes"][12:].any()
        assert observation["magnification"] == info["magnification"] == 2.5
        assert observation["progress"] == 0
        slide = env.cohort.open("positive")
        expected = slide.read(Box(512, 0, 512, 512), (TILE_PX, TILE_PX))
        assert (observation["tiles"][1, :TILE_PX, :TILE_PX] == expected).all()
        assert (observation["tiles"][1, TILE_PX:] == 255).all()
        assert (observation["tiles"][12:] == 255).all()
        # The overview: 2,048 px at a quarter of 2.5x are 32 px.
        assert info["overview_size"] == (32, 32)
        assert info["tiles_viewed"] == 12
        assert info["target"] == "tumour"


def test_a_smaller_view_shrinks_the_tile(folder: Path) -> None:
    with make(folder, tile_px=64, budget="tight") as env:
        observation, _ = env.reset(seed=0, options={"slide_id": "positive"})
        expected = env.cohort.open("positive").read(Box(0, 0, 1024, 1024), (36, 36))
        assert (observation["tiles"][0] == expected).all()


def test_every_tile_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[int, ...]] = []
    original = Slide.read

    def counting(self: Slide, box: Box, size: tuple[int, int] | None = None) -> np.ndarray:
        if size == (TILE_PX, TILE_PX) and box != self.box:
            read.append(tuple(box.to_list()))
        return original(self, box, size)

    monkeypatch.setattr(Slide, "read", counting)
    with make(folder) as env:
        _, info = play(env, oracle(folder))
        assert len(read) == info["tiles_viewed"]
        read.clear()
        env.reset(options={"slide_id": "positive"})
        env.step(np.full(16, np.nan))  # shows the page again, and reads nothing
        assert len(read) == 12
        read.clear()
        _, info = play(env, oracle(folder))
    assert len(read) == len(set(read)) == info["tiles_viewed"] == len(info["viewed"])


def test_viewed_tiles_tell_what_was_kept(folder: Path) -> None:
    with make(folder) as env:
        _, info = play(env, lambda tile: 0.5 if tile[:2] in {(0, 0), (512, 512)} else 0.25)
        env.reset(seed=0)
        grid = env._tree.grid
    kept = [tuple(grid.box(Tile(*tile[:3])).to_list()) for tile in info["viewed"] if tile.kept]
    assert sorted(kept) == sorted(box for level in info["retained"] for box in level)
    assert {tile.suspicion for tile in info["viewed"]} == {0.25, 0.5}


def test_no_yes_ends_the_episode(folder: Path) -> None:
    with make(folder) as env:
        rewards, info = play(env, lambda tile: 0.49)
    assert rewards == [0]
    assert info["outcome"] == "scored"
    assert info["score"] == 0
    assert info["retained"] == ((), (), ())


def test_a_negative_slide_returns_zero(folder: Path) -> None:
    with make(folder) as env:
        rewards, info = play(env, lambda tile: 1.0, "negative")
    assert set(rewards) == {0}
    assert info["outcome"] == "scored"
    assert [len(level) for level in info["retained"]] == [6, 18, 36]


def test_skip_empty_false_shows_every_tile(folder: Path) -> None:
    with make(folder, skip_empty=False) as env:
        _, info = env.reset(options={"slide_id": "positive"})
        assert len(info["tiles"]) == 16


@pytest.mark.parametrize("schedule", ["cascade", "free"])
def test_a_slide_without_tissue_shows_nothing_and_any_step_ends_it(tmp_path: Path, schedule: str) -> None:
    build_tumour_cohort(tmp_path, [{"slide_id": "white"}])
    write_tumour_slide(tmp_path / "white.tiff", tumour=(), tissue=())
    write_regions(tmp_path, "white", [box(0, 0, 600, 600)])
    with make(tmp_path, schedule=schedule) as env:
        observation, info = env.reset()
        assert not observation["tile_mask"].any()
        assert info["tiles"] == ()
        _, reward, terminated, _, info = env.step(env.action_space.sample())
        assert (reward, terminated, info["outcome"], info["score"]) == (0, True, "scored", 0)


def test_invalid_requests(folder: Path) -> None:
    with make(folder) as env:
        first, _ = env.reset(seed=0, options={"slide_id": "positive"})
        for wrong in (np.full(16, np.nan), np.full(16, 1.5), np.full(16, -0.1)):
            again, reward, over, _, info = env.step(wrong)
            assert "number from 0 to 1" in info["error"]
            assert reward == 0
            assert over == (wrong[0] == -0.1)
            assert (again["tiles"] == first["tiles"]).all()
        assert info["outcome"] == "invalid"
        with pytest.raises(EpisodeOverError):
            env.step(np.zeros(16))


def test_an_action_of_another_form_is_the_callers_mistake(folder: Path) -> None:
    with make(folder) as env, make(folder, schedule="free") as free:
        env.reset(seed=0)
        free.reset(seed=0)
        for wrong in (np.zeros(3), {"scores": np.zeros(16)}, None):
            with pytest.raises(InvalidArgumentError, match="16 suspicions"):
                env.step(wrong)
        for wrong in (np.zeros(16), {"scores": np.zeros(16)}, {"scores": np.zeros(16), "next": 64}):
            with pytest.raises(InvalidArgumentError, match="0 to 63"):
                free.step(wrong)


def test_a_valid_request_forgives(folder: Path) -> None:
    with make(folder) as env:
        env.reset(seed=0, options={"slide_id": "negative"})
        for _ in range(4):
            env.step(np.full(16, np.nan))
            _, _, over, _, _ = env.step(np.ones(16))
            assert not over


def test_masked_places_are_not_read(folder: Path) -> None:
    with make(folder) as env:
        env.reset(seed=0, options={"slide_id": "positive"})
        action = np.full(16, np.nan)
        action[:12] = 0.5
        *_, info = env.step(action)
        assert "error" not in info


# -- free ------------------------------------------------------------------------------------------------------------


def play_free(env: ExplorationEnv, score: Score) -> tuple[list[float], dict[str, Any]]:
    """Best first: always the open node with the highest score."""
    observation, info = env.reset(seed=0, options={"slide_id": "positive"})
    rewards, over = [], False
    while not over:
        scores = np.zeros(env.page_size, np.float32)
        scores[: len(info["tiles"])] = [score(tile) for tile in info["tiles"]]
        open_scores = observation["frontier"][:, 4].copy()
        open_scores[: len(scores)] = scores
        open_scores[observation["frontier_mask"] == 0] = -1
        observation, reward, over, _, info = env.step({"scores": scores, "next": int(open_scores.argmax())})
        rewards.append(reward)
    return rewards, info


def test_best_first_with_the_truth_finds_the_tumour_within_a_small_budget(folder: Path) -> None:
    with make(folder, schedule="free", budget="tiles=100") as env:
        rewards, info = play_free(env, oracle(folder))
        positives = int(env._positives[2].sum())
    assert len(info["viewed"]) == 100
    assert len(info["retained"][2]) == 36
    assert not any(rewards[:-1])
    # 12 tiles at 2.5x, 16 at 10x, and then 72 at 40x, below a parent that is all tumour: 36 positives kept.
    assert rewards[-1] == info["score"] == pytest.approx(36 / positives)


def test_free_observation_and_budget(folder: Path) -> None:
    with make(folder, schedule="free") as env:
        observation, info = env.reset(seed=0, options={"slide_id": "positive"})
        assert observation in env.observation_space
        assert info["tiles_allowed"] == 12 + 6 * 16 + 18 * 16
        assert observation["frontier_mask"].tolist() == [1] * 12 + [0] * 52
        assert info["frontier"][:2] == ((0, 0, 512, 512), (512, 0, 512, 512))
        assert info["frontier"][12:] == (None,) * 52
        observation, *_, info = env.step({"scores": np.full(16, 0.25, np.float32), "next": 1})
        assert info["magnification"] == 10
        assert info["tiles"][0] == (512, 0, 128, 128)
        assert info["frontier"][16] == (0, 0, 512, 512)
        assert observation["frontier"][16].tolist() == [0, 0, 0.25, 0.25, 0.25]
        assert observation["progress"] == pytest.approx(12 / info["tiles_allowed"])
        _, _, over, _, info = env.step({"scores": np.full(16, 0.25, np.float32), "next": 63})
        assert over
        assert info["outcome"] == "scored"
        assert len(info["viewed"]) == 28


def test_a_reset_may_say_how_many_tiles_an_episode_may_view(folder: Path) -> None:
    with make(folder, schedule="free", budget="loose") as env:
        for tiles in (30, 0):
            _, info = env.reset(options={"slide_id": "positive", "tiles": tiles})
            assert info["tiles_allowed"] == tiles
        assert info["tiles"] == ()
        _, info = env.reset(options={"slide_id": "positive"})
        assert info["tiles_allowed"] > 300  # the most that K=10,5,3 can view
        for wrong in (-1, 1.5, True, "9"):
            with pytest.raises(InvalidArgumentError, match=r"tiles is .* whole number"):
                env.reset(options={"tiles": wrong})
    with make(folder) as cascade, pytest.raises(UnknownNameError, match="Known: slide_id"):
        cascade.reset(options={"tiles": 30})


def test_what_a_cascade_views_is_counted_beside_the_episode(folder: Path) -> None:
    """The count is that of the cascade played for itself, and the search that is under way does not notice."""
    with make(folder) as cascade:
        _, info = play(cascade, oracle(folder))
        expected = len(info["viewed"])
    with make(folder, schedule="free") as env, make(folder, schedule="free") as other:
        policy = make_policy("oracle", EXPLORATION)
        policy.see_reference(exploration_references(Cohort.load(folder))["positive"])
        for each in (env, other):
            each.reset(seed=0, options={"slide_id": "negative"})
        assert env.viewed_in_cascade(policy, "positive", seed=0) == expected
        assert (env.schedule, env.budget.label, other.budget.label) == ("free", "K=6,3,2", "K=6,3,2")
        action = {"scores": np.full(16, 0.75, np.float32), "next": 3}
        (one, *_, info), (same, *_, same_info) = env.step(action), other.step(action)
        assert info == same_info
        assert all((one[name] == same[name]).all() for name in one)
    with make(folder, schedule="free", budget="tiles=9") as env, pytest.raises(InvalidArgumentError, match="no K"):
        env.viewed_in_cascade(policy, "positive", seed=0)


@pytest.mark.parametrize("budget", ["tight", "base", "loose", "tiles=300", "tiles=all"])
def test_a_search_keeps_the_36_best_viewed(folder: Path, budget: str) -> None:
    with make(folder, schedule="free", budget=budget) as env:
        _, info = play_free(env, oracle(folder))
    at_last = [tile.suspicion for tile in info["viewed"] if tile.level == 2]
    kept = [tile.suspicion for tile in info["viewed"] if tile.level == 2 and tile.kept]
    assert len(kept) == len(info["retained"][2]) == 36
    assert sorted(at_last, reverse=True)[:36] == sorted(kept, reverse=True)


def test_info_tells_what_was_scored(folder: Path) -> None:
    with make(folder) as env:
        _, info = env.reset(seed=0, options={"slide_id": "positive"})
        assert info["scored"] == ()
        shown = info["tiles"]
        scores = np.linspace(0.5, 0.75, 16)
        *_, info = env.step(scores)
        assert [(tile.magnification, tile.box) for tile in info["scored"]] == [(2.5, box) for box in shown]
        assert [tile.suspicion for tile in info["scored"]] == scores[: len(shown)].tolist()
        *_, info = env.step(np.full(16, np.nan))
        assert info["scored"] == ()


# -- arguments and bad input -----------------------------------------------------------------------------------------


def test_arguments_that_are_not_allowed(folder: Path) -> None:
    for arguments, message in (
        ({"magnifications": (2.5, 10, 25)}, "whole multiple"),
        ({"budget": "tiles=5"}, "schedule 'free'"),
        ({"budget": "K=6,3"}, "one for each"),
        ({"page_size": 0}, "page_size"),
        ({"page_size": 33, "schedule": "free"}, "1 to 32"),
        ({"view_px": 8}, "view_px"),
        ({"tile_px": 100_000, "view_px": 64}, "tile_px"),
        ({"tile_px": 32.5}, "tile_px is 32.5"),
        ({"tile_px": "32"}, "tile_px is '32'"),
        ({"page_size": 2.5}, "page_size is 2.5"),
        ({"page_size": True}, "page_size is True"),
        ({"view_px": "64"}, "view_px is '64'"),
        ({"overview_px": None}, "overview_px is None"),
        ({"magnifications": "abc"}, "magnifications are 'abc'"),
        ({"magnifications": 10}, "magnifications are 10"),
        ({"magnifications": (2.5, 10, "x")}, "magnifications are"),
        ({"skip_empty": "no"}, "skip_empty is 'no'"),
        ({"target": 5}, "target is 5"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            make(folder, **arguments).reset()
    for arguments in ({"schedule": "fre"}, {"render_mode": "human"}, {"target": "tumor"}):
        with pytest.raises(UnknownNameError, match="Known: "):
            make(folder, **arguments)
    with make(folder) as env:
        with pytest.raises(UnknownNameError, match="positive"):
            env.reset(options={"slide_id": "positve"})
        with pytest.raises(UnknownNameError, match="reset option"):
            env.reset(options={"slide": "positive"})
        with pytest.raises(EpisodeOverError):
            ExplorationEnv(folder).step(np.zeros(16))


def test_a_cohort_whose_regions_have_another_class_is_asked_for_that(tmp_path: Path) -> None:
    build_tumour_cohort(tmp_path, [{"slide_id": "s"}])
    write_tumour_slide(tmp_path / "s.tiff")
    write_regions(tmp_path, "s", [box(0, 0, 500, 500)], name="Tumor")
    with pytest.raises(UnknownNameError, match=r"unknown target .* 'tumour'\. Did you mean 'Tumor'\?"):
        make(tmp_path)
    with make(tmp_path, target="Tumor") as env:
        env.reset()
        assert env._positives[0][0, 0]


def test_a_class_that_no_slide_has_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    """The whole cohort decides, not the split: in one where no slide has a region of the class, all are negative."""
    build_tumour_cohort(tmp_path, [{"slide_id": "s"}])
    write_regions(tmp_path, "s", [])
    assert exploration_references(Cohort.load(tmp_path))["s"].area.is_empty
    build_tumour_cohort(tmp_path, [{"slide_id": "s", "split": "train"}, {"slide_id": "t", "split": "test"}])
    write_regions(tmp_path, "s", [box(0, 0, 500, 500)], name="necrosis")
    with pytest.raises(UnknownNameError, match=r"unknown target .* 'necrosi'.*'necrosis'.*Known: necrosis"):
        make(tmp_path, split="test", target="necrosi")
    references = exploration_references(Cohort.load(tmp_path), "test", "necrosis")
    assert references["t"].area.is_empty


def test_a_region_outside_its_slide_is_a_fault(tmp_path: Path) -> None:
    build_tumour_cohort(tmp_path, [{"slide_id": "s"}])
    write_tumour_slide(tmp_path / "s.tiff")
    write_regions(tmp_path, "s", [Polygon([(5000, 0), (6000, 0), (6000, 900)])])
    with make(tmp_path) as env, pytest.raises(CohortError, match=r"regions/s\.geojson.*outside the slide of 2048"):
        env.reset()


def test_a_self_intersecting_region_is_a_fault_on_load(tmp_path: Path) -> None:
    build_tumour_cohort(tmp_path, [{"slide_id": "s"}])
    write_regions(tmp_path, "s", [Polygon([(0, 0), (9, 9), (9, 0), (0, 9)])])
    with pytest.raises(CohortError, match="Self-intersection"):
        make(tmp_path)


def test_a_scan_of_20x_takes_20x(tmp_path: Path) -> None:
    build_tumour_cohort(tmp_path, [{"slide_id": "s"}])
    write_tumour_slide(tmp_path / "s.tiff", mpp=0.5)
    write_regions(tmp_path, "s", [box(*corners) for corners in TUMOUR_BOXES])
    with make(tmp_path) as env, pytest.raises(UpsamplingError):
        env.reset()
    with make(tmp_path, magnifications=(2.5, 10, 20)) as env:
        env.reset()
        assert env._tree.grid == TileGrid((2048, 2048), (2.5, 10, 20), (4, 2), (256, 64, 32))
        _, info = play(env, oracle(tmp_path, "s"), "s")
        assert info["score"] > 0


def test_too_few_tiles_to_choose_from_warns_once(folder: Path) -> None:
    with make(folder, tile_px=64) as env:
        with pytest.warns(WsigymWarning, match="4 tiles at 2.5x, of which 6 may be kept"):
            env.reset(options={"slide_id": "positive"})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            env.reset(options={"slide_id": "positive"})


# -- as a Gymnasium environment --------------------------------------------------------------------------------------


def test_the_free_schedule_conforms_and_leaks_nothing(folder: Path) -> None:
    """The cascade, as every registered id, is tested in test_conformance."""
    kwargs = {"cohort": str(folder), "tile_px": TILE_PX, "view_px": 36, "schedule": "free", "budget": "tiles=60"}
    check_environment("wsigym/Exploration-v0", kwargs, secrets=secrets_of(Cohort.load(folder)))


@pytest.mark.parametrize("schedule", ["cascade", "free"])
def test_random_actions_stay_in_space_and_copies_agree(folder: Path, schedule: str) -> None:
    env = gym.make(
        "wsigym/Exploration-v0", cohort=folder, tile_px=TILE_PX, view_px=36, schedule=schedule, render_mode="rgb_array"
    )
    env.action_space.seed(1)
    copy = pickle.loads(pickle.dumps(env.unwrapped))
    first, _ = env.reset(seed=5)
    other, _ = copy.reset(seed=5)
    over = False
    while not over:
        for name, value in first.items():
            assert value in env.observation_space[name]
            assert (value == other[name]).all()
        frame = env.render()
        assert frame.shape == (256, 512, 3)
        assert frame.dtype == np.uint8
        action = env.action_space.sample()
        first, reward, over, _, info = env.step(action)
        other, same_reward, _, _, same_info = copy.step(action)
        assert (reward, info) == (same_reward, same_info)
    env.close()
