"""The options of `wsigym run` and `sweep` that say which agents play, whom they ask, and what that may cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wsigym.errors import InvalidArgumentError

from .endpoint import ApiKeyEnv, BaseUrl, Coordinates, EndpointsFile, ModelName, Settings, chosen_endpoint

if TYPE_CHECKING:
    from wsigym.agents.endpoints import Endpoint
    from wsigym.benchmarks.models import Spent

__all__ = [
    "Agents",
    "ApiKeyEnv",
    "BaseUrl",
    "Concurrency",
    "Coordinates",
    "Egress",
    "EndpointNames",
    "EndpointsFile",
    "MaxCost",
    "ModelName",
    "Policies",
    "Settings",
    "chosen_setups",
    "players",
    "told_spent",
]

Policies = Annotated[
    list[str] | None, typer.Option("--policy", help="Who plays, from `wsigym policies`. May be repeated.")
]
Agents = Annotated[
    list[str] | None,
    typer.Option("--agent", metavar="NAME", help="An agent that asks a model; the same as --policy agent:NAME."),
]
EndpointNames = Annotated[
    list[str] | None,
    typer.Option(
        "--endpoint",
        metavar="NAME",
        help="Whom agents ask: an endpoint of your file, or scripted, which needs no model; A+B share an agent's "
        "roles. May be repeated: every agent then plays with each.",
    ),
]
Concurrency = Annotated[int | None, typer.Option(help="Episodes of agents in flight (default: 4).")]
MaxCost = Annotated[
    float | None, typer.Option("--max-cost", metavar="USD", help="Stop before this run folder has cost more.")
]
Egress = Annotated[
    str,
    typer.Option(metavar="local|any", help="Where images may be sent: loopback and private addresses, or anywhere."),
]


def players(policies: Sequence[str] | None, agents: Sequence[str] | None) -> list[str]:
    """Everyone who plays. Raises `InvalidArgumentError` where nobody does."""
    found = [*(policies or ()), *(f"agent:{agent.removeprefix('agent:')}" for agent in agents or ())]
    if not found:
        raise InvalidArgumentError("nobody plays; name --policy NAME or --agent NAME, from `wsigym policies`.")
    return found


def chosen_setups(
    names: Sequence[str] | None,
    base_url: str | None,
    model: str | None,
    file: Path | None,
    settings: Sequence[str] | None,
    api_key_env: str | None,
    coordinates: str | None,
) -> list[tuple[Endpoint, ...]]:
    """The set-ups that the options name: one for each --endpoint, and one for --base-url with --model.

    Settings are for the one of --base-url, else for the single endpoint that is named. Raises `InvalidArgumentError`
    and `UnknownNameError`.
    """
    named = [name.split("+") for name in names or ()]
    given = {"api_key_env": api_key_env, "coordinates": coordinates}
    own = [*(settings or ()), *(f"{key}={value}" for key, value in given.items() if value is not None)]
    by_address = base_url is not None or model is not None
    if own and not by_address and [len(setup) for setup in named] != [1]:
        raise InvalidArgumentError(
            "--set, --api-key-env and --coordinates are settings of one endpoint, and "
            f"{sum(map(len, named)) or 'none'} were named; set them in the endpoints file."
        )

    def endpoint(name: str) -> Endpoint:
        return chosen_endpoint(name, None, None, file, [] if by_address else own)

    setups = [tuple(endpoint(name) for name in setup) for setup in named]
    return [*setups, (chosen_endpoint(None, base_url, model, file, own),)] if by_address else setups


def told_spent(spent: Spent, in_all: Spent) -> str:
    """What a run's requests took, in one line."""
    line = f"{spent.requests:,} requests, {spent.tokens_in:,} tokens in, {spent.tokens_out:,} out, {_usd(spent)}"
    return line if in_all == spent else f"{line}; with earlier calls {in_all.requests:,} requests, {_usd(in_all)}"


def _usd(spent: Spent) -> str:
    return "no price known" if spent.cost_usd is None else f"{spent.cost_usd:.4f} USD"
