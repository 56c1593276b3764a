"""`wsigym demos`: an expert's trajectories down the diagnostic trees, to learn from."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from wsigym.errors import InvalidArgumentError, UnknownNameError

from .progress import progress_of

__all__ = ["demos"]

FORMATS = ("minari", "chat")


def demos(
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    cohort: Annotated[Path | None, typer.Option(help="The cohort's folder; without it a small synthetic one.")] = None,
    form: Annotated[
        str,
        typer.Option("--format", metavar="minari|chat", help="Episodes of pan and zoom, or chats for language models."),
    ] = "minari",
    split: Annotated[str, typer.Option(help="train, or val to watch a training; test is refused.")] = "train",
    per_query: Annotated[int, typer.Option("--per-query", help="Episodes of each query, each with other detours.")] = 1,
    detours: Annotated[
        float, typer.Option(help="How likely a look at a wrong place is, 0 to 1, where the budget allows one.")
    ] = 0.2,
    budget: Annotated[str, typer.Option(help="tight, base, loose, or a number of ROIs.")] = "base",
    seed: Annotated[int, typer.Option(help="Of what is drawn: detours, and which of equal moves.")] = 0,
    view_px: Annotated[
        int | None, typer.Option("--view-px", help="Side of images, 36 or more (default: 96, chat: 1024).")
    ] = None,
    images: Annotated[
        str | None,
        typer.Option(metavar="raw|jpeg or refs|files", help="The first is the default. jpeg takes a tenth of raw."),
    ] = None,
    coordinates: Annotated[
        str | None,
        typer.Option(metavar="level0|unit|permille|view_px", help="How chats write boxes (default: level0)."),
    ] = None,
    allow_outside: Annotated[
        bool, typer.Option("--allow-outside", help="Allow slide paths that leave the cohort folder.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write an expert's trajectories from the diagnostic trees: from the root down to each leaf, to learn from."""
    from wsigym.baselines.demonstrations import write_demonstrations
    from wsigym.benchmarks.demo_chats import write_chats
    from wsigym.cohorts import Cohort
    from wsigym.cohorts.synthetic import default_cohort

    if form not in FORMATS:
        raise UnknownNameError("format", form, FORMATS)
    if form == "minari" and coordinates is not None:
        raise InvalidArgumentError("--coordinates is for --format chat; episodes of pan and zoom write no boxes.")
    loaded = Cohort.load(cohort or default_cohort(), allow_outside=allow_outside)
    asked: dict[str, Any] = {"split": split, "per_query": per_query, "detours": detours, "budget": budget, "seed": seed}
    with progress_of("episodes") as progress:
        if form == "minari":
            px, pictures = 96 if view_px is None else view_px, images or "raw"
            done = asdict(write_demonstrations(loaded, out, view_px=px, images=pictures, progress=progress, **asked))
        else:
            px, pictures, boxes = 1024 if view_px is None else view_px, images or "refs", coordinates or "level0"
            done = asdict(
                write_chats(loaded, out, view_px=px, images=pictures, coordinates=boxes, progress=progress, **asked)
            )
    if as_json:
        typer.echo(json.dumps(done | {"path": str(done["path"])}, indent=2))
        return
    typer.echo(
        f"{done['episodes']:,} episodes of split {split} written to {done['path']}: {done['looks']:,} looks, "
        f"{done['detours']:,} of them detours; mean score {done['mean_score']:.3f}"
    )
