"""Worker processes that play episodes, and survive each other.

Workers are spawned, never forked: slide libraries do not survive a fork. Each gets its `Setup` once and then chunks of
keys; a record comes back as soon as its episode is over. A worker that is killed is replaced, and its unfinished
episodes are given out again; an episode that was under way when its worker died, twice, is an infrastructure error.
Workers die with their parent, however it dies.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from wsigym.errors import RunError, WsigymWarning

from .episodes import Player, Setup
from .handout import DEATHS_ALLOWED, Handout
from .records import EpisodeKey, EpisodeRecord

__all__ = ["play_all"]


def play_all(setup: Setup, keys: Sequence[EpisodeKey], jobs: int) -> Iterator[EpisodeRecord]:
    """Play every episode in `jobs` processes; records come in the order in which they finish.

    Closing the iterator ends the workers. Raises `RunError` if workers die before they can play at all.
    """
    pool = _Pool(setup, keys, min(jobs, len(keys)))
    try:
        yield from pool.records()
    finally:
        pool.stop()


@dataclass
class _Worker:
    process: SpawnProcess
    pipe: Connection
    ready: bool = False
    given: deque[EpisodeKey] = field(default_factory=deque)
    """Unfinished episodes, in the order of play: the first is under way."""


class _Pool:
    def __init__(self, setup: Setup, keys: Sequence[EpisodeKey], jobs: int) -> None:
        self._setup = setup
        self._handout = Handout(setup, keys, jobs)
        self._stillborn = 0
        self._context = multiprocessing.get_context("spawn")
        self._workers = [self._start() for _ in range(jobs)]

    def records(self) -> Iterator[EpisodeRecord]:
        while self._handout.left:
            pipes = {worker.pipe: worker for worker in self._workers}
            for pipe in wait(list(pipes)):
                worker = pipes[pipe]  # type: ignore[index]  # only pipes were waited for
                try:
                    message = worker.pipe.recv_bytes()
                except (EOFError, OSError):
                    yield from self._bury(worker)
                    continue
                if worker.ready:
                    worker.given.popleft()
                    self._handout.left -= 1
                    yield EpisodeRecord.model_validate_json(message)
                worker.ready = True
                self._give(worker)

    def stop(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.process.close()
            worker.pipe.close()

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(self._setup, theirs), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def _give(self, worker: _Worker) -> None:
        """The next chunk, once the last is done."""
        if worker.given or not self._handout.waiting:
            return
        chunk = self._handout.chunk()
        worker.given.extend(chunk)
        with contextlib.suppress(OSError):  # It is dead; the next wait says so.
            worker.pipe.send(chunk)

    def _bury(self, worker: _Worker) -> Iterator[EpisodeRecord]:
        """Replace a worker that died, and see to its unfinished episodes."""
        worker.process.join()
        code = worker.process.exitcode
        self._workers.remove(worker)
        worker.process.close()
        worker.pipe.close()
        if not worker.ready:
            self._stillborn += 1
            if self._stillborn > DEATHS_ALLOWED:
                raise RunError(
                    f"worker processes die while starting (exit code {code}); run with --jobs 1 to see why. "
                    "A script that calls run(jobs=...) needs `if __name__ == '__main__':` around the call."
                )
        if (given_up := self._handout.lost(worker.given, f"exit code {code}")) is not None:
            yield given_up
        if self._handout.waiting:
            self._workers.append(self._start())


def _work(setup: Setup, pipe: Connection) -> None:
    """A worker's whole life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent is told, and ends its workers.
    threading.Thread(target=_die_with_parent, daemon=True).start()
    warnings.simplefilter("ignore", WsigymWarning)  # The parent has opened the same slides, and warned.
    player = Player(setup)
    with contextlib.suppress(EOFError, OSError):  # The parent is gone, and nobody is left to tell.
        pipe.send_bytes(b"ready")
        while True:
            for key in pipe.recv():
                pipe.send_bytes(player.play(key).model_dump_json().encode())


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
