"""`wsigym demo`: the main job on synthetic slides, from slide files to a results table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from .progress import progress_of
from .table import console_for_tables

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="Where the run folder and the pictures go.")] = Path("demo-out"),
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes (default: the CPUs).")] = None,
) -> None:
    """Sweep the baselines over three budgets on twelve synthetic slides; print the table and the budget curve."""
    from wsigym.benchmarks.demo import DEMO_SLIDES
    from wsigym.benchmarks.demo import demo as run_demo

    typer.echo(f"wsigym demo: {DEMO_SLIDES} synthetic slides (made once), six policies, three budgets.")
    with progress_of("slides") as slides, progress_of("episodes") as episodes:
        made = run_demo(out, jobs=jobs or os.cpu_count() or 1, slides_progress=slides, episodes_progress=episodes)
    console = console_for_tables()
    for table in made.tables:
        console.print()
        console.print(table.to_rich(console.width))
    typer.echo(f"\nslides:       {made.cohort}")
    typer.echo(f"records:      {made.run}")
    typer.echo(f"budget curve: {made.curve}")
    typer.echo(f"trajectory:   {made.trajectory}")
    typer.echo(f"next:         wsigym table {made.run} --causes --published")
