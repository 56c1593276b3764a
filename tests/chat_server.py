"""A chat-completions server on 127.0.0.1 for tests: answers what a test says, and keeps what it was asked.

It runs in a thread of its own, so that both a client in the test's event loop and a command can talk to it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

__all__ = ["Asked", "ChatServer", "chat_server", "completion"]


@dataclass(frozen=True)
class Asked:
    """One request as it came: its number from 0, when, and all that was sent."""

    number: int
    at: float
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


Reply = Callable[[Asked], Any]
"""A dict for JSON, text or bytes for a body as it is, None to hang up, a web.Response, an awaitable of one of these, or
a function from the request to a response."""


@dataclass
class ChatServer:
    """`asked` and `most_in_flight` are of chat completions; `models` is what /v1/models lists, None for a 404."""

    reply: Reply
    models: list[str] | None = field(default_factory=lambda: ["m"])
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0

    async def chat(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(len(self.asked), time.monotonic(), request.path, dict(request.headers), await request.json())
        self.asked.append(asked)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            answer = self.reply(asked)
            if isinstance(answer, Awaitable):
                answer = await answer
        finally:
            self.in_flight -= 1
        if callable(answer):
            answer = await answer(request)
        if answer is None:  # hang up
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if isinstance(answer, dict | list):
            return web.json_response(answer)
        if isinstance(answer, str | bytes):
            body = answer.encode() if isinstance(answer, str) else answer
            return web.Response(body=body, content_type="application/json")
        assert isinstance(answer, web.StreamResponse)
        return answer

    async def list_models(self, request: web.Request) -> web.Response:
        if self.models is None:
            raise web.HTTPNotFound
        return web.json_response({"data": [{"id": name} for name in self.models]})


@contextmanager
def chat_server(reply: Reply, **settings: Any) -> Iterator[ChatServer]:
    """A running server; `reply` decides each answer."""
    server = ChatServer(reply, **settings)
    ready, end = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        app = web.Application(client_max_size=1 << 28)
        app.router.add_post("/v1/chat/completions", server.chat)
        app.router.add_get("/v1/models", server.list_models)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        ready.set()
        await end.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(10)
        loop.close()


def completion(text: str | None = "hello", **message: Any) -> dict[str, Any]:
    """An ordinary answer of 100 tokens in, of which 40 were cached, and 10 out."""
    finish_reason = message.pop("finish_reason", "stop")
    return {
        "choices": [
            {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text} | message}
        ],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 40},
        },
    }
