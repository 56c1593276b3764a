"""`check_endpoint` against servers that can do all, little and nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web
from chat_server import Asked, ChatServer, chat_server, completion

from wsigym.agents.checking import Report, check_endpoint
from wsigym.agents.endpoints import Endpoint
from wsigym.errors import EndpointError

pytestmark = pytest.mark.network


def able(asked: Asked) -> Any:
    """A model that sees, calls tools and gives logprobs."""
    last = asked.body["messages"][-1]
    if asked.body.get("tools") and last["role"] == "user":
        return completion(None, tool_calls=[{"id": "1", "function": {"name": "get_image_info", "arguments": "{}"}}])
    answer = completion("Red." if isinstance(last["content"], list) else "ready")
    if asked.body.get("logprobs"):
        answer["choices"][0]["logprobs"] = {"content": [{"token": "Yes", "logprob": -0.1}]}
    return answer


def unable(asked: Asked) -> Any:
    """A text model whose server refuses all else, and counts nothing."""
    if asked.body.get("tools") or asked.body.get("logprobs") or isinstance(asked.body["messages"][-1]["content"], list):
        return web.json_response({"error": "not supported"}, status=400)
    return completion("ready") | {"usage": None}


def blind(asked: Asked) -> Any:
    """Takes everything, and looks at nothing."""
    return completion("A green one.")


def check(reply: Any, server_settings: dict[str, Any] | None = None, **settings: Any) -> tuple[Report, ChatServer]:
    with chat_server(reply, **(server_settings or {})) as server:
        endpoint = Endpoint.model_validate({"name": "e", "base_url": server.url, "model": "m", **settings})
        return asyncio.run(check_endpoint(endpoint)), server


def verdicts(report: Report) -> dict[str, str]:
    return {finding.what: finding.verdict for finding in report.findings}


def test_an_able_server() -> None:
    report, server = check(able, tool_images=True)
    assert verdicts(report) == dict.fromkeys(
        ("model list", "text", "usage", "image", "tool call", "image in a tool's message", "logprobs"), "yes"
    )
    assert report.usable
    assert report.place == "local"
    assert len(server.asked) == 5


def test_an_unable_server() -> None:
    report, _ = check(unable, {"models": None})
    assert verdicts(report) == {
        "model list": "no", "text": "yes", "usage": "no", "image": "no", "tool call": "no", "logprobs": "no"
    }  # fmt: skip
    assert not report.usable
    (tool,) = (finding for finding in report.findings if finding.what == "tool call")
    assert "set tools = false" in tool.told


def test_a_blind_server() -> None:
    report, _ = check(blind, {"models": ["other"]}, tools=False)
    assert verdicts(report) == {
        "model list": "unsure", "text": "yes", "usage": "yes", "image": "unsure", "tool call": "no", "logprobs": "no"
    }  # fmt: skip
    assert report.usable  # tools are not needed, and the image was taken
    assert "asked for the colour of a red half it says 'A green one.'" in report.findings[3].told


def test_a_server_that_says_nothing_at_all() -> None:
    with pytest.raises(EndpointError, match="failed"):
        check(lambda _: web.Response(status=500))
