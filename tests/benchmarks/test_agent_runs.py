"""Runs of agents against the scripted server: what is checked, kept, replayed, paid, and hidden."""

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cohort_builder import NODES, build_cohort, read_lines
from PIL import Image

from wsigym.agents.endpoints import Endpoint, load_endpoint
from wsigym.agents.scripted_server import ScriptedServer
from wsigym.benchmarks.replay import episode_names, replay
from wsigym.benchmarks.run_folder import load_run
from wsigym.benchmarks.runner import RunSummary, run
from wsigym.errors import EgressError, InvalidArgumentError, RunError, UnknownNameError

pytestmark = pytest.mark.network

Play = Callable[..., RunSummary]

ITEMS = 10
LOCALIZER, VERIFIER = "agent:localizer", "agent:verifier"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScriptedServer]:
    with ScriptedServer(wire_log=tmp_path / "wire.jsonl") as running:
        yield running


@pytest.fixture
def play(tiny_cohort: Path, tmp_path: Path) -> Play:
    """`run` of the localization task on the tiny cohort, by the localizer and the built-in endpoint unless told."""

    def call(*policies: str, out: str = "run", **arguments: Any) -> RunSummary:
        given = {"cohort": tiny_cohort, "policies": policies or [LOCALIZER], "budgets": ["2"]} | arguments
        if "endpoints" not in given:
            given["endpoints"] = [load_endpoint("scripted")]
        return run("evipath/localization", out=tmp_path / out, **given)

    return call


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cohort of one slide whose findings are words of their own, so that no two episodes ask the same."""
    nodes = [node | {"finding": f"zebra-{node['node_id']}."} for node in NODES]
    return build_cohort(tmp_path_factory.mktemp("marked"), slides=[{"slide_id": "s"}], nodes=nodes)


def at(server: ScriptedServer, **fields: Any) -> Endpoint:
    return Endpoint(**({"name": "e", "base_url": server.base_url, "model": "scripted"} | fields))


def timeless(folder: Path) -> dict[Any, dict[str, Any]]:
    """The records of a run by key, without times and without what says where an answer came from."""
    found = {}
    for record in load_run(folder).records:
        content = record.model_dump(exclude={"started", "seconds", "commit"})
        for step in content["steps"]:
            del step["act_seconds"], step["step_seconds"]
        for request in content["agent"]["requests"]:
            del request["seconds"], request["replayed"], request["retries"]
        found[record.key] = content
    return found


def requests_of(folder: Path) -> list[dict[str, Any]]:
    return read_lines(folder / "requests.jsonl")


# -- a run -----------------------------------------------------------------------------------------------------------


def test_the_built_in_endpoint_needs_no_model(play: Play, tmp_path: Path) -> None:
    summary = play(concurrency=8)
    run_ = load_run(tmp_path / "run")
    assert (summary.played, summary.failed, summary.stopped, len(run_.records)) == (ITEMS, 0, None, ITEMS)
    assert summary.outcomes == Counter(record.outcome for record in run_.records)
    for number, record in enumerate(run_.records):
        assert (record.policy, record.endpoint) == (LOCALIZER, "scripted")
        assert record.agent is not None
        assert record.agent.endpoints == {"scripted": "local"}
        assert [request.turn for request in record.agent.requests] == list(range(len(record.agent.requests)))
        assert replay(tmp_path / "run", number).differences == ()
        assert episode_names(record)[1] == f"{record.item}:{LOCALIZER}@scripted"
    lines = requests_of(tmp_path / "run")
    assert summary.spent is not None
    assert summary.spent == summary.spent_in_all
    assert summary.spent.requests == len(lines) == sum(len(record.agent.requests) for record in run_.records)  # type: ignore[union-attr]
    assert summary.spent.tokens_in == sum(line["request"]["tokens_in"] for line in lines) > 0
    assert summary.spent.cost_usd == 0

    again = play(concurrency=8)
    assert (again.finished_before, again.played, again.spent.requests) == (ITEMS, 0, 0)  # type: ignore[union-attr]
    assert again.spent_in_all == summary.spent_in_all


def test_records_do_not_depend_on_concurrency(play: Play, server: ScriptedServer, tmp_path: Path) -> None:
    play(LOCALIZER, VERIFIER, endpoints=[at(server)], out="one", concurrency=1)
    play(LOCALIZER, VERIFIER, endpoints=[at(server)], out="many", concurrency=16)
    assert len(timeless(tmp_path / "one")) == 2 * ITEMS
    assert timeless(tmp_path / "one") == timeless(tmp_path / "many")


def test_every_agent_plays_with_every_endpoint_and_baselines_once(
    play: Play, server: ScriptedServer, tmp_path: Path
) -> None:
    setups = [at(server), at(server, name="f"), (at(server), at(server, name="f"))]
    play("search-centre", VERIFIER, subset="2", endpoints=setups)
    run_ = load_run(tmp_path / "run")
    played = Counter((record.policy, record.endpoint) for record in run_.records)
    assert played == {("search-centre", None): 2, (VERIFIER, "e"): 2, (VERIFIER, "f"): 2, (VERIFIER, "e+f"): 2}
    assert run_.config.endpoints.keys() == {"e", "f"}
    both = next(record for record in run_.records if record.endpoint == "e+f")
    assert both.agent is not None
    assert {request.endpoint for request in both.agent.requests} == {"e", "f"}


def test_progress_says_what_was_spent(play: Play, server: ScriptedServer) -> None:
    told: list[tuple[int, int, str]] = []
    endpoint = at(server, price_in=1000.0, price_out=1000.0)
    summary = play("search-centre", LOCALIZER, subset="2", endpoints=[endpoint], progress=lambda *now: told.append(now))
    assert [done for done, *_ in told] == [0, 1, 2, 3, 4]
    assert summary.spent is not None
    assert [note for *_, note in told][::4] == ["", f"{summary.spent.cost_usd:.2f} USD"]


def test_no_key_is_kept_or_told(play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "sk-secret-0123456789")
    with ScriptedServer(api_key="sk-secret-0123456789") as server:
        assert play(endpoints=[at(server, api_key_env="TEST_KEY")], subset="2").failed == 0
    monkeypatch.setenv("TEST_KEY", "sk-other-0123456789")
    with ScriptedServer(api_key="sk-secret-0123456789") as server:
        stopped = play(endpoints=[at(server, api_key_env="TEST_KEY")], subset="2", seeds=[1])
    assert stopped.stopped is not None
    assert "TEST_KEY" in stopped.stopped
    kept = b"".join(path.read_bytes() for path in (tmp_path / "run").iterdir()) + stopped.stopped.encode()
    assert b"0123456789" not in kept
    assert b"TEST_KEY" not in (tmp_path / "run" / "run.json").read_bytes()


# -- resuming --------------------------------------------------------------------------------------------------------


def test_an_unfinished_episode_asks_only_what_was_not_answered(
    play: Play, server: ScriptedServer, tmp_path: Path
) -> None:
    play(endpoints=[at(server)])
    before, answered = timeless(tmp_path / "run"), list(server.answered)
    episodes, log = tmp_path / "run" / "episodes.jsonl", tmp_path / "run" / "requests.jsonl"
    episodes.write_bytes(b"".join(episodes.read_bytes().splitlines(keepends=True)[:4]))
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]) + lines[-1][:50])
    second = play(endpoints=[at(server)])
    assert (second.finished_before, second.played) == (4, ITEMS - 4)
    assert server.answered == [*answered, answered[-1]]  # the one whose line was cut off
    assert second.spent is not None
    assert second.spent.requests == 1
    assert timeless(tmp_path / "run") == before
    replayed = Counter(
        request.replayed
        for record in load_run(tmp_path / "run").records
        if record.agent is not None
        for request in record.agent.requests
    )
    assert replayed[False] < replayed[True]
    assert len(requests_of(tmp_path / "run")) == len(lines)


def test_two_seeds_share_no_answer(play: Play, server: ScriptedServer) -> None:
    play(endpoints=[at(server)], subset="1", seeds=[0, 1])
    assert set(Counter(server.answered).values()) == {2}


def test_an_endpoint_that_changed_is_another(play: Play, server: ScriptedServer, tmp_path: Path) -> None:
    play(endpoints=[at(server)], subset="1")
    with pytest.raises(RunError, match=r"endpoint 'e': its temperature is 0\.0, asked for is 0\.5"):
        play(endpoints=[at(server, temperature=0.5)], subset="1")
    with ScriptedServer() as other:
        moved = at(other, price_in=1.0, price_out=2.0, timeout_s=9)
        assert play(endpoints=[moved, at(other, name="new")], subset="1").played == 1
    assert load_run(tmp_path / "run").config.endpoints["e"]["base_url"] == other.base_url


# -- limits ----------------------------------------------------------------------------------------------------------


def test_the_cost_limit_is_never_passed_and_a_higher_one_goes_on(
    play: Play, server: ScriptedServer, tmp_path: Path
) -> None:
    endpoint = at(server, price_in=1000.0, price_out=1000.0, image_tokens=100, max_tokens=100)
    free = play(endpoints=[endpoint], out="free")
    assert free.spent is not None
    assert free.spent.cost_usd is not None
    limit = free.spent.cost_usd / 2
    first = play(endpoints=[endpoint], max_cost=limit, concurrency=4)
    assert first.stopped is not None
    assert "--max-cost" in first.stopped
    assert first.failed == 0
    assert first.spent is not None
    assert 0 < first.spent.cost_usd <= limit  # type: ignore[operator]
    assert 0 < first.played < ITEMS
    again = play(endpoints=[endpoint], max_cost=limit, concurrency=4)  # what was spent before counts
    assert again.stopped is not None
    assert again.spent_in_all is not None
    assert again.spent_in_all.cost_usd <= limit  # type: ignore[operator]
    second = play(endpoints=[endpoint], max_cost=10 * free.spent.cost_usd, concurrency=4)
    assert (second.stopped, second.finished_before + second.played) == (None, ITEMS)
    assert second.spent_in_all is not None
    assert second.spent_in_all.requests == free.spent.requests  # those of the first half were not made again
    assert second.spent_in_all.cost_usd == pytest.approx(free.spent.cost_usd)
    assert timeless(tmp_path / "run") == timeless(tmp_path / "free")


@pytest.mark.parametrize(
    ("policies", "endpoint", "arguments", "error", "told"),
    [
        ([LOCALIZER], {"base_url": "http://8.8.8.8/v1"}, {}, EgressError, "8.8.8.8"),
        ([LOCALIZER], {"base_url": "http://8.8.8.8/v1"}, {"egress": "locl"}, InvalidArgumentError, "egress"),
        ([LOCALIZER], {"api_key_env": "NO_SUCH_KEY"}, {}, InvalidArgumentError, "NO_SUCH_KEY, which is not set"),
        ([LOCALIZER], {}, {"max_cost": 1.0}, InvalidArgumentError, "--max-cost needs a price"),
        ([LOCALIZER], {}, {"max_cost": -1.0}, InvalidArgumentError, "--max-cost is -1"),
        (["agent:localiser"], {}, {}, UnknownNameError, "Did you mean 'localizer'"),
        (["agent:tile-scorer"], {}, {}, InvalidArgumentError, "plays wsigym/Exploration-v0"),
        (["search-centre"], {}, {}, InvalidArgumentError, "endpoints: only agents"),
    ],
)
def test_what_can_be_known_is_checked_before_the_first_episode(
    play: Play,
    server: ScriptedServer,
    tmp_path: Path,
    policies: list[str],
    endpoint: dict[str, Any],
    arguments: dict[str, Any],
    error: type[Exception],
    told: str,
) -> None:
    with pytest.raises(error, match=told):
        play(*policies, endpoints=[at(server, **endpoint)], **arguments)
    assert server.requests == 0
    assert not (tmp_path / "run").exists()


def test_endpoints_that_do_not_go_together(play: Play, server: ScriptedServer) -> None:
    with pytest.raises(InvalidArgumentError, match="two different endpoints are called 'e'"):
        play(endpoints=[at(server), at(server, temperature=1.0)])
    with pytest.raises(InvalidArgumentError, match="names one endpoint twice"):
        play(VERIFIER, endpoints=[(at(server), at(server))])
    with pytest.raises(InvalidArgumentError, match="was given 2 endpoints; it takes 1"):
        play(LOCALIZER, endpoints=[(at(server), at(server, name="f"))])


def test_a_server_that_is_not_there_fails_episodes_and_not_the_run(play: Play, tmp_path: Path) -> None:
    gone = Endpoint(name="gone", base_url="http://127.0.0.1:9/v1", model="m", retries=0)
    summary = play("search-centre", LOCALIZER, endpoints=[gone], subset="2")
    assert (summary.played, summary.failed) == (4, 2)
    assert summary.first_error is not None
    assert "cannot be reached" in summary.first_error


# -- controls --------------------------------------------------------------------------------------------------------


def test_controls_do_not_see_what_is_hidden(play: Play, server: ScriptedServer, marked: Path, tmp_path: Path) -> None:
    seen: dict[str, list[Any]] = {}
    for blind in ("text", "images"):
        play(LOCALIZER, VERIFIER, endpoints=[at(server)], blind=[blind], cohort=marked, out=blind)
        keys = Counter(line["sha256"] for line in requests_of(tmp_path / blind) if "+blind-" in line["episode"])
        bodies = {line["sha256"]: line["body"] for line in read_lines(tmp_path / "wire.jsonl")}
        seen[blind] = [bodies[sha256] for sha256 in keys]
        assert seen[blind]
    assert not any("zebra" in json.dumps(body) for body in seen["text"])
    assert all("zebra" in json.dumps(body) for body in seen["images"])
    whites = [(image > 250).all() for body in seen["images"] for image in images_in(body)]
    assert whites
    assert all(whites)
    assert not all((image > 250).all() for body in seen["text"] for image in images_in(body))


def images_in(body: dict[str, Any]) -> Iterator[np.ndarray[Any, Any]]:
    for message in body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "image_url":
                data = base64.b64decode(part["image_url"]["url"].partition(",")[2])
                yield np.asarray(Image.open(io.BytesIO(data)))


# -- misbehaviour ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "outcomes"),
    [
        ("refusal", {"refused"}),
        ("empty", {"unparsed"}),
        ("wrong-tool", {"unparsed", "budget_exhausted"}),
        ("never-finish", {"budget_exhausted"}),
        ("nan", {"invalid"}),
        ("500", {"infrastructure_error"}),
    ],
)
def test_a_model_that_always_misbehaves_ends_every_episode(
    play: Play, tmp_path: Path, kind: str, outcomes: set[str]
) -> None:
    with ScriptedServer(misbehave={kind: "every:1"}) as server:
        summary = play(endpoints=[at(server, retries=0)], subset="3", concurrency=3)
    assert summary.played == 3
    for number, record in enumerate(load_run(tmp_path / "run").records):
        assert record.outcome in outcomes
        assert record.agent is not None
        assert record.score == (None if kind == "500" else 0)
        if record.score is not None:
            assert replay(tmp_path / "run", number).differences == ()
