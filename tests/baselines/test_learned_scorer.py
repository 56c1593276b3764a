"""The learned scorer on tumour that colour alone gives away, and its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tumour_builder import TILE_PX, build_tumour_cohort

from wsigym.baselines import make_policy
from wsigym.baselines.registry import EXPLORATION
from wsigym.cohorts import Cohort
from wsigym.errors import InvalidArgumentError

pytest.importorskip("torch", reason="needs PyTorch: pip install --constraint constraints.txt '.[rl]'")

from wsigym.baselines.learned_scorer import LearnedScorer, TileNet, as_input
from wsigym.baselines.tile_training import Trained, train_tile_scorer

PINK, PURPLE = (np.full((1, 32, 32, 3), colour, np.uint8) for colour in ((230, 160, 200), (120, 60, 160)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tumour_cohort(tmp_path_factory.mktemp("tumours"))


@pytest.fixture(scope="module")
def trained(folder: Path) -> tuple[Path, Trained]:
    out = folder / "models" / "scorer.safetensors"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wsigym.baselines.tile_training.TILES_A_LEVEL", 40)
        return out, train_tile_scorer(Cohort.load(folder), out, split=None, tile_px=TILE_PX, epochs=10)


def suspicion(scorer: LearnedScorer, tile: np.ndarray, magnification: float) -> float:
    return float(scorer.suspicions(tile, {"magnification": magnification})[0])


def test_it_learns_what_the_regions_show(trained: tuple[Path, Trained]) -> None:
    path, summary = trained
    assert summary.slides == 2
    assert 0 < summary.positives < summary.tiles
    scorer = LearnedScorer(path)
    for magnification in (10.0, 40.0):
        assert suspicion(scorer, PURPLE, magnification) > 0.5 > suspicion(scorer, PINK, magnification)


def test_others_may_read_what_was_trained(folder: Path, trained: tuple[Path, Trained]) -> None:
    (folder / "any").write_bytes(b"")
    assert trained[0].stat().st_mode == (folder / "any").stat().st_mode


def test_training_is_seeded(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wsigym.baselines.tile_training.TILES_A_LEVEL", 8)
    cohort = Cohort.load(folder)
    files = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train_tile_scorer(cohort, tmp_path / name, split=None, tile_px=TILE_PX, epochs=1, seed=seed)
        files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1] != files[2]


def test_training_uses_one_thread_whatever_the_machine_has(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads of PyTorch wait for one another by spinning, which takes minutes where cores are busy."""
    import torch

    monkeypatch.setattr("wsigym.baselines.tile_training.TILES_A_LEVEL", 8)
    before, seen, files = torch.get_num_threads(), [], []
    original = TileNet.forward

    def watched(self: TileNet, tiles: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        seen.append(torch.get_num_threads())
        return original(self, tiles, level)

    monkeypatch.setattr(TileNet, "forward", watched)
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            train_tile_scorer(Cohort.load(folder), tmp_path / f"{threads}", split=None, tile_px=TILE_PX, epochs=2)
            files.append((tmp_path / f"{threads}").read_bytes())
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}
    assert files[0] == files[1]


def test_it_is_a_policy_by_its_path(trained: tuple[Path, Trained]) -> None:
    assert isinstance(make_policy(f"tile-scorer:{trained[0]}", EXPLORATION).scorer, LearnedScorer)  # type: ignore[attr-defined]
    make_policy(f"best-first:tile-scorer:{trained[0]}", EXPLORATION)


def test_inputs_are_shrunk_with_channels_first() -> None:
    tiles = np.zeros((2, 128, 128, 3), np.uint8)
    tiles[0, :, :, 1] = 9
    shrunk = as_input(tiles)
    assert (shrunk.shape, shrunk.dtype) == ((2, 3, 64, 64), np.uint8)
    assert (shrunk[0, 1] == 9).all()


def test_a_file_that_is_none(tmp_path: Path, trained: tuple[Path, Trained]) -> None:
    from safetensors.torch import save_file

    (tmp_path / "text").write_text("no tensors")
    save_file(TileNet((10.0,)).state_dict(), tmp_path / "foreign")
    for name, message in (("text", "not readable"), ("missing", "not readable"), ("foreign", "format")):
        with pytest.raises(InvalidArgumentError, match=message):
            make_policy(f"tile-scorer:{tmp_path / name}", EXPLORATION)
    with pytest.raises(InvalidArgumentError, match=r"asked for 20x, trained on 2\.5x, 10x, 40x"):
        LearnedScorer(trained[0]).suspicions(PINK, {"magnification": 20.0})


def test_nothing_positive_is_nothing_to_learn(tmp_path: Path, folder: Path) -> None:
    entries: list[dict[str, Any]] = [{"slide_id": "negative", "split": "train"}]
    build_tumour_cohort(tmp_path, entries)
    (tmp_path / "negative.tiff").hardlink_to(folder / "negative.tiff")
    with pytest.raises(InvalidArgumentError, match="nothing to learn"):
        train_tile_scorer(Cohort.load(tmp_path), tmp_path / "out", tile_px=TILE_PX)
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_there_stays(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "net").write_text("mine")
    for out, said in (("net", "net exists"), ("", "exists"), ("net/below", "cannot be written")):
        with pytest.raises(InvalidArgumentError, match=said):
            train_tile_scorer(Cohort.load(folder), tmp_path / out, split=None, tile_px=TILE_PX, epochs=1)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("net", "mine")]


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_that_are_none(folder: Path, tmp_path: Path, seed: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"seed is {seed}; allowed is 0 to 4294967295"):
        train_tile_scorer(Cohort.load(folder), tmp_path / "net", split=None, tile_px=TILE_PX, seed=seed)
