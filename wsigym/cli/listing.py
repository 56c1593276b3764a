"""`wsigym envs | policies | suites`: what is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated

import typer

from wsigym.envs.registration import ENVIRONMENTS

__all__ = ["envs", "policies", "suites"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def envs(as_json: AsJson = False) -> None:
    """List the environment ids."""
    _print({env_id: entry_points.one for env_id, entry_points in ENVIRONMENTS.items()}, as_json)


def policies(as_json: AsJson = False) -> None:
    """List the policies that `--policy` takes, by the environment that they play; agents need an endpoint."""
    from wsigym.agents.registry import AGENTS
    from wsigym.baselines import POLICIES

    content = {env: {card.form(name): card.summary for name, card in cards.items()} for env, cards in POLICIES.items()}
    for name, card in AGENTS.items():
        content.setdefault(card.environment, {})[f"agent:{name}"] = card.summary
    if as_json:
        typer.echo(json.dumps(content, indent=2))
        return
    for env, entries in content.items():
        typer.echo(env)
        _print({f"  {form}": text for form, text in entries.items()}, as_json)


def suites(as_json: AsJson = False) -> None:
    """List the tasks, as SUITE/TASK."""
    from wsigym.benchmarks.suites import TASKS

    _print({name: task.summary for name, task in TASKS.items()}, as_json)


def _print(entries: Mapping[str, str], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(dict(entries), indent=2))
        return
    width = max(map(len, entries))
    for name, text in entries.items():
        typer.echo(f"{name:{width}}  {text}")
