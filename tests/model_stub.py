"""A model without a server: what agents ask of a client, answered by a function. For tests of the agents alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wsigym.agents import Answer, Endpoint, ImagesSent, RequestRecord, ToolCall, Turn

__all__ = ["StubClient", "answer", "called", "play"]

Reply = str | Answer
"""Text, or a whole answer."""


def called(name: str, number: int = 0, **arguments: Any) -> Answer:
    """An answer with one tool call."""
    return answer("", calls=(ToolCall(f"id-{number}", name, json.dumps(arguments)),))


def answer(
    text: str,
    *,
    calls: Sequence[ToolCall] = (),
    refusal: str | None = None,
    logprobs: Mapping[str, float] | None = None,
) -> Answer:
    record = RequestRecord(
        endpoint="stub", turn=0, sha256="0" * 64, tokens_in=1, tokens_out=1, seconds=0, finish_reason="stop"
    )
    return Answer(text, tuple(calls), refusal, "stop", logprobs, record)


class StubClient:
    """In the place of a `Client`: `reply(messages)` answers; `requests` holds what was asked, in order of asking."""

    place = "local"

    def __init__(self, reply: Callable[[list[dict[str, Any]]], Reply], **settings: Any) -> None:
        self.endpoint = Endpoint(**{"name": "stub", "base_url": "http://127.0.0.1:9/v1", "model": "stub", **settings})
        self._reply = reply
        self.requests: list[dict[str, Any]] = []

    async def ask(
        self, turn: Turn, messages: Sequence[Mapping[str, Any]], *, images: ImagesSent, **rest: Any
    ) -> Answer:
        json.dumps(messages, allow_nan=False)
        self.requests.append({"turn": turn, "messages": list(messages), "images": images, **rest})
        given = self._reply([dict(message) for message in messages])
        found = answer(given) if isinstance(given, str) else given
        record = found.request.model_copy(update={"turn": turn.number, "endpoint": self.endpoint.name})
        return Answer(
            found.text, found.tool_calls, found.refusal, found.finish_reason, found.first_token_logprobs, record
        )


async def play(
    env: Any, agent: Any, options: dict[str, Any] | None = None, seed: int = 0, source: Any = None
) -> dict[str, Any]:
    """One episode as the runner plays it: the last info, with the steps taken under "steps"."""
    from wsigym.envs.policy import NoAnswer

    observation, info = env.reset(seed=seed, options=options)
    agent.begin('{"item":"x"}')
    agent.see_images(source or env.unwrapped)
    agent.reset(observation, info)
    steps: list[dict[str, Any]] = []
    over = False
    while not over:
        try:
            action = await agent.act(observation, info)
        except NoAnswer as error:
            info = env.unwrapped.give_up(error.outcome) | {"reason": error.reason}
            break
        observation, _, over, _, info = env.step(action)
        steps.append({"action": action, "info": info, "remarks": dict(agent.remarks)})
    return info | {"steps": steps}
