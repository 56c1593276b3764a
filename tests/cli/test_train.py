"""`wsigym train` and `wsigym curve`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from cohort_builder import build_cohort
from PIL import Image
from typer.testing import CliRunner

from wsigym.cli import app
from wsigym.errors import InvalidArgumentError, RunError, WsigymError

pytest.importorskip("sb3_contrib", reason="needs sb3-contrib: pip install 'wsigym[rl]'")


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    slides = [{"slide_id": f"s{n}", "patient_id": f"p{n}", "split": split} for n, split in enumerate(("train", "val"))]
    return build_cohort(tmp_path_factory.mktemp("cohort") / "c", slides=slides)


@pytest.fixture(scope="module")
def training(cohort: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("training") / "navigator"
    demos = out.parent / "demos"
    written = CliRunner().invoke(app, ["demos", "--cohort", str(cohort), "--out", str(demos), "--view-px", "36"])
    assert written.exit_code == 0, written.output
    arguments = ["--cohort", str(cohort), "--demos", str(demos), "--out", str(out), "--view-px", "36", "--rollout", "8"]
    arguments += ["--steps", "128", "--check-every", "128", "--place-batches", "1", "--move-batches", "1"]
    result = CliRunner().invoke(app, ["train", *arguments, "--budget", "base", "--magnifications", "5,40", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["steps"] == 128
    return out


def test_what_is_trained_plays(cohort: Path, training: Path, tmp_path: Path) -> None:
    arguments = [
        "run",
        "evipath/localization",
        "--cohort",
        str(cohort),
        "--split",
        "val",
        "--out",
        str(tmp_path / "run"),
    ]
    result = CliRunner().invoke(app, [*arguments, "--policy", f"ppo:{training}"])
    assert result.exit_code == 0, result.output


def test_its_curve(training: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["curve", str(training), "--plot", str(tmp_path / "curve.png"), "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["tables"][0]["rows"]
    assert [row["steps"] for row in rows] == [0, 128]
    assert rows[0].keys() >= {"val_10x", "val_40x", "val_all", "minutes", "train_return", "environment_share"}
    with Image.open(tmp_path / "curve.png") as picture:
        assert picture.format == "PNG"
    shown = CliRunner().invoke(app, ["curve", str(training)])
    assert "navigator" in shown.stdout


def test_no_training(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["curve", str(tmp_path)])
    assert isinstance(result.exception, InvalidArgumentError)
    assert "holds no training" in str(result.exception)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ("steps,seconds,val_all\nnan,1,0.5\n", "numbers that are none"),
        ("steps,seconds,val_all\n0,1,inf\n", "numbers that are none"),
        ("steps,seconds,val_all\n0,1,0.5\n128,2\n", "lacks val_all"),
        ("steps,seconds\n0,1\n", "lacks val_all"),
        ("steps,seconds,val_all\n", "is empty"),
        ("steps,seconds,val_all\n0,1,0.5,7\n", "holds no training"),
    ],
)
def test_a_broken_curve(tmp_path: Path, cells: str, said: str) -> None:
    (tmp_path / "curve.csv").write_text(cells, encoding="utf-8")
    result = CliRunner().invoke(app, ["curve", str(tmp_path)])
    assert isinstance(result.exception, InvalidArgumentError)
    assert said in str(result.exception)


def test_trainings_of_one_name_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, parent in enumerate(("a", "b")):
        (tmp_path / parent / "navigator").mkdir(parents=True)
        cells = f"steps,seconds,val_all\n0,60,0.{number}\n"
        (tmp_path / parent / "navigator/curve.csv").write_text(cells, encoding="utf-8")
    both = [str(tmp_path / parent / "navigator") for parent in ("a", "b")]
    result = CliRunner().invoke(app, ["curve", *both, "--json"])
    assert [row["training"] for row in json.loads(result.stdout)["tables"][0]["rows"]] == both
    monkeypatch.chdir(both[0])
    result = CliRunner().invoke(app, ["curve", ".", "--json"])
    assert [row["training"] for row in json.loads(result.stdout)["tables"][0]["rows"]] == ["navigator"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--magnifications", "10"], "two numbers are needed"),
        (["--magnifications", "80,90"], "no query is within"),
        (["--budget", "basic"], "Did you mean 'base'"),
        (
            ["--magnifications", "100,200"],
            "no query is within magnification 100 to 200; found are magnification 2.5 to 40",
        ),
        (["--budget", "0"], "budget 0"),
        (["--budget", "100000000000000000000"], "0 to 10,000"),
        (["--seed", "-1"], "seed is -1"),
        (["--steps", "-1"], "steps -1"),
        (["--view-px", "20"], "36"),
        (["--demos", "nowhere"], "holds no demonstrations"),
    ],
)
def test_bad_input_is_one_clear_line(cohort: Path, tmp_path: Path, arguments: list[str], said: str) -> None:
    given = ["train", "--cohort", str(cohort), "--out", str(tmp_path / "t"), "--steps", "0", "--view-px", "36"]
    result = CliRunner().invoke(app, [*given, *arguments])
    assert isinstance(result.exception, WsigymError)
    assert said in str(result.exception)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("lacking", ["tensorboard", "torch", "sb3_contrib"])
def test_without_a_library(cohort: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str) -> None:
    monkeypatch.setitem(sys.modules, lacking, None)
    monkeypatch.delitem(sys.modules, "wsigym.baselines.train_ppo", raising=False)
    result = CliRunner().invoke(app, ["train", "--cohort", str(cohort), "--out", str(tmp_path / "t"), "--steps", "0"])
    assert isinstance(result.exception, InvalidArgumentError)
    assert f"training needs {lacking}, which is not installed: pip install 'wsigym[rl]'" in str(result.exception)


def test_a_folder_of_others(cohort: Path, tmp_path: Path) -> None:
    (tmp_path / "curve.csv").write_text("mine", encoding="utf-8")
    arguments = ["--cohort", str(cohort), "--out", str(tmp_path), "--steps", "0", "--view-px", "36"]
    result = CliRunner().invoke(app, ["train", *arguments])
    assert isinstance(result.exception, RunError)
    assert "exists and is not an empty folder" in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["curve.csv"]
