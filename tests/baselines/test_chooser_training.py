"""Learning the order of a search by reinforcement, where what is looked for has less haematoxylin than the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shapely import box
from tile_player import play
from tumour_builder import TILE_PX, build_tumour_cohort, write_regions, write_tumour_slide

from wsigym.baselines import make_policy
from wsigym.baselines.registry import EXPLORATION, chooses_next
from wsigym.cohorts import Cohort
from wsigym.errors import InvalidArgumentError
from wsigym.slides import TissueMap

pytest.importorskip("sb3_contrib", reason="needs sb3-contrib and PyTorch: make install")

from wsigym.baselines import chooser_training
from wsigym.baselines.chooser_training import TrainedChooser, train_chooser
from wsigym.baselines.learned_scorer import TileNet, save_net
from wsigym.baselines.tile_chooser import ChooserNet, save_chooser

PURPLE, FOUND = (0, 0, 1024, 1024), (0, 1100, 1300, 2000)
"""Best-first by stain density goes into the first, the positive tiles are in the second, which is pink."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tumours")
    build_tumour_cohort(folder, [{"slide_id": "positive"}, {"slide_id": "negative"}])
    write_tumour_slide(folder / "positive.tiff", tumour=[PURPLE])
    write_regions(folder, "positive", [box(*FOUND)])
    write_tumour_slide(folder / "negative.tiff", tumour=[PURPLE], seed=1)
    return folder


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch)


def shorten(patch: pytest.MonkeyPatch) -> None:
    for name, value in {"ROLLOUT": 64, "BATCH": 32, "MEASURED_STEPS": 50, "LEARNING_RATE": 3e-3}.items():
        patch.setattr(chooser_training, name, value)
    patch.setattr("wsigym.baselines.tile_chooser.LEANING", 0.5)  # as the slide is all against best-first


def train(folder: Path, out: Path, **arguments: Any) -> TrainedChooser:
    return train_chooser(
        Cohort.load(folder), out, **{"split": None, "tile_px": TILE_PX, "tiles": (60, 60), **arguments}
    )


@pytest.fixture(scope="module")
def trained(folder: Path) -> tuple[Path, TrainedChooser]:
    out = folder / "models" / "chooser.safetensors"
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        return out, train(folder, out, steps=768)


def test_the_return_rises(trained: tuple[Path, TrainedChooser]) -> None:
    _, summary = trained
    assert summary.slides == 1  # the other has nothing to find
    assert summary.steps == 768
    assert 768 // 5 <= summary.episodes <= 768 // 3  # 12 tiles, then pages of 16 or less
    assert summary.first_return < 0.005
    assert summary.last_return > 0.02  # of 0.028, the 32 tiles that can be viewed


def test_what_was_learned_plays(folder: Path, trained: tuple[Path, TrainedChooser]) -> None:
    name = f"choose:{trained[0]}"
    assert chooses_next(name)
    for tiles in (60, 77):
        _, info = play(folder, make_policy(name, EXPLORATION), schedule="free", budget=f"tiles={tiles}")
        _, other = play(
            folder, make_policy("best-first:stain-density", EXPLORATION), schedule="free", budget=f"tiles={tiles}"
        )
        assert len(info["viewed"]) == len(other["viewed"]) == tiles
        assert info["score"] > other["score"]


def test_it_plays_as_it_was_trained(folder: Path, trained: tuple[Path, TrainedChooser]) -> None:
    """The policy, which sees the environment's own observations, chooses as the network does on the wrapper's."""
    import torch
    from choice_builder import free_choice

    policy = make_policy(f"choose:{trained[0]}", EXPLORATION)
    _, expected = play(folder, policy, schedule="free", budget="tiles=200")
    env = free_choice(cohort=folder, tile_px=TILE_PX, view_px=36, overview_px=36, budget="tiles=200")
    observation, info = env.reset(seed=0, options={"slide_id": "positive"})
    over = False
    while not over:
        worth = policy._net(**{name: torch.from_numpy(part)[None] for name, part in observation.items()})  # type: ignore[attr-defined]
        slot = np.where(env.action_masks(), worth[0].detach().numpy(), -np.inf).argmax()
        observation, _, over, _, info = env.step(slot)
    assert info["viewed"] == expected["viewed"]


def test_before_training_it_is_best_first(folder: Path, tmp_path: Path) -> None:
    save_chooser(ChooserNet((2.5, 10, 40)), tmp_path / "new", {})
    for tiles in (60, 200):
        plays = [
            play(folder, make_policy(name, EXPLORATION), schedule="free", budget=f"tiles={tiles}")[0]
            for name in (f"choose:{tmp_path / 'new'}", "best-first:stain-density")
        ]
        assert plays[0] == plays[1]


def test_returns_are_the_environments(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shaping pays what comes about, and adds up to the hit rate at the end."""
    steps: list[tuple[float, bool, float]] = []
    step = chooser_training._Episodes.step

    def watched(self: Any, action: Any) -> Any:
        result = step(self, action)
        steps.append((result[1], result[2], result[4].get("score", 0.0)))
        return result

    monkeypatch.setattr(chooser_training._Episodes, "step", watched)
    train(folder, tmp_path / "out", steps=64, tiles=(100, 200))
    total, episodes, paid_early = 0.0, 0, 0
    for reward, over, score in steps:
        total += reward
        paid_early += reward > 0 and not over
        if over:
            assert total == pytest.approx(score, abs=1e-12)
            total, episodes = 0.0, episodes + 1
    assert episodes > 5
    assert paid_early > 5


def test_training_is_seeded_whatever_the_threads(folder: Path, tmp_path: Path) -> None:
    import torch

    before, files = torch.get_num_threads(), []
    try:
        for name, seed, threads in (("a", 1, 1), ("b", 1, 3), ("c", 2, 1)):
            torch.set_num_threads(threads)
            train(folder, tmp_path / name, steps=64, seed=seed)
            files.append((tmp_path / name).read_bytes())
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert files[0] == files[1] != files[2]


def test_budgets_are_drawn_from_the_range(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wsigym.envs.exploration import ExplorationEnv

    drawn: list[int] = []
    reset = ExplorationEnv.reset

    def watched(self: ExplorationEnv, **arguments: Any) -> Any:
        drawn.append(arguments["options"]["tiles"])
        return reset(self, **arguments)

    monkeypatch.setattr(ExplorationEnv, "reset", watched)
    train(folder, tmp_path / "out", steps=128, tiles=(40, 160))
    assert 40 <= min(drawn) < 60 < 100 < max(drawn) <= 160
    assert sum(each < 80 for each in drawn) / len(drawn) == pytest.approx(0.5, abs=0.2)


def test_files_that_are_none(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "text").write_text("no tensors")
    save_net(TileNet((10.0,)), tmp_path / "scorer", {})
    wider = ChooserNet((2.5, 10, 40))
    wider.magnifications = (2.5, 10)
    save_chooser(wider, tmp_path / "wider", {})
    for name, message in (
        ("text", "not readable as safetensors"),
        ("missing", "not readable"),
        ("scorer", r"wsigym-tile-chooser/1; `wsigym tiles train-search` makes one"),
        ("wider", "does not fit this version"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"tile chooser .*{name}.*{message}"):
            make_policy(f"choose:{tmp_path / name}", EXPLORATION)
    save_chooser(ChooserNet((2.5, 10, 20)), tmp_path / "lower", {})
    with pytest.raises(InvalidArgumentError, match=r"asked for 40x, trained on 2\.5x, 10x, 20x"):
        play(folder, make_policy(f"choose:{tmp_path / 'lower'}", EXPLORATION), schedule="free", budget="tiles=100")


def test_a_file_that_is_there_stays(tmp_path: Path, folder: Path) -> None:
    """Told before training, and not after it."""
    (tmp_path / "net").write_text("mine")
    told: list[int] = []
    for out, said in (("net", "net exists"), ("", "exists"), ("net/below", "cannot be written")):
        with pytest.raises(InvalidArgumentError, match=said):
            train(folder, tmp_path / out, progress=lambda done, total: told.append(done))
    assert not told
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("net", "mine")]


def test_regions_where_no_tissue_is_shown(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chooser_training, "tissue_mask", lambda slide: TissueMap(np.zeros((8, 8), bool), slide.box))
    with pytest.raises(InvalidArgumentError, match="no slide with a positive tile has tissue"):
        train(folder, tmp_path / "out", tiles=(1, 5))


def test_budgets_that_do_not_reach_the_last_magnification(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slide's page of 12 tiles, one of a tile at the edge of the tissue, which has 12 too, and one below: 25."""
    for tiles in ((1, 5), (24, 24)):
        with pytest.raises(InvalidArgumentError, match=r"has viewed 25 or more with its first at 40x"):
            train(folder, tmp_path / "out", tiles=tiles)
    with pytest.raises(InvalidArgumentError, match=r"has viewed 13 or more with its first at 10x"):
        train(folder, tmp_path / "out", tiles=(12, 12), magnifications=(2.5, 10))
    seen: list[list[int]] = []
    step = chooser_training._Episodes.step

    def watched(self: Any, action: Any) -> Any:
        result = step(self, action)
        if result[2]:
            seen.append([tile.level for tile in result[4]["viewed"]])
        return result

    monkeypatch.setattr(chooser_training._Episodes, "step", watched)
    train(folder, tmp_path / "out", tiles=(25, 25), steps=64)
    assert {len(levels) for levels in seen} == {25}
    assert max(levels.count(2) for levels in seen) == 1


def test_what_training_refuses(tmp_path: Path, folder: Path) -> None:
    for tiles in ((60,), (0, 60), (90, 60), (60, 60.5), (60, float("inf"))):
        with pytest.raises(InvalidArgumentError, match="the least and the most"):
            train(folder, tmp_path / "out", tiles=tiles)
    for seed in (-1, 2**32):
        with pytest.raises(InvalidArgumentError, match=f"seed is {seed}; allowed is 0 to 4294967295"):
            train(folder, tmp_path / "out", seed=seed)
    with pytest.raises(InvalidArgumentError, match="steps is 0"):
        train(folder, tmp_path / "out", steps=0)
    with pytest.raises(InvalidArgumentError, match="no episode ended within 64 steps"):
        train(folder, tmp_path / "out", steps=1, tiles=(1900, 1900))
    build_tumour_cohort(tmp_path, [{"slide_id": "negative"}])
    write_regions(tmp_path, "negative", [box(0, 0, 1, 1)])
    (tmp_path / "negative.tiff").hardlink_to(folder / "negative.tiff")
    with pytest.raises(InvalidArgumentError, match="nothing to find"):
        train(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
