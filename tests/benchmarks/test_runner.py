"""Runs on the tiny cohort: two slides, ten queries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cohort_builder import build_cohort
from stub_policies import KillsItsWorker, Looker, Makes, RaisesWhile, make_async_policy

from wsigym.baselines import make_policy as make_baseline
from wsigym.benchmarks.episodes import episode_seed
from wsigym.benchmarks.records import EpisodeKey
from wsigym.benchmarks.run_folder import load_run
from wsigym.benchmarks.runner import RunSummary
from wsigym.errors import CohortError, InvalidArgumentError, RunError, UnknownNameError

Play = Callable[..., RunSummary]
Timeless = Callable[..., dict[Any, dict[str, Any]]]

ITEMS = 10


def test_every_policy_budget_seed_and_item_is_one_record(play: Play, tmp_path: Path) -> None:
    summary = play("looker", "second", budgets=["tight", "base"], seeds=[0, 7])
    run = load_run(tmp_path / "run")
    assert (summary.asked, summary.played, summary.failed, summary.first_error) == (80, 80, 0, None)
    assert len(run.records) == len({record.key for record in run.records}) == 80
    assert run.config.policies == ("looker", "second")
    assert run.config.budgets == ("tight", "base")
    assert run.config.seeds == (0, 7)
    assert run.config.items.count == ITEMS
    assert run.config.env == {"view_px": 224, "overview_px": 256}


def test_a_record_says_what_was_done(play: Play, tmp_path: Path) -> None:
    play("looker", subset="1")
    (record,) = load_run(tmp_path / "run").records
    look, answer = record.steps
    assert (look.action["tool"], answer.action["tool"]) == (0, 1)
    assert look.roi == look.box
    assert look.view_magnification is not None
    assert 0 < look.view_magnification <= record.groups["magnification"]  # type: ignore[operator]
    assert (answer.box is None, answer.roi, answer.view_magnification) == (False, None, None)
    assert (look.reason, look.conclusion, answer.reason, answer.conclusion) == ("half a pair ?", None, None, "there")
    assert record.confidence == answer.action["confidence"][0]
    assert record.score == record.metrics["iou"]
    assert record.groups.keys() == {"slide", "patient", "organ", "split", "magnification"}
    assert (record.metrics["rois_used"], record.metrics["invalid_requests"]) == (1, 0)


def test_records_do_not_depend_on_the_number_of_processes(play: Play, timeless: Timeless) -> None:
    arguments: dict[str, Any] = {"budgets": ["tight", "base"], "make_policy": make_baseline}
    play("random", "stain-density", out="one", **arguments)
    play("random", "stain-density", out="two", jobs=2, **arguments)
    assert timeless("one") == timeless("two")
    assert len(timeless("one")) == 4 * ITEMS


def test_policies_do_not_influence_each_other(play: Play, timeless: Timeless) -> None:
    play("looker", "second", out="both")
    play("second", out="alone")
    both = timeless("both")
    assert timeless("alone") == {key: record for key, record in both.items() if key.policy == "second"}
    # The same code under another name draws other numbers.
    scores = {name: [both[key]["score"] for key in both if key.policy == name] for name in ("looker", "second")}
    assert scores["looker"] != scores["second"]


def test_an_async_policy_plays_as_its_like_does(play: Play, timeless: Timeless) -> None:
    play("looker", out="sync")
    play("looker", out="async", make_policy=make_async_policy)
    assert timeless("sync") == timeless("async")


def test_the_seed_of_an_episode_is_of_its_whole_key() -> None:
    key = EpisodeKey("evipath", "localization", "item", 0, "random", None, "base", 0)
    written = b'[0, "evipath", "localization", "item", 0, "random", null, "base", 0]'
    assert episode_seed(key) == int.from_bytes(hashlib.sha256(written).digest()[:8], "big") % 2**63
    others = [
        key._replace(suite="x"),
        key._replace(task="x"),
        key._replace(item="x"),
        key._replace(rotation=1),
        key._replace(policy="x"),
        key._replace(endpoint="x"),
        key._replace(budget="x"),
        key._replace(seed=1),
    ]
    seeds = {episode_seed(other) for other in [key, *others]}
    assert len(seeds) == 9
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_the_door_to_the_reference_opens_for_its_readers_alone(play: Play, tmp_path: Path) -> None:
    assert play("peeker", "cheat").failed == 0
    answers = {(record.policy, record.confidence) for record in load_run(tmp_path / "run").records}
    # One query in five has two valid boxes; an action's confidence is float32.
    assert {confidence for policy, confidence in answers if policy == "cheat"} == {np.float32(0.1), np.float32(0.2)}


def test_invalid_and_unfinished_episodes_are_scored_zero(play: Play, tmp_path: Path) -> None:
    play("never-valid", "never-finishes", budgets=["2"], subset="3")
    for record in load_run(tmp_path / "run").records:
        assert (record.score, record.confidence) == (0, None)
        if record.policy == "never-valid":
            assert (record.outcome, record.metrics["cause"]) == ("invalid", "invalid")
            assert (len(record.steps), record.metrics["rois_used"], record.metrics["invalid_requests"]) == (4, 1, 3)
            assert record.steps[-1].box is None
        else:
            assert (record.outcome, record.metrics["cause"]) == ("budget_exhausted", "no finish")
            assert (len(record.steps), record.metrics["rois_used"], record.metrics["invalid_requests"]) == (5, 2, 3)
            assert record.steps[0].note
            assert record.steps[0].roi != record.steps[0].box


def test_a_policy_that_always_raises_fails_its_episodes_not_the_run(play: Play, tmp_path: Path) -> None:
    summary = play("raises", "looker", "untyped")
    assert (summary.played, summary.failed) == (3 * ITEMS, 2 * ITEMS)
    assert summary.first_error
    assert summary.first_error.startswith("RuntimeError: a bug of the policy's (stub_policies.py:")
    records = load_run(tmp_path / "run").records
    failed = [record for record in records if record.outcome == "infrastructure_error"]
    assert {(record.policy, record.score, record.confidence, len(record.metrics)) for record in failed} == {
        ("raises", None, None, 0),
        ("untyped", None, None, 0),
    }
    assert all(record.error for record in failed)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failed_episode_keeps_its_steps_and_is_run_again(play: Play, tmp_path: Path, jobs: int) -> None:
    flag = tmp_path / "flag"
    flag.touch()
    arguments: dict[str, Any] = {"make_policy": Makes(RaisesWhile, flag), "jobs": jobs}
    first = play(**arguments)
    (failed,) = [record for record in load_run(tmp_path / "run").records if record.score is None]
    assert (first.played, first.failed, len(failed.steps)) == (ITEMS, 1, 1)
    assert failed.error
    assert failed.error.startswith("RuntimeError: the flag is up")
    flag.unlink()
    second = play(**arguments)
    assert (second.finished_before, second.played, second.failed) == (ITEMS - 1, 1, 0)
    records = load_run(tmp_path / "run").records
    assert len(records) == ITEMS
    assert all(record.outcome == "scored" for record in records)


def test_a_killed_worker_costs_nothing(play: Play, tmp_path: Path, timeless: Timeless) -> None:
    bodies = tmp_path / "bodies"
    bodies.mkdir()
    summary = play(out="killed", jobs=2, seeds=range(5), make_policy=Makes(KillsItsWorker, bodies, 1))
    assert len(list(bodies.iterdir())) == 1
    assert (summary.played, summary.failed) == (5 * ITEMS, 0)
    play(out="calm", seeds=range(5))
    assert timeless("killed") == timeless("calm")
    assert len((tmp_path / "killed" / "episodes.jsonl").read_text().splitlines()) == 5 * ITEMS


def test_an_episode_that_kills_two_workers_is_given_up(play: Play, tmp_path: Path) -> None:
    bodies = tmp_path / "bodies"
    bodies.mkdir()
    summary = play(jobs=2, make_policy=Makes(KillsItsWorker, bodies, 2))
    assert (summary.played, summary.failed) == (ITEMS, 1)
    assert summary.first_error == "its worker process died 2 times (exit code -9 the last time)"
    (failed,) = [record for record in load_run(tmp_path / "run").records if record.score is None]
    assert failed.item.startswith("s1/40x")
    # Once the cause is gone, it is run again.
    assert play(jobs=2, make_policy=Makes(KillsItsWorker, bodies, 2)).played == 1


def test_workers_that_die_while_starting_end_the_run(play: Play) -> None:
    with pytest.raises(RunError, match="die while starting"):
        play(jobs=2, make_policy=NotUnpicklable())


class NotUnpicklable:
    def __call__(self, name: str) -> Looker:
        return Looker()

    def __reduce__(self) -> Any:
        return int, ("not a number",)


def test_controls_sit_beside_the_policies(play: Play, tmp_path: Path) -> None:
    play("looker", subset="2", blind=["images", "text"])
    run = load_run(tmp_path / "run")
    assert run.config.policies == ("looker", "looker+blind-images", "looker+blind-text")
    assert len(run.records) == 6


def test_blind_images_blind_a_density_search(play: Play, tmp_path: Path) -> None:
    play("stain-density", make_policy=make_baseline, blind=["images"])
    by_policy: dict[str, list[Any]] = {}
    for record in load_run(tmp_path / "run").records:
        by_policy.setdefault(record.policy, []).append([step.box for step in record.steps])
    assert by_policy["stain-density"] != by_policy["stain-density+blind-images"]


def test_environment_arguments_reach_the_environment(play: Play, tmp_path: Path) -> None:
    play(subset="3", env_arguments={"view_px": 64})
    run = load_run(tmp_path / "run")
    assert run.config.env == {"view_px": 64, "overview_px": 256}
    for record in run.records:
        roi, shown = record.steps[0].roi, record.steps[0].view_magnification
        assert roi is not None
        assert shown == pytest.approx(min(float(record.groups["magnification"] or 0), 40 * 64 / max(roi[2:])))


def test_every_fault_of_the_slides_is_told_before_anything_is_written(play: Play, tmp_path: Path) -> None:
    slides = [{"slide_id": name} for name in ("x", "y")]
    nodes = [{"node_id": "a", "parent_id": None, "magnification": 10, "box": [0, 0, 9, 9], "finding": "f"}]
    cohort = build_cohort(tmp_path / "broken", slides=slides, nodes=nodes, paths=[], pixels=False)
    with pytest.raises(CohortError) as caught:
        play(cohort=cohort)
    assert [fault.message.split(":")[0][-5:] for fault in caught.value.faults] == ["x.svs", "y.svs"]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"policies": []}, InvalidArgumentError, "no policy"),
        ({"policies": ["oracel"], "make_policy": make_baseline}, UnknownNameError, "Did you mean 'oracle'"),
        ({"budgets": ["bse"]}, UnknownNameError, "Did you mean 'base'"),
        ({"budgets": ["2.5=3"]}, InvalidArgumentError, "says nothing for a query at 10x"),
        ({"seeds": [-1]}, InvalidArgumentError, "seeds"),
        ({"seeds": []}, InvalidArgumentError, "seeds"),
        ({"split": "tset"}, UnknownNameError, "Did you mean 'test'"),
        ({"subset": "papr"}, UnknownNameError, "Did you mean 'paper'"),
        ({"subset": "0"}, InvalidArgumentError, "1 to 10"),
        ({"subset": "11"}, InvalidArgumentError, "1 to 10"),
        ({"blind": ["image"]}, UnknownNameError, "Did you mean 'images'"),
        ({"policies": ["looker+blind-text"]}, InvalidArgumentError, "--blind"),
        ({"jobs": 0}, InvalidArgumentError, "jobs is 0"),
        ({"env_arguments": {"view": 9}}, UnknownNameError, "Did you mean 'view_px'"),
        ({"env_arguments": {"view_px": 9}}, InvalidArgumentError, "view_px is 9"),
    ],
)
def test_bad_arguments(
    play: Play, tmp_path: Path, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        play(**arguments)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_episode_is_on_disk_before_it_is_reported(play: Play, tmp_path: Path, jobs: int) -> None:
    def lines() -> int:
        return (tmp_path / "run" / "episodes.jsonl").read_bytes().count(b"\n")

    told: list[tuple[int, int]] = []
    play(jobs=jobs, progress=lambda done, asked, note: told.append((done, lines())))
    assert told == [(done, done) for done in range(ITEMS + 1)]


def test_progress_counts_from_what_is_there_to_what_is_asked(play: Play) -> None:
    told: list[tuple[int, int]] = []
    play(subset="3")
    play("looker", "second", subset="3", progress=lambda done, asked, note: told.append((done, asked)))
    assert told == [(3, 6), (4, 6), (5, 6), (6, 6)]


def test_run_json_is_plain_json(play: Play, tmp_path: Path) -> None:
    play(subset="1")
    content = json.loads((tmp_path / "run" / "run.json").read_text())
    assert content["format"] == "wsigym-run/1"
    assert (
        len(content["cohort"]["sha256"]) == len(content["references_sha256"]) == len(content["items"]["sha256"]) == 64
    )
    assert {"python", "numpy", "gymnasium"} < content["versions"].keys()
