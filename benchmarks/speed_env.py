"""`wsigym bench env`: steps of Localization-v0, alone and in vectors, and what of a step is not reading pixels; and
what `speed_vectors` measures."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gymnasium as gym
import numpy as np

from wsigym.cohorts import Cohort
from wsigym.cohorts.synthetic import default_cohort
from wsigym.envs.localization import EXTRACT_ROI, FINISH_AND_REPORT, LocalizationEnv
from wsigym.slides import Box, Slide, cache_info

from .speed_vectors import VectorRow, VectorSizes, bench_vectors

__all__ = ["EnvReport", "EnvRow", "EnvSizes", "bench_env"]

SEED = 20261202
FINISHING = 0.125
"""Share of steps that answer: episodes of eight steps, as with the base budget."""

VECTORS = (("sync", 4), ("sync", 16), ("async", 4), ("async", 16))


@dataclass(frozen=True, slots=True)
class EnvSizes:
    """Sides of views, and steps of one measurement."""

    views_px: tuple[int, ...] = (96, 224, 1024)
    steps: int = 800
    vectors: VectorSizes = field(default_factory=VectorSizes)

    @classmethod
    def quick(cls) -> EnvSizes:
        return cls((96,), 32, VectorSizes.quick())


@dataclass(frozen=True, slots=True)
class EnvRow:
    """`steps` a second by setting; `reads` a second of the same regions alone; `own_ms` of a step is not reading."""

    view_px: int
    reads: float
    steps: dict[str, float]
    own_ms: float
    own_median_ms: float


@dataclass(frozen=True, slots=True)
class EnvReport:
    rows: tuple[EnvRow, ...]
    second_env_mib: float
    vectors: tuple[VectorRow, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def bench_env(sizes: EnvSizes, progress: Callable[[int, int], None] | None = None) -> EnvReport:
    """Measure on the synthetic cohort of the user's cache, which is made where it is not there yet."""
    cohort = default_cohort()
    rows = []
    asked = len(sizes.views_px) + sizes.vectors.rounds + 1
    for number, view_px in enumerate(sizes.views_px):
        rows.append(_bench_view(cohort, view_px, sizes.steps))
        if progress is not None:
            progress(number + 1, asked)

    def round_done(done: int, _: int) -> None:
        if progress is not None:
            progress(len(rows) + done, asked)

    return EnvReport(tuple(rows), second_env_mib(cohort), bench_vectors(sizes.vectors, round_done))


def _bench_view(cohort: Path, view_px: int, steps: int) -> EnvRow:
    env = LocalizationEnv(cohort, view_px=view_px)
    _walk(env, steps // 4)  # slides are opened and checked once
    with _timed_reads() as reads:
        took = _walk(env, steps)
    own = [step_s - sum(read_s for read_s, *_ in reads_of) for step_s, reads_of in zip(took, reads, strict=True)]
    boxes = [read[1:] for reads_of in reads for read in reads_of]
    began = time.perf_counter()
    for slide, box, size in boxes:
        slide.read(box, size)
    reads_per_s = len(boxes) / (time.perf_counter() - began)
    rates = {"single": _single_rate(env, steps)}
    for mode, count in VECTORS:
        rates[f"{mode} {count}"] = _vector_rate(cohort, view_px, mode, count, steps)
    return EnvRow(view_px, reads_per_s, rates, statistics.mean(own) * 1e3, statistics.median(own) * 1e3)


def _walk(env: LocalizationEnv, steps: int) -> list[float]:
    """Seconds of each step; resets are not counted."""
    rng = np.random.default_rng(SEED)
    env.reset(seed=SEED)
    took = []
    for _ in range(steps):
        action = _actions(rng, ())
        began = time.perf_counter()
        *_, terminated, truncated, _ = env.step(action)
        took.append(time.perf_counter() - began)
        if terminated or truncated:
            env.reset()
    return took


def _single_rate(env: LocalizationEnv, steps: int) -> float:
    began = time.perf_counter()
    _walk(env, steps)
    return steps / (time.perf_counter() - began)


def _vector_rate(cohort: Path, view_px: int, mode: str, count: int, steps: int) -> float:
    vectors: Any = gym.make_vec(
        "wsigym/Localization-v0", num_envs=count, vectorization_mode=mode, cohort=cohort, view_px=view_px
    )
    rng = np.random.default_rng(SEED)
    try:
        vectors.reset(seed=SEED)
        vectors.step(_actions(rng, (count,)))
        rounds = max(4, steps // count)
        began = time.perf_counter()
        for _ in range(rounds):
            vectors.step(_actions(rng, (count,)))
        return rounds * count / (time.perf_counter() - began)
    finally:
        vectors.close()


def _actions(rng: np.random.Generator, shape: tuple[int, ...]) -> dict[str, Any]:
    """Looks of all sizes at random, and now and then an answer; one action, or a batch of them."""
    tool = np.where(rng.random(shape) < FINISHING, FINISH_AND_REPORT, EXTRACT_ROI)
    size = rng.uniform(0.05, 0.5, (*shape, 2))
    corner = rng.uniform(0, 1 - size)
    box = np.concatenate((corner, size), axis=-1).astype(np.float32)
    return {"tool": tool if shape else int(tool), "box": box, "confidence": np.full((*shape, 1), np.nan, np.float32)}


@contextmanager
def _timed_reads() -> Iterator[list[list[tuple[float, Slide, Box, tuple[int, int]]]]]:
    """The reads of each step meanwhile: seconds, slide, box, size. Reads of resets are left out."""
    steps: list[list[tuple[float, Slide, Box, tuple[int, int]]]] = []
    step, read = LocalizationEnv.step, Slide.read
    inside = False

    def timed_step(env: LocalizationEnv, action: dict[str, Any]) -> Any:
        nonlocal inside
        steps.append([])
        inside = True
        try:
            return step(env, action)
        finally:
            inside = False

    def timed_read(slide: Slide, box: Box, size: tuple[int, int]) -> Any:
        began = time.perf_counter()
        pixels = read(slide, box, size)
        if inside:
            steps[-1].append((time.perf_counter() - began, slide, box, size))
        return pixels

    with patch.object(LocalizationEnv, "step", timed_step), patch.object(Slide, "read", timed_read):
        yield steps


def second_env_mib(cohort: Path, view_px: int = 224, steps: int = 64) -> float:
    """MiB that the process grows by for a second environment on slides that a first has open, less the tile cache's.

    NaN where the system does not tell a process its memory.
    """
    loaded = Cohort.load(cohort)
    first = LocalizationEnv(loaded, view_px=view_px)
    _walk(first, steps)
    before = _resident_bytes() - cache_info().bytes
    second = LocalizationEnv(loaded, view_px=view_px)
    _walk(second, steps)
    return (_resident_bytes() - cache_info().bytes - before) / 2**20


def _resident_bytes() -> float:
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return float("nan")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
