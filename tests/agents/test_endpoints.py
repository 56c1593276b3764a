"""Endpoints: where settings come from, which count, and what is said of those that cannot stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wsigym.agents import endpoints
from wsigym.agents.endpoints import ENDPOINTS_VARIABLE, Endpoint, endpoint_at, endpoint_names, load_endpoint
from wsigym.errors import InvalidArgumentError, UnknownNameError

URL = "http://localhost:8000/v1"
SECRET = "sk-" + "s3cret" * 4


@pytest.fixture(autouse=True)
def no_file_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(ENDPOINTS_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(
        f"""
        [endpoints.here]
        base_url = "{URL}/"
        model = "Qwen/Qwen3-VL-8B-Instruct"
        keep_images = 2

        [endpoints.there]
        base_url = "https://api.openai.com/v1"
        model = "gpt-4o-mini"
        api_key_env = "OPENAI_API_KEY"
        temperature = "server"

        [[prices]]
        model = "gpt-4o-mini"
        price_in = 7
        price_out = 8
        """,
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize(
    ("model", "coordinates", "reasons"),
    [
        ("Qwen/Qwen2-VL-7B-Instruct", "permille", False),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "view_px", False),
        ("qwen2.5vl:7b", "view_px", False),
        ("Qwen/Qwen3-VL-8B-Instruct", "permille", False),
        ("qwen3-vl:8b", "permille", False),
        ("/models/Qwen3-VL-30B-A3B-Thinking/", "permille", True),
        ("qwen3-vl", "permille", False),
        # Other families, other versions, and models tuned from these by others, of which nothing is known.
        ("Qwen/Qwen-VL-Chat", "level0", False),
        ("Qwen/Qwen3-8B", "level0", False),
        ("Qwen/Qwen3.5-VL-8B", "level0", False),
        ("someone/patho-Qwen3-VL-8B", "level0", False),
        ("Qwen3-VLX", "level0", False),
        ("OpenGVLab/InternVL3-8B", "level0", False),
        ("gpt-4o", "level0", False),
        ("gpt-5-mini", "level0", True),
        ("gpt-50", "level0", False),
    ],
)
def test_presets_fit_a_family_and_version(model: str, coordinates: str, reasons: bool) -> None:
    endpoint = endpoint_at(URL, model)
    assert (endpoint.coordinates, endpoint.reasons) == (coordinates, reasons)


def test_every_preset_and_price_is_valid() -> None:
    for preset in endpoints._presets():
        Endpoint.model_validate({"name": "n", "model": "m", **preset.settings})
    prices = endpoints._builtin_prices()
    assert len({(price.model, price.host) for price in prices}) == len(prices)
    assert all(price.host and price.as_of for price in prices)
    assert all((price.price_cached or 0) <= price.price_in <= price.price_out for price in prices)


def test_what_is_said_nearest_counts(file: Path) -> None:
    here = load_endpoint("here", file=file, overrides={"coordinates": "unit", "max_tokens": None})
    assert here == Endpoint(
        name="here", base_url=URL, model="Qwen/Qwen3-VL-8B-Instruct", keep_images=2, coordinates="unit"
    )


def test_prices_of_the_user_come_first(file: Path) -> None:
    there = load_endpoint("there", file=file)
    assert (there.price_in, there.price_out, there.price_cached) == (7, 8, None)
    assert there.temperature == "server"
    assert endpoint_at("https://api.openai.com/v1", "gpt-4o-mini").price_in == 0.15
    # The same name on a server of one's own is another price.
    assert endpoint_at(URL, "gpt-4o-mini").price_in is None
    own = load_endpoint("there", file=file, overrides={"price_in": 0, "price_out": 0})
    assert (own.price_in, own.price_out) == (0, 0)


def test_a_bill_for_images_comes_with_the_price() -> None:
    assert endpoint_at("https://api.openai.com/v1", "gpt-4o-mini").image_tokens == 48169
    assert endpoint_at("https://api.openai.com/v1", "gpt-4o-mini", overrides={"image_tokens": 9}).image_tokens == 9


def test_where_the_file_is(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert endpoint_names() == ["scripted"]
    standard = tmp_path / "config" / "wsigym" / "endpoints.toml"
    standard.parent.mkdir(parents=True)
    standard.write_text('[endpoints.usual]\nbase_url = "http://h/v1"\nmodel = "m"\n')
    assert endpoint_names() == ["scripted", "usual"]
    monkeypatch.setenv(ENDPOINTS_VARIABLE, str(file))
    assert endpoint_names() == ["scripted", "here", "there"]
    assert endpoint_names(standard) == ["scripted", "usual"]


def test_the_scripted_one_costs_nothing_and_has_no_address() -> None:
    scripted = load_endpoint("scripted")
    assert scripted.base_url is None
    assert scripted.price_in == scripted.price_out == 0


def test_names_from_models() -> None:
    assert endpoint_at(URL, "Qwen/Qwen3-VL-8B-Instruct").name == "Qwen3-VL-8B-Instruct"
    assert endpoint_at(URL, "a/b+c d").name == "b-c-d"
    assert endpoint_at(URL, "/").name == "endpoint"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"retrys": 1}, r"unknown key 'retrys'. Did you mean 'retries'\?"),
        ({"zzz": 1}, r"unknown key 'zzz'. Known: name, base_url, model"),
        ({"api_key": SECRET}, r"unknown key 'api_key'. Keys are read from environment variables"),
        ({"api_key_env": SECRET}, "api_key_env is not the name of an environment variable"),
        ({"temperature": 3}, "temperature is not a number from 0 to 2"),
        ({"temperature": True}, "temperature is not a number from 0 to 2"),
        ({"coordinates": "pixels"}, "coordinates: Input should be 'level0', 'unit', 'permille' or 'view_px'"),
        ({"max_tokens": 0}, "max_tokens: Input should be greater than or equal to 1"),
        ({"timeout_s": float("inf")}, "timeout_s: Input should be a finite number"),
        ({"price_in": 1.0}, "of price_in and price_out one is missing"),
        ({"extra_body": {"stream": True}}, "extra_body has stream, which the client or a setting"),
        ({"extra_body": {"x": float("nan")}}, "extra_body cannot be sent as JSON"),
        ({"name": "a+b"}, r"name is 'a\+b'"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said) as caught:
        endpoint_at(URL, "m", overrides=settings)
    assert "secret" not in str(caught.value).lower()
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("localhost:8000/v1", "no http or https URL; it looks like http://localhost:8000/v1"),
        ("ftp://host/v1", "no http or https URL"),
        ("http:///v1", "no http or https URL"),
        ("http://host:port/v1", "is not a URL"),
        ("http://[::1/v1", "is not a URL"),
        (f"https://ann:{SECRET}@host/v1", "a user name, a password, a query or a fragment, which is refused"),
        (f"https://host/v1?key={SECRET}", "a user name, a password, a query or a fragment, which is refused"),
        ("http://host/v1/chat/completions", "give the part before /chat/completions"),
    ],
)
def test_a_wrong_address_is_refused(url: str, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said) as caught:
        endpoint_at(url, "m")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[endpoints.e]\nmodel = 'm'", "endpoint 'e': base_url is missing"),
        ("[endpoints.e]\nbase_url = 'http://h/v1'", "endpoint 'e': model is missing"),
        ("[endpoints.e\n", "is not TOML: .*line 1"),
        ("[endpoint.e]\n", r"unknown key 'endpoint'. Did you mean 'endpoints'\?"),
        ("[[prices]]\nmodel = 'm'\nprice = 3\n", r"unknown key 'prices.0.price'. Did you mean 'price_in'\?"),
        ("[[prices]]\nmodel = 'm'\nprice_in = -1\nprice_out = 1", "prices.0.price_in: Input should be greater than"),
        ("endpoints = 3", "endpoints: Input should be a valid dictionary"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (None, r"cannot be read \(No such file or directory\)"),
    ],
)
def test_a_wrong_file_is_refused(text: str | bytes | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InvalidArgumentError, match=said) as caught:
        load_endpoint("e", file=path)
    assert str(path) in str(caught.value)


def test_an_unknown_name_is_told_with_what_there_is(file: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"'heer'. Did you mean 'here'\? Known: scripted, here, there"):
        load_endpoint("heer", file=file)
