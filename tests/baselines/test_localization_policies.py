"""The localization baselines on slides whose best answers are known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cohort_builder import build_cohort
from slides_builder import write_slide

from wsigym.baselines import POLICIES, make_policy
from wsigym.envs import LocalizationEnv
from wsigym.errors import UnknownNameError
from wsigym.slides import Box
from wsigym.slides.geometry import box_from_unit, box_to_unit

LOCALIZATION = "wsigym/Localization-v0"
WITHOUT_FILE = [name for name, card in POLICIES[LOCALIZATION].items() if card.argument is None]
SIDE = 2048
NUCLEAR, PINK, WHITE = (80, 50, 130), (235, 170, 200), (255, 255, 255)
DARK = Box(1216, 320, 256, 256)
"""A square of nuclear stain on pink tissue, in level-0 pixels."""


def slide_with(folder: Path, image: np.ndarray, nodes: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    write_slide(folder / "s1.svs", image, tile_px=256, compression="jpeg", aperio="|AppMag = 40|MPP = 0.25")
    return build_cohort(folder, slides=[{"slide_id": "s1"}], nodes=nodes, paths=[], pixels=False)


@pytest.fixture(scope="module")
def dark_square(tmp_path_factory: pytest.TempPathFactory) -> Path:
    image = np.full((SIDE, SIDE, 3), PINK, np.uint8)
    image[DARK.y : DARK.bottom, DARK.x : DARK.right] = NUCLEAR
    node = {"node_id": "a", "parent_id": None, "magnification": 40, "box": DARK.to_list(), "finding": "nuclei"}
    return slide_with(tmp_path_factory.mktemp("dark") / "cohort", image, [node])


@pytest.fixture(scope="module")
def tissue_corner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tissue in the lower right quarter alone, on glass."""
    image = np.full((SIDE, SIDE, 3), WHITE, np.uint8)
    image[SIDE // 2 :, SIDE // 2 :] = PINK
    node = {"node_id": "a", "parent_id": None, "magnification": 10, "box": [1024, 1024, 1024, 1024], "finding": "skin"}
    return slide_with(tmp_path_factory.mktemp("corner") / "cohort", image, [node])


@pytest.fixture(scope="module")
def glass(tmp_path_factory: pytest.TempPathFactory) -> Path:
    node = {"node_id": "a", "parent_id": None, "magnification": 10, "box": [500, 600, 300, 200], "finding": "nothing"}
    image = np.full((SIDE, SIDE, 3), WHITE, np.uint8)
    return slide_with(tmp_path_factory.mktemp("glass") / "cohort", image, [node])


def play(cohort: Path, name: str, budget: str | int = "base", seed: int = 0) -> tuple[list[Any], Mapping[str, Any]]:
    """The actions of one episode, and the last info."""
    env = LocalizationEnv(cohort=cohort, budget=budget)
    policy: Any = make_policy(name)
    observation, info = env.reset(seed=seed)
    if hasattr(policy, "seed"):
        policy.seed(seed)
    policy.reset(observation, info)
    if getattr(policy, "reads_reference", False):
        policy.see_reference(env._reference)
    actions, over = [], False
    while not over:
        actions.append(policy.act(observation, info))
        observation, _, over, _, info = env.step(actions[-1])
    return actions, info


@pytest.mark.parametrize("name", WITHOUT_FILE)
@pytest.mark.parametrize("budget", ["tight", 0, 1])
def test_every_policy_finishes_without_an_invalid_request(name: str, budget: str | int, dark_square: Path) -> None:
    actions, info = play(dark_square, name, budget)
    assert info["outcome"] == "scored"
    assert "error" not in info
    assert [action["tool"] for action in actions] == [0] * (len(actions) - 1) + [1]
    assert len(actions) - 1 <= {"tight": 3}.get(budget, budget)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", WITHOUT_FILE)
def test_every_policy_works_where_there_is_no_tissue(name: str, glass: Path) -> None:
    assert play(glass, name)[1]["outcome"] == "scored"


@pytest.mark.parametrize("name", WITHOUT_FILE)
def test_a_policy_played_twice_does_the_same(name: str, dark_square: Path) -> None:
    first, second = play(dark_square, name, seed=3)[0], play(dark_square, name, seed=3)[0]
    for one, other in zip(first, second, strict=True):
        assert one["tool"] == other["tool"]
        np.testing.assert_array_equal(one["box"], other["box"])
        np.testing.assert_array_equal(one["confidence"], other["confidence"])


def test_random_looks_differ_by_seed_and_spend_the_budget(dark_square: Path) -> None:
    first, second = play(dark_square, "random", "base", 1)[0], play(dark_square, "random", "base", 2)[0]
    assert len(first) == 5 + 1
    assert not np.array_equal(first[0]["box"], second[0]["box"])


def test_search_centre_answers_with_the_centre(dark_square: Path) -> None:
    actions, info = play(dark_square, "search-centre")
    assert len(actions) == 1
    assert box_from_unit(actions[0]["box"], Box.of(info["search_box"])).centre == (SIDE / 2, SIDE / 2)


def test_tissue_centroid_finds_the_only_tissue(tissue_corner: Path) -> None:
    actions, info = play(tissue_corner, "tissue-centroid")
    x, y = box_from_unit(actions[0]["box"], Box.of(info["search_box"])).centre
    assert abs(x - 1536) < 16
    assert abs(y - 1536) < 16
    assert info["iou"] > 0.95


def test_tissue_density_looks_at_tissue(tissue_corner: Path) -> None:
    actions, info = play(tissue_corner, "tissue-density")
    assert len(actions) > 1
    assert Box(1024, 1024, 1024, 1024).contains(box_from_unit(actions[-1]["box"], Box.of(info["search_box"])))


def test_stain_density_finds_the_dark_square_and_more_looks_find_it_better(dark_square: Path) -> None:
    scores = [play(dark_square, "stain-density", budget)[1]["iou"] for budget in (1, 3, 10)]
    assert scores[0] < scores[1] < scores[2]
    assert scores[2] > 0.7
    assert play(dark_square, "search-centre")[1]["iou"] == 0


def test_stain_density_states_how_far_the_best_field_stands_out(dark_square: Path) -> None:
    actions, _ = play(dark_square, "stain-density", "loose")
    assert 0.6 < actions[-1]["confidence"][0] <= 1
    assert np.isnan(play(dark_square, "stain-density", 0)[0][-1]["confidence"][0])


def test_the_oracle_is_exact(dark_square: Path) -> None:
    actions, info = play(dark_square, "oracle")
    assert info["iou"] == 1
    np.testing.assert_array_equal(actions[0]["box"], box_to_unit(DARK, Box(0, 0, SIDE, SIDE)))


def test_an_unknown_policy_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'stain-density'"):
        make_policy("stain-densty")
