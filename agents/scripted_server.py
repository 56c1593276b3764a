"""A local HTTP server that speaks the chat-completions protocol, answers as the scripted model, and can misbehave.

It listens on 127.0.0.1 alone, fetches nothing, and keeps nothing but counts. `with ScriptedServer() as server:` runs it
in a thread with an event loop of its own; `server.base_url` is what a client is given.

Left out: streaming, n above 1, and whatever a client cannot tell from a model's temperature.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import math
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from aiohttp import web

from wsigym.errors import InvalidArgumentError, UnknownNameError

from .scripted_chat import Conversation, image_size
from .scripted_model import Reply, next_message
from .tools import GET_IMAGE_INFO

__all__ = ["MISBEHAVIOURS", "Misbehaviour", "ScriptedServer"]

MISBEHAVIOURS: Mapping[str, str] = {
    "late": "answers after some seconds",
    "429": "too many requests, with Retry-After",
    "500": "an internal error",
    "drop": "drops the connection without an answer",
    "malformed-body": "a response that is cut off, with status 200",
    "malformed-json": "tool arguments, or JSON in the text, that are cut off",
    "wrong-tool": "calls a tool that does not exist",
    "out-of-range": "boxes and scores beyond every range",
    "nan": "NaN in boxes and scores",
    "refusal": "refuses",
    "empty": "an empty answer",
    "never-finish": "calls get_image_info for ever",
    "endless-thought": "thinks until its tokens are spent",
}
"""What the server can do wrong. The last seven are the model's doing and come with status 200."""

CHARACTERS_PER_TOKEN = 4
"""Of English text, about; OpenAI's rule of thumb."""

IMAGE_PATCH_PX = 28
"""A token shows 28 x 28 pixels, as Qwen2-VL and Qwen2.5-VL count (14 px patches, merged two by two)."""

SHUTDOWN_S = 0.1
"""How long the end waits for requests in flight; aiohttp takes 0 for no limit."""

MAX_BODY_BYTES = 256 * 2**20
MAX_TOP_LOGPROBS = 20

REFUSAL = "I'm sorry, but I can't help with that."
THOUGHT = "Let me look at the overview once more. "
BEYOND = 1e9

ToolsTaken = Literal["yes", "ignore", "reject"]


@dataclass(frozen=True)
class Misbehaviour:
    """One kind from `MISBEHAVIOURS`: at a `rate` in 0..1 of the requests by the server's seed, or `every` nth one."""

    kind: str
    rate: float = 1.0
    every: int | None = None

    @classmethod
    def of(cls, kind: str, when: float | str = 1.0) -> Misbehaviour:
        """`when` is a rate, or "every:N". Raises `UnknownNameError` or `InvalidArgumentError`."""
        if kind not in MISBEHAVIOURS:
            raise UnknownNameError("misbehaviour", kind, MISBEHAVIOURS)
        text = str(when)
        head, colon, count = text.partition(":")
        if head == "every" and colon and count.isdecimal() and int(count) > 0:
            return cls(kind, every=int(count))
        try:
            rate = float(text)
        except ValueError:
            rate = math.nan
        if not 0 <= rate <= 1:
            raise InvalidArgumentError(
                f"misbehaviour {kind}={text}: a rate from 0 to 1 is needed, such as {kind}=0.1, or every nth request, "
                f"such as {kind}=every:5."
            )
        return cls(kind, rate)

    @classmethod
    def parse(cls, text: str) -> Misbehaviour:
        """Of "KIND" (always), "KIND=RATE" or "KIND=every:N"."""
        kind, equals, when = text.partition("=")
        return cls.of(kind.strip(), when.strip() if equals else 1.0)


class _RequestError(Exception):
    """A request that is answered with an error in OpenAI's shape."""

    def __init__(self, status: int, message: str, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.param = status, message, code, param

    def response(self) -> web.Response:
        kind = {429: "rate_limit_error", 500: "server_error"}.get(self.status, "invalid_request_error")
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return web.json_response({"error": error}, status=self.status)


class ScriptedServer:
    """The server, as a context manager. It takes no part of the process's signals and leaves nothing behind.

    Args:
        seed: of the model's letters and of which requests go wrong. The same requests go wrong in every run.
        misbehave: kinds with a rate ("429": 0.1) or "every:N"; of several that fall on a request the first is done.
        port: 0 takes a free one.
        model: the name that requests must ask for.
        api_key: where given, requests need it as their bearer token.
        tools: "yes"; "ignore" answers in text as if none were offered; "reject" answers 400.
        tool_images: whether images are taken in tool messages; else they are answered 400.
        logprobs: whether they are given; else the field is null, as on servers that do not know it.
        latency_s: of every answer, beside what it takes; `late_s` that of late ones.
        retry_after_s: what a 429 tells the client to wait.
        wire_log: JSON lines of the requests: {"sha256", "status", "misbehaviour", "body"}. `sha256` is the body's,
            `status` is null where the connection was dropped.

    `requests` counts chat requests; `answered` holds the sha256 of the body of each that got a whole answer with
    status 200, in order. Raises `InvalidArgumentError` on entering where the port is taken.
    """

    def __init__(
        self,
        seed: int = 0,
        misbehave: Mapping[str, float | str] | Sequence[Misbehaviour] = (),
        port: int = 0,
        model: str = "scripted",
        api_key: str | None = None,
        tools: ToolsTaken = "yes",
        tool_images: bool = True,
        logprobs: bool = True,
        latency_s: float = 0.0,
        late_s: float = 5.0,
        retry_after_s: float = 1.0,
        wire_log: str | Path | None = None,
    ) -> None:
        if isinstance(misbehave, Mapping):
            misbehave = [Misbehaviour.of(kind, when) for kind, when in misbehave.items()]
        self._misbehave = tuple(misbehave)
        for name, seconds in (("latency_s", latency_s), ("late_s", late_s), ("retry_after_s", retry_after_s)):
            if not (math.isfinite(seconds) and seconds >= 0):
                raise InvalidArgumentError(f"{name} is {seconds}; allowed is 0 or more seconds.")
        if not 0 <= port <= 65535:
            raise InvalidArgumentError(f"port is {port}; allowed is 0 (a free one) to 65535.")
        if tools not in ("yes", "ignore", "reject"):
            raise UnknownNameError("way to take tools", tools, ("yes", "ignore", "reject"))
        self.seed, self.port, self.model = seed, port, model
        self._api_key, self._tools, self._tool_images, self._logprobs = api_key, tools, tool_images, logprobs
        self._latency_s, self._late_s, self._retry_after_s = latency_s, late_s, retry_after_s
        self._wire_log = None if wire_log is None else Path(wire_log)
        self._log_lock = threading.Lock()
        self._asked: Counter[str] = Counter()
        self.requests = 0
        self.answered: list[str] = []
        self._thread: threading.Thread | None = None

    @property
    def base_url(self) -> str:
        """What a client is given. The port is known once the server runs."""
        return f"http://127.0.0.1:{self.port}/v1"

    # -- its life --------------------------------------------------------------------------------------------------

    def __enter__(self) -> ScriptedServer:
        started: list[BaseException | None] = []
        ready = threading.Event()
        self._thread = threading.Thread(
            target=self._in_thread, args=(started, ready), name="scripted-server", daemon=True
        )
        self._thread.start()
        ready.wait()
        if (error := started[0]) is not None:
            self._thread.join()
            raise error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _in_thread(self, started: list[BaseException | None], ready: threading.Event) -> None:
        try:
            asyncio.run(self._serve(started, ready))
        except BaseException as error:
            if ready.is_set():
                raise
            started.append(error)
            ready.set()

    async def _serve(self, started: list[BaseException | None], ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/v1/models/{model}", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_route("*", "/{path:.*}", self._no_such_path)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_S)
        await runner.setup()
        with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as self._pool:
            try:
                site = web.TCPSite(runner, "127.0.0.1", self.port)
                try:
                    await site.start()
                except OSError as error:
                    raise _port_error(self.port, error) from None
                self.port = int(runner.addresses[0][1])
                started.append(None)
                ready.set()
                await self._stop.wait()
            finally:
                await runner.cleanup()

    # -- paths -----------------------------------------------------------------------------------------------------

    async def _no_such_path(self, request: web.Request) -> web.Response:
        return _RequestError(404, f"Invalid URL ({request.method} {request.path})").response()

    async def _models(self, request: web.Request) -> web.Response:
        card = {"id": self.model, "object": "model", "created": 0, "owned_by": "wsigym"}
        try:
            self._check_key(request)
            if "model" in request.match_info:
                self._check_model(request.match_info["model"])
                return web.json_response(card)
        except _RequestError as error:
            return error.response()
        return web.json_response({"object": "list", "data": [card]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        raw = await request.read()
        sha256 = hashlib.sha256(raw).hexdigest()
        wrong = self._wrong(sha256)
        response = await self._response(request, raw, sha256, wrong)
        await self._log(raw, sha256, wrong, None if response is None else response.status)
        if response is None:
            assert request.transport is not None
            request.transport.abort()
            raise ConnectionResetError
        if response.status == 200 and wrong != "malformed-body":
            self.answered.append(sha256)
        return response

    async def _response(self, request: web.Request, raw: bytes, sha256: str, wrong: str | None) -> web.Response | None:
        """None: the connection is dropped."""
        try:
            self._check_key(request)
            body = self._checked(raw)
            await asyncio.sleep(self._latency_s + (self._late_s if wrong == "late" else 0))
            if wrong == "429":
                response = _RequestError(429, "Rate limit reached.", "rate_limit_exceeded").response()
                response.headers["Retry-After"] = f"{self._retry_after_s:g}"
                return response
            if wrong == "500":
                raise _RequestError(500, "The server had an error while processing your request.")
            if wrong == "drop":
                return None
            completion = await self._loop.run_in_executor(self._pool, self._completion, body, sha256, wrong)
        except _RequestError as error:
            return error.response()
        text = json.dumps(completion)
        if wrong == "malformed-body":
            text = text[: len(text) // 2]
        return web.Response(text=text, content_type="application/json")

    def _wrong(self, sha256: str) -> str | None:
        """What goes wrong with this request. A repeated one draws anew, so that a retry may go well."""
        self._asked[sha256] += 1
        for each in self._misbehave:
            if each.every is not None:
                if self.requests % each.every == 0:
                    return each.kind
                continue
            drawn = hashlib.sha256(f"{self.seed} {each.kind} {sha256} {self._asked[sha256]}".encode()).digest()
            if int.from_bytes(drawn[:8], "big") < each.rate * 2**64:
                return each.kind
        return None

    async def _log(self, raw: bytes, sha256: str, wrong: str | None, status: int | None) -> None:
        if self._wire_log is not None:
            await self._loop.run_in_executor(self._pool, self._write_log, raw, sha256, wrong, status)

    def _write_log(self, raw: bytes, sha256: str, wrong: str | None, status: int | None) -> None:
        assert self._wire_log is not None
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            body = raw.decode(errors="replace")
        line = json.dumps({"sha256": sha256, "status": status, "misbehaviour": wrong, "body": body})
        with self._log_lock, self._wire_log.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    # -- what is asked ---------------------------------------------------------------------------------------------

    def _check_key(self, request: web.Request) -> None:
        if self._api_key is not None and request.headers.get("Authorization") != f"Bearer {self._api_key}":
            raise _RequestError(401, "Incorrect API key provided.", "invalid_api_key")

    def _check_model(self, model: Any) -> None:
        if model != self.model:
            raise _RequestError(
                404, f"The model {model!r} does not exist; there is {self.model!r}.", "model_not_found", "model"
            )

    def _checked(self, raw: bytes) -> dict[str, Any]:
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            raise _RequestError(400, "The body of the request is not valid JSON.") from None
        if not isinstance(body, dict):
            raise _RequestError(400, "The body of the request must be a JSON object.")
        self._check_model(body.get("model"))
        messages = body.get("messages")
        if not (isinstance(messages, list) and messages and all(isinstance(each, dict) for each in messages)):
            raise _RequestError(400, "'messages' must be a list of at least one message.", param="messages")
        _check_roles(messages)
        if body.get("stream"):
            raise _RequestError(400, "This server does not stream; send stream=false.", param="stream")
        if body.get("n") not in (None, 1):
            raise _RequestError(400, "This server gives one choice; send n=1.", param="n")
        for name in ("max_tokens", "max_completion_tokens"):
            if body.get(name) is not None and not (type(body[name]) is int and body[name] >= 1):
                raise _RequestError(400, f"'{name}' must be a whole number of at least 1.", param=name)
        top = body.get("top_logprobs")
        if top is not None and not (body.get("logprobs") and type(top) is int and 0 <= top <= MAX_TOP_LOGPROBS):
            raise _RequestError(
                400, f"'top_logprobs' must be 0 to {MAX_TOP_LOGPROBS}, with logprobs=true.", param="top_logprobs"
            )
        self._check_tools(body)
        if not self._tool_images and any(each["role"] == "tool" and _has_image(each) for each in messages):
            raise _RequestError(400, "Messages of role 'tool' take text only.", param="messages")
        return body

    def _check_tools(self, body: dict[str, Any]) -> None:
        tools = body.get("tools")
        if not tools:
            return
        if self._tools == "reject":
            raise _RequestError(400, "This model does not support tools.", param="tools")
        names = [each.get("function", {}).get("name") for each in tools if isinstance(each, dict)]
        if not all(isinstance(name, str) and name for name in names) or len(names) < len(tools):
            raise _RequestError(400, "Each of 'tools' must be a function with a name.", param="tools")
        choice = body.get("tool_choice")
        if choice is None or choice in ("auto", "none", "required"):
            return
        if not (isinstance(choice, dict) and choice.get("function", {}).get("name") in names):
            raise _RequestError(400, "'tool_choice' names no function of 'tools'.", param="tool_choice")

    # -- what is answered ------------------------------------------------------------------------------------------

    def _completion(self, body: dict[str, Any], sha256: str, wrong: str | None) -> dict[str, Any]:
        """The completion object. Runs in a thread: images are decoded here."""
        asked = body if self._tools == "yes" else {**body, "tools": None}
        try:
            reply = next_message(asked, self.seed)
            conversation = Conversation.of(body["messages"])
            prompt_tokens = _prompt_tokens(body, conversation)
        except InvalidArgumentError as error:
            raise _RequestError(400, str(error), param="messages") from None
        if wrong == "endless-thought" and conversation.stopped:
            wrong = None
        message, finish = _message(_spoilt(reply, wrong), sha256, wrong)
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        if wrong == "endless-thought":
            message["content"] = THOUGHT * math.ceil((limit or 256) * CHARACTERS_PER_TOKEN / len(THOUGHT) + 1)
            limit = limit or 256
        if limit is not None and _cut(message, limit):
            finish = "length"
        completion_tokens = _tokens(_written(message))
        return {
            "id": f"chatcmpl-{sha256[:24]}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": self.model,
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "logprobs": self._token_logprobs(body, message, reply),
                    "finish_reason": finish,
                }
            ],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
            },
            "system_fingerprint": None,
        }

    def _token_logprobs(self, body: Mapping[str, Any], message: Mapping[str, Any], reply: Reply) -> Any:
        """Certain of every token but a Yes or No at the start."""
        if not (self._logprobs and body.get("logprobs") and message["content"]):
            return None
        top = body.get("top_logprobs") or 0
        tokens = [_token(part, {part: 1.0}, top) for part in re.findall(r"\s*\S+", message["content"])]
        if reply.yes is not None and tokens and tokens[0]["token"] in ("Yes", "No"):
            tokens[0] = _token(tokens[0]["token"], {"Yes": reply.yes, "No": 1 - reply.yes}, top)
        return {"content": tokens, "refusal": None}


def _port_error(port: int, error: OSError) -> InvalidArgumentError:
    if error.errno == errno.EADDRINUSE:
        return InvalidArgumentError(f"port {port} of 127.0.0.1 is in use; give another one, or 0 for one that is free.")
    return InvalidArgumentError(f"port {port} of 127.0.0.1 cannot be opened: {error.strerror or error}.")


def _check_roles(messages: Sequence[dict[str, Any]]) -> None:
    """Tool messages must answer a call of the assistant before them, and each call must be answered."""
    open_calls: set[str] = set()
    for index, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                raise _RequestError(
                    400, f"messages[{index}] of role 'tool' must answer a preceding tool call.", param="messages"
                )
            open_calls.discard(message["tool_call_id"])
            continue
        if role not in ("system", "developer", "user", "assistant"):
            raise _RequestError(400, f"messages[{index}] has the role {role!r}.", param="messages")
        if open_calls:
            raise _RequestError(
                400, f"messages[{index}]: tool calls before it have no answer: {sorted(open_calls)}.", param="messages"
            )
        open_calls = {str(call.get("id")) for call in message.get("tool_calls") or ()}


def _has_image(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(
        isinstance(part, dict) and part.get("type") == "image_url" for part in content
    )


def _spoilt(reply: Reply, wrong: str | None) -> Reply:
    """The reply with what goes wrong in it. A reply that has no tool or number to spoil stays as it is."""
    if wrong == "wrong-tool" and reply.call:
        return replace(reply, call=("zoom_in", reply.call[1]))
    if wrong == "wrong-tool" and reply.data and "tool" in reply.data:
        return replace(reply, data={**reply.data, "tool": "zoom_in"})
    if wrong == "never-finish" and reply.call:
        return replace(reply, call=(GET_IMAGE_INFO, {}))
    if wrong == "never-finish" and reply.data and "tool" in reply.data:
        return replace(reply, data={"tool": GET_IMAGE_INFO, "arguments": {}})
    if wrong in ("out-of-range", "nan"):
        number = BEYOND if wrong == "out-of-range" else math.nan
        text = re.sub(r"^(Yes|No) [\d.]+$", rf"\1 {number}", reply.text)
        call = reply.call and (reply.call[0], _renumbered(reply.call[1], number))
        return replace(reply, text=text, call=call, data=reply.data and _renumbered(reply.data, number))
    return reply


def _renumbered(value: Any, number: float) -> Any:
    """The same with every float and every number of a box replaced."""
    if isinstance(value, dict):
        return {key: _renumbered(each, number) for key, each in value.items() if key != "tile"} | (
            {"tile": value["tile"]} if "tile" in value else {}
        )
    if isinstance(value, list):
        return [_renumbered(each, number) for each in value]
    return number if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _message(reply: Reply, sha256: str, wrong: str | None) -> tuple[dict[str, Any], str]:
    """(the assistant's message, finish_reason)"""
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    if wrong == "refusal":
        return {**message, "refusal": REFUSAL}, "stop"
    if wrong == "empty":
        return {**message, "content": ""}, "stop"
    cut: Callable[[str], str] = (lambda text: text[: max(1, len(text) // 2)]) if wrong == "malformed-json" else str
    if reply.call is not None and wrong != "endless-thought":
        name, arguments = reply.call
        function = {"name": name, "arguments": cut(json.dumps(arguments))}
        call = {"id": f"call_{sha256[:24]}", "type": "function", "function": function}
        return {**message, "tool_calls": [call]}, "tool_calls"
    text = reply.text if reply.data is None else cut(json.dumps(reply.data))
    return {**message, "content": text}, "stop"


def _cut(message: dict[str, Any], limit: int) -> bool:
    """Cut what was written to `limit` tokens; whether anything had to be cut."""
    room = limit * CHARACTERS_PER_TOKEN
    if len(_written(message)) <= room:
        return False
    if "tool_calls" in message:
        function = message["tool_calls"][0]["function"]
        function["arguments"] = function["arguments"][: max(0, room - len(function["name"]))]
    for name in ("content", "refusal"):
        if message[name]:
            message[name] = message[name][:room]
    return True


def _written(message: Mapping[str, Any]) -> str:
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return "".join(
        (message["content"] or "", message["refusal"] or "", *(call["name"] + call["arguments"] for call in calls))
    )


def _tokens(text: str) -> int:
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def _prompt_tokens(body: Mapping[str, Any], conversation: Conversation) -> int:
    """Of the texts, calls and tools by their length, of the images by their pixels."""
    words = conversation.told + json.dumps(body.get("tools") or "")
    words += "".join(f"{call.name}{dict(call.arguments)}" for call in conversation.calls)
    pixels = 0
    for url in conversation.images:
        width, height = image_size(url)
        pixels += math.ceil(width / IMAGE_PATCH_PX) * math.ceil(height / IMAGE_PATCH_PX)
    return _tokens(words) + pixels + 4 * len(body["messages"])


def _token(text: str, probabilities: Mapping[str, float], top: int) -> dict[str, Any]:
    """A token with the likeliest `top` candidates in its place."""

    def entry(token: str) -> dict[str, Any]:
        logprob = math.log(max(probabilities[token], 1e-30))
        return {"token": token, "logprob": logprob, "bytes": list(token.encode())}

    ordered = sorted(probabilities, key=lambda token: -probabilities[token])
    return {**entry(text), "top_logprobs": [entry(token) for token in ordered[:top]]}
