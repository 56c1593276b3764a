"""Exploration from the command line: a scorer's calibration, a run that looks for another class, its tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from shapely import box
from tumour_builder import TUMOUR_BOXES, build_tumour_cohort, write_regions

from wsigym.cli import main

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """`wsigym ARGUMENTS`: the exit code, and what was printed on stdout and stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["wsigym", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


def test_another_class_from_calibration_to_picture(call: Call, tmp_path: Path) -> None:
    cohort = build_tumour_cohort(tmp_path / "cohort")
    write_regions(cohort, "positive", [box(*corners) for corners in TUMOUR_BOXES], name="necrosis")
    manifest = json.loads((cohort / "cohort.json").read_text())
    for slide in manifest["slides"]:
        slide["split"] = "val"
    (cohort / "cohort.json").write_text(json.dumps(manifest))
    calibration = ("tiles", "calibrate", "--cohort", cohort, "--out", tmp_path / "calibration.json")
    scorer = ("--scorer", "stain-density", "--tile-px", "32")
    code, _, err = call(*calibration, *scorer)
    assert (code, "'tumour'" in err, "Known: necrosis" in err) == (2, True, True)
    code, out, _ = call(*calibration, *scorer, "--target", "necrosis", "--json")
    assert (code, json.loads(out)["scorer"]) == (0, "stain-density")

    policies = ("--policy", "stain-density", "--policy", f"adaptive:{tmp_path / 'calibration.json'}")
    run = ("run", "evipath/exploration", "--cohort", cohort, *policies, "--env", "tile_px=32", "--env", "view_px=36")
    assert call(*run, "--out", tmp_path / "run")[0] == 2
    assert call(*run, "--target", "necrosis", "--out", tmp_path / "run")[0] == 0
    assert json.loads((tmp_path / "run/run.json").read_text())["env"]["target"] == "necrosis"
    code, out, _ = call("table", tmp_path / "run", "--causes", "--plot", tmp_path / "curve.png", "--json")
    assert code == 0
    main_table, searches, causes = json.loads(out)["tables"]
    assert [row["budget"] for row in main_table["rows"]] == ["K=6,3,2", "tiles=6,3,2"]
    assert [row["against"] for row in searches["rows"]] == ["stain-density at K=6,3,2"]
    assert [row["auroc"] is not None for row in causes["rows"] if row["policy"] == "stain-density"] == [
        True,
        False,
        False,
    ]
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_search_is_learned_and_played(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sb3_contrib", reason="needs sb3-contrib and PyTorch: make install")
    monkeypatch.setattr("wsigym.baselines.chooser_training.ROLLOUT", 64)
    monkeypatch.setattr("wsigym.baselines.chooser_training.MEASURED_STEPS", 20)
    slides = [{"slide_id": name, "split": "train"} for name in ("positive", "negative")]
    cohort = build_tumour_cohort(build_tumour_cohort(tmp_path / "cohort"), slides)
    train = ("tiles", "train-search", "--cohort", cohort, "--tile-px", "32", "--out", tmp_path / "s")
    code, _, err = call(*train, "--tiles", "60")
    assert (code, "the least and the most" in err) == (2, True)
    code, out, _ = call(*train, "--tiles", "40,60", "--steps", "16", "--json")
    assert (code, json.loads(out)["slides"]) == (0, 1)
    policies = ("--policy", f"choose:{tmp_path / 's'}", "--policy", "best-first:stain-density")
    run = ("run", "evipath/exploration", "--cohort", cohort, *policies, "--env", "tile_px=32", "--env", "view_px=36")
    assert call(*run, "--budget", "tiles=60", "--out", tmp_path / "run")[0] == 0
    code, out, _ = call("table", tmp_path / "run", "--json")
    rows = json.loads(out)["tables"][0]["rows"]
    assert (code, [row["budget"] for row in rows]) == (0, ["tiles=60", "tiles=60"])


@pytest.mark.parametrize(
    ("command", "lacking", "module"),
    [
        ("train-search", "sb3_contrib", "chooser_training"),
        ("train-search", "torch", "chooser_training"),
        ("train", "torch", "tile_training"),
        ("train", "safetensors", "tile_training"),
    ],
)
def test_learning_without_the_library(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, lacking: str, module: str
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == lacking]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, lacking, None)
    for name in (module, "learned_scorer", "net_files", "tile_chooser"):
        monkeypatch.delitem(sys.modules, f"wsigym.baselines.{name}", raising=False)
    code, _, err = call("tiles", command, "--cohort", tmp_path, "--out", tmp_path / "out")
    assert (code, f"{lacking}, which is not installed: pip install 'wsigym[rl]'" in err) == (2, True), err


@pytest.mark.parametrize("command", ["train", "train-search", "calibrate"])
@pytest.mark.parametrize("out", ["mine", "folder", "mine/below"])
def test_a_file_that_is_there_stays(call: Call, tmp_path: Path, command: str, out: str) -> None:
    """Told at once, and not when all is learned."""
    pytest.importorskip("sb3_contrib", reason="needs sb3-contrib and PyTorch: make install")
    cohort = build_tumour_cohort(tmp_path / "cohort")
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "folder").mkdir()
    scorer = ("--scorer", "stain-density") if command == "calibrate" else ()
    given = ("--cohort", cohort, "--tile-px", "32", "--split", "test")
    code, out_text, err = call("tiles", command, *given, *scorer, "--out", tmp_path / out)
    assert (code, out_text) == (2, "")
    assert "exists; name a new file" in err or "cannot be written" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cohort", "folder", "mine"]
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("policy", ["choose", "tile-scorer", "best-first:tile-scorer", "adaptive"])
def test_other_magnifications_are_told_before_the_first_episode(call: Call, tmp_path: Path, policy: str) -> None:
    pytest.importorskip("torch", reason="needs PyTorch: make install")
    from wsigym.baselines.learned_scorer import TileNet, save_net
    from wsigym.baselines.tile_calibration import Calibration
    from wsigym.baselines.tile_chooser import ChooserNet, save_chooser

    cohort, file = build_tumour_cohort(tmp_path / "cohort"), tmp_path / "file"
    if policy == "choose":
        save_chooser(ChooserNet((2.5, 10, 40)), file, {})
    elif policy == "adaptive":
        Calibration("stain-density", {"2.5": ([0.0, 1.0], [0.0, 1.0])}, 0.5).save(file)
    else:
        save_net(TileNet((2.5, 10.0, 40.0)), file, {})
    given = ("--env", "tile_px=32", "--env", "magnifications=[2.5,5,10]", "--out", tmp_path / "run")
    budget = () if policy == "tile-scorer" else ("--budget", "tiles=60")
    code, _, err = call(
        "run", "evipath/exploration", "--cohort", cohort, "--policy", f"{policy}:{file}", *budget, *given
    )
    assert code == 2, err
    assert "5x" in err
    assert not (tmp_path / "run").exists()
