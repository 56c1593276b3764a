"""The command line: `wsigym COMMAND ...`. One file a command group; this one joins them.

Exit codes: 0 done, 1 the work failed, 2 bad arguments or bad input. An error that wsigym raises on purpose is
printed as its message, without a traceback.
"""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, NoReturn, TextIO

import typer
from rich.console import Console

import wsigym
from wsigym.errors import WsigymError, WsigymWarning

from . import (
    analyse,
    audit,
    bench,
    cohort,
    curve,
    demo,
    demos,
    endpoint,
    items,
    judge,
    listing,
    replay,
    review,
    run,
    serve,
    table,
    tiles,
    train,
    transcripts,
)

__all__ = ["app", "main"]

app = typer.Typer(
    name="wsigym",
    help="Environments in which agents navigate whole-slide pathology images.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(analyse.app, name="analyse")
app.add_typer(bench.app, name="bench")
app.add_typer(cohort.app, name="cohort")
app.add_typer(endpoint.app, name="endpoint")
app.add_typer(items.app, name="items")
app.add_typer(judge.app, name="judge")
app.add_typer(tiles.app, name="tiles")
for command in (
    demo.demo, listing.envs, listing.policies, listing.suites, run.run, run.sweep, replay.replay, table.table,
    transcripts.transcripts, demos.demos, serve.serve_scripted, train.train, curve.curve, audit.audit,
    review.review, review.export,
):  # fmt: skip
    app.command()(command)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(wsigym.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point of the `wsigym` command."""
    with _tidy_end(), warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            app()
        except WsigymError as error:
            _tell(str(error))
            sys.exit(2 if error.bad_input else 1)
        except OSError as error:  # a full disk, a folder without permission: the system's words say which
            _tell(f"{error.filename or 'the output'}: {error.strerror or error}")
            sys.exit(1)


@contextmanager
def _tidy_end() -> Iterator[None]:
    """SIGTERM, as `kill` and batch systems send it, ends the work as an error does, so that nothing half-made stays."""

    def end(number: int, _: object) -> NoReturn:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        # None is a handler that Python did not set, and cannot set again.
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def _tell(text: str) -> None:
    Console(stderr=True, soft_wrap=True).print(f"wsigym: {text}", markup=False, emoji=False, highlight=False)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Our own warnings are for the user, in one line; others keep the place in the code."""
    ours = issubclass(category, WsigymWarning)
    _tell(f"warning: {message}" if ours else f"{filename}:{lineno}: {category.__name__}: {message}")
