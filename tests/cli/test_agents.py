"""`wsigym run | sweep --agent` and `wsigym transcripts`: what is told, and one clear line for bad input."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cohort_builder import build_cohort, read_lines

from wsigym.agents.scripted_server import ScriptedServer
from wsigym.cli import main

pytestmark = pytest.mark.network

Call = Callable[..., tuple[int, str, str]]
TASK = "evipath/localization"


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Call:
    """`wsigym ARGUMENTS` without a user's endpoints file: the exit code, and what was printed."""
    (tmp_path / "none.toml").touch()
    monkeypatch.setenv("WSIGYM_ENDPOINTS", str(tmp_path / "none.toml"))

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["wsigym", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


def test_run_with_the_built_in_endpoint(call: Call, tiny_cohort: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    base = ("run", TASK, "--cohort", tiny_cohort, "--subset", "2", "--budget", "1", "--out", out)
    agents = ("--agent", "localizer", "--policy", "agent:verifier", "--policy", "search-centre")
    code, printed, err = call(*base, *agents, "--endpoint", "scripted", "--concurrency", "2", "--max-cost", "1")
    assert (code, err) == (0, "")
    first, spent, last = printed.splitlines()
    assert first == f"6 episodes played; records in {out}"
    assert spent.endswith(" out, 0.0000 USD")
    assert " requests, " in spent
    assert last == f"wsigym table {out}"
    code, printed, _ = call(*base, *agents, "--endpoint", "scripted", "--seed", "1", "--json")
    content = json.loads(printed)
    assert (code, content["played"], content["failed"], content["stopped"]) == (0, 6, 0, None)
    assert content["spent_in_all"]["requests"] > content["spent"]["requests"] > 0
    assert content["outcomes"]["scored"] >= 2
    code, printed, _ = call("table", out, "--json", "--deployment")
    assert [table["name"] for table in json.loads(printed)["tables"]] == ["localization", "cost", "deployment"]
    code, printed, _ = call("replay", out, "0")
    assert (code, printed.startswith("agrees: ")) == (0, True)


def test_sweep_over_agents_endpoints_budgets_and_seeds(call: Call, tiny_cohort: Path, tmp_path: Path) -> None:
    out, file = tmp_path / "run", tmp_path / "endpoints.toml"
    with ScriptedServer() as server:
        lines = (f'[endpoints.{name}]\nbase_url = "{server.base_url}"\nmodel = "scripted"\n' for name in ("a", "b"))
        file.write_text("".join(lines))
        named = ("--endpoints", file, "--endpoint", "a", "--endpoint", "a+b", "--base-url", server.base_url)
        asked = ("sweep", TASK, "--cohort", tiny_cohort, "--subset", "1", "--out", out, "--agent", "verifier")
        further = ("--model", "scripted", "--budget", "1", "--budget", "2", "--seeds", "2", "--set", "temperature=0.5")
        code, printed, err = call(*asked, *named, *further, "--coordinates", "unit")
    assert (code, err) == (0, "")
    assert "no price known" in printed
    records = read_lines(out / "episodes.jsonl")
    assert len(records) == 3 * 2 * 2
    assert {record["endpoint"] for record in records} == {"a", "a+b", "scripted"}
    endpoints = json.loads((out / "run.json").read_text())["endpoints"]
    assert {name: (field["temperature"], field["coordinates"]) for name, field in endpoints.items()} == {
        "a": (0.0, "level0"),
        "b": (0.0, "level0"),
        "scripted": (0.5, "unit"),
    }


def test_a_run_that_the_cost_limit_stopped_says_so(call: Call, tiny_cohort: Path, tmp_path: Path) -> None:
    asked = ("run", TASK, "--cohort", tiny_cohort, "--subset", "2", "--out", tmp_path / "run", "--agent", "localizer")
    priced = ("--endpoint", "scripted", "--set", "price_in=1000", "--set", "price_out=1000")
    code, printed, err = call(*asked, *priced, "--max-cost", "0.01")
    assert (code, printed.partition(";")[0]) == (1, "0 episodes played")
    assert err.startswith("stopped: the next request may cost up to ")
    assert "2 episodes are left; the same command goes on with them." in err


def test_endings_without_an_answer_are_counted(call: Call, tiny_cohort: Path, tmp_path: Path) -> None:
    with ScriptedServer(misbehave={"refusal": "every:1"}) as server:
        asked = ("run", TASK, "--cohort", tiny_cohort, "--subset", "2", "--out", tmp_path / "run")
        code, printed, _ = call(*asked, "--agent", "localizer", "--base-url", server.base_url, "--model", "scripted")
    assert (code, printed.splitlines()[1]) == (0, "2 refused")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "nobody plays; name --policy NAME or --agent NAME"),
        (["--agent", "localizer"], "no endpoint was given"),
        (["--agent", "localiser", "--endpoint", "scripted"], "Did you mean 'localizer'?"),
        (["--agent", "tile-scorer", "--endpoint", "scripted"], "plays wsigym/Exploration-v0"),
        (["--agent", "localizer", "--endpoint", "scriptd"], "Did you mean 'scripted'?"),
        (["--agent", "localizer", "--endpoint", "scripted+scripted"], "names one endpoint twice"),
        (["--agent", "localizer", "--base-url", "http://127.0.0.1:1/v1"], "--base-url URL with --model NAME"),
        (["--agent", "localizer", "--base-url", "ftp://x", "--model", "m"], "no http or https URL"),
        (["--agent", "localizer", "--base-url", "http://8.8.8.8/v1", "--model", "m"], "--egress any"),
        (["--agent", "localizer", "--endpoint", "scripted", "--egress", "none"], "allowed are 'local' and 'any'"),
        (["--agent", "localizer", "--endpoint", "scripted", "--jobs", "2"], "give concurrency"),
        (["--agent", "localizer", "--endpoint", "scripted", "--api-key-env", "NO_KEY"], "NO_KEY, which is not set"),
        (["--agent", "localizer", "--endpoint", "scripted", "--coordinates", "px"], "coordinates"),
        (
            ["--agent", "localizer", "--endpoint", "scripted", "--endpoint", "scripted", "--set", "retries=1"],
            "settings of one endpoint, and 2 were named",
        ),
        (["--policy", "oracle", "--endpoint", "scripted"], "only agents ask models"),
        (["--policy", "oracle", "--concurrency", "2"], "only agents ask models"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    call: Call, tiny_cohort: Path, tmp_path: Path, arguments: list[str], told: str
) -> None:
    code, printed, err = call("run", TASK, "--cohort", tiny_cohort, "--out", tmp_path / "run", *arguments)
    assert (code, printed, err.count("\n")) == (2, "", 1)
    assert told in err
    assert not (tmp_path / "run").exists()


def test_transcripts(call: Call, tmp_path: Path) -> None:
    slides = [{"slide_id": "s1", "split": "train"}, {"slide_id": "s2", "split": "test"}]
    cohort = build_cohort(tmp_path / "cohort", slides=slides)
    out = tmp_path / "run"
    asked = ("run", TASK, "--cohort", cohort, "--budget", "1", "--out", out)
    assert call(*asked, "--agent", "localizer", "--endpoint", "scripted")[0] == 0
    code, printed, _ = call("transcripts", out, "--out", tmp_path / "a.jsonl")
    assert (code, printed.splitlines()) == (
        0,
        [f"5 episodes written to {tmp_path / 'a.jsonl'}", "left out: 5 are of split test (--all-splits)"],
    )
    chats = tmp_path / "b.jsonl"
    code, printed, _ = call("transcripts", out, "--out", chats, "--all-splits", "--images", "files", "--json")
    content = json.loads(printed)
    assert (code, content["episodes"], content["left_out"]) == (0, 10, {})
    assert content["images"] == len(list((tmp_path / "b_images").iterdir())) > 0
    code, _, err = call("transcripts", out, "--out", tmp_path / "c.jsonl", "--min-score", "1")
    assert (code, err.count("\n"), "no episode to write: " in err) == (2, 1, True)
