"""Model endpoints: where a model is served, what it takes, and how it is asked.

An endpoint comes from a TOML file of the user's, or from a base URL and a model's name. What it leaves open is filled,
in this order, from a preset of the model's family (presets.toml), from a table of prices, and from the defaults here:

    [endpoints.vllm]                     # any keys of `Endpoint`; an unknown key is an error
    base_url = "http://localhost:8000/v1"
    model = "Qwen/Qwen3-VL-8B-Instruct"

    [endpoints.hosted]
    base_url = "https://api.example.org/v1"
    model = "some-model"
    api_key_env = "EXAMPLE_API_KEY"      # the name of an environment variable; a key itself stands nowhere

    [[prices]]                           # USD per million tokens; these come before the built-in ones
    model = "some-model"
    host = "api.example.org"             # optional: only where this host serves it
    price_in = 0.5
    price_out = 1.5
    price_cached = 0.1                   # optional: input tokens that the server had cached

The file is the one asked for, else that of the environment variable WSIGYM_ENDPOINTS, else endpoints.toml in the user's
configuration folder for wsigym, where there is one.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from wsigym.errors import InvalidArgumentError, UnknownNameError

__all__ = ["ENDPOINTS_VARIABLE", "Coordinates", "Endpoint", "endpoint_at", "endpoint_names", "load_endpoint"]

Coordinates = Literal["level0", "unit", "permille", "view_px"]
"""`level0`: level-0 pixels of the slide; `unit`: 0..1 and `permille`: 0..1000 of the search box; `view_px`: pixels of
the overview as sent."""

ENDPOINTS_VARIABLE = "WSIGYM_ENDPOINTS"

SCRIPTED = "scripted"
"""The built-in endpoint: a model without weights, which a run starts for itself and ends again. It costs nothing."""

NO_KEY_HERE = "Keys are read from environment variables: api_key_env names one, such as OPENAI_API_KEY."


def _checked_url(url: str) -> str:
    """An http(s) URL with a host and nothing secret in it; without a slash at its end."""
    try:
        parts = urlsplit(url.strip())
        has_host, _ = bool(parts.hostname), parts.port
    except ValueError:
        raise ValueError("is not a URL; it looks like http://localhost:8000/v1") from None
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        # Not echoed: what stands there may be a key.
        raise ValueError(f"has a user name, a password, a query or a fragment, which is refused. {NO_KEY_HERE}")
    if parts.scheme not in ("http", "https") or not has_host:
        raise ValueError(f"is {url!r}, which is no http or https URL; it looks like http://localhost:8000/v1")
    path = parts.path.rstrip("/")
    if path.endswith("/chat/completions"):
        raise ValueError(f"is {url!r}: give the part before /chat/completions")
    return parts._replace(path=path).geturl()


def _checked_variable(name: str) -> str:
    """Capitals, as environment variables have by custom: a key that was put here by mistake is hardly one."""
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
        raise ValueError(f"is not the name of an environment variable in capitals. {NO_KEY_HERE}")
    return name


def _checked_name(name: str) -> str:
    if not name or set(name) & set('+/\\"\n\t') or name != name.strip():
        raise ValueError(f"is {name!r}; a name has no +, slash, quote or space at its ends, and is not empty")
    return name


def _checked_temperature(value: object) -> object:
    number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2
    if not number and value != "server":
        raise ValueError('is not a number from 0 to 2, nor "server", which sends none')
    return value


def _checked_body(body: dict[str, Any]) -> dict[str, Any]:
    own = {"messages", "model", "n", "stream", "tools", "temperature", "max_tokens", "max_completion_tokens"}
    if taken := sorted(body.keys() & own):
        raise ValueError(f"has {', '.join(taken)}, which the client or a setting of its own decides")
    try:
        json.dumps(body, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"cannot be sent as JSON: {error}") from None
    return body


class Endpoint(BaseModel):
    """A model behind an OpenAI-compatible server, and how it is to be asked.

    Attributes:
        name: how records and tables name it.
        base_url: http or https, up to and without `/chat/completions`; None only of the built-in `scripted`.
        model: as the server names it.
        api_key_env: the environment variable that holds the key; None sends none.
        temperature: 0..2, or "server" to send none.
        max_tokens: the most that an answer may have; of a reasoning model, its thoughts included.
        token_limit: the field that tells the server so.
        timeout_s: seconds for one try, from sending to the whole answer.
        retries: tries after the first where the server fails or breaks off. Waits for 429 are counted apart.
        price_in, price_out, price_cached: USD per million tokens; cached input costs `price_in` where it is None.
        image_tokens: the most tokens that an image of up to 1024 x 1024 px is billed as; `--max-cost` counts with it.
        max_image_px: longest side of an image sent.
        image_format, image_quality: of the images sent; the quality is JPEG's.
        coordinates: in which boxes are told and read.
        tools: the server takes tool calls; otherwise the tools are described in text.
        tool_images: it takes images in a tool's message.
        reasons: the model thinks first, and is made to answer where it comes to `max_tokens` thinking.
        keep_images: how many of the latest images stay in a conversation beside the overview.
        requests_per_minute, tokens_per_minute: the client's own limits; None is none.
        extra_body: fields added to each request.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, AfterValidator(_checked_name)]
    base_url: Annotated[str, AfterValidator(_checked_url)] | None = None
    model: str = Field(min_length=1)
    api_key_env: Annotated[str, AfterValidator(_checked_variable)] | None = None
    temperature: Annotated[float | Literal["server"], BeforeValidator(_checked_temperature)] = 0.0
    max_tokens: int = Field(default=2048, ge=1)
    token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    timeout_s: float = Field(default=120.0, gt=0, allow_inf_nan=False)
    retries: int = Field(default=4, ge=0)
    price_in: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    price_out: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    price_cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    # 4096: Qwen-VL bills 1,369, GPT-4.1 765, InternVL up to 3,328 tokens for 1024 x 1024 px.
    image_tokens: int = Field(default=4096, ge=0)
    max_image_px: int = Field(default=1024, ge=28, le=8192)
    image_format: Literal["jpeg", "png"] = "jpeg"
    image_quality: int = Field(default=90, ge=1, le=100)
    coordinates: Coordinates = "level0"
    tools: bool = True
    tool_images: bool = False
    reasons: bool = False
    keep_images: int = Field(default=4, ge=0)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    extra_body: Annotated[dict[str, Any], AfterValidator(_checked_body)] = {}

    @property
    def host(self) -> str | None:
        """The host of `base_url`, in lower case."""
        return urlsplit(self.base_url).hostname if self.base_url else None


class _Preset(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    pattern: str
    settings: dict[str, Any]


class _Price(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    host: str | None = None
    price_in: float = Field(ge=0, allow_inf_nan=False)
    price_out: float = Field(ge=0, allow_inf_nan=False)
    price_cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    image_tokens: int | None = Field(default=None, ge=0)
    as_of: str | None = None


class _EndpointsFile(BaseModel):
    """What a user's file may hold. An endpoint is checked when it is asked for, with its preset and its price."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    endpoints: dict[str, dict[str, Any]] = {}
    prices: tuple[_Price, ...] = ()


def load_endpoint(name: str, *, file: str | Path | None = None, overrides: Mapping[str, Any] | None = None) -> Endpoint:
    """The endpoint of that name in the user's file, or `scripted`; `overrides`, where they are not None, win.

    Raises `UnknownNameError` for a name that is not there and `InvalidArgumentError` for a file that cannot be read, an
    unknown key or a value outside what is allowed; no message repeats a value that could be a key.
    """
    path, content = _user_file(file)
    if name in content.endpoints:
        return _built(f"{path}: endpoint {name!r}", {"name": name, **content.endpoints[name]}, content, overrides)
    if name == SCRIPTED:
        settings = {"name": SCRIPTED, "model": SCRIPTED, "price_in": 0.0, "price_out": 0.0}
        return _built(f"endpoint {name!r}", settings, content, overrides)
    raise UnknownNameError(f"endpoint (in {path or 'no endpoints file'})", name, [SCRIPTED, *content.endpoints])


def endpoint_at(
    base_url: str, model: str, *, file: str | Path | None = None, overrides: Mapping[str, Any] | None = None
) -> Endpoint:
    """The endpoint of a base URL and a model's name, called after the last part of the model's name.

    The user's file adds its prices. Raises as `load_endpoint` does.
    """
    _, content = _user_file(file)
    name = re.sub(r'[+\\"\s]', "-", _last_part(model)) or "endpoint"
    settings = {"name": name, "base_url": base_url, "model": model}
    return _built("the endpoint of the command line", settings, content, overrides)


def endpoint_names(file: str | Path | None = None) -> list[str]:
    """The names that `load_endpoint` takes."""
    return [SCRIPTED, *_user_file(file)[1].endpoints]


def _built(
    where: str, settings: dict[str, Any], content: _EndpointsFile, overrides: Mapping[str, Any] | None
) -> Endpoint:
    own = settings | {key: value for key, value in (overrides or {}).items() if value is not None}
    endpoint = _validated(where, own)
    known: dict[str, Any] = {}
    for preset in _presets():
        if re.fullmatch(preset.pattern, _last_part(endpoint.model), re.IGNORECASE):
            known |= preset.settings
    if endpoint.price_in is None and endpoint.price_out is None:
        known |= _price_of(endpoint, [*content.prices, *_builtin_prices()])
    endpoint = _validated(where, known | own)
    if endpoint.base_url is None and endpoint.name != SCRIPTED:
        raise InvalidArgumentError(f"{where}: base_url is missing; it looks like http://localhost:8000/v1.")
    if (endpoint.price_in is None) != (endpoint.price_out is None):
        raise InvalidArgumentError(f"{where}: of price_in and price_out one is missing; give both, or neither.")
    return endpoint


def _validated(where: str, settings: Mapping[str, Any]) -> Endpoint:
    try:
        return Endpoint.model_validate(settings)
    except ValidationError as error:
        raise InvalidArgumentError(f"{where}: {_first_problem(error, Endpoint.model_fields)}") from None


def _first_problem(error: ValidationError, known: Sequence[str] | Mapping[str, Any]) -> str:
    """The first thing wrong, in words. Values are not repeated, but where a validator here chose to."""
    problems = error.errors(include_input=False, include_url=False)
    problem = min(problems, key=lambda each: each["type"] != "extra_forbidden")
    place = ".".join(map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(problem["loc"][-1]), list(known), n=1)
        meant = f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(known)}."
        return f"unknown key {place!r}. {NO_KEY_HERE if 'key' in place else meant.strip()}"
    if problem["type"] == "missing":
        return f"{place} is missing."
    said = problem["msg"].removeprefix("Value error, ").rstrip(".")
    return f"{place} {said}." if problem["type"] == "value_error" else f"{place}: {said}."


def _last_part(model: str) -> str:
    return model.rstrip("/").rsplit("/", 1)[-1]


def _price_of(endpoint: Endpoint, prices: Sequence[_Price]) -> dict[str, Any]:
    for price in prices:
        if price.model == endpoint.model and price.host in (None, endpoint.host):
            return price.model_dump(exclude={"model", "host", "as_of"}, exclude_none=True)
    return {}


def _user_file(asked: str | Path | None) -> tuple[Path | None, _EndpointsFile]:
    """The user's file and what it holds; none and nothing where there is none and none was asked for."""
    path = Path(asked) if asked is not None else None
    if path is None and os.environ.get(ENDPOINTS_VARIABLE):
        path = Path(os.environ[ENDPOINTS_VARIABLE])
    if path is None:
        import platformdirs

        path = Path(platformdirs.user_config_dir("wsigym", appauthor=False)) / "endpoints.toml"
        if not path.exists():
            return None, _EndpointsFile()
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgumentError(f"{path} cannot be read ({error.strerror}); an endpoints file is TOML.") from None
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"{path} is not UTF-8 text; an endpoints file is TOML.") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgumentError(f"{path} is not TOML: {error}.") from None
    try:
        return path, _EndpointsFile.model_validate(content)
    except ValidationError as error:
        problem = _first_problem(error, _Price.model_fields if "prices" in content else _EndpointsFile.model_fields)
        raise InvalidArgumentError(f"{path}: {problem} It has [endpoints.NAME] tables and [[prices]].") from None


@cache
def _presets() -> tuple[_Preset, ...]:
    return tuple(_Preset.model_validate(each) for each in _package_data("presets.toml")["presets"])


@cache
def _builtin_prices() -> tuple[_Price, ...]:
    return tuple(_Price.model_validate(each) for each in _package_data("prices.toml")["prices"])


def _package_data(name: str) -> dict[str, Any]:
    return tomllib.loads((resources.files(__package__) / name).read_text(encoding="utf-8"))
