"""The tile scorer: suspicions, pages, what is not answered. The model is a function here."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_stub import StubClient, answer, play
from tumour_builder import TILE_PX, build_tumour_cohort

from wsigym.agents import Answer
from wsigym.agents.seat import all_or_none
from wsigym.agents.tile_scorer import AT_ONCE, TileScorer
from wsigym.envs.exploration import ExplorationEnv
from wsigym.envs.verdicts import suspicion, verdict_of

Reply = Callable[[list[dict[str, Any]]], str | Answer]


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tumour_cohort(tmp_path_factory.mktemp("tumour"))


def episode(
    cohort: Path, reply: Reply, *, page: bool = False, page_size: int = 16, **arguments: Any
) -> tuple[dict[str, Any], StubClient, Any]:
    settings = {"tile_px": TILE_PX, "page_size": page_size, "budget": "K=1,1,1", **arguments}
    env = ExplorationEnv(cohort, **settings)
    client = StubClient(reply)
    agent = TileScorer(client, page=page)  # type: ignore[arg-type]
    info = asyncio.run(play(env, agent, {"slide_id": "positive"}))
    record = agent.record()
    assert record is not None
    return info, client, record


def first_page(info: dict[str, Any]) -> list[float]:
    scores: list[float] = info["steps"][0]["action"].tolist()
    return scores


def test_suspicions_are_of_verdict_and_score(cohort: Path) -> None:
    replies = iter(["Yes 0.8", "No 0.4", "Yes 0", "No 1"])
    info, client, record = episode(cohort, lambda messages: next(replies, "No 0"))
    scores = first_page(info)
    expected = [suspicion(yes=True, score=0.8), suspicion(yes=False, score=0.4), 0.5, suspicion(yes=False, score=1)]
    assert scores[:4] == pytest.approx(expected, abs=1e-6)
    assert [verdict_of(score).yes for score in scores[:4]] == [True, False, True, False]
    assert info["outcome"] == "scored"
    assert all(request["logprobs"] for request in client.requests)
    assert all(request["images"].count == 1 for request in client.requests)
    assert record.disclosure["stub"].metadata == ("magnification", "target")
    assert record.checkpoints == ()


def test_every_tile_is_asked_in_order_and_children_follow(cohort: Path) -> None:
    info, client, record = episode(cohort, lambda messages: "Yes 0.9")
    tiles = [len(step["info"]["tiles"]) for step in info["steps"]]
    shown = info["tiles_viewed"]
    assert len(client.requests) == len(record.requests) == shown
    assert tiles[-1] == 0
    turns = [request["turn"].number for request in client.requests]
    assert turns == [2 * number for number in range(shown)], "each tile has two numbers, the second for a reminder"
    assert set(record.disclosure["stub"].tissue_share) == {"2.5", "10", "40"}


def test_probabilities_count_where_the_server_gives_them(cohort: Path) -> None:
    shares = {"Yes": math.log(0.6), " yes": math.log(0.15), "No": math.log(0.25)}
    info, _, _ = episode(cohort, lambda messages: answer("Yes", logprobs=shares))
    assert first_page(info)[0] == pytest.approx(suspicion(yes=True, score=0.75))


def test_an_answer_that_cannot_be_read_is_sent_back_once(cohort: Path) -> None:
    def reply(messages: list[dict[str, Any]]) -> str:
        return "Yes 0.9" if len(messages) > 2 else "perhaps"

    info, client, record = episode(cohort, reply)
    assert info["outcome"] == "scored"
    numbers = sorted(request["turn"].number for request in client.requests)
    assert numbers == list(range(2 * info["tiles_viewed"]))
    assert record.checkpoints == ()
    reminder = next(request for request in client.requests if request["turn"].number == 1)
    assert "begin with Yes or No" in reminder["messages"][-1]["content"]


def test_a_tile_without_an_answer_is_a_no_and_counted(cohort: Path) -> None:
    first = iter(["hm", "I'm sorry, but I can't help with that."])

    def reply(messages: list[dict[str, Any]]) -> str:
        return "hm" if len(messages) > 2 else next(first, "No 0.2")

    info, _, record = episode(cohort, reply)
    tiles = info["steps"][0]["info"]["tiles_viewed"]
    assert first_page(info)[:2] == [0, 0]
    assert all(score > 0 for score in first_page(info)[2:tiles])
    assert record.checkpoints == ({"page": 0, "tiles": tiles, "unparsed": 1, "refused": 1},)
    assert info["outcome"] == "scored"


@pytest.mark.parametrize(
    ("reply", "outcome"), [("", "unparsed"), ("hm", "unparsed"), ("I'm sorry, but I can't help with that.", "refused")]
)
@pytest.mark.parametrize("page", [False, True])
def test_a_first_page_without_an_answer_ends_the_episode(cohort: Path, reply: str, outcome: str, page: bool) -> None:
    info, _, record = episode(cohort, lambda messages: reply, page=page)
    assert (info["outcome"], info["steps"]) == (outcome, [])
    assert outcome in record.end_reason


def test_sixteen_in_a_row_without_an_answer_end_it_later_too(cohort: Path) -> None:
    """With one tile a page the first page was answered; the rest is not."""
    heard: list[str] = []

    def reply(messages: list[dict[str, Any]]) -> str:
        heard.append("")
        return "Yes 0.9" if len(heard) == 1 else ""

    info, client, _ = episode(cohort, reply, page_size=1, skip_empty=False)
    assert (info["outcome"], len(info["steps"])) == ("unparsed", 16)
    assert len(client.requests) == 1 + 2 * 15 + 2


def test_an_answer_in_between_starts_the_count_anew(cohort: Path) -> None:
    tiles: list[str] = []

    def reply(messages: list[dict[str, Any]]) -> str:
        tiles.extend([""] if len(messages) == 2 else [])
        return "Yes 0.9" if len(tiles) in (1, 15) else ""

    info, _, _ = episode(cohort, reply, page_size=1, skip_empty=False)
    assert (info["outcome"], len(tiles)) == ("unparsed", 15 + 16)


def test_a_page_in_one_request(cohort: Path) -> None:
    def reply(messages: list[dict[str, Any]]) -> str:
        tiles = json.loads(messages[1]["content"][0]["text"].split("```json\n")[1].split("\n```")[0])["tiles"]
        return json.dumps({"tiles": [{"tile": n, "answer": "Yes", "score": n / 16} for n in range(1, tiles + 1)]})

    info, client, record = episode(cohort, reply, page=True)
    assert info["outcome"] == "scored"
    assert len(client.requests) == len(info["steps"])
    first = client.requests[0]
    tiles = first["images"].count
    assert first_page(info)[:tiles] == pytest.approx([0.5 + n / 32 for n in range(1, tiles + 1)])
    assert [part["text"] for part in first["messages"][1]["content"][1::2]] == [
        f"Tile {n}:" for n in range(1, tiles + 1)
    ]
    assert list(record.prompts) == ["tile-scorer-page-v1"]


def test_a_page_that_leaves_out_tiles_is_asked_for_them(cohort: Path) -> None:
    def reply(messages: list[dict[str, Any]]) -> str:
        if len(messages) == 2:
            return '{"tiles": [{"tile": 1, "answer": "Yes", "score": 0.8}]}'
        return '{"tiles": [{"tile": 1, "answer": "No", "score": 0.1}, {"tile": 2, "answer": "Yes", "score": 0.6}]}'

    info, client, record = episode(cohort, reply, page=True)
    assert first_page(info)[:3] == pytest.approx([0.9, 0.8, 0]), "what was said first stays"
    assert client.requests[1]["messages"][-1]["content"].startswith("That cannot be used: tiles 2, 3, ")
    assert record.checkpoints[0]["unparsed"] == client.requests[0]["images"].count - 2


def test_no_more_than_eight_requests_of_an_episode_are_in_flight(cohort: Path) -> None:
    class Slow(StubClient):
        now = most = 0

        async def ask(self, *arguments: Any, **rest: Any) -> Answer:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.002)
            self.now -= 1
            return await super().ask(*arguments, **rest)

    client = Slow(lambda messages: "No 0.1")
    env = ExplorationEnv(cohort, tile_px=TILE_PX, skip_empty=False)
    asyncio.run(play(env, TileScorer(client), {"slide_id": "positive"}))  # type: ignore[arg-type]
    assert client.most == AT_ONCE == 8
    assert [request["turn"].number for request in client.requests] == list(range(0, 32, 2))


def test_one_failure_stops_the_others() -> None:
    ended: list[str] = []

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ConnectionError("gone")

    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("stopped")

    with pytest.raises(ConnectionError, match="gone"):
        asyncio.run(all_or_none([waits(), fails(), waits(), waits()], at_once=2))
    assert set(ended) == {"stopped"}


def test_scores_are_the_actions_form(cohort: Path) -> None:
    info, _, _ = episode(cohort, lambda messages: "No 0.3")
    action = info["steps"][0]["action"]
    assert (action.dtype, action.shape) == (np.float32, (16,))
