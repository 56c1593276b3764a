"""`wsigym analyse ...`: what runs say together with something outside of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .table import console_for_tables

__all__ = ["app"]

app = typer.Typer(help="Analyses of runs beyond their tables.", no_args_is_help=True, rich_markup_mode=None)

Runs = Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders that `wsigym run` or `sweep` wrote.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON; shares are 0 to 1.")]


@app.command()
def matched(
    runs: Runs,
    external: Annotated[
        Path, typer.Option(metavar="JSONL", help='Lines of {"policy", "endpoint", "slide", "correct": true or false}.')
    ],
    as_json: AsJson = False,
) -> None:
    """The task's metric on the slides where a model answers an external question correctly (PathView-Bench)."""
    from wsigym.benchmarks.pathview.matched import matched_table, read_external
    from wsigym.benchmarks.run_folder import load_run
    from wsigym.benchmarks.tables import tables_to_json

    table = matched_table([load_run(folder, steps=False) for folder in runs], read_external(external))
    if as_json:
        typer.echo(tables_to_json([table]))
    else:
        console = console_for_tables()
        console.print(table.to_rich(console.width))


@app.command()
def sources(
    runs: Runs,
    against: Annotated[
        list[Path] | None,
        typer.Option(metavar="RUN", help="Runs of the same task on the other collection. May be repeated."),
    ] = None,
    common: Annotated[bool, typer.Option("--common", help="Only items that every row of a collection has.")] = False,
    as_json: AsJson = False,
) -> None:
    """Whether policies stand in the same order on two collections of cases (CaseScope's Teaching and Atlas)."""
    from wsigym.benchmarks.casescope.sources import sources_table
    from wsigym.benchmarks.rows import join_runs
    from wsigym.benchmarks.run_folder import load_run
    from wsigym.benchmarks.suites import EVIDENCE_TASKS
    from wsigym.benchmarks.tables import tables_to_json
    from wsigym.errors import InvalidArgumentError

    records, others = (
        join_runs([load_run(folder, steps=False) for folder in folders], common=common) if folders else None
        for folders in (runs, against)
    )
    assert records is not None, "typer asks for at least one run"
    name = f"{records[0].suite}/{records[0].task}"
    task = next((each for each in EVIDENCE_TASKS if each.name == name), None)
    if task is None or {record.task for record in others or ()} - {records[0].task}:
        raise InvalidArgumentError(f"runs of one evidence task are compared; found {name} first, or several.")
    table = sources_table(task, records, others)
    if as_json:
        typer.echo(tables_to_json([table]))
    else:
        console = console_for_tables()
        console.print(table.to_rich(console.width))
