"""Synthetic cohorts on disk: in a folder of the user's choice, or once in the user's cache."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path

import filelock
import platformdirs

from wsigym.errors import BuildError, InvalidArgumentError

from ..builders import build_synthetic_items
from ..writing import new_folder
from .cases import write_casescope
from .fields import LABELS, SOURCES
from .slide import Annotations, make_slide, source_of

__all__ = ["FORMAT_VERSION", "MAX_SIZE_PX", "MIN_SIZE_PX", "cached_cohort", "default_cohort", "make_synthetic_cohort"]

FORMAT_VERSION = 8
"""Raised whenever the generator's pixels, annotations or items change, so that caches are made anew."""

MIN_SIZE_PX, MAX_SIZE_PX, STEP_PX = 2048, 100_096, 256

_DEFAULT_SLIDES = 6

Progress = Callable[[int, int], None]


def make_synthetic_cohort(
    out: Path,
    *,
    slides: int,
    seed: int = 0,
    size_px: int = 8192,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Make a synthetic cohort in the new folder `out` and return it.

    Slides are 40x (0.25 um/px), `size_px` a side, levels 1/4/16. The same `seed` and `size_px` give the same pixels
    and annotations whatever `jobs` is (processes; default: the CPUs), and slide k is the same however many `slides`
    are made (with the same versions of numpy, scipy, OpenCV and libjpeg-turbo). `progress(done, total)` is called in
    this thread after each slide. The cohort is built beside `out` in a hidden folder and renamed at the end; what a
    killed build leaves there is removed by the next one.

    Raises `InvalidArgumentError` if `out` is there and not an empty folder, if it cannot be made, if another process is
    building it, or for numbers out of range.
    """
    out = Path(out)
    _check(slides, seed, size_px, jobs)
    jobs = min(slides, jobs or os.cpu_count() or 1)
    with new_folder(out) as folder:
        (folder / "slides").mkdir()
        (folder / "regions").mkdir()
        made: list[Annotations | None] = [None] * slides
        for done, (index, annotations) in enumerate(_make_all(folder, slides, seed, size_px, jobs), 1):
            made[index] = annotations
            if progress is not None:
                progress(done, slides)
        whole = [annotations for annotations in made if annotations is not None]
        manifest = {
            "format": "wsigym-cohort/1",
            "name": f"synthetic-seed{seed}",
            "slides": [source_of(seed, index).manifest() for index in range(slides)],
        }
        (folder / "cohort.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        for name, lines in (
            ("nodes.jsonl", [line for annotations in whole for line in annotations.nodes]),
            ("paths.jsonl", [line for annotations in whole for line in annotations.paths]),
        ):
            (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        for name, text in (("sources", SOURCES), ("labels", LABELS)):
            (folder / "pathview" / f"{name}.toml").write_text(text, encoding="utf-8")
        write_casescope(folder)
        build_synthetic_items(folder)
    return out


def cached_cohort(
    *, slides: int, seed: int = 0, size_px: int = 8192, jobs: int | None = None, progress: Progress | None = None
) -> Path:
    """The synthetic cohort of these parameters in the user's cache, made on the first call.

    The cache is `WSIGYM_CACHE_DIR`, or the platform's cache folder. Processes that ask at once wait for the first one.
    The folder's name holds the generator's version and parameters, so a newer generator makes a new cohort.
    Raises `InvalidArgumentError` where the cache cannot be written, and for numbers out of range.
    """
    _check(slides, seed, size_px, jobs)
    root = Path(os.environ.get("WSIGYM_CACHE_DIR") or platformdirs.user_cache_dir("wsigym"))
    key = json.dumps([FORMAT_VERSION, slides, seed, size_px])
    name = f"synthetic-v{FORMAT_VERSION}-{slides}x{size_px}-{hashlib.sha256(key.encode()).hexdigest()[:10]}"
    out = root / name
    if not (out / "cohort.json").is_file():
        lock = filelock.FileLock(root / f".{name}.lock")
        try:
            root.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except OSError as error:
            raise InvalidArgumentError(
                f"the cache folder {root} cannot be written ({error.strerror or error}); set WSIGYM_CACHE_DIR to one "
                "that can, or name a cohort."
            ) from None
        with lock:
            if not (out / "cohort.json").is_file():
                make_synthetic_cohort(out, slides=slides, seed=seed, size_px=size_px, jobs=jobs, progress=progress)
    return out


def default_cohort(*, progress: Progress | None = None) -> Path:
    """The small synthetic cohort that environments use when they are given none: six slides, made once."""
    return cached_cohort(slides=_DEFAULT_SLIDES, progress=progress)


def _check(slides: int, seed: int, size_px: int, jobs: int | None) -> None:
    if not 1 <= slides <= 9999:
        raise InvalidArgumentError(f"slides={slides}: a synthetic cohort has 1 to 9,999 slides.")
    if seed < 0:
        raise InvalidArgumentError(f"seed={seed}: a seed is 0 or more.")
    if not MIN_SIZE_PX <= size_px <= MAX_SIZE_PX or size_px % STEP_PX:
        raise InvalidArgumentError(
            f"size_px={size_px}: a slide's side is a multiple of {STEP_PX} from {MIN_SIZE_PX:,} to {MAX_SIZE_PX:,} px "
            "(default 8,192)."
        )
    if jobs is not None and jobs < 1:
        raise InvalidArgumentError(f"jobs={jobs}: 1 or more processes, or None for one a CPU.")


def _make_all(folder: Path, slides: int, seed: int, size_px: int, jobs: int) -> Iterator[tuple[int, Annotations]]:
    """Make each slide, in this process or in `jobs` others; yields them as they are done.

    The workers are plain child processes: multiprocessing's spawn would import the caller's script again, which breaks
    scripts without a main guard, and a cohort is made on the first `gym.make`. A worker whose parent died ends itself.
    """
    if jobs == 1:
        for index in range(slides):
            yield index, make_slide(folder, seed, index, size_px, lambda: None)
        return
    waiting = iter(range(slides))
    children: list[subprocess.Popen[str]] = []
    pool = ThreadPoolExecutor(jobs)
    try:
        children.extend(_worker(folder, seed, size_px) for _ in range(jobs))
        running = {
            pool.submit(_ask, child, index): child for child, index in zip(children, islice(waiting, jobs), strict=True)
        }
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                child = running.pop(future)
                yield future.result()
                for index in islice(waiting, 1):
                    running[pool.submit(_ask, child, index)] = child
    finally:
        for child in children:
            child.terminate()
        pool.shutdown(cancel_futures=True)
        for child in children:
            child.communicate()


def _worker(folder: Path, seed: int, size_px: int) -> subprocess.Popen[str]:
    """A process that makes the slides it is asked for; it finds modules where this one does."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "wsigym.cohorts.synthetic.worker", str(folder), str(seed), str(size_px)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def _ask(child: subprocess.Popen[str], index: int) -> tuple[int, Annotations]:
    """Have a worker make slide `index`, and wait for what is annotated on it."""
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        print(index, file=child.stdin, flush=True)
        answer = child.stdout.readline()
    except BrokenPipeError:
        answer = ""
    if not answer:
        told = child.stderr.read().strip().splitlines()  # a traceback, whose last line is the error
        raise BuildError(f"making slide {index} failed: {told[-1] if told else 'no reason given'}")
    return index, Annotations(**json.loads(answer))
