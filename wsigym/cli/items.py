"""`wsigym items build | encoders`: what evidence tasks ask, built from a cohort's annotations."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wsigym.errors import InvalidArgumentError

from .endpoint import EndpointsFile, Settings, chosen_endpoint
from .progress import progress_of
from .table import console_for_tables

if TYPE_CHECKING:
    from wsigym.agents.endpoints import Endpoint
    from wsigym.cohorts import Asked, Cohort
    from wsigym.cohorts.builders import Reword

__all__ = ["app"]

app = typer.Typer(help="Build the items of evidence tasks.", no_args_is_help=True, rich_markup_mode=None)

Folder = Annotated[Path, typer.Argument(help="The cohort's folder; the items are written into it.")]
Cell = Annotated[
    str, typer.Option(help="What distractors share with the key, beside the split: of organ,magnification, or none.")
]
Seed = Annotated[int, typer.Option(help="Of the order of starts, options and lots.")]
AllowOutside = Annotated[bool, typer.Option("--allow-outside", help="Allow slide paths that leave the cohort folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
PATHVIEW = "pathview"
THRESHOLD = 0.6
CELL = "organ,magnification"


@app.command()
def build(
    task: Annotated[
        str,
        typer.Argument(metavar="SUITE/TASK", help="Such as evipath/interpretation; pathview alone is all its tasks."),
    ],
    cohort: Folder,
    encoder: Annotated[
        str, typer.Option(help="How alike texts are: tfidf, minilm (extra text), sentence-transformers:PATH.")
    ] = "tfidf",
    cell: Cell = CELL,
    seed: Seed = 0,
    threshold: Annotated[
        float, typer.Option(min=0, max=1, help="The largest cosine within a set of options.")
    ] = THRESHOLD,
    stem_endpoint: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A model endpoint that puts the questions into other words (extra agents)."),
    ] = None,
    endpoints: EndpointsFile = None,
    settings: Settings = None,
    egress: Annotated[str, typer.Option(help="Where the questions may go: local (this network) or any.")] = "local",
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Build the items of a task and their references. They replace those that the cohort has."""
    from wsigym.cohorts import Cohort
    from wsigym.cohorts.builders import Build, build_items

    loaded = Cohort.load(cohort, allow_outside=allow_outside)
    if task.partition("/")[0] == PATHVIEW:
        _refuse(task, encoder=encoder != "tfidf", cell=cell != CELL, threshold=threshold != THRESHOLD)
        _build_pathview(task, loaded, seed, as_json)
        return
    plan = Build(encoder=encoder, cell=_cell(cell), seed=seed, threshold=threshold)
    if stem_endpoint is not None:
        plan = replace(plan, reword=_rewording(chosen_endpoint(stem_endpoint, None, None, endpoints, settings), egress))
    built = build_items(task, loaded, plan)
    dropped = {reason: count for reason, count in built.dropped.items() if count}
    if as_json:
        typer.echo(json.dumps({"task": task, "items": len(built.asked), "dropped": dropped}, indent=2))
        return
    typer.echo(f"{task}: {len(built.asked):,} items in {cohort}")
    for reason, count in dropped.items():
        typer.echo(f"  {count:,} left out: {reason}")


def _rewording(endpoint: Endpoint, egress: str) -> Reword:
    from wsigym.agents.client import Client
    from wsigym.agents.egress import check_egress
    from wsigym.agents.stems import rewrite_stems

    check_egress(endpoint, egress)
    client = Client(endpoint)

    def reword(asked: list[Asked]) -> list[Asked]:
        with progress_of("questions") as progress:
            found = rewrite_stems(asked, client, progress=progress)
        for reason, count in found.kept.items():
            typer.echo(f"{count:,} questions keep the template after three tries: {reason}", err=True)
        return found.asked

    return reword


def _refuse(task: str, **given: bool) -> None:
    for name, is_given in given.items():
        if is_given:
            raise InvalidArgumentError(f"--{name} is of evipath's options; {task} is built by rules without it.")


def _build_pathview(task: str, cohort: Cohort, seed: int, as_json: bool) -> None:
    from wsigym.cohorts.builders.pathview import build_pathview
    from wsigym.cohorts.builders.pathview.writing import DROPPED

    name = task.partition("/")[2]
    with progress_of("images") as progress:
        built = build_pathview(cohort, [name] if name else [], seed=seed, progress=progress)
    if as_json:
        typer.echo(json.dumps({"task": task, **asdict(built)}, indent=2))
        return
    splits = ", ".join(f"{built.splits.get(split, 0):,} {split}" for split in ("train", "val", "test"))
    typer.echo(f"{built.pictures:,} images ({splits}), {built.annotations:,} annotations")
    for reason, count in built.dropped[""].items():
        typer.echo(f"  {count:,} annotations left out: {reason}")
    for name, items in built.items.items():
        typer.echo(f"{PATHVIEW}/{name}: {items:,} items")
        for reason, count in built.dropped[name].items():
            typer.echo(f"  {count:,} not asked: {reason}")
    typer.echo(f"each with its image and label in {cohort.root / DROPPED}")


@app.command()
def encoders(
    first: Annotated[Path, typer.Argument(help="A run on items built with one encoder.")],
    second: Annotated[Path, typer.Argument(help="A run of the same policies on items built with another.")],
    as_json: AsJson = False,
) -> None:
    """Does the ranking of policies depend on the encoder that chose the distractors? Spearman's rho (EviPathBench)."""
    from wsigym.benchmarks.encoder_ablation import encoder_table
    from wsigym.benchmarks.run_folder import load_run
    from wsigym.benchmarks.tables import tables_to_json

    table = encoder_table(load_run(first, steps=False), load_run(second, steps=False))
    if as_json:
        typer.echo(tables_to_json([table]))
    else:
        console = console_for_tables()
        console.print(table.to_rich(console.width))


def _cell(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names and text.strip() not in ("", "none"):
        raise InvalidArgumentError(f"--cell {text}: names joined by commas are needed, such as {CELL}, or none.")
    return () if names == ("none",) else names
