"""`image()`: what an episode has shown, by name, at the size that is asked for and no more detail than is allowed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tumour_builder import TILE_PX, build_tumour_cohort

from wsigym.envs import LocalizationEnv
from wsigym.envs.blind import BlindImages
from wsigym.envs.exploration import ExplorationEnv
from wsigym.envs.localization import extract_roi
from wsigym.errors import EpisodeOverError, InvalidArgumentError

NOT_FINITE = extract_roi([np.nan] * 4)


def query_at(env: LocalizationEnv, magnification: str) -> str:
    return next(name for name in env.query_ids if magnification in name)


def test_localization_shows_overview_and_answered_looks(tiny_cohort: Path) -> None:
    env = LocalizationEnv(tiny_cohort)
    observation, info = env.reset(seed=0, options={"query_id": query_at(env, "10x")})
    overview = env.image("overview", 256)
    width, height = overview.size
    np.testing.assert_array_equal(overview.image, observation["overview"][:height, :width])
    assert (overview.box.to_list(), overview.image.shape) == (list(info["search_box"]), (height, width, 3))
    env.step(NOT_FINITE)  # shows nothing
    seen = []
    for corner in (0.1, 0.4):
        observation, _, _, _, info = env.step(extract_roi([corner, 0.1, 0.3, 0.2]))
        seen.append((observation["view"], info["roi"], info["view_size"]))
    for number, (image, roi, (width, height)) in enumerate(seen, start=1):
        view = env.image(f"roi-{number}", 224)
        np.testing.assert_array_equal(view.image, image[:height, :width])
        assert (view.box.to_list(), view.size) == (list(roi), (width, height))


@pytest.mark.parametrize("side_px", [1, 100, 1000, 8192])
def test_localization_images_keep_side_and_cap(tiny_cohort: Path, side_px: int) -> None:
    env = LocalizationEnv(tiny_cohort)
    _, info = env.reset(seed=0, options={"query_id": query_at(env, "10x")})
    env.step(extract_roi([0.1, 0.1, 0.5, 0.2]))
    for name, cap in (("overview", info["magnification"] / 4), ("roi-1", info["magnification"])):
        view = env.image(name, side_px)
        assert max(view.image.shape[:2]) <= side_px
        assert view.image.shape == (view.size[1], view.size[0], 3)
        assert view.magnification <= cap
        # Either as large as was asked, or at the cap: nothing is held back.
        assert max(view.size) == side_px or view.magnification == cap


def test_exploration_shows_the_page_and_never_more_than_a_tile(tmp_path: Path) -> None:
    env = ExplorationEnv(build_tumour_cohort(tmp_path), tile_px=TILE_PX, view_px=36, page_size=4, skip_empty=False)
    observation, info = env.reset(seed=0)
    for _ in range(3):
        for place, box in enumerate(info["tiles"]):
            view = env.image(f"tile-{place}", 4096)
            np.testing.assert_array_equal(view.image, observation["tiles"][place][:TILE_PX, :TILE_PX])
            assert (view.box.to_list(), view.size) == (list(box), (TILE_PX, TILE_PX))
            small = env.image(f"tile-{place}", TILE_PX // 4)
            assert small.size == (TILE_PX // 4, TILE_PX // 4)
            assert (view.magnification, small.magnification) == (info["magnification"], info["magnification"] / 4)
        beyond = f"tile-{len(info['tiles'])}"
        with pytest.raises(InvalidArgumentError, match=f"{beyond!r} was not shown; shown are overview"):
            env.image(beyond, 32)
        observation, _, _, _, info = env.step(np.ones(4, np.float32))
    overview = env.image("overview", 256)
    width, height = overview.size
    np.testing.assert_array_equal(overview.image, observation["overview"][:height, :width])


@pytest.mark.parametrize(
    ("name", "side_px", "told"),
    [
        ("roi-2", 99, "image 'roi-2' was not shown; shown are overview, roi-1"),
        ("roi-0", 99, "was not shown"),
        ("label", 99, "was not shown"),
        ("overview", 0, "side_px is 0; allowed are 1 to 8,192"),
        ("overview", 8193, "side_px is 8193"),
    ],
)
def test_what_was_not_shown_is_refused(tiny_cohort: Path, name: str, side_px: int, told: str) -> None:
    env = LocalizationEnv(tiny_cohort)
    with pytest.raises(EpisodeOverError, match=r"call reset\(\) first"):
        env.image(name, side_px)
    env.reset(seed=0)
    env.step(extract_roi([0.1, 0.1, 0.3, 0.2]))
    with pytest.raises(InvalidArgumentError, match=told):
        env.image(name, side_px)
    env.reset(seed=0)
    with pytest.raises(InvalidArgumentError, match="shown are overview"):
        env.image("roi-1", 99)


def test_blind_images_are_white_at_every_size(tiny_cohort: Path) -> None:
    env, blind = LocalizationEnv(tiny_cohort), BlindImages(LocalizationEnv(tiny_cohort))
    for each in (env, blind):
        each.reset(seed=0)
        each.step(extract_roi([0.1, 0.1, 0.5, 0.5]))
    for name in ("overview", "roi-1"):
        seen, hidden = env.image(name, 300), blind.get_wrapper_attr("image")(name, 300)
        assert (seen.image != 255).any()
        assert (hidden.image == 255).all()
        assert (hidden.image.shape, hidden.box, hidden.size) == (seen.image.shape, seen.box, seen.size)
