"""A progress bar on stderr, where that is a terminal and the work takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_of"]

PROGRESS_AFTER_SECONDS = 2.0


@contextmanager
def progress_of(things: str) -> Iterator[Callable[[int, int], None] | None]:
    """A function to call with (done, asked) as work on `things` goes on; None where nobody would see it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(things), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(things)
    began = time.monotonic()

    def show(done: int, asked: int) -> None:
        bar.update(task, completed=done, total=asked)
        if not bar.live.is_started and time.monotonic() - began > PROGRESS_AFTER_SECONDS:
            bar.start()

    try:
        yield show
    finally:
        bar.stop()
