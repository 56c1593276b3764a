"""`choose:PATH` keeps nothing across episodes: what it does in one depends on that one alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shapely import box
from tumour_builder import TILE_PX, build_tumour_cohort, write_regions, write_tumour_slide

from wsigym.envs.exploration import ExplorationEnv

pytest.importorskip("torch", reason="needs PyTorch: make install")

import torch

from wsigym.baselines import make_policy
from wsigym.baselines.registry import EXPLORATION
from wsigym.baselines.tile_chooser import ChooserNet, save_chooser

TUMOUR = {"a": (0, 0, 1024, 1024), "b": (200, 1100, 1300, 2000)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two slides on one grid, so that tiles of both have the same boxes and other pixels."""
    folder = build_tumour_cohort(tmp_path_factory.mktemp("two"), [{"slide_id": name} for name in TUMOUR])
    for seed, (name, corners) in enumerate(TUMOUR.items()):
        write_tumour_slide(folder / f"{name}.tiff", tumour=[corners], seed=seed)
        write_regions(folder, name, [box(*corners)])
    return folder


@pytest.fixture(scope="module")
def chooser(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A network of random weights, which attends to every number: what was found nearby, parents, levels' means."""
    net = ChooserNet((2.5, 10, 40))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in net.parameters():
            weights.copy_(torch.randn(weights.shape, generator=generator))
    path = tmp_path_factory.mktemp("net") / "chooser.safetensors"
    save_chooser(net, path, {})
    return f"choose:{path}"


def actions(env: ExplorationEnv, policy: Any, slide: str, tiles: int, most: int | None = None) -> list[tuple[Any, int]]:
    """The scores and slots of an episode, of its first `most` steps where given."""
    observation, info = env.reset(seed=0, options={"slide_id": slide, "tiles": tiles})
    policy.seed(0)
    policy.reset(observation, info)
    taken: list[tuple[Any, int]] = []
    over = False
    while not over and (most is None or len(taken) < most):
        action = policy.act(observation, info)
        taken.append((action["scores"].tolist(), int(action["next"])))
        observation, _, over, _, info = env.step(action)
        assert "error" not in info
    return taken


@pytest.mark.parametrize("before", [("a", 300, None), ("a", 300, 9), ("b", 150, None), ("b", 300, 1)])
def test_an_episode_does_not_depend_on_those_before(
    folder: Path, chooser: str, before: tuple[str, int, int | None]
) -> None:
    """Whole or broken off, on another slide or the same: what a used policy does next is what a new one does."""
    with ExplorationEnv(
        folder, schedule="free", budget="tiles=300", tile_px=TILE_PX, view_px=36, overview_px=64
    ) as env:
        alone = actions(env, make_policy(chooser, EXPLORATION), "b", 200)
        used = make_policy(chooser, EXPLORATION)
        actions(env, used, *before)
        assert actions(env, used, "b", 200) == alone
    assert len(alone) > 10
    assert len({slot for _, slot in alone}) > 5
