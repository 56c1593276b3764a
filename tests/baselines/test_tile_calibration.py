"""Calibration of a scorer, and the search that lives on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slides_builder import write_slide
from tile_player import Scripted, play
from tumour_builder import TILE_PX, build_tumour_cohort

from wsigym.baselines import make_policy
from wsigym.baselines.registry import EXPLORATION
from wsigym.baselines.tile_calibration import Calibration, calibrate
from wsigym.baselines.tile_policies import Adaptive
from wsigym.baselines.tile_scorers import OracleScores, StainDensity
from wsigym.cohorts import Cohort
from wsigym.errors import InvalidArgumentError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tumour_cohort(tmp_path_factory.mktemp("tumours"))


def test_more_stain_is_more_likely_tumour_here(folder: Path, tmp_path: Path) -> None:
    found = calibrate("stain-density", StainDensity(), Cohort.load(folder), split=None, tile_px=TILE_PX)
    assert list(found.curves) == ["2.5", "10", "40"]
    for magnification in (2.5, 10, 40):
        rising = found.probability(np.linspace(0, 1, 50), magnification)
        assert (np.diff(rising) >= 0).all()
        assert rising[0] < 0.1
        assert rising[-1] > 0.9
    assert 0 < found.threshold <= 1
    found.save(tmp_path / "deep" / "calibration.json")
    assert Calibration.load(tmp_path / "deep" / "calibration.json").threshold == found.threshold
    policy = make_policy(f"adaptive:{tmp_path / 'deep' / 'calibration.json'}", EXPLORATION)
    _, info = play(folder, policy, schedule="free", budget="tiles=6,3,2")
    assert info["score"] > 0.1
    # It stops once the tumour is searched, before the budget of 396 is spent.
    assert info["tiles_viewed"] < info["tiles_allowed"]


def test_it_turns_back_and_stops(folder: Path) -> None:
    # At 2.5x a score is worth itself, at 10x half of it: raw scores of children would mislead.
    curves = {"2.5": ([0.0, 1.0], [0.0, 1.0]), "10": ([0.0, 1.0], [0.0, 0.5]), "40": ([0.0, 1.0], [0.0, 1.0])}
    scores = {(0, 0, 512): 0.9, (512, 0, 512): 0.6, (0, 0, 128): 0.95, (512, 0, 128): 0.7}
    calibration = Calibration("scripted", curves, threshold=0.4)
    shown, info = play(folder, Adaptive(Scripted(scores), calibration), schedule="free", budget="tiles=all")
    pages = [shown[start][:3] for start in range(12, len(shown), 16)]
    # 0.9; its child of 0.95 is worth 0.475, so back to the tile of 0.6; then that child; 0.7 is worth 0.35: stop.
    assert pages == [(0, 0, 128), (512, 0, 128), (0, 0, 32)]
    assert info["outcome"] == "scored"


def test_a_calibration_finds_its_scorer_from_any_folder_and_knows_it_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="needs PyTorch: pip install --constraint constraints.txt '.[rl]'")
    from wsigym.baselines.tile_training import train_tile_scorer

    monkeypatch.setattr("wsigym.baselines.tile_training.TILES_A_LEVEL", 8)
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(home)
    train_tile_scorer(Cohort.load(folder), Path("nets/a.net"), split=None, tile_px=TILE_PX, epochs=1)
    curves = {f"{magnification:g}": ([0.0, 1.0], [0.0, 1.0]) for magnification in (2.5, 10, 40)}
    Calibration("tile-scorer:nets/a.net", curves, 0.5).save(Path("calibrations/c.json"))
    monkeypatch.chdir(elsewhere)
    make_policy("adaptive:../home/calibrations/c.json", EXPLORATION)
    home.rename(tmp_path / "moved")
    make_policy("adaptive:../moved/calibrations/c.json", EXPLORATION)
    net = tmp_path / "moved" / "nets" / "a.net"
    net.write_bytes(net.read_bytes() + b" ")
    with pytest.raises(InvalidArgumentError, match=r"c\.json is of another scorer than .*a\.net.*calibrate again"):
        make_policy("adaptive:../moved/calibrations/c.json", EXPLORATION)
    net.unlink()
    with pytest.raises(InvalidArgumentError, match=r"a\.net, which cannot be read \(No such file.*put that"):
        make_policy("adaptive:../moved/calibrations/c.json", EXPLORATION)


def test_an_oracle_can_be_calibrated(folder: Path) -> None:
    """It sees each slide's reference; a perfect scorer's probabilities are 0 and 1."""
    found = calibrate("oracle", OracleScores(), Cohort.load(folder), split=None, tile_px=TILE_PX)
    assert found.probability(np.array([0.0, 0.9]), 40).tolist() == [0, 1]


def test_a_calibration_that_is_none(tmp_path: Path) -> None:
    contents: dict[str, Any] = {
        "text": "no json",
        "list": "[]",
        "other": '{"format": "x"}',
        "short": '{"format": "wsigym-tile-calibration/2"}',
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
        with pytest.raises(InvalidArgumentError, match="wsigym tiles calibrate"):
            Calibration.load(tmp_path / name)
    good = {
        "format": "wsigym-tile-calibration/2",
        "scorer": "stain-density",
        "sha256": None,
        "threshold": 0.5,
        "curves": {"2.5": [[0.1, 0.9], [0.0, 1.0]]},
    }
    changes: tuple[tuple[str, Any], ...] = (
        ("curves", 5),
        ("curves", {}),
        ("curves", {"2.5": "abc"}),
        ("curves", {"2.5": [[0.1], [0.2, 0.3]]}),
        ("curves", {"2.5": [[], []]}),
        ("curves", {"2.5": [[0.9, 0.1], [0.2, 0.3]]}),
        ("curves", {"2.5": [[0.1, 0.9], [0.3, 0.2]]}),
        ("curves", {"2.5": [[0.1, 0.9], [0.0, 1.5]]}),
        ("curves", {"2.5": [[0.1, float("nan")], [0.0, 1.0]]}),
        ("curves", {"2.5": [["a"], ["b"]]}),
        ("threshold", "high"),
        ("threshold", float("nan")),
        ("threshold", 2),
        ("scorer", 5),
    )
    (tmp_path / "good").write_text(json.dumps(good))
    assert Calibration.load(tmp_path / "good").threshold == 0.5
    for key, wrong in changes:
        (tmp_path / "wrong").write_text(json.dumps({**good, key: wrong}))
        with pytest.raises(InvalidArgumentError, match="wsigym tiles calibrate"):
            Calibration.load(tmp_path / "wrong")
    with pytest.raises(InvalidArgumentError, match="asked for 20x"):
        Calibration("s", {"10": ([0.0], [0.0])}, 0.5).probability(np.zeros(1), 20)


def test_nothing_positive_is_nothing_to_calibrate_on(tmp_path: Path, folder: Path) -> None:
    build_tumour_cohort(tmp_path, [{"slide_id": "negative", "split": "val"}])
    (tmp_path / "negative.tiff").hardlink_to(folder / "negative.tiff")
    with pytest.raises(InvalidArgumentError, match="nothing to calibrate"):
        calibrate("stain-density", StainDensity(), Cohort.load(tmp_path), tile_px=TILE_PX)
    build_tumour_cohort(tmp_path, [{"slide_id": "white", "split": "val"}])
    write_slide(tmp_path / "white.tiff", np.full((512, 512, 3), 255, np.uint8))
    with pytest.raises(InvalidArgumentError, match="nothing to calibrate"):  # no tile is shown at all
        calibrate("stain-density", StainDensity(), Cohort.load(tmp_path), tile_px=TILE_PX)
