"""A progress bar on stderr, where that is a terminal and the work takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsigym.benchmarks.runner import Progress

__all__ = ["progress_of"]

PROGRESS_AFTER_SECONDS = 2.0


@contextmanager
def progress_of(things: str) -> Iterator[Progress | None]:
    """A function to call with (done, asked) as work on `things` goes on; None where nobody would see it.

    A third argument is a note that stands at the end of the bar.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn(things),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.fields[note]}"),
    )
    bar = progress.Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(things, note="")
    began = time.monotonic()

    def show(done: int, asked: int, /, note: str = "") -> None:
        bar.update(task, completed=done, total=asked, note=note)
        if not bar.live.is_started and time.monotonic() - began > PROGRESS_AFTER_SECONDS:
            bar.start()

    try:
        yield show
    finally:
        bar.stop()
