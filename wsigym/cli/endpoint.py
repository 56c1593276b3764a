"""`wsigym endpoint ...`: model endpoints, and the options that name one."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsigym.errors import InvalidArgumentError

from .table import console_for_tables

if TYPE_CHECKING:
    from wsigym.agents.checking import Report
    from wsigym.agents.endpoints import Endpoint

__all__ = [
    "ApiKeyEnv",
    "BaseUrl",
    "Coordinates",
    "EndpointName",
    "EndpointsFile",
    "ModelName",
    "Settings",
    "app",
    "chosen_endpoint",
]

app = typer.Typer(help="Model endpoints: what a model's server can do.", no_args_is_help=True)

EndpointName = Annotated[str | None, typer.Option("--endpoint", metavar="NAME", help="An endpoint of your file.")]
BaseUrl = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="A server's address, such as http://localhost:8000/v1.")
]
ModelName = Annotated[str | None, typer.Option("--model", help="With --base-url: the model, as the server names it.")]
ApiKeyEnv = Annotated[
    str | None, typer.Option("--api-key-env", metavar="VARIABLE", help="The environment variable that holds the key.")
]
Coordinates = Annotated[
    str | None, typer.Option(help="In which the model gives boxes: level0, unit, permille or view_px.")
]
EndpointsFile = Annotated[
    Path | None,
    typer.Option(
        "--endpoints",
        metavar="FILE",
        help="TOML with your endpoints and prices (default: $WSIGYM_ENDPOINTS, else endpoints.toml in your "
        "configuration folder for wsigym).",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the endpoint, such as temperature=0.7; repeatable."),
]


def chosen_endpoint(
    name: str | None,
    base_url: str | None,
    model: str | None,
    file: Path | None,
    settings: Sequence[str] | None,
    **given: str | None,
) -> Endpoint:
    """The endpoint that the options name; what is `given` wins over `settings`.

    Raises `InvalidArgumentError` where they name none, or two.
    """
    from wsigym.agents.endpoints import endpoint_at, load_endpoint

    overrides = dict(map(_setting, settings or ())) | {key: value for key, value in given.items() if value is not None}
    if name is not None and base_url is None and model is None:
        return load_endpoint(name, file=file, overrides=overrides)
    if name is None and base_url is not None and model is not None:
        return endpoint_at(base_url, model, file=file, overrides=overrides)
    raise InvalidArgumentError("name one model endpoint: --endpoint NAME, or --base-url URL with --model NAME.")


def _setting(text: str) -> tuple[str, Any]:
    """`key=value`; the value is TOML, or else plain text."""
    key, mark, value = text.partition("=")
    if not mark or not key.strip().isidentifier():
        raise InvalidArgumentError(
            "--set takes KEY=VALUE, such as temperature=0.7; what was given is not of this form."
        )
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


@app.command()
def check(
    endpoint: EndpointName = None,
    base_url: BaseUrl = None,
    model: ModelName = None,
    api_key_env: ApiKeyEnv = None,
    coordinates: Coordinates = None,
    endpoints: EndpointsFile = None,
    settings: Settings = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Send one text, one image and one tool call, and say what the server can do. No slide is sent.

    Exits with 1 where the agents cannot work with the endpoint as it is set.
    """
    import asyncio

    from wsigym.agents.checking import check_endpoint

    chosen = chosen_endpoint(
        endpoint, base_url, model, endpoints, settings, api_key_env=api_key_env, coordinates=coordinates
    )
    report = asyncio.run(check_endpoint(chosen))
    if as_json:
        typer.echo(json.dumps(report.to_json(), indent=2))
    else:
        _print(report)
    raise typer.Exit(0 if report.usable else 1)


def _print(report: Report) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    endpoint = report.endpoint
    where = "on this machine or network" if report.place == "local" else "outside: --egress local refuses it"
    typer.echo(f"{endpoint.name}: {endpoint.model} at {endpoint.base_url} ({where})")
    table = Table("", "", "seconds", "", box=box.SIMPLE_HEAD, pad_edge=False, show_header=False)
    for finding in report.findings:
        seconds = "" if finding.seconds is None else f"{finding.seconds:.2f} s"
        table.add_row(finding.what, finding.verdict, seconds, Text(finding.told))
    console_for_tables().print(table)
    priced = endpoint.price_in is not None
    price = f"{endpoint.price_in:g} in, {endpoint.price_out:g} out" if priced else "unknown: --max-cost needs one"
    typer.echo(f"boxes: {endpoint.coordinates}; USD per million tokens: {price}")
    typer.echo("usable as it is set" if report.usable else "not usable as it is set")
