"""The answerer: an item as one message, and the reply as the answer. The model is a function here."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from evidence_builder import SUITE, TASK, build_evidence, item, reference
from model_stub import Reply, StubClient, answer, play

from wsigym.agents.answerer import Answerer
from wsigym.envs.evidence import EvidenceEnv


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_evidence(tmp_path_factory.mktemp("evidence"), [item(0), item(1)], [reference(0), reference(1)])


def episode(cohort: Path, reply: Reply, form: str = "text", **options: Any) -> tuple[dict[str, Any], StubClient, Any]:
    env = EvidenceEnv(cohort, SUITE, TASK, answer=form, image_px=48)
    client = StubClient(lambda messages: reply, max_image_px=48, keep_images=1)
    agent = Answerer(client)  # type: ignore[arg-type]
    info = asyncio.run(play(env, agent, {"item_id": "i1", **options}))
    record = agent.record()
    assert record is not None
    return info, client, record


def test_an_item_is_one_message_as_casescope_shows_it(cohort: Path) -> None:
    _, client, record = episode(cohort, "B")
    (request,) = client.requests
    (message,) = request["messages"]
    assert message["role"] == "user"
    kinds = [part["type"] for part in message["content"]]
    assert kinds == ["text", "image_url"] * 3 + ["text"]
    assert [part["text"] for part in message["content"][:6:2]] == ["Image 1:", "Image 2:", "Image 3:"]
    last = message["content"][-1]["text"]
    question, options, words = last.rsplit("\n\n", 2)
    assert "Which of these is seen (1)?" in question
    assert options.splitlines() == ["A. crowded glands", "B. sheets", "C. mitoses", "D. necrosis"]
    assert words == "Answer with one letter."
    assert request.get("tools") is None
    assert record.prompts == {}
    assert record.disclosure["stub"].tissue_share == {}
    assert {"organ", "site", "question", "options"} <= set(record.disclosure["stub"].metadata)


@pytest.mark.parametrize("form", ["text", "option"])
@pytest.mark.parametrize(
    ("reply", "outcome", "score"),
    [
        ("B", "scored", 1),
        ("The answer is A.", "scored", 0),
        ("", "unparsed", 0),
        ("I cannot help with that.", "refused", 0),
    ],
)
def test_the_reply_is_the_answer(cohort: Path, form: str, reply: str, outcome: str, score: float) -> None:
    info, client, _ = episode(cohort, reply, form)
    assert (info["outcome"], info["score"], len(client.requests)) == (outcome, score, 1)


def test_options_are_shown_as_they_are_rotated(cohort: Path) -> None:
    info, client, _ = episode(cohort, "A", rotation=1)
    assert "A. sheets" in client.requests[0]["messages"][0]["content"][-1]["text"]
    assert info["score"] == 1


@pytest.mark.parametrize("form", ["text", "option"])
def test_a_servers_refusal_is_one(cohort: Path, form: str) -> None:
    info, _, record = episode(cohort, answer("", refusal="filtered"), form)
    assert info["outcome"] == "refused"
    assert record.end_reason == "refused: filtered"
