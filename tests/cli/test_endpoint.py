"""`wsigym endpoint check`: options, what is printed, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import Asked, chat_server, completion
from typer.testing import CliRunner, Result

from wsigym.cli import app
from wsigym.cli.endpoint import chosen_endpoint
from wsigym.errors import EndpointError, InvalidArgumentError

pytestmark = pytest.mark.network

KEY = "sk-k3y" + "Zz9" * 8


def reply(asked: Asked) -> Any:
    if asked.body.get("tools"):
        return completion(None, tool_calls=[{"id": "1", "function": {"name": "get_image_info", "arguments": "{}"}}])
    return completion("[red] or ready")


def check(*options: str) -> Result:
    return CliRunner().invoke(app, ["endpoint", "check", *options])


def test_for_people() -> None:
    with chat_server(reply) as server:
        done = check("--base-url", server.url, "--model", "m")
    assert done.exit_code == 0, done.output
    assert f"m: m at {server.url} (on this machine or network)" in done.output
    assert "'[red] or ready'" in done.output
    assert "USD per million tokens: unknown: --max-cost needs one" in done.output
    assert done.output.endswith("usable as it is set\n")


def test_for_machines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("E_KEY", KEY)
    file = tmp_path / "endpoints.toml"
    with chat_server(lambda _: completion("ready")) as server:
        file.write_text(f'[endpoints.e]\nbase_url = "{server.url}"\nmodel = "m"\napi_key_env = "E_KEY"\n')
        done = check("--endpoint", "e", "--endpoints", str(file), "--set", "temperature=0.5", "--json")
    assert done.exit_code == 1, done.output  # it calls no tool, and tools are set
    told = json.loads(done.stdout)
    assert told["usable"] is False
    assert told["endpoint"]["api_key_env"] == "E_KEY"
    assert server.asked[0].body["temperature"] == 0.5
    assert {finding["what"]: finding["verdict"] for finding in told["findings"]}["tool call"] == "no"
    assert KEY not in done.output


def test_the_options_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E_KEY", KEY)
    with chat_server(reply) as server:
        where = ["--base-url", server.url, "--model", "m"]
        done = check(*where, "--api-key-env", "E_KEY", "--coordinates", "unit")
    assert done.exit_code == 0, done.output
    assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    assert "boxes: unit" in done.output


def test_an_unreachable_server_is_an_error_of_the_work() -> None:
    done = check("--base-url", "http://127.0.0.1:1/v1", "--model", "m")
    assert isinstance(done.exception, EndpointError)
    assert not done.exception.bad_input


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((None, None, None, None, ()), "name one model endpoint: --endpoint NAME, or --base-url URL with --model NAME"),
        (("e", "http://h/v1", "m", None, ()), "name one model endpoint"),
        ((None, "http://h/v1", None, None, ()), "name one model endpoint"),
        ((None, "http://h/v1", "m", None, ["temperature"]), "--set takes KEY=VALUE"),
        ((None, "http://h/v1", "m", None, [KEY]), "--set takes KEY=VALUE"),
        ((None, "http://h/v1", "m", None, ["retrys=3"]), "unknown key 'retrys'"),
    ],
)
def test_options_that_name_no_endpoint(options: Any, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said) as caught:
        chosen_endpoint(*options)
    assert KEY not in str(caught.value)


def test_settings_are_toml_or_text() -> None:
    settings = ["tools=false", "coordinates=unit", "price_in=1", "price_out=2.5", "extra_body={top_k = 3}", "name = x"]
    endpoint = chosen_endpoint(None, "http://h/v1", "m", None, settings)
    assert (endpoint.tools, endpoint.coordinates, endpoint.price_in, endpoint.price_out) == (False, "unit", 1, 2.5)
    assert (endpoint.extra_body, endpoint.name) == ({"top_k": 3}, "x")
