"""`wsigym transcripts`: a run's chats, for supervised fine-tuning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["transcripts"]


def transcripts(
    run: Annotated[Path, typer.Argument(help="A run folder in which agents played.")],
    out: Annotated[Path, typer.Option(help="The JSONL to write, one episode a line.")],
    images: Annotated[
        str, typer.Option(metavar="refs|files", help="Images by slide, box and size, or as PNG files beside the JSONL.")
    ] = "refs",
    min_score: Annotated[
        float | None, typer.Option("--min-score", help="Only episodes that scored as much, 0 to 1.")
    ] = None,
    all_splits: Annotated[
        bool,
        typer.Option("--all-splits", help="Also val and test slides, and those of no split: not to be trained on."),
    ] = False,
    cohort: Annotated[Path | None, typer.Option(help="The run's cohort, where it has moved.")] = None,
    allow_outside: Annotated[
        bool, typer.Option("--allow-outside", help="Allow slide paths that leave the cohort folder.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write what agents and models said to each other as chats: of the train split alone, unless asked otherwise."""
    from wsigym.benchmarks.transcripts import export_transcripts

    done = export_transcripts(
        run,
        out,
        images=images,
        min_score=min_score,
        all_splits=all_splits,
        cohort=cohort,
        allow_outside=allow_outside,
    )
    if as_json:
        content = {"out": str(done.path), "episodes": done.episodes, "images": done.images}
        typer.echo(json.dumps(content | {"left_out": done.left_out}, indent=2))
        return
    files = f" and {done.images} images" if done.images else ""
    typer.echo(f"{done.episodes} episodes{files} written to {done.path}")
    for reason, count in done.left_out.items():
        typer.echo(f"left out: {count} {reason}")
    if all_splits:
        typer.echo("val and test slides may be among them: a model that is trained on these cannot be tested there")
