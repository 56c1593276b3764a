from __future__ import annotations

import errno
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cohort_builder import read_lines, write_lines

import wsigym.benchmarks.runner
from wsigym.cli import main

Call = Callable[..., tuple[int, str, str]]
TASK = "evipath/localization"


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


def test_run_resume_and_replay(call: Call, tiny_cohort: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    base = ("run", TASK, "--cohort", tiny_cohort, "--subset", "3", "--out", out)
    code, printed, _ = call(*base, "--policy", "search-centre", "--policy", "oracle", "--budget", "tight")
    assert code == 0
    assert printed == f"6 episodes played; records in {out}\nwsigym table {out}\n"
    code, printed, _ = call(*base, "--policy", "oracle", "--seed", "4", "--blind", "text", "--json")
    assert (code, json.loads(printed)["played"]) == (0, 6)
    records = read_lines(out / "episodes.jsonl")
    oracle = [record["score"] for record in records if record["policy"] == "oracle"]
    assert oracle == [1.0] * 6
    assert {record["policy"] for record in records} == {"search-centre", "oracle", "oracle+blind-text"}
    assert {(record["budget"], record["seed"]) for record in records} == {("tight", 0), ("base", 4)}

    code, printed, _ = call("replay", out, "0")
    assert (code, printed.startswith("agrees: s")) == (0, True)
    write_lines(out / "episodes.jsonl", [records[0] | {"score": 0.5}])
    code, printed, _ = call("replay", out, "0")
    assert (code, "score: recorded 0.5, replayed " in printed) == (1, True)
    code, printed, _ = call("replay", out, "0", "--json")
    assert (code, json.loads(printed)["agrees"]) == (1, False)


def test_sweep(call: Call, tiny_cohort: Path, tmp_path: Path) -> None:
    base = ("sweep", TASK, "--cohort", tiny_cohort, "--subset", "2", "--out", tmp_path / "run")
    budgets = ("--budget", "tight", "--budget", "10=7,2.5=10,40=5")
    code, _, _ = call(*base, "--policy", "random", "--policy", "oracle", *budgets, "--seeds", "3")
    records = read_lines(tmp_path / "run" / "episodes.jsonl")
    assert (code, len(records)) == (0, 2 * 2 * 2 * 3)
    assert {record["budget"] for record in records} == {"tight", "2.5=10,10=7,40=5"}


def test_what_the_system_refuses_is_one_line(
    call: Call, tiny_cohort: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "somewhere/x.tif")

    monkeypatch.setattr(wsigym.benchmarks.runner, "run", refuse)
    asked = ("run", TASK, "--cohort", tiny_cohort, "--policy", "oracle", "--out", tmp_path / "run")
    assert call(*asked) == (1, "", "wsigym: somewhere/x.tif: No space left on device\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["evipth/localization"], "Did you mean 'evipath'?"),
        (["evipath/localisation"], "Did you mean 'evipath/localization'?"),
        ([TASK, "--policy", "oracel"], "Did you mean 'oracle'?"),
        ([TASK, "--budget", "tigt"], "Did you mean 'tight'?"),
        (
            ["evipath/integration", "--budget", "base"],
            "the budget of evipath/integration is how much of an item's evidence is shown: evidence 'base': allowed",
        ),
        ([TASK, "--cohort", "/nowhere"], "/nowhere/cohort.json: no such file"),
        ([TASK, "--subset", "1000"], "subset 1000: allowed are 1 to 10"),
        ([TASK, "--view-px", "3"], "view_px is 3; allowed are"),
        ([TASK, "--engine", "dask"], "unknown engine 'dask'. Known: processes, ray."),
        ([TASK, "--address", "auto"], "address: processes of this machine take jobs alone"),
        ([TASK, "--engine", "ray", "--resources", "oracle=num_gpus"], "--resources oracle=num_gpus: 'num_gpus' is no"),
        ([TASK, "--engine", "ray", "--resources", "a=b=num_gpus:1,num_cpus:2"], "resources 'a=b'. Known: oracle."),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    call: Call, tiny_cohort: Path, tmp_path: Path, arguments: list[str], told: str
) -> None:
    given = [*arguments, "--out", str(tmp_path / "run")]
    given += [] if "--policy" in given else ["--policy", "oracle"]
    given += [] if "--cohort" in given else ["--cohort", str(tiny_cohort)]
    code, printed, err = call("run", *given)
    assert (code, printed, err.count("\n")) == (2, "", 1)
    assert err.startswith("wsigym: ")
    assert told in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_the_help_says_what_a_budget_is_by_task(call: Call, command: str) -> None:
    code, printed, _ = call(command, "--help")
    told = " ".join(printed.partition("--budget")[2].partition("--seed")[0].split())
    assert code == 0
    assert "localization: tight, base, loose, a number of ROIs" in told
    assert "of items, their evidence: all, highest-power, 2.5x+10x" in told


def test_failed_episodes_are_counted_and_exit_with_1(
    call: Call, tiny_cohort: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wsigym.baselines.search_centre import SearchCentre

    def fail(*_: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(SearchCentre, "act", fail)
    base = ("run", TASK, "--cohort", tiny_cohort, "--out", tmp_path / "run", "--policy", "search-centre")
    code, printed, err = call(*base, "--policy", "oracle")
    assert code == 1
    assert printed.startswith("10 episodes played; ")
    assert err.startswith("10 of 20 episodes failed; the first: OSError: the disk is gone (test_run.py:")
    monkeypatch.undo()


def test_an_interrupted_run_says_what_is_kept(
    call: Call, tiny_cohort: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wsigym.baselines.search_centre import SearchCentre

    acted = SearchCentre.act

    def interrupted(self: SearchCentre, observation: object, info: dict[str, object]) -> object:
        if "10x" in str(info["query_id"]):
            raise KeyboardInterrupt
        return acted(self, observation, info)  # type: ignore[arg-type]

    monkeypatch.setattr(SearchCentre, "act", interrupted)
    base = ("run", TASK, "--cohort", tiny_cohort, "--out", tmp_path / "run", "--policy", "search-centre")
    code, _, err = call(*base)
    assert (code, "finished episodes are kept" in err) == (1, True)
    assert len(read_lines(tmp_path / "run" / "episodes.jsonl")) == 1
    monkeypatch.setattr(SearchCentre, "act", acted)
    code, printed, _ = call(*base)
    assert (code, printed.partition(";")[0]) == (0, "9 episodes played, 1 were there already")


@pytest.mark.filterwarnings("default::wsigym.errors.WsigymWarning")
def test_a_warning_is_one_line(call: Call, tiny_cohort: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = ("run", TASK, "--cohort", tiny_cohort, "--subset", "1", "--out", tmp_path / "run")
    call(*base, "--policy", "oracle")
    monkeypatch.setattr(wsigym.benchmarks.runner, "git_commit", lambda: "another")
    code, _, err = call(*base, "--policy", "oracle")
    assert (code, err.count("\n")) == (0, 1)
    assert err.startswith(f"wsigym: warning: {tmp_path / 'run'} was begun with wsigym ")


@pytest.mark.parametrize(
    ("command", "name"),
    [("policies", "wsigym/Exploration-v0"), ("suites", "evipath/localization"), ("envs", "wsigym/Localization-v0")],
)
def test_listings(call: Call, command: str, name: str) -> None:
    code, printed, _ = call(command)
    assert (code, any(line.split()[0] == name for line in printed.splitlines())) == (0, True)
    code, printed, _ = call(command, "--json")
    assert (code, name in json.loads(printed)) == (0, True)
