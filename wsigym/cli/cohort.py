"""`wsigym cohort synth | check | import | export`: make, validate, fill and show cohorts."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from . import cohort_export, cohort_import
from .cohort_import import counted
from .progress import progress_of

__all__ = ["app"]

app = typer.Typer(help="Make, validate, fill and show cohorts.", no_args_is_help=True)
app.command("import")(cohort_import.import_)
app.command("export")(cohort_export.export)


@app.command()
def synth(
    out: Annotated[Path, typer.Argument(help="The new cohort's folder.")],
    slides: Annotated[int, typer.Option(help="How many slides.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same slides and annotations.")] = 0,
    size_px: Annotated[int, typer.Option(help="Side of a slide in level-0 pixels, a multiple of 256.")] = 8192,
    jobs: Annotated[int | None, typer.Option(help="Processes (default: the CPUs).")] = None,
) -> None:
    """Make a synthetic cohort: H&E-like slides with diagnostic trees and tumour regions."""
    from wsigym.cohorts.builders import BUILDERS
    from wsigym.cohorts.files import item_tasks
    from wsigym.cohorts.synthetic import make_synthetic_cohort

    try:
        with progress_of("slides") as progress:
            made = make_synthetic_cohort(out, slides=slides, seed=seed, size_px=size_px, jobs=jobs, progress=progress)
    except KeyboardInterrupt:
        typer.echo(f"stopped; nothing is left in {out}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"made {made} ({slides} slide{'s' if slides > 1 else ''})")
    suites = {f"{suite}/{task}" for suite, task in item_tasks(made)}
    if lacking := [name for name in BUILDERS if name not in suites]:
        typer.echo(
            f"{counted(slides, 'slides')} gave no items of {', '.join(lacking)}: too few lesions; six slides or more "
            "have some of every task (--slides)"
        )


@app.command()
def check(
    cohort: Annotated[Path, typer.Argument(help="The cohort's folder.")],
    allow_outside: Annotated[bool, typer.Option(help="Allow slide paths that leave the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the faults as JSON.")] = False,
) -> None:
    """Validate files, slides and boxes; list every fault, not only the first."""
    from wsigym.cohorts import Cohort, load_items
    from wsigym.cohorts.files import item_tasks

    faults = Cohort.faults_of(cohort, allow_outside=allow_outside)
    if as_json:
        typer.echo(json.dumps({"faults": [asdict(fault) for fault in faults]}, indent=2))
    elif faults:
        typer.echo("\n".join(str(fault) for fault in faults), err=True)
        typer.echo(f"{len(faults)} fault{'s' if len(faults) > 1 else ''} in {cohort}", err=True)
    else:
        loaded = Cohort.load(cohort, allow_outside=allow_outside)
        items = sum(len(load_items(loaded, suite, task)) for suite, task in item_tasks(loaded.root))
        typer.echo(
            f"{loaded.name}: {counted(len(loaded.slides), 'slides')}, {counted(len(loaded.nodes), 'nodes')}, "
            f"{counted(len(loaded.paths), 'paths')}, {counted(items, 'items')}"
        )
    raise typer.Exit(2 if faults else 0)
