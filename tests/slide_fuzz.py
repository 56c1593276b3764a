"""Broken slide files by the thousand, and a worker process that opens and reads them. Imported by spawned processes.

A case is a number: it says which file is broken, how, and which backend reads it, so that `run_case` repeats one.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from slides_builder import noise, write_abbreviated, write_slide

from wsigym.errors import SlideError
from wsigym.slides import Box, open_slide

BACKENDS = ("auto", "tiles", "openslide", "tiffslide")
PATIENCE_S = 5.0
MEMORY_BYTES = 4 * 2**30
"""What a worker may map: a header that makes a reader ask for more is a failure, not a slow success."""

HEADER_BYTES = 600
"""Tags and tables are at the ends of these files; half of all flips fall there."""

READS: tuple[tuple[Box, tuple[int, int]], ...] = (
    (Box(0, 0, 192, 160), (96, 80)),
    (Box(50, 50, 80, 80), (80, 80)),
    (Box(-20, -20, 400, 300), (20, 15)),
)


def write_originals(folder: Path) -> None:
    """Sound files of every coding that a backend here decodes by itself or through a library."""
    pixels = noise(192, 160)
    options: dict[str, dict[str, Any]] = {
        "jpeg420.tif": {"compression": "jpeg", "subsampling": (2, 2)},
        "jpeg.svs": {"compression": "jpeg", "aperio": "|AppMag = 40|MPP = 0.25"},
        "big.tif": {"compression": "jpeg", "bigtiff": True},
        "deflate.tif": {"compression": "deflate"},
        "lzw.tif": {"compression": "lzw"},
        "raw.tif": {"compression": "none"},
    }
    for name, chosen in options.items():
        write_slide(folder / name, pixels, downsamples=(1, 4), **chosen)
    write_abbreviated(folder / "tables.tif", pixels, rgb=True)


def broken(data: bytes, rng: np.random.Generator) -> bytes:
    """The file with some bytes flipped, a piece zeroed, or its end missing."""
    changed = bytearray(data)
    how = rng.integers(4)
    if how == 0:
        return bytes(changed[: int(rng.integers(0, len(changed)))])
    if how == 1:
        start = int(rng.integers(0, len(changed)))
        size = int(rng.integers(1, 400))
        changed[start : start + size] = bytes(len(changed[start : start + size]))
        return bytes(changed)
    for _ in range(int(rng.integers(1, 12))):
        at_ends = rng.random() < 0.5
        place = int(rng.integers(-HEADER_BYTES, HEADER_BYTES)) if at_ends else int(rng.integers(len(changed)))
        changed[place % len(changed)] = int(rng.integers(256))
    return bytes(changed)


def run_case(case: int, folder: Path) -> str:
    """What comes of a case: "read", the name of a typed error, or what is wrong, which begins with "WRONG"."""
    rng = np.random.default_rng(case)
    originals = sorted(path for path in folder.iterdir() if not path.name.startswith("broken"))
    original = originals[case % len(originals)]
    path = folder / f"broken-{multiprocessing.current_process().pid}{original.suffix}"
    path.write_bytes(broken(original.read_bytes(), rng))
    backend = BACKENDS[int(rng.integers(len(BACKENDS)))]
    on_bad_tile = ("raise", "background")[int(rng.integers(2))]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with open_slide(path, backend=backend, on_bad_tile=on_bad_tile) as slide:
                for box, size in READS:
                    pixels = slide.read(box, size)
                    if pixels.shape != (size[1], size[0], 3) or pixels.dtype != np.uint8:
                        return f"WRONG: {original.name} by {backend}: {pixels.dtype} {pixels.shape}"
    except SlideError as error:
        return type(error).__name__
    except Exception as error:
        return f"WRONG: {original.name} by {backend}: {type(error).__name__}: {error}"
    return "read"


def work(connection: Connection, folder: str) -> None:
    """Answer cases until the other end closes."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            case = connection.recv()
        except EOFError:
            return
        connection.send(run_case(case, Path(folder)))


@dataclass
class Outcome:
    """Answers by kind, and the cases whose worker hung or died."""

    answers: Counter[str] = field(default_factory=Counter)
    wrong: dict[int, str] = field(default_factory=dict)
    hung: list[int] = field(default_factory=list)
    crashed: dict[int, int | None] = field(default_factory=dict)


def fuzz(cases: range, folder: Path) -> Outcome:
    """Run the cases in one worker, which is replaced when it takes over five seconds or dies."""
    outcome = Outcome()
    worker: _Worker | None = None
    for case in cases:
        if worker is None:
            worker = _Worker(folder)
        answer = worker.answer(case)
        if answer is not None:
            outcome.answers[answer.partition(":")[0]] += 1
            if answer.startswith("WRONG"):
                outcome.wrong[case] = answer
            continue
        code = worker.end()
        worker = None
        if code is None:
            outcome.hung.append(case)
        else:
            outcome.crashed[case] = code
    if worker is not None:
        worker.end()
    return outcome


class _Worker:
    def __init__(self, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, str(folder)), daemon=True)
        self._process.start()
        theirs.close()
        self._patience_s = 60.0  # the first answer waits for imports

    def answer(self, case: int) -> str | None:
        """None if the worker hangs or is dead."""
        try:
            self._ours.send(case)
            if not self._ours.poll(self._patience_s):
                return None
            self._patience_s = PATIENCE_S
            return str(self._ours.recv())
        except (EOFError, OSError):
            self._process.join(PATIENCE_S)
            return None

    def end(self) -> int | None:
        """The exit code of a worker that died by itself, None if it was still alive and had to be ended."""
        alive = self._process.is_alive()
        self._ours.close()
        if alive:
            self._process.kill()
        self._process.join()
        return None if alive else self._process.exitcode


def faulty_work(connection: Connection, folder: str) -> None:
    """A worker whose native code fails in case 1 and never returns in case 3."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    while True:
        try:
            case = connection.recv()
        except EOFError:
            return
        if case == 1:
            os.kill(os.getpid(), signal.SIGSEGV)
        if case == 3:
            time.sleep(60)
        connection.send("read")
