"""The client against a real server: what it sends, what it makes of answers and failures, what it keeps and pays."""

from __future__ import annotations

import asyncio
import email.utils
import gzip
import json
import logging
import time
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Asked, ChatServer, chat_server, completion

from wsigym.agents.answers import ToolCall
from wsigym.agents.client import FORCED_TOKENS, STOP_THINKING, Answer, Client, ImagesSent, Turn
from wsigym.agents.costs import Purse
from wsigym.agents.endpoints import Endpoint
from wsigym.agents.records import RequestRecord
from wsigym.agents.request_log import RequestLog, read_requests
from wsigym.errors import CostLimitError, EndpointError, InvalidArgumentError, RunWriteError

pytestmark = pytest.mark.network

KEY = "sk-k3y" + "Zz9" * 8
EPISODE = Turn("episode", 0)
HELLO = [{"role": "user", "content": "hello"}]
PRICES = {"price_in": 2.0, "price_out": 8.0, "price_cached": 0.5}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
PICTURE = [
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4000}}]}
]
ONE_IMAGE = ImagesSent(1, 3000, 1000)


def endpoint_of(server: ChatServer, **settings: Any) -> Endpoint:
    return Endpoint.model_validate({"name": "e", "base_url": server.url, "model": "m", "retries": 1, **settings})


def with_client(endpoint: Endpoint, use: Callable[[Client], Coroutine[Any, Any, Any]], **settings: Any) -> Any:
    async def run() -> Any:
        client = Client(endpoint, **settings)
        try:
            return await use(client)
        finally:
            await client.close()

    return asyncio.run(run())


def ask(endpoint: Endpoint, turn: Turn = EPISODE, messages: Any = HELLO, how: Any = (), **settings: Any) -> Answer:
    """One question to a client of its own."""
    answer = with_client(endpoint, lambda client: client.ask(turn, messages, **dict(how)), **settings)
    assert isinstance(answer, Answer)
    return answer


def error_of(
    reply: Any, messages: Any = HELLO, how: Any = (), models: list[str] | None = None, **settings: Any
) -> EndpointError:
    """What the client says of a server that replies so."""
    with chat_server(lambda _: reply() if callable(reply) else reply, models=models) as server:
        with pytest.raises(EndpointError) as caught:
            ask(endpoint_of(server, **settings), messages=messages, how=how)
        assert str(caught.value).startswith(f"endpoint 'e' ({server.url}) ")
    return caught.value


def failing(status: int, message: str = "", **headers: str) -> Callable[[], web.Response]:
    body = json.dumps({"error": {"message": message}})
    return lambda: web.Response(
        status=status, text=body, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def in_turn(*replies: Any) -> Callable[[Asked], Any]:
    """Each reply once, the last for ever; a function is called."""

    def reply(asked: Asked) -> Any:
        chosen = replies[min(asked.number, len(replies) - 1)]
        return chosen() if callable(chosen) else chosen

    return reply


# What is sent


def test_one_request_and_its_record() -> None:
    with chat_server(lambda _: completion("Yes", tool_calls=None)) as server:
        how = {"prompt_sha256": "p", "images": ONE_IMAGE, "max_tokens": 7}
        answer = ask(endpoint_of(server, **PRICES), Turn("episode", 4), PICTURE, how)
    (asked,) = server.asked
    assert asked.body == {"model": "m", "messages": PICTURE, "max_tokens": 7, "temperature": 0.0}
    assert (answer.text, answer.tool_calls, answer.refusal, answer.finish_reason) == ("Yes", (), None, "stop")
    request = answer.request
    assert 0 < request.seconds < 5
    assert request.cost_usd == pytest.approx((60 * 2 + 40 * 0.5 + 10 * 8) / 1e6)
    expected = RequestRecord(
        endpoint="e",
        turn=4,
        sha256=request.sha256,
        tokens_in=100,
        tokens_out=10,
        tokens_cached=40,
        seconds=request.seconds,
        cost_usd=request.cost_usd,
        image_count=1,
        image_bytes=3000,
        image_pixels=1000,
        finish_reason="stop",
        prompt_sha256="p",
    )
    assert request == expected


def test_settings_decide_the_body() -> None:
    settings = {"temperature": "server", "token_limit": "max_completion_tokens", "extra_body": {"seed": 3}}
    with chat_server(lambda _: completion()) as server:
        ask(endpoint_of(server, **settings), how={"tools": TOOLS, "tool_choice": "auto", "logprobs": True})
    assert server.asked[0].body == {
        "model": "m",
        "messages": HELLO,
        "max_completion_tokens": 2048,
        "tools": TOOLS,
        "tool_choice": "auto",
        "logprobs": True,
        "top_logprobs": 20,
        "seed": 3,
    }


def test_no_setting_of_openai_goes_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "of-openai")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    with chat_server(lambda _: completion()) as server:
        ask(endpoint_of(server))
    assert "of-openai" not in str(server.asked[0].headers)


def test_a_local_server_is_reached_without_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with chat_server(lambda _: completion()) as server:
        assert ask(endpoint_of(server)).text == "hello"


# Answers of odd servers; the shapes themselves are tested with read_answer


def test_arguments_that_are_no_text() -> None:
    calls = [{"function": {"name": "f", "arguments": {"x": 1}}}]
    with chat_server(lambda _: completion(None, tool_calls=calls)) as server:
        assert ask(endpoint_of(server)).tool_calls == (ToolCall("call-0", "f", '{"x": 1}'),)


def test_an_uncounted_answer_costs_its_maximum() -> None:
    with chat_server(lambda _: completion() | {"usage": None}) as server:
        request = ask(endpoint_of(server, **PRICES)).request
        sent = len(json.dumps(server.asked[0].body, separators=(",", ":")))
    assert (request.tokens_in, request.tokens_out) == (None, None)
    assert request.cost_usd == pytest.approx(((sent + 64) * 2 + 2048 * 8) / 1e6)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ('{"choices": [', "an answer that is no JSON"),
        ("", "an empty answer"),
        (b"\xff\xfe\x00", "an answer that is no JSON"),
        ("[" * 100_000, "an answer that is no JSON"),
        ("[]", "an answer that is no JSON object"),
        ({"choices": []}, "an answer without choices"),
        ({"object": "chat.completion"}, "an answer without choices"),
        ({"choices": [{"message": None}]}, "a choice without a message"),
    ],
)
def test_a_broken_answer_is_asked_for_again(broken: Any, said: str) -> None:
    with chat_server(in_turn(broken, completion())) as server:
        assert ask(endpoint_of(server)).request.retries == 1
    assert f"gave {said}" in str(error_of(broken, retries=0))


def test_numbers_that_json_has_not(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    body = json.dumps(completion()).replace("100", "NaN")
    with chat_server(lambda _: body) as server, RequestLog(path) as log:
        assert ask(endpoint_of(server), log=log).request.tokens_in is None
    assert "NaN" not in path.read_text()  # what others read is JSON


def test_a_filtered_request_is_a_refusal(tmp_path: Path) -> None:
    reply = failing(400, "the content management policy forbids it")
    with RequestLog(tmp_path / "r.jsonl") as log, chat_server(lambda _: reply()) as server:
        for _ in range(2):
            answer = ask(endpoint_of(server, **PRICES), log=log)
            assert answer.refusal == "the content management policy forbids it"
            assert answer.request.cost_usd == 0
    assert len(server.asked) == 1
    assert answer.request.replayed


# Failures


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_passing_failures_are_tried_again(status: int) -> None:
    with chat_server(in_turn(failing(status, Retry_After="0"), completion())) as server:
        assert ask(endpoint_of(server)).request.retries == 1
    assert [len(server.asked), server.asked[0].body == server.asked[1].body] == [2, True]


def test_a_dropped_connection_is_tried_again() -> None:
    with chat_server(in_turn(None, completion())) as server:
        assert ask(endpoint_of(server)).request.retries == 1
    assert "cannot be reached: Server disconnected" in str(error_of(None, retries=0))


def test_a_late_answer_is_tried_again() -> None:
    with chat_server(in_turn(lambda: asyncio.sleep(5), completion())) as server:
        assert ask(endpoint_of(server, timeout_s=0.2)).request.retries == 1
    late = error_of(lambda: asyncio.sleep(5), retries=0, timeout_s=0.2)
    assert "gave no whole answer within 0.2 s" in str(late)


def test_a_trickling_answer_ends_too() -> None:
    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100):
            await response.write(b" ")
            await asyncio.sleep(0.05)
        return response

    began = time.monotonic()
    assert "gave no whole answer within 0.3 s" in str(error_of(lambda: trickle, retries=0, timeout_s=0.3))
    assert time.monotonic() - began < 3


def test_tries_are_counted_out() -> None:
    error = error_of(failing(503, "busy", Retry_After="0"), retries=3)
    assert "failed (HTTP 503): busy. Given up after 4 tries." in str(error)
    assert not error.lasting


@pytest.mark.parametrize("seconds", ["1", "date"])
def test_a_pause_is_kept_by_all_requests(seconds: str) -> None:
    """One 429 among eight requests; the other seven that come later wait as well."""

    def wait() -> str:
        # A date has whole seconds: this one is 1 to 2 s away.
        return "1" if seconds == "1" else email.utils.formatdate(time.time() + 2, usegmt=True)

    def reply(asked: Asked) -> Any:
        return failing(429, Retry_After=wait())() if asked.number == 0 else completion()

    async def use(client: Client) -> list[Answer]:
        first = asyncio.ensure_future(client.ask(Turn("e0", 0), HELLO))
        while not server.asked:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        others = [asyncio.ensure_future(client.ask(Turn(f"e{n}", 0), HELLO)) for n in range(1, 8)]
        return [await first, *await asyncio.gather(*others)]

    with chat_server(reply) as server:
        answers = with_client(endpoint_of(server, retries=0), use)
    assert [answer.request.retries for answer in answers] == [1] + [0] * 7
    assert min(asked.at for asked in server.asked[1:]) - server.asked[0].at > 0.9
    assert max(asked.at for asked in server.asked) - server.asked[0].at < 4


def test_a_pause_of_nothing_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that says "at once" for ever is asked more and more rarely, and not for ever."""
    monkeypatch.setattr("wsigym.agents.client.PATIENCE_S", 2.0)
    with chat_server(lambda _: failing(429, "busy", Retry_After="0")()) as server:
        with pytest.raises(EndpointError, match="HTTP 429"):
            ask(endpoint_of(server))
        assert len(server.asked) < 10


def test_an_answer_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wsigym.agents.client.LONGEST_ANSWER", 10_000)
    assert "gave more than 0.01 MB" in str(error_of(completion("a" * 20_000), retries=0))
    packed = gzip.compress(json.dumps(completion("a" * 20_000)).encode())
    reply = web.Response(body=packed, headers={"Content-Encoding": "gzip"})
    assert "gave an answer packed as gzip" in str(error_of(lambda: reply, retries=0))


@pytest.mark.parametrize(
    ("status", "said"),
    [(429, "allows no more requests for now (HTTP 429): tomorrow."), (503, "failed (HTTP 503): tomorrow.")],
)
def test_a_long_pause_is_not_waited_for(status: int, said: str) -> None:
    error = error_of(failing(status, "tomorrow", Retry_After="86400"))
    assert said in str(error)
    assert "It asked for a pause of 86400 s" in str(error)


@pytest.mark.parametrize(
    ("reply", "how", "said", "lasting"),
    [
        (failing(401, f"Incorrect API key provided: {KEY}"), {}, "asks for a key (HTTP 401). Name the variable", True),
        (failing(402, "pay"), {}, "the account has no money left (HTTP 402): pay.", True),
        (failing(429, "insufficient_quota"), {}, "the account has no money left (HTTP 429)", True),
        (failing(307, Location="http://other.example/v1"), {}, "sends requests on to http://other.example/v1", True),
        (failing(400, "maximum context length is 4096 tokens"), {}, "finds the request too long (HTTP 400)", False),
        (failing(500, "exceeds the available context size"), {}, "finds the request too long (HTTP 500)", False),
        (failing(413), {}, "finds the request too long (HTTP 413)", False),
        (failing(400, "not a multimodal model"), {"messages": PICTURE}, "does not take the image (HTTP 400)", False),
        (failing(500, "image input is not supported"), {"messages": PICTURE}, "does not take the image", False),
        (failing(400, "Invalid image"), {}, "refused the request (HTTP 400): Invalid image.", False),
        (failing(400, "m does not support tools"), {"how": {"tools": TOOLS}}, "Set tools = false", True),
        (failing(400, "use max_completion_tokens"), {}, 'Set token_limit = "max_completion_tokens"', True),
        (failing(400, "temperature must be 1"), {}, 'Set temperature = "server"', True),
        (failing(418, "teapot"), {}, "refused the request (HTTP 418): teapot.", False),
        (lambda: {"error": {"message": "no such thing", "code": 418}}, {}, "refused the request (HTTP 418)", False),
    ],
)  # fmt: skip
def test_each_failure_has_its_words(reply: Any, how: dict[str, Any], said: str, lasting: bool) -> None:
    images = {"images": ONE_IMAGE} if "messages" in how else {}
    error = error_of(reply, how.get("messages", HELLO), how.get("how", {}) | images)
    assert said in str(error)
    assert error.lasting == lasting
    assert not error.bad_input
    assert "tries" not in str(error)  # none of these is tried again


@pytest.mark.parametrize(
    ("models", "said"),
    [
        (["Qwen/Qwen3-VL-8B", "other"], "It lists: Qwen/Qwen3-VL-8B, other."),
        ([], "It lists no models."),
        (None, "It lists no models either: a base URL mostly ends in /v1."),
    ],
)
@pytest.mark.parametrize("reply", [failing(404), failing(400, "The model `m` does not exist.")])
def test_a_missing_model_is_told_with_what_there_is(reply: Any, models: list[str] | None, said: str) -> None:
    error = error_of(reply, models=models)
    assert "has no model 'm' (HTTP 40" in str(error)
    assert said in str(error)
    assert error.lasting


def test_nobody_there() -> None:
    with chat_server(lambda _: completion()) as server:
        pass
    with pytest.raises(EndpointError, match=r"cannot be reached: Connection refused. Is the server running"):
        ask(endpoint_of(server, retries=0))


# The key


@pytest.mark.parametrize("key", [KEY, KEY[3:]])
def test_the_key_is_sent_and_shown_nowhere(
    key: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("E_KEY", f" {key}\n")  # as files and shells leave it
    caplog.set_level(logging.DEBUG)
    told = []
    for reply in (
        failing(401, key),
        failing(400, f"Bearer {KEY} sk-{KEY[3:9]}***"),
        failing(418, key),
        failing(418, f"it began {key[:-4]}"),
        completion(f"You sent {key}."),
        completion(KEY[:9]),
    ):
        with chat_server(in_turn(reply)) as server, RequestLog(tmp_path / "r.jsonl") as log:
            endpoint = endpoint_of(server, api_key_env="E_KEY")
            try:
                told.append(repr(ask(endpoint, Turn("episode", len(told)), log=log).request))
            except EndpointError as error:
                told.append("".join(traceback.format_exception(error)))
            told.append(repr(endpoint))
        assert server.asked[0].headers["Authorization"] == f"Bearer {key}"
    assert "refused the key in $E_KEY (HTTP 401)" in told[0]
    everything = "\n".join([*told, caplog.text])
    for part in (KEY, KEY[3:], KEY[3:9]):
        assert part not in everything
    assert key not in (tmp_path / "r.jsonl").read_text()


def test_a_key_in_a_redirect_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E_KEY", KEY)
    error = error_of(failing(307, Location=f"http://other.example/?key={KEY}"), api_key_env="E_KEY")
    assert "sends requests on to http://other.example/?key=[key] (HTTP 307)" in str(error)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "reads its key from the environment variable E_KEY, which is not set"),
        ("  ", "reads its key from the environment variable E_KEY, which is not set"),
        (f"{KEY}\nX-Other: 1", "the environment variable E_KEY holds no key"),
        (f"{KEY}é", "the environment variable E_KEY holds no key"),
    ],
)
def test_a_key_that_is_none(value: str | None, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("E_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("E_KEY", value)
    endpoint = Endpoint(name="e", base_url="http://127.0.0.1:1/v1", model="m", api_key_env="E_KEY")
    with pytest.raises(InvalidArgumentError, match=said) as caught:
        Client(endpoint)
    assert KEY not in str(caught.value)


def test_the_scripted_one_needs_an_address() -> None:
    with pytest.raises(InvalidArgumentError, match=r"no address outside a run.*wsigym serve-scripted"):
        Client(Endpoint(name="scripted", model="scripted"))


# Forced answers


def test_a_thought_at_its_limit_is_ended(tmp_path: Path) -> None:
    replies = (completion(None, reasoning_content="so far", finish_reason="length"), completion("Yes", tool_calls=None))
    transcript = [{"role": "user", "content": "by reference"}]
    how = {"tools": TOOLS, "max_tokens": 5, "transcript": transcript}
    with chat_server(in_turn(*replies)) as server, RequestLog(tmp_path / "r.jsonl") as log:
        endpoint = endpoint_of(server, reasons=True, max_tokens=100, **PRICES)
        answer = ask(endpoint, how=how, log=log)
        again = ask(endpoint, how=how, log=log)
    first, second = (asked.body for asked in server.asked)
    more = [{"role": "assistant", "content": "so far"}, {"role": "user", "content": STOP_THINKING}]
    assert first["max_tokens"] == 100  # not 5: its thoughts count
    assert second == first | {"messages": HELLO + more, "max_tokens": FORCED_TOKENS}
    assert (answer.text, answer.request.forced, answer.request.finish_reason) == ("Yes", True, "stop")
    assert (answer.request.tokens_in, answer.request.tokens_out, answer.request.tokens_cached) == (200, 20, 80)
    assert answer.request.cost_usd == pytest.approx(2 * 220 / 1e6)
    assert again.request == answer.request.model_copy(update={"replayed": True})
    lines = list(read_requests(tmp_path / "r.jsonl"))
    assert [line["request"]["forced"] for line in lines] == [False, True]
    assert [line["transcript"] for line in lines] == [transcript, transcript + more]
    assert lines[1]["sha256"] == answer.request.sha256


def test_only_reasoning_models_are_forced() -> None:
    with chat_server(lambda _: completion("and so", finish_reason="length")) as server:
        answer = ask(endpoint_of(server))
    assert (answer.text, answer.finish_reason, answer.request.forced, len(server.asked)) == (
        "and so",
        "length",
        False,
        1,
    )


# Keeping and paying


def test_an_answer_is_paid_for_once_and_kept_for_its_episode(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with chat_server(lambda asked: completion(str(asked.number))) as server:
        endpoint = endpoint_of(server, **PRICES)
        with RequestLog(path) as log:
            first = ask(endpoint, Turn("seed 0", 0), log=log)
        with RequestLog(path) as log:
            spent = log.cost_usd
            purse = Purse(1.0, spent)
            again = ask(endpoint, Turn("seed 0", 0), log=log, purse=purse)
            assert purse.spent_usd == spent == first.request.cost_usd
            others = [
                ask(endpoint, Turn("seed 1", 0), log=log, purse=purse),
                ask(endpoint, Turn("seed 0", 1), log=log, purse=purse),
                ask(endpoint, Turn("seed 0", 0), PICTURE, log=log, purse=purse),
            ]
            assert purse.spent_usd == pytest.approx(log.cost_usd)
    assert again.request == first.request.model_copy(update={"replayed": True})
    assert again.text == first.text == "0"
    assert [other.text for other in others] == ["1", "2", "3"]


def test_the_limit_is_never_passed() -> None:
    """Thirty requests at once: each may cost 1,000 tokens and costs less, so that in time all are let through."""
    with chat_server(lambda _: completion()) as server:
        endpoint = endpoint_of(server, price_in=0, price_out=1000, max_tokens=1000)
        purse = Purse(3.5)  # three in flight at 1.00 each; each turns out at 0.01

        async def use(client: Client) -> list[Any]:
            asks = (client.ask(Turn(f"e{n}", 0), HELLO) for n in range(30))
            return await asyncio.gather(*asks, return_exceptions=True)

        answers = with_client(endpoint, use, purse=purse)
        assert len(server.asked) == sum(isinstance(answer, Answer) for answer in answers) == 30
        assert server.most_in_flight <= 3
        assert purse.spent_usd == pytest.approx(0.3)
        poor = Purse(0.99)
        with pytest.raises(CostLimitError, match=r"may cost up to 1\.0000 USD"):
            ask(endpoint, purse=poor)
        assert len(server.asked) == 30


def test_a_failed_request_is_not_billed() -> None:
    purse = Purse(1.0)
    with chat_server(lambda _: failing(418)()) as server, pytest.raises(EndpointError):
        ask(endpoint_of(server, **PRICES), purse=purse)
    assert (purse.spent_usd, purse.in_flight_usd) == (0, 0)


def test_a_limit_needs_a_price() -> None:
    endpoint = Endpoint(name="e", base_url="http://127.0.0.1:1/v1", model="m")
    with pytest.raises(
        InvalidArgumentError, match=r"--max-cost needs a price, and endpoint 'e' has none for model 'm'"
    ):
        Client(endpoint, purse=Purse(1.0))


def test_no_answer_comes_back_that_was_not_kept(tmp_path: Path) -> None:
    with chat_server(lambda _: completion()) as server:
        log = RequestLog(tmp_path / "r.jsonl")
        with log:
            pass
        purse = Purse(1.0)
        with pytest.raises(RunWriteError):
            ask(endpoint_of(server, **PRICES), log=log, purse=purse)
    assert purse.spent_usd > 0  # it was paid all the same


# Pace


def test_requests_are_in_flight_together() -> None:
    """Thirty-two seats, four requests each, to a server that takes 0.3 s: nearly all the time they all wait for it."""

    async def slow(asked: Asked) -> dict[str, Any]:
        await asyncio.sleep(0.3)
        return completion()

    async def use(client: Client) -> float:
        async def seat(number: int) -> None:
            for turn in range(4):
                await client.ask(Turn(f"e{number}", turn), HELLO)

        await client.ask(Turn("first", 0), HELLO)
        began = time.monotonic()
        await asyncio.gather(*map(seat, range(32)))
        return time.monotonic() - began

    with chat_server(slow) as server:
        took = with_client(endpoint_of(server), use)
    assert server.most_in_flight == 32
    assert took < 4 * 0.3 * 3  # one after the other would be 38 s


def test_requests_a_minute_are_held() -> None:
    async def use(client: Client) -> None:
        async with asyncio.timeout(1):
            await asyncio.gather(*(client.ask(Turn(f"e{n}", 0), HELLO) for n in range(4)))

    with chat_server(lambda _: completion()) as server:
        with pytest.raises(TimeoutError):
            with_client(endpoint_of(server, requests_per_minute=3), use)
        assert len(server.asked) == 3
        with pytest.raises(TimeoutError):  # 110 tokens are counted for each
            with_client(endpoint_of(server, tokens_per_minute=300), lambda client: in_a_row(client))
        assert len(server.asked) == 6


async def in_a_row(client: Client) -> None:
    async with asyncio.timeout(1):
        for turn in range(5):
            await client.ask(Turn("e", turn), HELLO)


def test_models() -> None:
    with chat_server(lambda _: completion(), models=["a", "b"]) as server:
        assert with_client(endpoint_of(server), lambda client: client.models()) == ["a", "b"]
        server.models = None
        with pytest.raises(EndpointError):
            with_client(endpoint_of(server), lambda client: client.models())
