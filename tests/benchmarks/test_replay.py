from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cohort_builder import read_lines, write_lines
from stub_policies import PLAIN

from wsigym.baselines import make_policy as make_baseline
from wsigym.benchmarks.replay import episode_names, replay
from wsigym.benchmarks.run_folder import load_run
from wsigym.benchmarks.runner import RunSummary
from wsigym.errors import CohortError, InvalidArgumentError, RunError, UnknownNameError

Play = Callable[..., RunSummary]


def test_every_episode_replays(play: Play, tmp_path: Path) -> None:
    def make(name: str) -> Any:
        return PLAIN[name]() if name in PLAIN else make_baseline(name)

    play("looker", "never-valid", "never-finishes", "random", "oracle", make_policy=make, blind=["images"])
    run = load_run(tmp_path / "run")
    assert len(run.records) == 100
    for number, record in enumerate(run.records):
        result = replay(tmp_path / "run", number)
        assert result.differences == ()
        assert (result.agrees, result.key) == (True, record.key)
        assert result.replayed_score == result.recorded_score == record.score


Change = Callable[[dict[str, Any]], None]

TAMPERED: dict[str, tuple[Change, str]] = {
    "score": (lambda line: line.update(score=0.987), "score: recorded 0.987, replayed "),
    "metric": (lambda line: line["metrics"].update(regret=0.5), "regret: recorded 0.5, replayed "),
    "metric removed": (lambda line: line["metrics"].pop("cause"), "cause: recorded None, replayed "),
    "outcome": (lambda line: line.update(outcome="invalid"), "outcome: recorded 'invalid', replayed 'scored'"),
    "look": (lambda line: line["steps"][0]["action"]["box"].__setitem__(0, 0.0), "step 1, box: recorded "),
    "answer": (lambda line: line["steps"][1]["action"].update(tool=0), "outcome: recorded 'scored', replayed None"),
    "answer gone": (lambda line: line["steps"].pop(), "outcome: recorded 'scored', replayed None"),
    "one too many": (lambda line: line["steps"].append(line["steps"][1]), "number of steps: recorded 3, replayed 2"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_tampered_record_differs(play: Play, tmp_path: Path, what: str) -> None:
    play(subset="1")
    path = tmp_path / "run" / "episodes.jsonl"
    (line,) = read_lines(path)
    change, told = TAMPERED[what]
    change(line)
    write_lines(path, [line])
    result = replay(tmp_path / "run", 0)
    assert not result.agrees
    assert any(difference.startswith(told) for difference in result.differences), result.differences


def test_a_record_of_no_item(play: Play, tmp_path: Path) -> None:
    play(subset="1")
    path = tmp_path / "run" / "episodes.jsonl"
    write_lines(path, [read_lines(path)[0] | {"item": "another"}])
    with pytest.raises(RunError, match="episode another:looker:base:0 asks an item that its cohort does not have"):
        replay(tmp_path / "run", 0)


def test_names_of_episodes(play: Play, tmp_path: Path) -> None:
    play("looker", "second", subset="2", budgets=["tight", "base"])
    records = load_run(tmp_path / "run").records
    item = records[0].item
    assert episode_names(records[0]) == [
        item,
        f"{item}:looker",
        f"{item}:looker:tight",
        f"{item}:looker:tight:0",
    ]
    for record in records:
        assert replay(tmp_path / "run", episode_names(record)[-2]).key == record.key
    with pytest.raises(InvalidArgumentError, match=r"may mean 4: .*:looker:tight:0, "):
        replay(tmp_path / "run", item)
    with pytest.raises(UnknownNameError, match=f"Did you mean '{item}:looker:tight:0'"):
        replay(tmp_path / "run", f"{item}:loker:tight")
    with pytest.raises(UnknownNameError, match="unknown episode '8'"):
        replay(tmp_path / "run", 8)


def test_an_infrastructure_error_has_nothing_to_replay(play: Play, tmp_path: Path) -> None:
    play("raises", subset="1")
    with pytest.raises(InvalidArgumentError, match="no score to recompute"):
        replay(tmp_path / "run", 0)


def test_the_cohort_may_move_but_not_change(play: Play, tmp_path: Path, tiny_cohort: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    shutil.copytree(tiny_cohort, here)
    play(subset="1", cohort=here)
    here.rename(there)
    with pytest.raises(CohortError, match="no such file"):
        replay(tmp_path / "run", 0)
    assert replay(tmp_path / "run", 0, cohort=there).agrees
    manifest = json.loads((there / "cohort.json").read_text())
    (there / "cohort.json").write_text(json.dumps(manifest | {"name": "changed"}))
    with pytest.raises(RunError, match="is not the cohort of"):
        replay(tmp_path / "run", 0, cohort=there)
