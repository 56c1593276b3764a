"""`wsigym items build`, then run, sweep and table of what was built."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import filelock
import pytest
from casescope_builder import build_casescope, case
from cohort_builder import build_cohort, read_lines
from typer.testing import CliRunner

from wsigym.cli import app
from wsigym.errors import EgressError, InvalidArgumentError, RunError, UnknownNameError

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
    every = ("--evidence", "all-subsets", "--policy", "random", "--cohort", cohort)
    printed = call("sweep", "evipath/integration", *every, "--out", swept)
    assert "best single" in printed
    assert "2.5x+40x" in printed
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


def test_a_suite_is_all_its_tasks(cohort: Path, call: Callable[..., str], tmp_path: Path) -> None:
    """What has nothing to be asked from is told and not built; where that is all, or a name is none, it is an error."""
    cases = build_casescope(tmp_path / "cases", cases=[case(number) for number in range(3)], told=[])
    lacking = "no item of casescope/r1 can be built from cohort 'cases': 3 it has no statements."
    said = call("items", "build", "casescope", cases).splitlines()
    items = [f"casescope/{task}: 3 items in {cases}" for task in ("a1", "a2", "b", "c", "g1")]
    assert said == [*items[:4], lacking, items[4]]
    built = json.loads(call("items", "build", "casescope", cases, "--json"))
    assert built == {
        "task": "casescope",
        "items": {f"casescope/{task}": 3 for task in ("a1", "a2", "b", "c", "g1")},
        "dropped": {f"casescope/{task}": {} for task in ("a1", "a2", "b", "c", "g1")},
        "not_built": {"casescope/r1": lacking},
    }
    assert call("cohort", "check", cases).endswith(" 15 items\n")
    built = json.loads(call("items", "build", "evipath", cohort, "--cell", "none", "--json"))
    assert set(built["items"]) == {f"evipath/{task}" for task in ("interpretation", "verification", "integration")}
    with pytest.raises(InvalidArgumentError, match=r"no casescope/cases\.jsonl"):
        call("items", "build", "casescope", cohort)
    for name, near in (("casescop", "casescope"), ("casescope/a3", "casescope/a2"), ("pathvew", "pathview")):
        with pytest.raises(UnknownNameError, match=f"Did you mean {near!r}") as caught:
            call("items", "build", name, cases)
        known = caught.value.known
        assert known[:3] == ("evipath", "casescope", "pathview")
        assert {"evipath/integration", "casescope/g1", "pathview/object-counting"} <= set(known)


@pytest.mark.network
def test_questions_in_a_models_words(cohort: Path, call: Callable[..., str], tmp_path: Path) -> None:
    """By the built-in scripted model: accepted, logged, and not asked for again."""
    asked = ("items", "build", "evipath/verification", cohort, "--stem-endpoint", "scripted", "--max-cost", "1")
    call("items", "build", "evipath/verification", cohort)
    before = read_lines(cohort / "items" / "evipath" / "verification.jsonl")
    first = CliRunner().invoke(app, list(map(str, asked)), catch_exceptions=False)
    assert first.exit_code == 0
    assert first.stdout.startswith("evipath/verification: 12 items in ")
    assert first.stderr.startswith("12 requests, ")
    after = read_lines(cohort / "items" / "evipath" / "verification.jsonl")
    assert [line | {"question": ""} for line in after] == [line | {"question": ""} for line in before]
    assert all(new["question"] != old["question"] for new, old in zip(after, before, strict=True))
    references = read_lines(cohort / "references" / "evipath" / "verification.jsonl")
    assert {line["provenance"]["stem"] for line in references} == {"endpoint scripted"}
    again = CliRunner().invoke(app, list(map(str, asked)), catch_exceptions=False)
    assert again.stderr.startswith("0 requests, ")
    assert read_lines(cohort / "items" / "evipath" / "verification.jsonl") == after
    assert call("cohort", "check", cohort)


@pytest.mark.parametrize(
    ("task", "options", "words"),
    [
        ("evipath/verification", ["--max-cost", "1"], "--max-cost is what --stem-endpoint may cost"),
        ("casescope/a1", ["--stem-endpoint", "scripted"], "--stem-endpoint is of evipath's options"),
        ("pathview", ["--stem-endpoint", "scripted"], "--stem-endpoint is of evipath's options"),
        ("pathview", ["--cell", "organ"], "--cell is of evipath's options"),
    ],
)
def test_options_that_would_do_nothing(cohort: Path, task: str, options: list[str], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        CliRunner().invoke(app, ["items", "build", task, str(cohort), *options], catch_exceptions=False)


def test_where_questions_may_go(cohort: Path, tmp_path: Path) -> None:
    file = tmp_path / "endpoints.toml"
    file.write_text('[endpoints.far]\nbase_url = "https://192.0.2.1/v1"\nmodel = "m"\n')
    asked = ["items", "build", "evipath/verification", str(cohort), "--stem-endpoint", "far", "--endpoints", str(file)]
    with pytest.raises(EgressError, match="endpoint 'far' is outside"):
        CliRunner().invoke(app, asked, catch_exceptions=False)
    with pytest.raises(InvalidArgumentError, match="--max-cost needs a price"):
        CliRunner().invoke(app, [*asked, "--egress", "any", "--max-cost", "1"], catch_exceptions=False)


def test_two_builds_at_once_do_not_share_a_log(cohort: Path) -> None:
    (cohort / "stems").mkdir(exist_ok=True)
    asked = ["items", "build", "evipath/verification", str(cohort), "--stem-endpoint", "scripted"]
    with filelock.FileLock(cohort / "stems" / ".lock"), pytest.raises(RunError, match="in use by another build"):
        CliRunner().invoke(app, asked, catch_exceptions=False)
