"""The client: asks an endpoint, keeps the answer, pays for it.

One question is one call of `Client.ask`. In this order: the request log is asked for an answer that was paid for; the
purse puts the most that the request can cost aside; the pace lets it go; it is sent, again where the server fails;
what it did cost is paid; the answer is kept in the log; then it is returned. So no answer is acted on before it is
kept, and none is paid for twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wsigym.errors import EndpointError, InvalidArgumentError

from .answers import Answer, Reading, ToolCall, read_answer, refused_answer
from .costs import Purse, cost_usd, most_tokens_in
from .egress import Place, place_of
from .endpoints import Endpoint
from .failures import TryError, said_by, status_error
from .pacing import Pace
from .records import RequestRecord
from .request_log import RequestLog

__all__ = ["STOP_THINKING", "Answer", "Client", "ImagesSent", "ToolCall", "Turn"]

STOP_THINKING = (
    "Stop thinking now: the time for it is used up. Give your answer at once, in the form that was asked for, from "
    "what you have found so far."
)
"""What a reasoning model is told at its token limit, as Qwen3 ends thoughts with an early-stopping prompt (Qwen3's
documentation, "Thinking budget"). A chat server takes no text into the middle of a thought: it is its own message."""

FORCED_TOKENS = 512
"""What the answer after `STOP_THINKING` may have: the issue's, and enough for a tool call with its reason."""

FORCED_THOUGHT = 8000
"""Characters of the broken-off thought that go with it, counted from its end: some 2,000 tokens of context."""

LONGEST_PAUSE_S = 120.0
"""A server that asks for a longer pause is not waited for: the episode fails, and is played on resume."""

PATIENCE_S = 600.0
"""How long a request waits for its turn behind 429s in all."""

LONGEST_ANSWER = 32_000_000
"""Bytes: far more than any answer has, and far less than memory. A server may send without end, by fault or by will."""

KEY_PART = 8
"""Characters from a key's beginning or end that are hidden as the key is."""

TOP_LOGPROBS = 20
"""The most candidates that OpenAI's API and vLLM's default give."""


@dataclass(frozen=True)
class Turn:
    """Which question of which episode: the canonical JSON of the episode's key, and a count of its requests from 0."""

    episode: str
    number: int


@dataclass(frozen=True)
class ImagesSent:
    """The images in a request: how many, bytes as encoded (before base64), pixels; sums over all of its messages."""

    count: int = 0
    bytes: int = 0
    pixels: int = 0


@dataclass(frozen=True)
class _Request:
    """One request, ready to be sent: its body as bytes, and what is known of it beforehand."""

    turn: Turn
    payload: bytes
    sha256: str
    text_bytes: int
    messages: int
    max_tokens: int
    images: ImagesSent
    tools: Sequence[Mapping[str, Any]] | None
    transcript: Sequence[Mapping[str, Any]]
    prompt_sha256: str | None
    forced: bool


class Client:
    """Asks one endpoint. One a run, shared by its episodes, in one event loop.

    Raises `InvalidArgumentError` where the endpoint has no address, its key's variable is not set or holds no key, or
    where there is a `purse` and no price.
    """

    def __init__(self, endpoint: Endpoint, *, log: RequestLog | None = None, purse: Purse | None = None) -> None:
        try:
            import openai
        except ModuleNotFoundError as error:
            raise InvalidArgumentError(
                f"a model endpoint needs {error.name}, which is not installed: pip install 'wsigym[agents]'."
            ) from None
        if endpoint.base_url is None:
            raise InvalidArgumentError(
                f"endpoint {endpoint.name!r} has no address outside a run: start one with `wsigym serve-scripted` and "
                "give its address with --base-url."
            )
        if purse is not None and endpoint.price_in is None:
            raise InvalidArgumentError(
                f"--max-cost needs a price, and endpoint {endpoint.name!r} has none for model {endpoint.model!r}. Set "
                "price_in and price_out (USD per million tokens; 0 for a server of your own), or add it to [[prices]] "
                "in your endpoints file."
            )
        self.endpoint = endpoint
        self.place: Place = place_of(endpoint)
        self._log, self._purse = log, purse
        self._key = _key_of(endpoint)
        self._pace = Pace(endpoint.requests_per_minute, endpoint.tokens_per_minute)
        # What is addressed to a local server goes there: through no proxy, and to no address that it sends on to.
        direct: Any = {"http://": None, "https://": None} if self.place == "local" else None
        self._openai = openai.AsyncOpenAI(
            base_url=endpoint.base_url,
            # Never None, with which the key of OPENAI_API_KEY would go to whatever server this is.
            api_key=self._key or "none",
            timeout=endpoint.timeout_s,
            # Tries are counted here: all requests share a pause that the server asks for; a broken body counts too.
            max_retries=0,
            # Unpacked answers: a few packed bytes may be any amount of memory.
            default_headers={"Accept-Encoding": "identity"},
            http_client=openai.DefaultAsyncHttpxClient(
                follow_redirects=False,
                mounts=direct,
                timeout=endpoint.timeout_s,
                event_hooks={"response": [self._limit]},
            ),
        )
        if endpoint.host != "api.openai.com":  # read from the environment, and not for others
            self._openai.organization = self._openai.project = None

    async def ask(
        self,
        turn: Turn,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: str | Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        logprobs: bool = False,
        transcript: Sequence[Mapping[str, Any]] = (),
        images: ImagesSent = ImagesSent(),
        prompt_sha256: str | None = None,
    ) -> Answer:
        """One answer to `messages`, in the wire form of OpenAI's chat completions, images as data URLs.

        `max_tokens` lowers the endpoint's; a reasoning model, which counts its thoughts, keeps the endpoint's.
        `transcript` are the turn's new messages with images by reference, for the log.

        Raises `EndpointError` where the server gives no answer, `CostLimitError` where it could cost too much, and
        `RunWriteError` where the answer cannot be kept. No error's text holds the key.
        """
        endpoint = self.endpoint
        limit = endpoint.max_tokens
        if max_tokens is not None and not endpoint.reasons:
            limit = min(limit, max_tokens)
        body: dict[str, Any] = {"model": endpoint.model, "messages": list(messages), endpoint.token_limit: limit}
        if endpoint.temperature != "server":
            body["temperature"] = endpoint.temperature
        if tools:
            body["tools"] = list(tools)
        if tool_choice is not None:
            body["tool_choice"] = tool_choice
        if logprobs:
            body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        body |= endpoint.extra_body

        def request(forced: bool, told: Sequence[Mapping[str, Any]]) -> _Request:
            return _packed(turn, body, int(body[endpoint.token_limit]), images, tools, told, prompt_sha256, forced)

        reading, record = await self._answer(request(False, transcript))
        if endpoint.reasons and reading.finish_reason == "length":
            more = _stop_thinking(reading)
            body["messages"] = [*messages, *more]
            body[endpoint.token_limit] = FORCED_TOKENS
            reading, second = await self._answer(request(True, [*transcript, *more]))
            record = _both(record, second)
        return Answer(
            reading.text,
            reading.tool_calls,
            reading.refusal,
            reading.finish_reason,
            reading.first_token_logprobs if logprobs else None,
            record,
        )

    async def models(self) -> list[str]:
        """The models that the server lists, in its order; none where it lists none. Raises `EndpointError`."""
        try:
            async with asyncio.timeout(min(self.endpoint.timeout_s, 10.0)):
                listed = json.loads(await self._openai.get("/models", cast_to=bytes))
            return [str(model["id"]) for model in listed["data"]]
        except (ValueError, TypeError, KeyError):
            return []
        except Exception as error:
            raise EndpointError(str(self._error_of(error, images=0, tools=False))) from None

    async def close(self) -> None:
        """Let the connections go."""
        await self._openai.close()

    async def _answer(self, request: _Request) -> tuple[Reading, RequestRecord]:
        """From the log, or from the server and into the log."""
        turn = request.turn
        if self._log is not None:
            kept = self._log.find(turn.episode, turn.number, request.sha256)
            if kept is not None:
                return read_answer(kept[0]), kept[1]
        most_in = most_tokens_in(self.endpoint, request.text_bytes, request.messages, request.images.count)
        if self._purse is None:
            raw, reading, record = await self._exchange(request, most_in)
        else:
            async with self._purse.reserve(cost_usd(self.endpoint, most_in, request.max_tokens) or 0.0) as reserved:
                raw, reading, record = await self._exchange(request, most_in)
                reserved.settle(record.cost_usd)
        if self._log is not None:
            self._log.append(
                turn.episode,
                turn.number,
                request.sha256,
                answer=raw,
                request=record,
                tools=request.tools,
                transcript=request.transcript,
            )
        return reading, record

    async def _exchange(self, request: _Request, most_in: int) -> tuple[dict[str, Any], Reading, RequestRecord]:
        """Send until there is an answer, and say what came of it."""
        # Four bytes a token in English text, and Qwen-VL's 28 x 28 px a token in images: a guess, corrected below.
        guess = request.text_bytes // 4 + request.images.pixels // 784
        tries, failures, limited_s, began = 0, 0, 0.0, 0.0
        while True:
            sent = await self._pace.go(guess)
            began = began or time.perf_counter()
            tries += 1
            try:
                raw = await self._send(request)
                reading = read_answer(raw)
                break
            except TryError as failure:
                if failure.refusal is not None:
                    raw = refused_answer(failure.refusal)
                    reading = read_answer(raw)
                    break
                failures += not failure.limited
                wait_s = _backoff(tries) if failure.wait_s is None else failure.wait_s
                if failure.limited:  # "at once", said again and again, would be asked for ever
                    wait_s = max(wait_s, _backoff(tries - 3))
                limited_s += wait_s if failure.limited else 0.0
                if not failure.again or failures > self.endpoint.retries:
                    raise await self._given_up(failure, tries) from None
                if wait_s > LONGEST_PAUSE_S or limited_s > PATIENCE_S:
                    raise EndpointError(
                        f"{failure} It asked for a pause of {wait_s:.0f} s, after {tries} tries."
                    ) from None
                if failure.limited or failure.wait_s is not None:
                    self._pace.pause(wait_s)
                else:
                    await asyncio.sleep(wait_s)
            except ValueError as error:
                failures += 1
                if failures > self.endpoint.retries:
                    raise await self._given_up(TryError(f"{self._where} gave {error}.", again=True), tries) from None
                await asyncio.sleep(_backoff(tries))
        seconds = time.perf_counter() - began
        counted = [count for count in (reading.tokens_in, reading.tokens_out) if count is not None]
        sent.tokens = sum(counted) or guess
        record = RequestRecord(
            endpoint=self.endpoint.name,
            turn=request.turn.number,
            sha256=request.sha256,
            tokens_in=reading.tokens_in,
            tokens_out=reading.tokens_out,
            tokens_cached=reading.tokens_cached,
            seconds=seconds,
            retries=tries - 1,
            cost_usd=cost_usd(
                self.endpoint,
                most_in if reading.tokens_in is None else reading.tokens_in,
                request.max_tokens if reading.tokens_out is None else reading.tokens_out,
                reading.tokens_cached or 0,
            ),
            image_count=request.images.count,
            image_bytes=request.images.bytes,
            image_pixels=request.images.pixels,
            forced=request.forced,
            finish_reason=reading.finish_reason,
            prompt_sha256=request.prompt_sha256,
        )
        return raw, reading, record

    async def _limit(self, response: Any) -> None:
        """Before a body is read: none that is packed, and none without end."""
        packed = response.headers.get("content-encoding", "identity").strip().lower()
        if packed not in ("", "identity"):
            raise TryError(f"{self._where} gave an answer packed as {packed[:20]}, which was not asked for.")
        response.stream = _limited(response.stream, f"{self._where} gave more than {LONGEST_ANSWER / 1e6:g} MB.")

    async def _send(self, request: _Request) -> Any:
        """One try. The server's JSON, of whatever shape; raises `TryError`, and `ValueError` where it is no JSON."""
        try:
            # Beside the client's own timeout, which is for each read: a server that trickles would never end.
            async with asyncio.timeout(self.endpoint.timeout_s):
                content = await self._openai.post("/chat/completions", cast_to=bytes, content=request.payload)
        except Exception as error:
            raise self._error_of(error, images=request.images.count, tools=bool(request.tools)) from None
        if self._key and len(self._key) > KEY_PART:  # a shorter one may be a word of the answer, and is no secret
            content = content.replace(self._key.encode(), b"[key]")
        try:
            # NaN and Infinity are no JSON, and yet some servers write them.
            raw = json.loads(content, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            raise ValueError("an answer that is no JSON" if content.strip() else "an empty answer") from None
        if isinstance(raw, dict) and raw.get("error") and not raw.get("choices"):
            # Some gateways answer 200, and put the status that they mean inside.
            code = raw["error"].get("code") if isinstance(raw["error"], dict) else None
            said = self._redacted(said_by(json.dumps(raw)))
            status = code if isinstance(code, int) and 300 <= code < 600 else 500
            raise status_error(self.endpoint, status, said, {}, images=request.images.count, tools=bool(request.tools))
        return raw

    def _error_of(self, error: Exception, *, images: int, tools: bool) -> TryError:
        """What an exception of the openai client means. Anything else is raised: it is a fault of this program."""
        import openai

        if isinstance(error, TimeoutError | openai.APITimeoutError):
            return TryError(
                f"{self._where} gave no whole answer within {self.endpoint.timeout_s:g} s (timeout_s).", again=True
            )
        if isinstance(error, openai.APIStatusError):
            said = self._redacted(said_by(error.response.text))
            headers = {name: self._redacted(value) for name, value in error.response.headers.items()}
            return status_error(self.endpoint, error.status_code, said, headers, images=images, tools=tools)
        if isinstance(error, openai.APIConnectionError):
            if isinstance(error.__cause__, TryError):  # of `_limit`, which the client of openai wraps
                return error.__cause__
            cause = self._redacted(_cause_of(error))
            return TryError(
                f"{self._where} cannot be reached: {cause}. Is the server running, and its address right?", again=True
            )
        raise error

    async def _given_up(self, failure: TryError, tries: int) -> EndpointError:
        text = str(failure)
        if failure.no_model:
            try:
                listed = await self.models()
                text += f" It lists: {', '.join(listed[:20])}." if listed else " It lists no models."
            except EndpointError:
                text += " It lists no models either: a base URL mostly ends in /v1."
        return EndpointError(f"{text} Given up after {tries} tries." if tries > 1 else text, lasting=failure.lasting)

    @property
    def _where(self) -> str:
        return f"endpoint {self.endpoint.name!r} ({self.endpoint.base_url})"

    def _redacted(self, text: str) -> str:
        """Without the key, and without anything that is shown as one, whole or in part."""
        if self._key:
            text = text.replace(self._key, "[key]")
            for length in range(len(self._key) - 1, KEY_PART - 1, -1):
                text = text.replace(self._key[:length], "[key]").replace(self._key[-length:], "[key]")
        return re.sub(r"(?i)\bbearer\s+\S+|\b(?:sk|key|hf|gsk|xai)-[\w*.-]{6,}", "[key]", text)


def _limited(stream: Any, said: str) -> Any:
    """The stream of an answer, which ends with a `TryError` of these words after `LONGEST_ANSWER` bytes."""
    kind: Any = type(stream)  # of httpx or of its successor, whichever the client of openai is built on

    class Limited(kind):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

        async def __aiter__(self) -> AsyncIterator[bytes]:
            had = 0
            async for chunk in stream:
                had += len(chunk)
                if had > LONGEST_ANSWER:
                    raise TryError(said)
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    return Limited()


def _key_of(endpoint: Endpoint) -> str | None:
    """The key from the environment; None where the endpoint names no variable."""
    if endpoint.api_key_env is None:
        return None
    key = os.environ.get(endpoint.api_key_env, "").strip()
    if not key:
        raise InvalidArgumentError(
            f"endpoint {endpoint.name!r} reads its key from the environment variable {endpoint.api_key_env}, which is "
            "not set. Set it, or drop api_key_env where the server asks for no key."
        )
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        raise InvalidArgumentError(
            f"the environment variable {endpoint.api_key_env} holds no key: there are spaces, line ends or letters "
            "beyond ASCII in it."
        )
    return key


def _cause_of(error: BaseException) -> str:
    """The system's words at the bottom of what the layers between made of them."""
    said = str(error)
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else cause
        said = str(error) or said
        if isinstance(error, OSError) and error.errno:  # negative: of the resolver, which has words of its own
            said = os.strerror(error.errno) if error.errno > 0 else str(error.strerror)
    return said


def _packed(
    turn: Turn,
    body: Mapping[str, Any],
    max_tokens: int,
    images: ImagesSent,
    tools: Sequence[Mapping[str, Any]] | None,
    transcript: Sequence[Mapping[str, Any]],
    prompt_sha256: str | None,
    forced: bool,
) -> _Request:
    """The body as bytes, once: they are hashed, measured, and sent as they are at each try."""
    payload = json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
    messages = body["messages"]
    text_bytes = len(payload) - sum(map(_image_bytes, messages))
    sha256 = hashlib.sha256(payload).hexdigest()
    return _Request(
        turn, payload, sha256, text_bytes, len(messages), max_tokens, images, tools, transcript, prompt_sha256, forced
    )


def _image_bytes(message: Mapping[str, Any]) -> int:
    """Bytes that a message's images take in the body."""
    content = message.get("content")
    if not isinstance(content, list):
        return 0
    return sum(len(part["image_url"]["url"]) for part in content if part.get("type") == "image_url")


def _stop_thinking(reading: Reading) -> list[dict[str, str]]:
    """The messages that end a broken-off thought: its end as the model's own words, and the sentence."""
    thought = (reading.thought or reading.text)[-FORCED_THOUGHT:] or "(The thought was cut off.)"
    return [{"role": "assistant", "content": thought}, {"role": "user", "content": STOP_THINKING}]


def _both(first: RequestRecord, second: RequestRecord) -> RequestRecord:
    """One record of the two requests that a forced answer took."""

    def total(name: str) -> Any:
        values = (getattr(first, name), getattr(second, name))
        return None if None in values else sum(values)

    names = ["tokens_in", "tokens_out", "tokens_cached", "seconds", "retries", "cost_usd"]
    names += ["image_count", "image_bytes", "image_pixels"]
    return second.model_copy(update={name: total(name) for name in names})


def _backoff(tries: int) -> float:
    """Seconds before the next try: 0.5, 1, 2 ... up to 8, each shortened at random by up to a quarter (as openai's)."""
    return float(min(0.5 * 2 ** (tries - 1), 8.0) * (1 - 0.25 * random.random()))
