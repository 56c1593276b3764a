"""The commands of docs/casescope.md, run."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from casescope_builder import build_casescope, case, statements
from typer.testing import CliRunner

from wsigym.cli import app
from wsigym.errors import CohortError, InvalidArgumentError, RunError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    monkeypatch.chdir(tmp_path)
    cases = [case(number, entity=("Key", "F2", "Situ")[number % 3], split="train") for number in range(6)]
    build_casescope(tmp_path / "my-cohort", cases=cases, told=statements())

    def call(line: str) -> str:
        result = CliRunner().invoke(app, line.split(), catch_exceptions=False, env={**os.environ})
        assert result.exit_code == 0, result.output
        return result.output

    return call


def commands() -> list[str]:
    """The page's commands that need no slide and no other run."""
    page = (ROOT / "docs" / "casescope.md").read_text("utf-8")
    lines = [line.removeprefix("$ wsigym ") for line in page.splitlines() if line.startswith("$ wsigym ")]
    return [line for line in lines if not line.startswith("cohort synth") and "atlas-run" not in line]


def fill_in(sheet: Path, grade: str) -> None:
    lines = list(csv.DictReader(sheet.read_text("utf-8").splitlines()))
    with sheet.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(line | {"grade": grade} for line in lines)


def test_the_commands_of_the_page_work(cli: Callable[[str], str]) -> None:
    said = {}
    for line in commands():
        if line.startswith("judge score"):
            with pytest.raises(InvalidArgumentError, match="none of its 6 answers has a grade yet"):
                cli(line)
            fill_in(Path("sheets/sheet.csv"), "1")
        said[line] = cli(line)
    assert len(said) == 12
    assert "casescope/a2: 6 items" in said["items build casescope my-cohort"]
    assert "Spearman" in said["analyse sources a2"]
    assert "6 answers in" in said["judge sheet a1 --out sheets"]
    assert "HDS with a judge" in said["judge score sheets/sheet.csv sheets/key.csv --key sheets/key.csv"]
    assert "casescope/a2 by same_family" in said["table a2 --by same_family --published"]
    assert "cases of three fields or more" not in said["table ablation"]  # as all have three
    assert "Claude Sonnet 5.5" in said["table r1 --published"]


def test_two_sets_of_runs_are_compared_and_sheets_not_written_over(cli: Callable[[str], str]) -> None:
    cli("items build casescope/b my-cohort")
    cli("items build casescope/a1 my-cohort")
    for out, seed in (("one", 1), ("two", 2)):
        cli(f"run casescope/b --cohort my-cohort --policy random --policy oracle --seed {seed} --out {out}")
    (table,) = json.loads(cli("analyse sources one --against two --json"))["tables"]
    assert [row["policy"] for row in table["rows"]] == ["random", "oracle", "mean", "Spearman"]
    cli("run casescope/a1 --cohort my-cohort --policy frequent --out a1")
    with pytest.raises(InvalidArgumentError, match="one evidence task"):
        cli("analyse sources one --against a1")
    with pytest.raises(RunError, match="judges grade"):
        cli("judge sheet one --out sheets")
    cli("judge sheet a1 --out sheets")
    with pytest.raises(InvalidArgumentError, match="may hold grades"):
        cli("judge sheet a1 --out sheets")
    long = Path("long.csv")
    long.write_text(f"code,grade\nA,2\n{'B' * 200_000},2\n")
    with pytest.raises(CohortError, match="is no row of a CSV file"):
        cli("judge score long.csv sheets/key.csv")
    score = json.loads(cli("judge score sheets/key.csv sheets/key.csv --json"))["tables"]
    assert score[0]["rows"][0]["exact"] == 1
