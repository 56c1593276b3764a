"""Episodes of agents side by side: the same records as one by one, and what stops them."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stub_policies import AsyncLooker, GivesUp, Hooked, Makes, Raises, RaisesWhile, ScoresTiles, Stops, Waits
from tumour_builder import TILE_PX, build_tumour_cohort

from wsigym.benchmarks.replay import replay
from wsigym.benchmarks.run_folder import load_run
from wsigym.benchmarks.runner import RunSummary, run
from wsigym.errors import CostLimitError, EndpointError, InvalidArgumentError, RunWriteError

Play = Callable[..., RunSummary]
Timeless = Callable[..., dict[Any, dict[str, Any]]]

ITEMS = 10
AGENT = "agent:looker"


# -- no answer -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("looks", [0, 2])
@pytest.mark.parametrize(
    ("outcome", "cause"), [("unparsed", "invalid"), ("refused", "invalid"), ("budget_exhausted", "no finish")]
)
def test_no_answer_is_scored_0_and_replays(play: Play, tmp_path: Path, outcome: str, cause: str, looks: int) -> None:
    summary = play(AGENT, subset="3", make_policy=Makes(GivesUp, outcome, looks))
    assert (summary.played, summary.failed) == (3, 0)
    for number, record in enumerate(load_run(tmp_path / "run").records):
        assert (record.outcome, record.score, record.confidence) == (outcome, 0, None)
        assert record.error == "half a pair ?"
        assert (len(record.steps), record.metrics["rois_used"], record.metrics["cause"]) == (looks, looks, cause)
        result = replay(tmp_path / "run", number)
        assert (result.differences, result.replayed_score) == ((), 0)


def test_a_record_without_an_answer_that_had_one_differs_on_replay(play: Play, tmp_path: Path) -> None:
    play("looker", subset="1")
    path = tmp_path / "run" / "episodes.jsonl"
    line = json.loads(path.read_text())
    path.write_text(json.dumps(line | {"outcome": "refused", "score": 0}) + "\n")
    assert "outcome: recorded 'refused', replayed 'scored'" in replay(tmp_path / "run", 0).differences


# -- hooks -----------------------------------------------------------------------------------------------------------


def test_hooks_come_in_order_and_see_what_a_control_may_see(play: Play, tmp_path: Path) -> None:
    play(AGENT, subset="1", make_policy=Makes(Hooked), blind=["text", "images"])
    told = {}
    for record in load_run(tmp_path / "run").records:
        assert record.agent is not None
        seed, key, images, reset, *acts = record.agent.checkpoints[0]["calls"]
        assert (seed, images, reset, len(acts)) == ("seed", "see_images", "reset", 2)
        assert json.loads(key) == record.key._asdict()
        told[record.policy] = acts[0]
    target, _, colours = told[AGENT].rpartition(": ")
    assert target
    assert colours != "255 to 255"
    assert told[f"{AGENT}+blind-text"] == f": {colours}"
    assert told[f"{AGENT}+blind-images"] == f"{target}: 255 to 255"


def test_the_record_of_an_agent_is_kept_of_failures_too(play: Play, tmp_path: Path) -> None:
    class Fails(Hooked, Raises):
        async def act(self, observation: Any, info: Any) -> Any:
            raise RuntimeError("a bug of the policy's")

    play(AGENT, subset="1", make_policy=Makes(Fails))
    (record,) = load_run(tmp_path / "run").records
    assert record.agent is not None
    assert record.agent.checkpoints[0]["calls"][-1] == "reset"


def test_a_record_that_cannot_be_made_fails_its_episode(play: Play, tmp_path: Path) -> None:
    class Broken(Hooked):
        def record(self) -> Any:
            raise RuntimeError("no record")

    assert play(AGENT, subset="2", make_policy=Makes(Broken)).failed == 2
    assert all("no record" in str(record.error) for record in load_run(tmp_path / "run").records)


# -- side by side ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 3, 64])
def test_records_do_not_depend_on_concurrency(play: Play, timeless: Timeless, tmp_path: Path, concurrency: int) -> None:
    table: dict[str, int] = {}
    arguments: dict[str, Any] = {"budgets": ["tight", "base"], "seeds": [0, 1], "blind": ["images"]}
    play(AGENT, out="one", make_policy=Makes(AsyncLooker), concurrency=1, **arguments)
    summary = play(
        AGENT, out="many", make_policy=Makes(Waits, table, 0.005 * concurrency), concurrency=concurrency, **arguments
    )
    assert (summary.played, summary.failed) == (8 * ITEMS, 0)
    assert table["most"] == concurrency
    assert timeless("one") == timeless("many")
    for number in range(0, 8 * ITEMS, 13):
        assert replay(tmp_path / "many", number).agrees


def test_slides_explored_side_by_side_do_not_mix(tmp_path: Path, timeless: Timeless) -> None:
    cohort = build_tumour_cohort(tmp_path / "cohort")
    arguments: dict[str, Any] = {"policies": [AGENT], "make_policy": Makes(ScoresTiles), "seeds": range(4)}
    arguments |= {"cohort": cohort, "env_arguments": {"tile_px": TILE_PX, "view_px": 36}}
    for out, concurrency in (("one", 1), ("many", 8)):
        run("evipath/exploration", out=tmp_path / out, concurrency=concurrency, **arguments)
    assert len(timeless("one")) == 8
    assert timeless("one") == timeless("many")


def test_baselines_and_agents_share_a_run(play: Play, tmp_path: Path, timeless: Timeless) -> None:
    from stub_policies import make_policy

    play("looker", out="alone")
    play("looker", AGENT, out="both", make_policy=lambda name: AsyncLooker() if name == AGENT else make_policy(name))
    both = timeless("both")
    assert len(both) == 2 * ITEMS
    assert {key: record for key, record in both.items() if key.policy == "looker"} == timeless("alone")


def test_a_failed_episode_leaves_the_others_alone_and_is_run_again(play: Play, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    flag.touch()
    arguments: dict[str, Any] = {"make_policy": Makes(RaisesWhile, flag), "concurrency": 4}
    assert play(AGENT, **arguments).failed == 1
    flag.unlink()
    second = play(AGENT, **arguments)
    assert (second.finished_before, second.played, second.failed) == (ITEMS - 1, 1, 0)


@pytest.mark.parametrize(
    "error", [CostLimitError("the limit is reached"), EndpointError("no such model", lasting=True)], ids=repr
)
def test_what_would_fail_every_episode_stops_the_run(
    play: Play, tmp_path: Path, timeless: Timeless, error: Exception
) -> None:
    flag = tmp_path / "flag"
    flag.touch()
    arguments: dict[str, Any] = {"make_policy": Makes(Stops, flag, error), "concurrency": 3}
    play(AGENT, out="calm", make_policy=Makes(AsyncLooker))
    order = [record.item for record in load_run(tmp_path / "calm").records]
    first = play(AGENT, **arguments)
    assert (first.stopped, first.failed) == (str(error), 0)
    # The two under way beside it play on to their ends, and no further one is begun.
    places = [record.item for record in load_run(tmp_path / "run").records]
    assert 0 < len(places) <= next(place for place, item in enumerate(order) if item.startswith("s1/40x")) + 2
    flag.unlink()
    second = play(AGENT, **arguments)
    assert (second.stopped, second.finished_before, second.played) == (None, len(places), ITEMS - len(places))
    assert timeless() == timeless("calm")


def test_an_endpoint_that_fails_one_request_fails_one_episode(play: Play, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    flag.touch()
    summary = play(AGENT, make_policy=Makes(Stops, flag, EndpointError("a hiccup")))
    assert (summary.stopped, summary.played) == (None, ITEMS)
    assert summary.failed == sum("s1/40x" in record.item for record in load_run(tmp_path / "run").records) > 0
    assert summary.first_error is not None
    assert summary.first_error.startswith("EndpointError: a hiccup")


def test_a_log_that_cannot_be_written_ends_the_run(play: Play, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    flag.touch()
    with pytest.raises(RunWriteError, match="the disk is full"):
        play(AGENT, make_policy=Makes(Stops, flag, RunWriteError("the disk is full")), concurrency=2)
    assert not [record for record in load_run(tmp_path / "run").records if record.score is None]
    flag.unlink()
    play(AGENT, make_policy=Makes(AsyncLooker))
    assert len(load_run(tmp_path / "run").records) == ITEMS


def test_ctrl_c_keeps_what_is_finished(play: Play, tmp_path: Path) -> None:
    episodes = tmp_path / "run" / "episodes.jsonl"

    def press() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (not episodes.exists() or episodes.read_bytes().count(b"\n") < 3):
            time.sleep(0.002)
        os.kill(os.getpid(), signal.SIGINT)

    table: dict[str, int] = {}
    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        play(AGENT, make_policy=Makes(Waits, table, 0.05), concurrency=2, seeds=range(5))
    presser.join()
    assert table["now"] == 0
    records = load_run(tmp_path / "run").records
    assert 3 <= len(records) < 5 * ITEMS
    assert all(record.outcome == "scored" for record in records)
    summary = play(AGENT, make_policy=Makes(AsyncLooker), seeds=range(5))
    assert (summary.finished_before, summary.played) == (len(records), 5 * ITEMS - len(records))


@pytest.mark.parametrize(
    ("policies", "arguments", "told"),
    [
        ([AGENT], {"jobs": 2}, "jobs is 2: agents play in one process"),
        ([AGENT], {"concurrency": 0}, "concurrency is 0"),
        (["looker"], {"concurrency": 2}, "concurrency: only agents"),
        (["looker"], {"max_cost": 1.0}, "max_cost: only agents"),
        ([AGENT], {"make_policy": None}, "no endpoint was given"),
    ],
)
def test_bad_arguments(play: Play, tmp_path: Path, policies: list[str], arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        play(*policies, **arguments)
    assert not (tmp_path / "run").exists()
