"""`wsigym envs | policies | suites`: what is there."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from wsigym.envs.registration import ENVIRONMENTS

__all__ = ["envs"]


def envs(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the environment ids."""
    if as_json:
        typer.echo(json.dumps(ENVIRONMENTS, indent=2))
    else:
        for env_id, entry_point in ENVIRONMENTS.items():
            typer.echo(f"{env_id}  {entry_point}")
