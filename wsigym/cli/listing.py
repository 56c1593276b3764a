"""`wsigym envs | policies | suites`: what is there."""

from __future__ import annotations

import json

import typer

from wsigym.envs.registration import ENVIRONMENTS

__all__ = ["envs"]


def envs(as_json: bool = typer.Option(False, "--json", help="Print JSON.")) -> None:
    """List the environment ids."""
    if as_json:
        typer.echo(json.dumps(ENVIRONMENTS, indent=2))
    else:
        for env_id, entry_point in ENVIRONMENTS.items():
            typer.echo(f"{env_id}  {entry_point}")
