"""`wsigym items build`, then run, sweep and table of what was built."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cohort_builder import build_cohort
from typer.testing import CliRunner

from wsigym.cli import app
from wsigym.errors import InvalidArgumentError, UnknownNameError

WORDS = ("ash", "birch", "cedar", "dogwood", "elm", "fir")


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six slides of one tree of three nodes each, whose findings share no word."""
    nodes, paths = [], []
    for slide, word in enumerate(WORDS):
        parent = None
        for level, magnification in enumerate((2.5, 10, 40)):
            nodes.append(
                {
                    "slide_id": f"s{slide}",
                    "node_id": f"n{level}",
                    "parent_id": parent,
                    "magnification": magnification,
                    "box": [100 + level, 100 + level, 400 - 2 * level, 400 - 2 * level],
                    "finding": f"{word}{level}",
                }
            )
            parent = f"n{level}"
        paths.append(
            {
                "slide_id": f"s{slide}",
                "path_id": "p",
                "node_ids": ["n0", "n1", "n2"],
                "diagnosis": f"{word} tumour",
                "category": "malignant",
            }
        )
    slides = [{"slide_id": f"s{slide}", "patient_id": f"p{slide}"} for slide in range(6)]
    return build_cohort(tmp_path_factory.mktemp("cli"), slides=slides, nodes=nodes, paths=paths)


@pytest.fixture
def call() -> Callable[..., str]:
    def run(*arguments: Any) -> str:
        result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def test_built_run_swept_and_shown(cohort: Path, call: Callable[..., str], tmp_path: Path) -> None:
    said = call("items", "build", "evipath/interpretation", cohort)
    assert said.startswith("evipath/interpretation: 12 items in ")
    assert "6 left out: in no set of four" in said
    built = json.loads(call("items", "build", "evipath/integration", cohort, "--cell", "none", "--json"))
    assert built["items"] == 10
    assert built["dropped"] == {
        "diagnose: in no set of four diagnoses of the cell that are unlike each other": 2,
        "refine: no field has three other values in the cell": 6,
    }
    assert call("cohort", "check", cohort).endswith(" 22 items\n")
    run, swept = tmp_path / "run", tmp_path / "swept"
    call("run", "evipath/interpretation", "--policy", "oracle", "--cohort", cohort, "--out", run)
    call("sweep", "evipath/integration", "--evidence", "all-subsets", "--policy", "random", "--cohort", cohort,
         "--out", swept)  # fmt: skip
    tables = json.loads(call("table", swept, "--published", "--json"))["tables"]
    assert [table["name"] for table in tables] == ["evidence", "published", "evidence_shown"]
    shown = [row["budget"] for row in tables[2]["rows"]]
    assert shown[:7] == ["2.5x", "10x", "40x", "2.5x+10x", "2.5x+40x", "10x+40x", "all"]
    (profile,) = json.loads(call("table", run, swept, "--profile", "--json"))["tables"]
    assert profile["name"] == "profile"
    assert next(row for row in profile["rows"] if row["policy"] == "oracle")["t1"]["value"] == 1


def test_mistakes_are_answered(cohort: Path, call: Callable[..., str], tmp_path: Path) -> None:
    for error, arguments in (
        (UnknownNameError, ("items", "build", "evipath/localization", cohort)),
        (UnknownNameError, ("items", "build", "evipath/interpretation", cohort, "--encoder", "bert")),
        (UnknownNameError, ("items", "build", "evipath/interpretation", cohort, "--cell", "hospital")),
        (
            InvalidArgumentError,
            ("sweep", "evipath/localization", "--evidence", "text", "--policy", "random", "--cohort", cohort,
             "--out", tmp_path / "x"),
        ),
    ):  # fmt: skip
        with pytest.raises(error):
            call(*arguments)
