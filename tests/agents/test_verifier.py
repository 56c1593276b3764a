"""The verifier: which candidate it looks at, when it turns back, what it reports. The model is a function here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from model_stub import StubClient, play

from wsigym.agents.verifier import Verifier
from wsigym.envs import LocalizationEnv

CORNERS = ((0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.5))


@pytest.fixture(scope="module")
def env(tiny_cohort: Path) -> LocalizationEnv:
    return LocalizationEnv(tiny_cohort, view_px=64, overview_px=64, budget=3)


def candidates(*corners: tuple[float, float], size: float = 0.5) -> str:
    listed = [{"bbox": [*corner, size, size], "confidence": 0.5, "reason": f"at {corner}"} for corner in corners]
    return json.dumps({"candidates": listed})


def verdict(word: str, confidence: float, bbox: Sequence[float] | None = None) -> str:
    return json.dumps({"verdict": word, "confidence": confidence, "bbox": bbox, "reason": f"{word} {confidence}"})


def model(proposals: Sequence[str], verdicts: Sequence[str]) -> Callable[[list[dict[str, Any]]], str]:
    """Answers each kind of request in turn; the last for ever."""
    given = {"propose": iter(proposals), "judge": iter(verdicts)}
    last = {"propose": proposals[-1], "judge": verdicts[-1] if verdicts else ""}

    def reply(messages: list[dict[str, Any]]) -> str:
        content = next(message["content"] for message in messages if message["role"] == "user")
        kind = content[0]["text"].partition("\n")[0].removeprefix("Request: ")
        return next(given[kind], last[kind])

    return reply


def facts(request: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        request["messages"][1]["content"][0]["text"].split("```json\n")[1].split("\n```")[0]
    )
    return found


def episode(
    env: LocalizationEnv, proposals: Sequence[str], verdicts: Sequence[str], **settings: Any
) -> tuple[dict[str, Any], StubClient, Any]:
    client = StubClient(model(proposals, verdicts), **{"coordinates": "unit", **settings})
    agent = Verifier(client)  # type: ignore[arg-type]
    info = asyncio.run(play(env, agent, {"query_id": env.query_ids[0]}))
    record = agent.record()
    assert record is not None
    return info, client, record


def report(info: dict[str, Any]) -> dict[str, Any]:
    step: dict[str, Any] = info["steps"][-1]
    assert step["action"]["tool"] == 1
    return step


def test_a_sure_look_ends_the_search(env: LocalizationEnv) -> None:
    info, client, record = episode(env, [candidates(*CORNERS)], [verdict("supports", 0.9)])
    assert (info["outcome"], len(info["steps"]), len(client.requests)) == ("scored", 2, 2)
    assert info["steps"][0]["remarks"] == {"reason": "at (0.0, 0.0)"}
    step = report(info)
    assert step["action"]["box"].tolist() == pytest.approx([0, 0, 0.5, 0.5])
    assert step["action"]["confidence"] == pytest.approx(0.9)
    assert step["remarks"] == {"conclusion": "supports 0.9"}
    (checkpoint,) = record.checkpoints
    assert checkpoint == {
        "candidate": [0, 0, 0.5, 0.5],
        "roi": [0, 0, 1024, 1024],
        "verdict": "supports",
        "confidence": 0.9,
        "reason": "supports 0.9",
        "worth": 0.9,
        "answered": True,
        "endpoint": "stub",
        "image": "roi-1",
    }
    assert sorted(record.prompts) == ["verifier-judge-v1", "verifier-propose-v1"]


def test_a_conflict_sends_it_to_the_next_candidate(env: LocalizationEnv) -> None:
    verdicts = [verdict("conflicts", 0.8), verdict("supports", 0.75)]
    info, _, record = episode(env, [candidates(*CORNERS)], verdicts)
    assert len(info["steps"]) == 3
    assert report(info)["action"]["box"].tolist() == pytest.approx([0.5, 0, 0.5, 0.5])
    assert [each["verdict"] for each in record.checkpoints] == ["conflicts", "supports"]
    assert [each["worth"] for each in record.checkpoints] == pytest.approx([0.2, 0.75])


@pytest.mark.parametrize(
    ("verdicts", "best", "confidence"),
    [
        ([("supports", 0.6), ("supports", 0.65), ("conflicts", 0.1)], 2, 0.9),
        ([("supports", 0.6), ("supports", 0.6), ("uninformative", 1.0)], 0, 0.6),
        ([("conflicts", 0.9), ("uninformative", 0.9), ("conflicts", 0.6)], 1, 0.5),
    ],
)
def test_the_best_of_the_judged_is_reported(
    env: LocalizationEnv, verdicts: list[tuple[str, float]], best: int, confidence: float
) -> None:
    info, client, _ = episode(env, [candidates(*CORNERS)], [verdict(*each) for each in verdicts])
    assert (info["outcome"], info["rois_left"], len(client.requests)) == ("scored", 0, 4)
    assert report(info)["action"]["box"].tolist() == pytest.approx([*CORNERS[best], 0.5, 0.5])
    assert report(info)["action"]["confidence"] == pytest.approx(confidence)


def test_a_box_in_the_look_is_the_answer(env: LocalizationEnv) -> None:
    """A judge's bbox is in the frame of the look that it saw."""
    info, client, _ = episode(env, [candidates((0.5, 0.5))], [verdict("supports", 1, [0.5, 0.5, 0.25, 0.25])])
    assert report(info)["action"]["box"].tolist() == pytest.approx([0.75, 0.75, 0.125, 0.125])
    told = facts(client.requests[1])
    assert set(told) == {"target", "magnification", "target_magnification", "coordinates"}


@pytest.mark.parametrize("bbox", [[5, 5, 1, 1], [0.5, 0.5, 0, 0], [float("nan"), 0, 1, 1]])
def test_a_box_that_is_none_leaves_the_whole_look(env: LocalizationEnv, bbox: list[float]) -> None:
    info, _, _ = episode(env, [candidates((0.5, 0.5))], [verdict("supports", 1, bbox)])
    assert report(info)["action"]["box"].tolist() == pytest.approx([0.5, 0.5, 0.5, 0.5])


def test_it_proposes_again_when_candidates_run_out(env: LocalizationEnv) -> None:
    proposals = [candidates(CORNERS[0]), candidates(CORNERS[3])]
    info, client, _ = episode(env, proposals, [verdict("conflicts", 0.9), verdict("supports", 0.9)])
    assert report(info)["action"]["box"].tolist() == pytest.approx([0.5, 0.5, 0.5, 0.5])
    asked = [facts(request) for request in client.requests if "candidates_wanted" in facts(request)]
    assert [each["candidates_wanted"] for each in asked] == [3, 2]
    assert asked[1]["judged"] == [{"bbox": [0, 0, 0.5, 0.5], "verdict": "conflicts"}]
    assert asked[1]["rois_left"] == 2


def test_the_budget_bounds_looks_and_proposals(env: LocalizationEnv) -> None:
    info, client, record = episode(env, [candidates(CORNERS[0])], [verdict("conflicts", 0.9)])
    assert (info["outcome"], len(info["steps"]), len(client.requests), len(record.checkpoints)) == ("scored", 4, 6, 3)


def test_without_a_budget_it_reports_the_first_candidate(tiny_cohort: Path) -> None:
    env = LocalizationEnv(tiny_cohort, view_px=64, overview_px=64, budget=0)
    info, client, _ = episode(env, [candidates(*CORNERS[1:])], [])
    assert (info["outcome"], len(info["steps"]), len(client.requests)) == ("scored", 1, 1)
    assert report(info)["action"]["box"].tolist() == pytest.approx([0.5, 0, 0.5, 0.5])
    assert report(info)["action"]["confidence"] == pytest.approx(0.5)


def test_candidates_beyond_the_convention_are_passed_over_or_told(env: LocalizationEnv) -> None:
    info, client, _ = episode(env, [candidates((5, 5), CORNERS[3])], [verdict("supports", 1)])
    assert report(info)["action"]["box"].tolist() == pytest.approx([0.5, 0.5, 0.5, 0.5])
    info, client, _ = episode(env, [candidates((5, 5)), candidates(CORNERS[3])], [verdict("supports", 1)])
    assert info["outcome"] == "scored"
    assert "x is 5; allowed is 0 to 1" in client.requests[1]["messages"][-1]["content"]
    info, client, _ = episode(env, [candidates((5, 5), (6, 6), (7, 7))], [verdict("supports", 1)])
    assert (info["outcome"], len(client.requests), len(info["steps"])) == ("invalid", 2, 3)


def test_candidates_that_the_environment_refuses_are_passed_over(env: LocalizationEnv) -> None:
    listed = json.dumps({"candidates": [{"bbox": [0, 0, 0, 0]}, {"bbox": [0.5, 0.5, 0.5, 0.5]}]})
    info, _, record = episode(env, [listed], [verdict("supports", 1)])
    assert (info["outcome"], len(info["steps"]), len(record.checkpoints)) == ("scored", 3, 1)
    info, _, _ = episode(env, [json.dumps({"candidates": [{"bbox": [0, 0, 0, 0]}] * 3})], [verdict("supports", 1)])
    assert info["outcome"] == "invalid"


@pytest.mark.parametrize(
    ("reply", "outcome", "requests"),
    [("", "unparsed", 2), ("at the top left", "unparsed", 2), ("I'm sorry, but I can't help with that.", "refused", 1)],
)
def test_a_proposal_that_cannot_be_read_ends_the_episode(
    env: LocalizationEnv, reply: str, outcome: str, requests: int
) -> None:
    info, client, record = episode(env, [reply], [])
    assert (info["outcome"], len(client.requests), info["steps"]) == (outcome, requests, [])
    assert record.end_reason.startswith(outcome)


def test_a_proposal_is_asked_for_once_more(env: LocalizationEnv) -> None:
    info, client, _ = episode(env, ["hm", candidates(*CORNERS)], [verdict("supports", 1)])
    assert (info["outcome"], len(client.requests)) == ("scored", 3)
    assert [message["role"] for message in client.requests[1]["messages"]] == ["system", "user", "assistant", "user"]


def test_a_verdict_that_cannot_be_read_is_uninformative(env: LocalizationEnv) -> None:
    info, client, record = episode(env, [candidates(*CORNERS)], ["hm", "hm", verdict("supports", 1)])
    assert (info["outcome"], len(client.requests)) == ("scored", 4)
    first, second = record.checkpoints
    assert (first["verdict"], first["answered"], first["worth"]) == ("uninformative", False, 0.5)
    assert second["answered"]


def test_a_later_proposal_that_cannot_be_read_ends_the_search(env: LocalizationEnv) -> None:
    info, client, _ = episode(env, [candidates(CORNERS[1]), "hm"], [verdict("uninformative", 1)])
    assert (info["outcome"], len(info["steps"]), len(client.requests)) == ("scored", 2, 4)
    assert report(info)["action"]["box"].tolist() == pytest.approx([0.5, 0, 0.5, 0.5])


def test_an_external_judge_sees_looks_and_target_alone(env: LocalizationEnv) -> None:
    here = StubClient(model([candidates(*CORNERS)], []), name="here", coordinates="unit")
    there = StubClient(model([""], [verdict("conflicts", 0.9)]), name="there", coordinates="permille")
    there.place = "external"
    agent = Verifier(here, there)  # type: ignore[arg-type]
    info = asyncio.run(play(env, agent, {"query_id": env.query_ids[0]}))
    record = agent.record()
    assert record is not None
    assert (info["outcome"], len(here.requests), len(there.requests)) == ("scored", 1, 3)
    assert facts(there.requests[0])["coordinates"]["x_max"] == 1000
    assert record.endpoints == {"here": "local", "there": "external"}
    assert [request.endpoint for request in record.requests] == ["here", "there", "there", "there"]
    assert [request.turn for request in record.requests] == [0, 1, 2, 3]
    assert record.disclosure["there"].metadata == ("magnification", "target")
    assert record.disclosure["there"].tissue_share == {"2.5": pytest.approx(0.75, abs=0.01)}
    assert record.disclosure["here"].tissue_share == {"1.25": 1.0}
    sent = json.dumps([request["messages"] for request in there.requests])
    assert "search_box" not in sent
    assert "slide_size" not in sent
    assert all(request["images"].count == 1 for request in there.requests)
