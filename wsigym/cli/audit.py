"""`wsigym audit`: can the items of a cohort be answered without looking?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .progress import progress_of
from .table import console_for_tables

__all__ = ["audit"]


def audit(
    cohort: Annotated[Path, typer.Argument(help="The cohort's folder.")],
    name: Annotated[
        str | None, typer.Argument(metavar="[SUITE[/TASK]]", help="Only these items; else all of the cohort.")
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder of images that models may have seen.")
    ] = None,
    allow_outside: Annotated[
        bool, typer.Option("--allow-outside", help="Allow slide paths that leave the cohort folder.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every row and finding as JSON.")] = False,
) -> None:
    """Can items be answered without looking? Guessing rules, duplicates, stray answers. Exit code 1 if flagged."""
    from wsigym.benchmarks.audit import audit as run_audit
    from wsigym.benchmarks.audit.report import audit_tables, audit_to_dict
    from wsigym.cohorts import Cohort

    found = run_audit(Cohort.load(cohort, allow_outside=allow_outside), name, corpus=corpus, shown=progress_of)
    if as_json:
        typer.echo(json.dumps(audit_to_dict(found), indent=2, allow_nan=False))
    else:
        console = console_for_tables()
        for table in audit_tables(found):
            console.print(table.to_rich(console.width))
            console.print()
        console.print(f"{found.flagged} flagged" if found.flagged else "nothing is flagged")
    raise typer.Exit(1 if found.flagged else 0)
