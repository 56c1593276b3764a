"""The scripted server over real HTTP: the protocol, each way to misbehave, and its life as a process."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import math
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from PIL import Image

from wsigym.agents.client import STOP_THINKING
from wsigym.agents.scripted_server import MISBEHAVIOURS, Misbehaviour, ScriptedServer
from wsigym.agents.tools import TOOLS, must_call
from wsigym.cli.serve import KINDS
from wsigym.errors import InvalidArgumentError, UnknownNameError

pytestmark = pytest.mark.network


def picture(px: int = 56, colour: tuple[int, int, int] = (80, 50, 130)) -> str:
    encoded = io.BytesIO()
    Image.fromarray(np.full((px, px, 3), colour, np.uint8)).save(encoded, "PNG")
    return "data:image/png;base64," + base64.b64encode(encoded.getvalue()).decode()


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


FACTS = {
    "mpp": 0.25,
    "search_box": [0, 0, 4000, 4000],
    "magnification": 10,
    "rois_left": 4,
    "coordinates": {"convention": "unit", "x_min": 0, "y_min": 0, "x_max": 1, "y_max": 1},
}


def body(content: Any = "hello", **more: Any) -> dict[str, Any]:
    return {"model": "scripted", "messages": [{"role": "user", "content": content}], **more}


def looking(**more: Any) -> dict[str, Any]:
    """A request that is answered with extract_roi."""
    return body([{"type": "text", "text": json.dumps(FACTS)}, image(picture())], tools=list(TOOLS), **more)


def tile(**more: Any) -> dict[str, Any]:
    words = 'Request: score tile\n{"target": "tumour", "magnification": 10}'
    return body([{"type": "text", "text": words}, image(picture())], **more)


class Got:
    def __init__(self, status: int, headers: Any, text: str) -> None:
        self.status, self.headers, self.text = status, headers, text

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def message(self) -> Any:
        return self.json["choices"][0]["message"]


def ask(server: ScriptedServer, *bodies: Any, path: str = "/chat/completions", method: str = "POST", **how: Any) -> Any:
    """The answer to one request, or the list of those to several that are sent at once."""

    async def one(session: aiohttp.ClientSession, content: Any) -> Got:
        data = content if isinstance(content, (bytes, type(None))) else json.dumps(content)
        async with session.request(method, server.base_url + path, data=data, **how) as response:
            return Got(response.status, response.headers, await response.text())

    async def all_of_them() -> list[Got]:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            return await asyncio.gather(*(one(session, content) for content in bodies or (None,)))

    got = asyncio.run(all_of_them())
    return got if len(bodies) > 1 else got[0]


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


# -- the protocol ----------------------------------------------------------------------------------------------------


def test_a_completion_has_every_field_of_the_protocol(server: ScriptedServer) -> None:
    got = ask(server, body())
    assert got.status == 200
    completion = got.json
    assert completion["id"].startswith("chatcmpl-")
    assert completion["object"] == "chat.completion"
    assert abs(completion["created"] - time.time()) < 60
    assert completion["model"] == "scripted"
    (choice,) = completion["choices"]
    assert choice["index"] == 0
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["content"]
    usage = completion["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_tool_calls_have_ids_and_arguments_as_text(server: ScriptedServer) -> None:
    got = ask(server, looking())
    assert got.json["choices"][0]["finish_reason"] == "tool_calls"
    assert got.message["content"] is None
    (call,) = got.message["tool_calls"]
    assert call["id"].startswith("call_")
    assert call["type"] == "function"
    assert call["function"]["name"] == "extract_roi"
    assert set(json.loads(call["function"]["arguments"])) == {"x", "y", "w", "h", "reason"}


def test_the_openai_client_reads_it(server: ScriptedServer) -> None:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["scripted"]
        completion = client.chat.completions.create(**tile(logprobs=True, top_logprobs=5))
        assert completion.choices[0].message.content == "Yes"
        assert completion.choices[0].logprobs.content[0].token == "Yes"
        with pytest.raises(openai.NotFoundError, match="does not exist"):
            client.chat.completions.create(**{**body(), "model": "gpt"})


def test_images_count_as_tokens_by_their_pixels(server: ScriptedServer) -> None:
    small, large = (ask(server, body([image(picture(px))])).json["usage"]["prompt_tokens"] for px in (28, 280))
    assert large - small == 99


def test_max_tokens_cut_the_text_and_the_calls(server: ScriptedServer) -> None:
    got = ask(server, body(max_tokens=2))
    assert got.json["choices"][0]["finish_reason"] == "length"
    assert len(got.message["content"]) == 8
    assert got.json["usage"]["completion_tokens"] == 2
    got = ask(server, looking(max_completion_tokens=8))
    assert got.json["choices"][0]["finish_reason"] == "length"
    with pytest.raises(json.JSONDecodeError):
        json.loads(got.message["tool_calls"][0]["function"]["arguments"])


def test_logprobs_of_yes_and_no_add_up(server: ScriptedServer) -> None:
    got = ask(server, tile(logprobs=True, top_logprobs=5))
    first = got.json["choices"][0]["logprobs"]["content"][0]
    assert first["token"] == "Yes"
    assert {each["token"] for each in first["top_logprobs"]} == {"Yes", "No"}
    assert sum(math.exp(each["logprob"]) for each in first["top_logprobs"]) == pytest.approx(1)
    assert ask(server, tile()).json["choices"][0]["logprobs"] is None
    with ScriptedServer(logprobs=False) as without:
        assert ask(without, tile(logprobs=True)).json["choices"][0]["logprobs"] is None


TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


@pytest.mark.parametrize(
    ("sent", "status", "told"),
    [
        (b"{", 400, "JSON"),
        (b"[1]", 400, "object"),
        (b"[" * 100_000, 400, "JSON"),
        ({**body(), "model": "gpt-5"}, 404, "gpt-5"),
        ({"model": "scripted"}, 400, "messages"),
        ({"model": "scripted", "messages": []}, 400, "messages"),
        ({"model": "scripted", "messages": ["hello"]}, 400, "messages"),
        ({"model": "scripted", "messages": [{"role": "king", "content": "x"}]}, 400, "king"),
        ({"model": "scripted", "messages": [{"role": "tool", "tool_call_id": "x", "content": "x"}]}, 400, "preceding"),
        (body([{"type": "video"}]), 400, "video"),
        (body([image("http://127.0.0.1/x.png")]), 400, "data URL"),
        (body([image("data:image/png;base64,AAAA")]), 400, "decoded"),
        (body(stream=True), 400, "stream"),
        (body(n=2), 400, "n=1"),
        (body(max_tokens=0), 400, "max_tokens"),
        (body(top_logprobs=3), 400, "logprobs"),
        (body(logprobs=True, top_logprobs=21), 400, "20"),
        (body(tools=[{"type": "function"}]), 400, "tools"),
        (body(tools=["f"]), 400, "tools"),
        (body(tools=[TOOL], tool_choice=must_call("g")), 400, "tool_choice"),
    ],
)
def test_bad_requests_are_answered_in_the_shape_of_the_protocol(
    server: ScriptedServer, sent: Any, status: int, told: str
) -> None:
    got = ask(server, sent)
    assert got.status == status
    assert set(got.json["error"]) == {"message", "type", "param", "code"}
    assert told in got.json["error"]["message"]


def test_a_call_without_an_answer_is_refused(server: ScriptedServer) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "user", "content": "well?"}]
    assert ask(server, {"model": "scripted", "messages": messages}).status == 400


def test_models_and_wrong_paths(server: ScriptedServer) -> None:
    listed = ask(server, path="/models", method="GET").json
    assert [each["id"] for each in listed["data"]] == ["scripted"]
    assert ask(server, path="/models/scripted", method="GET").json["object"] == "model"
    assert ask(server, path="/models/gpt", method="GET").status == 404
    wrong = ask(server, body(), path="/completions")
    assert wrong.status == 404
    assert "/v1/completions" in wrong.json["error"]["message"]


def test_a_key_is_asked_for() -> None:
    with ScriptedServer(api_key="secret") as server:
        assert ask(server, body()).status == 401
        assert ask(server, body(), headers={"Authorization": "Bearer other"}).status == 401
        assert ask(server, path="/models", method="GET").status == 401
        assert ask(server, body(), headers={"Authorization": "Bearer secret"}).status == 200


def test_servers_without_tools_or_without_images_in_tool_messages() -> None:
    with ScriptedServer(tools="reject") as server:
        assert ask(server, looking()).status == 400
    with ScriptedServer(tools="ignore") as server:
        assert "tool_calls" not in ask(server, looking()).message
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": [image(picture())]},
    ]
    for takes, status in ((True, 200), (False, 400)):
        with ScriptedServer(tool_images=takes) as server:
            assert ask(server, {"model": "scripted", "messages": messages}).status == status


def test_many_requests_are_in_flight_at_once() -> None:
    with ScriptedServer(latency_s=0.5) as server:
        started = time.monotonic()
        answers = ask(server, *(body(f"hello {number}") for number in range(64)))
        assert time.monotonic() - started < 5
        assert all(got.status == 200 for got in answers)
        assert server.requests == 64


# -- misbehaviour ----------------------------------------------------------------------------------------------------


def arguments(got: Got) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(got.message["tool_calls"][0]["function"]["arguments"])
    return parsed


@contextmanager
def misbehaving(kind: str, **more: Any) -> Iterator[ScriptedServer]:
    with ScriptedServer(misbehave={kind: 1.0}, **more) as server:
        yield server


def test_late() -> None:
    with misbehaving("late", late_s=0.5) as server:
        started = time.monotonic()
        assert ask(server, body()).status == 200
        assert time.monotonic() - started >= 0.5


def test_too_many_requests() -> None:
    with misbehaving("429", retry_after_s=0.25) as server:
        got = ask(server, body())
        assert got.status == 429
        assert got.headers["Retry-After"] == "0.25"
        assert got.json["error"]["code"] == "rate_limit_exceeded"
        assert server.answered == []


def test_internal_error() -> None:
    with misbehaving("500") as server:
        got = ask(server, body())
        assert got.status == 500
        assert got.json["error"]["type"] == "server_error"


def test_dropped_connection() -> None:
    with misbehaving("drop") as server, pytest.raises(aiohttp.ClientConnectionError):
        ask(server, body())


def test_malformed_body_and_malformed_json() -> None:
    with misbehaving("malformed-body") as server:
        got = ask(server, body())
        assert got.status == 200
        with pytest.raises(json.JSONDecodeError):
            got.json  # noqa: B018  # read for its error
        assert server.answered == []
    with misbehaving("malformed-json") as server:
        with pytest.raises(json.JSONDecodeError):
            arguments(ask(server, looking()))
        assert server.answered


def test_wrong_tool_and_never_finishing() -> None:
    with misbehaving("wrong-tool") as server:
        name = ask(server, looking()).message["tool_calls"][0]["function"]["name"]
        assert name not in {tool["function"]["name"] for tool in TOOLS}
    with misbehaving("never-finish") as server:
        got = ask(server, looking(tool_choice=must_call("finish_and_report")))
        assert got.message["tool_calls"][0]["function"]["name"] == "get_image_info"


def test_boxes_out_of_range_and_not_a_number() -> None:
    with misbehaving("out-of-range") as server:
        assert all(arguments(ask(server, looking()))[key] > 1e6 for key in "xywh")
        assert float(ask(server, tile()).message["content"].split()[1]) > 1
    with misbehaving("nan") as server:
        assert all(math.isnan(arguments(ask(server, looking()))[key]) for key in "xywh")
        finish = arguments(ask(server, looking(tool_choice=must_call("finish_and_report"))))
        assert all(math.isnan(value) for value in finish["bbox"])


def test_refusal_and_empty_answer() -> None:
    with misbehaving("refusal") as server:
        message = ask(server, looking()).message
        assert message["refusal"]
        assert message["content"] is None
        assert "tool_calls" not in message
    with misbehaving("empty") as server:
        message = ask(server, looking()).message
        assert message["content"] == ""
        assert "tool_calls" not in message


def test_a_thought_without_end_ends_when_it_is_told_to() -> None:
    with misbehaving("endless-thought") as server:
        got = ask(server, looking(max_tokens=50))
        assert got.json["choices"][0]["finish_reason"] == "length"
        assert got.json["usage"]["completion_tokens"] == 50
        assert "tool_calls" not in got.message
        stopped = looking(max_tokens=512)
        stopped["messages"] += [
            {"role": "assistant", "content": got.message["content"]},
            {"role": "user", "content": STOP_THINKING},
        ]
        assert ask(server, stopped).message["tool_calls"][0]["function"]["name"] == "extract_roi"


def statuses(server: ScriptedServer, count: int) -> list[int]:
    return [got.status for got in ask(server, *(body(f"hello {number}") for number in range(count)))]


def test_a_rate_is_kept_is_seeded_and_is_drawn_anew_for_a_retry() -> None:
    def with_seed(seed: int) -> list[int]:
        with ScriptedServer(seed=seed, misbehave={"500": 0.3}) as server:
            return statuses(server, 200)

    first = with_seed(0)
    assert 35 <= first.count(500) <= 85
    assert first == with_seed(0)
    assert first != with_seed(1)
    with ScriptedServer(misbehave={"500": 0.5}) as server:
        assert {ask(server, body()).status for _ in range(20)} == {200, 500}


def test_every_nth_request() -> None:
    with ScriptedServer(misbehave={"500": "every:3"}) as server:
        assert [ask(server, body()).status for _ in range(7)] == [200, 200, 500, 200, 200, 500, 200]


@pytest.mark.parametrize("when", [2, -0.1, math.nan, "often", "every:0", "every:", "every:-1", ""])
def test_a_rate_outside_0_to_1_is_an_error(when: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="rate from 0 to 1"):
        ScriptedServer(misbehave={"late": when})


def test_misbehaviours_by_name() -> None:
    assert Misbehaviour.parse("429") == Misbehaviour("429", 1.0)
    assert Misbehaviour.parse("429=0.25") == Misbehaviour("429", 0.25)
    assert Misbehaviour.parse("drop=every:5") == Misbehaviour("drop", every=5)
    with pytest.raises(UnknownNameError, match="Did you mean 'refusal'"):
        Misbehaviour.parse("refusals")
    assert KINDS.split(", ") == list(MISBEHAVIOURS)


@pytest.mark.parametrize(
    "given", [{"port": -1}, {"port": 70_000}, {"latency_s": -1}, {"late_s": math.inf}, {"retry_after_s": math.nan}]
)
def test_arguments_outside_what_is_allowed_are_errors(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="allowed"):
        ScriptedServer(**given)


def test_the_wire_log_holds_every_request(tmp_path: Path) -> None:
    log = tmp_path / "wire.jsonl"
    with ScriptedServer(misbehave={"500": "every:2"}, wire_log=log) as server:
        ask(server, body("one"))
        ask(server, body("two"))
        ask(server, b"{")
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert [line["status"] for line in lines] == [200, 500, 400]
    assert [line["misbehaviour"] for line in lines] == [None, "500", None]
    assert lines[0]["body"] == body("one")
    assert lines[2]["body"] == "{"
    assert server.answered == [lines[0]["sha256"]]


# -- its life --------------------------------------------------------------------------------------------------------


def test_it_ends_with_its_block_even_amid_a_late_answer() -> None:
    before = threading.active_count()
    with ScriptedServer(latency_s=60) as server:
        asker = threading.Thread(target=_ask_and_fail, args=(server,))
        asker.start()
        while server.requests == 0:
            time.sleep(0.01)
        started = time.monotonic()
    assert time.monotonic() - started < 5
    asker.join()
    assert threading.active_count() == before


def _ask_and_fail(server: ScriptedServer) -> None:
    with pytest.raises(aiohttp.ClientError):
        ask(server, body())


def test_a_port_in_use_is_an_error(server: ScriptedServer) -> None:
    with (
        pytest.raises(InvalidArgumentError, match=f"port {server.port} of 127.0.0.1 is in use"),
        ScriptedServer(port=server.port),
    ):
        pass


DIES_WITH_ITS_PARENT = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
"""Where there is such a thing, a test run that is killed leaves no server behind."""


@contextmanager
def served(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`wsigym serve-scripted` in a process, once it has told its address."""
    process = subprocess.Popen(
        [*DIES_WITH_ITS_PARENT, sys.executable, "-m", "wsigym", "serve-scripted", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    with process:
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], 60)[0], "no address in a minute"
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_the_command_serves_and_ends_quietly(number: signal.Signals, code: int) -> None:
    with served("--misbehave", "500=every:2") as (process, url):
        at = ScriptedServer(port=int(url.rsplit(":", 1)[1].removesuffix("/v1")))
        assert at.base_url == url
        assert [ask(at, body()).status for _ in range(2)] == [200, 500]
        process.send_signal(number)
        _, told = process.communicate(timeout=30)
        assert process.returncode == code
        assert told.count("\n") == 1
        assert "Traceback" not in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--misbehave", "lat"], "Did you mean 'late'"),
        (["--misbehave", "late=2"], "rate from 0 to 1"),
        (["--port", "70000"], "65535"),
        (["--api-key-env", "WSIGYM_NO_SUCH_KEY"], "WSIGYM_NO_SUCH_KEY"),
    ],
)
def test_bad_options_are_told_in_one_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from wsigym.cli import main

    monkeypatch.setattr(sys, "argv", ["wsigym", "serve-scripted", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert told in error
    assert "Traceback" not in error
