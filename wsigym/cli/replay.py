"""`wsigym replay`: recompute an episode's score from its record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["replay"]


def replay(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    episode: Annotated[
        str,
        typer.Argument(
            help="Its place in the run, from 0, or ITEM[:POLICY[:BUDGET[:SEED]]]; an agent is NAME@ENDPOINT."
        ),
    ],
    cohort: Annotated[Path | None, typer.Option(help="The run's cohort, where it has moved.")] = None,
    allow_outside: Annotated[
        bool, typer.Option("--allow-outside", help="Allow slide paths that leave the cohort folder.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Recompute an episode's score from its recorded actions; exit code 1 if it differs."""
    from wsigym.benchmarks.replay import replay as replay_episode

    result = replay_episode(run, episode, cohort=cohort, allow_outside=allow_outside)
    if as_json:
        content = {
            "episode": result.key._asdict(),
            "agrees": result.agrees,
            "recorded_score": result.recorded_score,
            "replayed_score": result.replayed_score,
            "differences": result.differences,
        }
        typer.echo(json.dumps(content, indent=2))
    elif result.agrees:
        typer.echo(f"agrees: {_episode_text(result.key)} scores {result.replayed_score:.6g} again")
    else:
        typer.echo(f"differs: {_episode_text(result.key)}")
        typer.echo("\n".join(f"  {difference}" for difference in result.differences))
    raise typer.Exit(0 if result.agrees else 1)


def _episode_text(key: Any) -> str:
    return f"{key.item} by {key.policy} at {key.budget}, seed {key.seed}"
