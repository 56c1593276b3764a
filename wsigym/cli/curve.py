"""`wsigym curve`: how trainings went."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wsigym.errors import InvalidArgumentError

from .table import console_for_tables

__all__ = ["curve"]


def curve(
    trainings: Annotated[list[Path], typer.Argument(metavar="TRAINING", help="Folders that `wsigym train` wrote.")],
    plot: Annotated[Path | None, typer.Option(metavar="PNG", help="Write the curves as a picture.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Learning curves: what each checkpoint of trainings is worth on the validation split."""
    from wsigym.benchmarks.learning_curve import learning_picture, learning_table
    from wsigym.benchmarks.tables import tables_to_json

    table = learning_table(trainings)
    if plot is not None:
        try:
            learning_picture(trainings).save(plot, format="PNG")
        except OSError as error:
            raise InvalidArgumentError(f"the picture cannot be written: {error}; choose another --plot.") from None
    if as_json:
        typer.echo(tables_to_json([table]))
    else:
        console = console_for_tables()
        console.print(table.to_rich(console.width))
