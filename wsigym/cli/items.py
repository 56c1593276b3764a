"""`wsigym items build | encoders`: what evidence tasks ask, built from a cohort's annotations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wsigym.errors import InvalidArgumentError, RunError, UnknownNameError

from .endpoint import EndpointsFile, Settings, chosen_endpoint
from .models import told_spent
from .progress import progress_of
from .table import console_for_tables

if TYPE_CHECKING:
    from wsigym.agents.endpoints import Endpoint
    from wsigym.cohorts import Asked, Cohort
    from wsigym.cohorts.builders import Build, Built, Reword

__all__ = ["app"]

app = typer.Typer(help="Build the items of evidence tasks.", no_args_is_help=True, rich_markup_mode=None)

Folder = Annotated[Path, typer.Argument(help="The cohort's folder; the items are written into it.")]
Cell = Annotated[
    str, typer.Option(help="What distractors share with the key, beside the split: of organ,magnification, or none.")
]
Seed = Annotated[int, typer.Option(help="Of the order of starts, options and lots.")]
AllowOutside = Annotated[bool, typer.Option("--allow-outside", help="Allow slide paths that leave the cohort folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
EVIPATH, PATHVIEW = "evipath", "pathview"
STEMS = "stems"
"""The cohort's folder of answered requests for questions in other words."""
THRESHOLD = 0.6
CELL = "organ,magnification"


@app.command()
def build(
    task: Annotated[
        str,
        typer.Argument(metavar="SUITE[/TASK]", help="Such as evipath/interpretation; a suite alone is all its tasks."),
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
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", metavar="USD", help="Stop before the cohort's questions have cost more."),
    ] = None,
    egress: Annotated[
        str,
        typer.Option(metavar="local|any", help="Where questions may go: loopback and private addresses, or anywhere."),
    ] = "local",
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Build the items of a task, or of all of a suite, and their references. They replace those that the cohort has."""
    from wsigym.cohorts import Cohort
    from wsigym.cohorts.builders import Build

    tasks = _tasks(task)
    loaded = Cohort.load(cohort, allow_outside=allow_outside)
    if max_cost is not None and stem_endpoint is None:
        raise InvalidArgumentError("--max-cost is what --stem-endpoint may cost, and none is given.")
    suite = task.partition("/")[0]
    if suite != EVIPATH:
        given = {"encoder": encoder != "tfidf", "cell": cell != CELL, "threshold": threshold != THRESHOLD}
        _refuse(task, given | {"stem-endpoint": stem_endpoint is not None})
    if suite == PATHVIEW:
        _build_pathview(task, loaded, seed, as_json)
        return
    plan = Build(encoder=encoder, cell=_cell(cell), seed=seed, threshold=threshold)
    if stem_endpoint is not None:
        endpoint = chosen_endpoint(stem_endpoint, None, None, endpoints, settings)
        plan = replace(plan, reword=_rewording(endpoint, loaded.root / STEMS, max_cost, egress))
    built, not_built = _build_tasks(tasks, loaded, plan)
    if as_json:
        typer.echo(json.dumps(_json(task, built, not_built), indent=2))
        return
    for name in tasks:
        if name in not_built:
            typer.echo(not_built[name])
            continue
        typer.echo(f"{name}: {len(built[name].asked):,} items in {cohort}")
        for reason, count in _dropped(built[name]).items():
            typer.echo(f"  {count:,} left out: {reason}")


def _tasks(name: str) -> list[str]:
    """The task itself, or the tasks of a suite. Raises `UnknownNameError`."""
    from wsigym.cohorts.builders import BUILDERS, pathview

    known = [*BUILDERS, *(f"{PATHVIEW}/{rule.name}" for rule in pathview.TASKS)]
    suites = dict.fromkeys(each.partition("/")[0] for each in known)
    if name not in known and name not in suites:
        raise UnknownNameError("suite or task with items to build", name, [*suites, *known])
    return [each for each in known if name in (each, each.partition("/")[0])]


def _build_tasks(tasks: list[str], cohort: Cohort, plan: Build) -> tuple[dict[str, Built], dict[str, str]]:
    """What was built of each task, and why nothing of the others. Raises the first reason where that is all."""
    from wsigym.cohorts.builders import build_items

    built: dict[str, Built] = {}
    not_built: dict[str, InvalidArgumentError] = {}
    for task in tasks:
        try:
            built[task] = build_items(task, cohort, plan)
        except InvalidArgumentError as error:
            not_built[task] = error
    if not built:
        raise next(iter(not_built.values()))
    return built, {task: str(error) for task, error in not_built.items()}


def _dropped(built: Built) -> dict[str, int]:
    return {reason: count for reason, count in built.dropped.items() if count}


def _json(task: str, built: Mapping[str, Built], not_built: Mapping[str, str]) -> dict[str, object]:
    """One task's numbers by themselves, a suite's by task."""
    items = {name: len(each.asked) for name, each in built.items()}
    dropped = {name: _dropped(each) for name, each in built.items()}
    if task in built:
        return {"task": task, "items": items[task], "dropped": dropped[task]}
    return {"task": task, "items": items, "dropped": dropped, "not_built": dict(not_built)}


def _rewording(endpoint: Endpoint, folder: Path, max_cost: float | None, egress: str) -> Reword:
    """Raises what is known to be wrong with the endpoint before anything is built; asks it nothing."""
    from wsigym.agents.stems import rewrite_stems
    from wsigym.benchmarks.models import Models

    models = Models([(endpoint,)], "", max_cost=max_cost, egress=egress)
    models.check([])

    def reword(asked: list[Asked]) -> list[Asked]:
        with _held(folder), models.opened(folder) as opened, progress_of("questions") as progress:
            try:
                found = rewrite_stems(asked, opened.client(endpoint.name), progress=progress)
            except KeyboardInterrupt:
                kept = f"stopped; answers are kept in {folder}, and the same command goes on from there"
                typer.echo(kept, err=True)
                raise typer.Exit(1) from None
            finally:
                typer.echo(told_spent(opened.spent, opened.in_all), err=True)
        for reason, count in found.kept.items():
            typer.echo(f"{count:,} questions keep the template after three tries: {reason}", err=True)
        return found.asked

    return reword


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """The folder made, and locked, as one process writes its log."""
    import filelock

    folder.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(folder / ".lock", blocking=False):
            yield
    except filelock.Timeout:
        raise RunError(f"{folder} is in use by another build; wait until it has ended.") from None


def _refuse(task: str, given: Mapping[str, bool]) -> None:
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
        typer.echo(f"  {count:,} left out: {reason}")
    for name, items in built.items.items():
        typer.echo(f"{PATHVIEW}/{name}: {items:,} items")
        for reason, count in built.dropped[name].items():
            typer.echo(f"  {count:,} not asked: {reason}")
    if any(built.dropped.values()):
        typer.echo(f"what is left out or not asked, one by one: {cohort.root / DROPPED}")


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
