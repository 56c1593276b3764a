"""`wsigym judge sheet | score`: free diagnoses before a judge who does not know who answered."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wsigym.errors import InvalidArgumentError

from .table import console_for_tables

__all__ = ["app"]

app = typer.Typer(
    help="Blinded sheets of free diagnoses, and how far two gradings agree.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def sheet(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Runs of casescope/a1.")],
    out: Annotated[Path, typer.Option(help="A folder for sheet.csv and key.csv.")],
    cohort: Annotated[
        Path | None, typer.Option(help="The cohort, where it no longer lies where the runs had it.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the codes, and so of the order.")] = 0,
) -> None:
    """Write the answers under codes for a judge to grade 0, 1 or 2, and apart from them the key."""
    from wsigym.benchmarks.casescope.judging import judge_sheet
    from wsigym.benchmarks.run_folder import load_run
    from wsigym.cohorts import Cohort

    loaded = [load_run(folder) for folder in runs]
    stamp = loaded[0].config.cohort
    made = judge_sheet(loaded, Cohort.load(cohort or stamp.path, allow_outside=stamp.allow_outside), seed)
    for name, text in (("sheet", made.sheet), ("key", made.key)):
        file = out / f"{name}.csv"
        if file.exists():
            raise InvalidArgumentError(f"{file} exists, and may hold grades; name another --out.")
        out.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    typer.echo(f"{made.answers:,} answers in {out / 'sheet.csv'}; {made.without:,} named no diagnosis")


@app.command()
def score(
    first: Annotated[Path, typer.Argument(help="A graded sheet.")],
    second: Annotated[Path, typer.Argument(help="Another grading of it, or the key, which has the ontology's grades.")],
    key: Annotated[Path | None, typer.Option(help="The key: shows what each model scores by the first.")] = None,
    as_json: AsJson = False,
) -> None:
    """Exact agreement and quadratic-weighted kappa of two gradings."""
    from wsigym.benchmarks.casescope.judging import agreement_tables, read_grades
    from wsigym.benchmarks.tables import tables_to_json

    known = None if key is None else read_grades(key)
    tables = agreement_tables(read_grades(first), read_grades(second), known)
    if as_json:
        typer.echo(tables_to_json(tables))
        return
    console = console_for_tables()
    for found in tables:
        console.print(found.to_rich(console.width))
