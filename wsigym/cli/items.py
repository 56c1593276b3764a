"""`wsigym items build`: what evidence tasks ask, built from a cohort's annotations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from wsigym.errors import InvalidArgumentError

__all__ = ["app"]

app = typer.Typer(help="Build the items of evidence tasks.", no_args_is_help=True, rich_markup_mode=None)

Cohort = Annotated[Path, typer.Argument(help="The cohort's folder; the items are written into it.")]
Cell = Annotated[str, typer.Option(help="What distractors share with the key: of split,organ,magnification, or none.")]
Seed = Annotated[int, typer.Option(help="Of the order of starts, options and lots.")]
AllowOutside = Annotated[bool, typer.Option("--allow-outside", help="Allow slide paths that leave the cohort folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
CELL = "split,organ,magnification"


@app.command()
def build(
    task: Annotated[str, typer.Argument(metavar="SUITE/TASK", help="Such as evipath/interpretation.")],
    cohort: Cohort,
    encoder: Annotated[
        str, typer.Option(help="How alike texts are: tfidf, minilm (extra text), sentence-transformers:PATH.")
    ] = "tfidf",
    cell: Cell = CELL,
    seed: Seed = 0,
    threshold: Annotated[float, typer.Option(min=0, max=1, help="The largest cosine within a set of options.")] = 0.6,
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Build the items of a task and their references. They replace those that the cohort has."""
    from wsigym.cohorts import Cohort
    from wsigym.cohorts.builders import Build, build_items

    loaded = Cohort.load(cohort, allow_outside=allow_outside)
    built = build_items(task, loaded, Build(encoder=encoder, cell=_cell(cell), seed=seed, threshold=threshold))
    dropped = {reason: count for reason, count in built.dropped.items() if count}
    if as_json:
        typer.echo(json.dumps({"task": task, "items": len(built.asked), "dropped": dropped}, indent=2))
        return
    typer.echo(f"{task}: {len(built.asked):,} items in {cohort}")
    for reason, count in dropped.items():
        typer.echo(f"  {count:,} left out: {reason}")


def _cell(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names and text.strip() not in ("", "none"):
        raise InvalidArgumentError(f"--cell {text}: names joined by commas are needed, such as {CELL}, or none.")
    return () if names == ("none",) else names
