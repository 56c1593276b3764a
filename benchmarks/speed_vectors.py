"""Many episodes of pan and zoom at once: in threads, in turn, in processes, and the way HistoGym reads.

Every contestant steps 16 environments of 96 px views over one large slide. An environment of LocalizationPanZoom-v0
gives an overview and three views a frame; the yardstick gives what is said of it.

HistoGym (github.com/XjtuAI/HistoGym, gymhisto.py) keeps a position (level, column, row) of OpenSlide's
DeepZoomGenerator with an overlap of 1, moves by one tile or one level, and returns that tile, resized to the view and
transposed. That path is stated anew here and nothing else of it: no annotations, no reward, no printing, whole tiles
only. It starts at random levels, where a long walk of its would be, not at the coarsest ones, which cost it most.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import openslide
from openslide.deepzoom import DeepZoomGenerator

from wsigym.cohorts import Cohort
from wsigym.envs.pan_zoom import ACTIONS, FINISH

from .speed_slides import SpeedSlide, speed_slide
from .speed_timing import Ratio, ratio

__all__ = ["DeepZoomEnv", "VectorRow", "VectorSizes", "bench_vectors"]

ENV_ID = "wsigym/LocalizationPanZoom-v0"
SEED = 20261203
FINISHING = 0.125
VIEW_PX = 96

OURS = "one process"

MODES: Mapping[str, dict[str, Any]] = {
    "asynchronous": {"vectorization_mode": "async"},  # first: its workers fork before there are threads
    OURS: {"vectorization_mode": "vector_entry_point"},
    "synchronous": {"vectorization_mode": "sync"},
}
"""What `gymnasium.make_vec` is asked for."""

YARDSTICK = "HistoGym's reading"


@dataclass(frozen=True, slots=True)
class VectorSizes:
    """Side of the slide, environments, steps of each in one round (the yardstick takes a quarter), rounds."""

    side_px: int = 24_000
    environments: int = 16
    steps: int = 96
    rounds: int = 5

    @classmethod
    def quick(cls) -> VectorSizes:
        return cls(4_096, 2, 16, 1)


@dataclass(frozen=True, slots=True)
class VectorRow:
    """Medians over rounds. `frames` a second by the clock, `frames_a_core` a second of processor time of all processes.

    `mib` is memory (proportional set size) of all its processes above that of a process that only imported wsigym.
    `ours` is how many times the frames of "one process" are of these, and `ours_a_core` a processor second. NaN where
    the system does not tell.
    """

    name: str
    frames: float
    frames_a_core: float
    mib: float
    ours: Ratio
    ours_a_core: Ratio


def bench_vectors(sizes: VectorSizes, progress: Callable[[int, int], None] | None = None) -> tuple[VectorRow, ...]:
    """Measure in turns on a large slide of the user's cache, which is made where it is not there yet."""
    slide = speed_slide(SpeedSlide(sizes.side_px, (1, 4, 16), 256))
    with TemporaryDirectory() as folder:
        cohort = _cohort_of(slide, sizes.side_px, Path(folder))
        memory = {mode: _memory_apart(cohort, mode, sizes) for mode in MODES}
        contestants: dict[str, _Vector | _HistoGym] = {
            mode: _Vector(cohort, mode, sizes.environments) for mode in MODES
        }
        contestants[YARDSTICK] = _HistoGym(slide, sizes.environments)
        try:
            rounds = [_round(contestants, number, sizes, progress) for number in range(sizes.rounds + 1)][1:]
        finally:
            for contestant in contestants.values():
                contestant.close()
    return tuple(_row(name, rounds, memory.get(name, float("nan"))) for name in contestants)


Round = dict[str, tuple[float, float]]
"""Frames a second by the clock, and a second of processors, by contestant."""


def _round(
    contestants: Mapping[str, Any], number: int, sizes: VectorSizes, progress: Callable[[int, int], None] | None
) -> Round:
    names = list(contestants)
    turn = number % len(names)
    taken = {}
    for name in names[turn:] + names[:turn]:
        contestant = contestants[name]
        began, cpu = time.perf_counter(), _cpu_s(contestant.workers)
        steps = sizes.steps // 4 if name == YARDSTICK else sizes.steps
        contestant.play(steps)
        frames = steps * sizes.environments
        taken[name] = frames / (time.perf_counter() - began), frames / (_cpu_s(contestant.workers) - cpu)
    if progress is not None:
        progress(number + 1, sizes.rounds + 1)
    return taken


def _row(name: str, rounds: list[Round], mib: float) -> VectorRow:
    theirs, ours = ([[each[which][kind] for each in rounds] for kind in (0, 1)] for which in (name, OURS))
    frames, frames_a_core = (statistics.median(kind) for kind in theirs)
    by_clock, by_core = (ratio(one, other) for one, other in zip(ours, theirs, strict=True))
    return VectorRow(name, frames, frames_a_core, mib, by_clock, by_core)


class _Vector:
    """Environments of ours under a random policy that keeps to the masks."""

    def __init__(self, cohort: Path, mode: str, number: int) -> None:
        self.envs: Any = gym.make_vec(ENV_ID, number, cohort=Cohort.load(cohort, allow_outside=True), **MODES[mode])
        self.rng = np.random.default_rng(SEED)
        self.masks = self.envs.reset(seed=SEED)[1]["action_mask"]

    @property
    def workers(self) -> list[int]:
        return [process.pid for process in getattr(self.envs.unwrapped, "processes", ())]

    def play(self, steps: int) -> None:
        for _ in range(steps):
            self.masks = self.envs.step(self._actions())[-1]["action_mask"]

    def _actions(self) -> npt.NDArray[np.int64]:
        chances = self.rng.random((len(self.masks), len(ACTIONS))) * self.masks
        moves = np.delete(chances, FINISH, axis=1)
        ends = (self.rng.random(len(moves)) < FINISHING) | ~moves.any(axis=1)
        return np.where(ends, FINISH, moves.argmax(axis=1))

    def close(self) -> None:
        self.envs.close()


class _HistoGym:
    """Environments that read as HistoGym does, one after the other, each with its own OpenSlide handle."""

    workers: tuple[int, ...] = ()

    def __init__(self, slide: Path, number: int) -> None:
        self.rng = np.random.default_rng(SEED)
        self.envs = [DeepZoomEnv(slide, VIEW_PX, self.rng) for _ in range(number)]

    def play(self, steps: int) -> None:
        for _ in range(steps):
            for env, action in zip(self.envs, self.rng.integers(6, size=len(self.envs)), strict=True):
                env.step(int(action))

    def close(self) -> None:
        for env in self.envs:
            env.slide.close()


class DeepZoomEnv:
    """The yardstick: a tile of a DeepZoom pyramid, moved by up, down, left, right, zoom in, zoom out (0 to 5)."""

    def __init__(self, slide: Path, tile_px: int, rng: np.random.Generator) -> None:
        self.slide = openslide.OpenSlide(slide)
        self.pyramid = DeepZoomGenerator(self.slide, tile_size=tile_px, overlap=1, limit_bounds=False)
        self.tile_px = tile_px
        # Its coarsest level is the first that is larger than a tile.
        self.first = next(level for level, size in enumerate(self.pyramid.level_dimensions) if min(size) > tile_px)
        level = int(rng.integers(self.first, self.pyramid.level_count))
        self.place = (level, *(int(rng.integers(tiles)) for tiles in self.pyramid.level_tiles[level]))

    def step(self, action: int) -> npt.NDArray[np.uint8]:
        """uint8 (3, tile_px, tile_px)."""
        level, column, row = self.place
        if action == 4 and level + 1 < self.pyramid.level_count:
            level, column, row = level + 1, 2 * column + 1, 2 * row + 1
        elif action == 5 and level > self.first:
            level, column, row = level - 1, column // 2, row // 2
        elif action < 4:
            column, row = column + (0, 0, -1, 1)[action], row + (-1, 1, 0, 0)[action]
        columns, rows = self.pyramid.level_tiles[level]
        self.place = level, min(max(column, 0), columns - 1), min(max(row, 0), rows - 1)
        level, column, row = self.place
        tile = self.pyramid.get_tile(level, (column, row)).resize((self.tile_px, self.tile_px))
        return np.asarray(tile).transpose(2, 0, 1)


def _cohort_of(slide: Path, side_px: int, folder: Path) -> Path:
    """Queries at 2.5x, 10x and 40x on the slide, in boxes of the shares that diagnostic trees have."""
    rng = np.random.default_rng(SEED)
    nodes: list[dict[str, Any]] = []

    def add(parent: dict[str, Any] | None, outer: tuple[int, int, int], magnifications: list[float]) -> None:
        for _ in range(2):
            side = outer[2] // 3
            x, y = (int(outer[axis] + rng.integers(outer[2] - side)) for axis in (0, 1))
            node = {
                "slide_id": "speed",
                "node_id": str(len(nodes)),
                "parent_id": parent and parent["node_id"],
                "magnification": magnifications[0],
                "box": [x, y, side, side],
                "finding": f"finding {len(nodes)}",
            }
            nodes.append(node)
            if len(magnifications) > 1:
                add(node, (x, y, side), magnifications[1:])

    add(None, (0, 0, side_px), [2.5, 10, 40])
    manifest = {"format": "wsigym-cohort/1", "name": "speed", "slides": [{"slide_id": "speed", "path": str(slide)}]}
    (folder / "cohort.json").write_text(json.dumps(manifest), encoding="utf-8")
    (folder / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in nodes), encoding="utf-8")
    return folder


# -- what processes use -------------------------------------------------------------------------------------------


def _cpu_s(workers: Any) -> float:
    """Processor seconds that this process and `workers` have used so far."""
    return time.process_time() + sum(_cpu_of(pid) for pid in workers)


def _cpu_of(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return float("nan")
    user, system = stat.read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _memory_apart(cohort: Path, mode: str, sizes: VectorSizes) -> float:
    """`VectorRow.mib`, seen in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(_memory_here, cohort, mode, sizes).result()


def _memory_here(cohort: Path, mode: str, sizes: VectorSizes) -> float:
    before = _proportional_mib(os.getpid())
    vector = _Vector(cohort, mode, sizes.environments)
    vector.play(sizes.steps)
    after = sum(_proportional_mib(pid) for pid in (os.getpid(), *vector.workers))
    vector.close()
    return after - before


def _proportional_mib(pid: int) -> float:
    rollup = Path(f"/proc/{pid}/smaps_rollup")
    if not rollup.exists():
        return float("nan")
    (line,) = (line for line in rollup.read_text().splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) / 1024
