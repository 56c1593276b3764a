"""FreeChoice: the free schedule by one discrete action, on slides whose tumour is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from choice_builder import free_choice
from gymnasium.envs.registration import EnvSpec
from shapely import box
from tile_player import play
from tumour_builder import TILE_PX, TUMOUR_BOXES, build_tumour_cohort, write_regions, write_tumour_slide

from wsigym.baselines import make_policy
from wsigym.baselines.registry import EXPLORATION
from wsigym.baselines.tile_scorers import StainDensity
from wsigym.cohorts import Cohort
from wsigym.envs.conformance import RULES, check_environment
from wsigym.envs.exploration import ExplorationEnv
from wsigym.envs.free_choice import FreeChoice, described
from wsigym.envs.leaks import secrets_of
from wsigym.envs.tile_search import STOP
from wsigym.errors import EpisodeOverError, InvalidArgumentError

POSITIVE = {"slide_id": "positive"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tumour_cohort(tmp_path_factory.mktemp("tumours"))


def make(folder: Path, **exploration: Any) -> FreeChoice:
    return free_choice(**{"cohort": folder, "tile_px": TILE_PX, "view_px": 36, "overview_px": 36, **exploration})


def best_first(env: FreeChoice) -> tuple[list[dict[str, np.ndarray]], float, dict[str, Any]]:
    """An episode that always opens the tile of the highest suspicion: what was seen, the return, the last info."""
    observation, info = env.reset(seed=0, options=POSITIVE)
    seen, total, over = [observation], 0.0, False
    while not over:
        suspicions = observation["candidates"][:, 2]
        slot = np.where(env.action_masks(), suspicions, -1).argmax()
        observation, reward, over, _, info = env.step(slot)
        assert over == (info["tiles_viewed"] == info["tiles_allowed"])  # no step is without a choice
        seen.append(observation)
        total += reward
    return seen, total, info


def test_it_conforms_and_leaks_nothing(folder: Path) -> None:
    kwargs = {"cohort": str(folder), "tile_px": TILE_PX, "view_px": 36, "budget": "tiles=60"}
    spec = EnvSpec("test/FreeChoice-v0", entry_point="choice_builder:free_choice")
    rules = [rule for rule in RULES if rule != "spec"]  # a scorer has no JSON
    check_environment(spec, kwargs, rules=rules, secrets=secrets_of(Cohort.load(folder)))


def test_stable_baselines3_takes_it(folder: Path) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker", reason="needs sb3-contrib (extra dev)")
    checker.check_env(make(folder, budget="tiles=60"), warn=False)  # it warns of candidates being neither row nor image


@pytest.mark.parametrize("tiles", [5, 12, 13, 44, 60, 77, 200])
def test_the_same_choices_are_the_same_search(folder: Path, tiles: int) -> None:
    """As many tiles viewed, the same ones, the same score; also where the budget ends within a page."""
    budget = f"tiles={tiles}"
    _, total, info = best_first(make(folder, budget=budget))
    _, expected = play(folder, make_policy("best-first:stain-density", EXPLORATION), schedule="free", budget=budget)
    assert len(info["viewed"]) == len(expected["viewed"]) == tiles
    assert info["viewed"] == expected["viewed"]
    assert total == info["score"] == expected["score"]


def test_the_mask_holds_open_tiles_alone(folder: Path) -> None:
    env = make(folder, budget="tiles=60")
    _, info = env.reset(seed=0, options=POSITIVE)
    assert info["action_mask"].tolist() == [1] * 12 + [0] * 52
    _, _, _, _, info = env.step(3)
    assert info["action_mask"].sum() == 11 + 16
    assert [each is not None for each in info["frontier"]] == env.action_masks().tolist()
    _, _, over, _, info = env.step(STOP)
    assert over
    assert len(info["viewed"]) == 12 + 16
    assert info["action_mask"].tolist() == [0] * STOP + [1]


def test_where_nothing_can_be_opened_the_last_slot_is_possible(tmp_path: Path) -> None:
    build_tumour_cohort(tmp_path, [{"slide_id": "glass"}])
    write_tumour_slide(tmp_path / "glass.tiff", tumour=(), tissue=())
    write_regions(tmp_path, "glass", [box(*TUMOUR_BOXES[0])])
    env = make(tmp_path)
    env.reset(seed=0)
    assert np.flatnonzero(env.action_masks()).tolist() == [STOP]
    _, reward, over, _, info = env.step(STOP)
    assert (reward, over, info["viewed"]) == (0, True, ())


def test_what_the_numbers_say(folder: Path) -> None:
    env = make(folder, budget="tiles=200")
    base = env.unwrapped
    assert isinstance(base, ExplorationEnv)
    observation, info = env.reset(seed=0, options=POSITIVE)
    first = info["tiles"]
    top = describe(env, first)
    candidates = observation["candidates"]
    assert candidates[:12, :2].tolist() == [[1, 0]] * 12
    assert np.allclose(candidates[:12, 2:9], top)
    assert np.allclose(candidates[:12, 9:16], top - top.mean(axis=0), atol=1e-6)
    assert not candidates[:12, 16:].any()
    assert not candidates[12:].any()
    assert np.allclose(observation["state"], [12 / 200, 188 / 360, 0, 0, 0])

    observation, _, _, _, info = env.step(0)  # the tile in the corner, with tumour in it
    middle = describe(env, info["tiles"])
    candidates = observation["candidates"]
    assert candidates[:16, :2].tolist() == [[0, 1]] * 16
    assert np.allclose(candidates[:16, 2:9], middle)
    assert np.allclose(candidates[:16, 16:23], top[0])
    others = [first.index(each) for each in info["frontier"][16:27]]
    assert np.allclose(candidates[16:27, 2:9], top[others])
    assert np.allclose(candidates[16:27, 23:30], middle.mean(axis=0), atol=1e-6)
    apart = np.hypot(*(np.array([first[each] for each in others])[:, :2] / 512).T)
    assert np.allclose(candidates[16:27, 30], 1 / (1 + apart))

    observation, _, _, _, info = env.step(5)
    leaves = describe(env, info["tiles"])[:, 0]
    assert np.allclose(observation["state"], [44 / 200, 156 / 360, 16 / 36, leaves.mean(), leaves.min()])


def describe(env: FreeChoice, boxes: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """The descriptions of a page of tiles, from their pixels."""
    images = np.stack([env.unwrapped.image(f"tile-{place}", TILE_PX).image for place in range(len(boxes))])  # type: ignore[attr-defined]
    return described(images, StainDensity().suspicions(images, {}))


def test_descriptions_are_suspicion_and_colours() -> None:
    half = np.zeros((1, 2, 2, 3), np.uint8)
    half[0, 0] = (255, 51, 0)
    assert np.allclose(described(half, np.array([0.75])), [[0.75, 0.5, 0.1, 0, 0.5, 0.1, 0]])


def test_later_episodes_are_as_the_first(folder: Path) -> None:
    """What is kept of tiles from one episode to the next saves time, and changes nothing."""
    env = make(folder, budget="tiles=77")
    (seen, total, _), (again, total_again, _) = best_first(env), best_first(env)
    assert total == total_again
    for one, other in zip(seen, again, strict=True):
        assert all((one[name] == other[name]).all() for name in one)


def test_what_it_refuses(folder: Path) -> None:
    cascade = ExplorationEnv(folder, tile_px=TILE_PX, view_px=36)
    with pytest.raises(InvalidArgumentError, match="schedule='free'"):
        FreeChoice(cascade, StainDensity())
    env = make(folder, budget="tiles=60")
    with pytest.raises(InvalidArgumentError, match="Put no other wrapper of actions below"):
        FreeChoice(env, StainDensity())
    for too_early in (lambda: env.step(0), env.action_masks):
        with pytest.raises(EpisodeOverError, match="before reset"):
            too_early()
    env.reset(seed=0)
    for action in (64, -1, "open", None, 0.5):
        with pytest.raises(InvalidArgumentError, match="slots 0 to 63"):
            env.step(action)
