"""Every agent against a server that does every thing wrong: each episode ends, and with the right outcome.

Through the runner and a real local server, as a run over night would meet it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cohort_builder import build_cohort
from evidence_builder import SUITE, TASK, build_evidence, item, reference
from model_stub import play
from tumour_builder import TILE_PX, build_tumour_cohort

from wsigym.agents import Client, Endpoint
from wsigym.agents.answerer import Answerer
from wsigym.agents.scripted_server import MISBEHAVIOURS, ScriptedServer
from wsigym.benchmarks.replay import replay
from wsigym.benchmarks.run_folder import load_run
from wsigym.benchmarks.runner import run
from wsigym.envs.evidence import EvidenceEnv
from wsigym.errors import EndpointError

pytestmark = pytest.mark.network

LOST = "infrastructure_error"

ENDS: Mapping[str, tuple[str, str, str]] = {
    #                  localizer           verifier    tile-scorer
    "late": ("scored", "scored", "scored"),
    "429": ("scored", "scored", "scored"),
    "500": (LOST, LOST, LOST),
    "drop": (LOST, LOST, LOST),
    "malformed-body": (LOST, LOST, LOST),
    "malformed-json": ("unparsed", "unparsed", "scored"),
    "wrong-tool": ("unparsed", "scored", "scored"),
    "out-of-range": ("invalid", "invalid", "scored"),
    "nan": ("invalid", "invalid", "scored"),
    "refusal": ("refused", "refused", "refused"),
    "empty": ("unparsed", "unparsed", "unparsed"),
    "never-finish": ("budget_exhausted", "scored", "scored"),
    "endless-thought": ("unparsed", "unparsed", "unparsed"),
}
"""Always, but for 429, which every second request gets. Only the localizer calls tools; the tile scorer writes no JSON,
and gets its scores as probabilities, which this server does not spoil."""

TRANSIENT = ("500", "drop", "malformed-body")


@pytest.fixture(scope="module")
def cohorts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("cohorts")
    return {
        "localization": build_cohort(folder / "boxes", slides=[{"slide_id": "s1"}]),
        "exploration": build_tumour_cohort(folder / "tumour"),
    }


def outcomes(
    cohorts: Mapping[str, Path], out: Path, agent: str, misbehave: dict[str, Any], **settings: Any
) -> tuple[list[str], ScriptedServer]:
    task = "exploration" if agent.startswith("tile") else "localization"
    arguments = {"tile_px": TILE_PX} if task == "exploration" else {}
    with ScriptedServer(misbehave=misbehave, late_s=0.02, retry_after_s=0.01) as server:
        fields = {"retries": 0, "max_tokens": 256, "coordinates": "unit", **settings}
        endpoint = Endpoint(name="e", base_url=server.base_url, model="scripted", **fields)
        summary = run(
            f"evipath/{task}",
            policies=[f"agent:{agent}"],
            endpoints=[endpoint],
            cohort=cohorts[task],
            budgets=["K=1,1,1" if task == "exploration" else "2"],
            env_arguments=arguments,
            concurrency=1,  # so that every nth request is the same one in each run
            out=out,
        )
    records = load_run(out).records
    assert len(records) == summary.played == sum(summary.outcomes.values())
    for number, record in enumerate(records):
        assert record.agent is not None
        assert (record.score is None) == (record.outcome == LOST)
        if record.score is not None:
            assert record.outcome == "scored" or record.score == 0
            assert replay(out, number).differences == ()
    return [record.outcome for record in records], server


@pytest.mark.parametrize("kind", MISBEHAVIOURS)
@pytest.mark.parametrize("place", [0, 1, 2], ids=["localizer", "verifier", "tile-scorer"])
def test_the_outcome_of_each_misbehaviour(cohorts: Mapping[str, Path], tmp_path: Path, kind: str, place: int) -> None:
    agent = ("localizer", "verifier", "tile-scorer")[place]
    when = "every:2" if kind == "429" else 1.0
    ended, _ = outcomes(cohorts, tmp_path / "run", agent, {kind: when})
    assert set(ended) == {ENDS[kind][place]}


@pytest.mark.parametrize("kind", TRANSIENT)
def test_what_fails_now_and_then_is_asked_again(cohorts: Mapping[str, Path], tmp_path: Path, kind: str) -> None:
    ended, server = outcomes(cohorts, tmp_path / "run", "localizer", {kind: "every:5"}, retries=3)
    assert set(ended) == {"scored"}
    assert server.requests > len(server.answered)


def test_a_wrong_tool_now_and_then_is_told_and_forgiven(cohorts: Mapping[str, Path], tmp_path: Path) -> None:
    ended, _ = outcomes(cohorts, tmp_path / "run", "localizer", {"wrong-tool": "every:3"})
    assert set(ended) == {"scored"}


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [("late", "scored"), ("refusal", "refused"), ("empty", "unparsed"), ("endless-thought", "unparsed")],
)
def test_the_answerer(tmp_path: Path, kind: str, outcome: str) -> None:
    assert asyncio.run(answered(tmp_path, kind))["outcome"] == outcome


@pytest.mark.parametrize("kind", TRANSIENT)
def test_the_answerer_without_a_server_to_speak_of(tmp_path: Path, kind: str) -> None:
    with pytest.raises(EndpointError):
        asyncio.run(answered(tmp_path, kind))


async def answered(folder: Path, kind: str) -> dict[str, Any]:
    cohort = build_evidence(folder / "evidence", [item(1)], [reference(1)], slides=[{"slide_id": "s1"}])
    env = EvidenceEnv(cohort, SUITE, TASK, answer="text", image_px=48)
    with ScriptedServer(misbehave={kind: 1.0}, late_s=0.02) as server:
        client = Client(Endpoint(name="e", base_url=server.base_url, model="scripted", retries=0, max_tokens=64))
        try:
            return await play(env, Answerer(client))
        finally:
            await client.close()
