"""Reads of a slide for tests in several processes; in a module that spawned processes can import."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np

from wsigym.slides import Box, Slide


def processes(number: int, method: str) -> ProcessPoolExecutor:
    """They end by themselves: a Pool sends SIGTERM, which a child can miss where any library has set a handler."""
    return ProcessPoolExecutor(number, multiprocessing.get_context(method))


def read_bytes(slide: Slide, box: Box) -> bytes:
    return slide.read(box).tobytes()


def reads(slide: Slide, seed: int, count: int = 30) -> list[bytes]:
    """Seeded reads of all sizes, one of them large enough for OpenCV to use its own threads."""
    rng = np.random.default_rng(seed)
    found = [slide.read(slide.box, (650, 450)).tobytes()]
    for _ in range(count):
        x, y, side, px = (int(value) for value in rng.integers((-50, -50, 1, 1), (700, 500, 400, 120)))
        found.append(slide.read(Box(x, y, side, side), (px, px)).tobytes())
    return found


def reads_with_threads(slide: Slide, seed: int) -> list[bytes]:
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(partial(reads, slide), (seed, seed))
    assert one == two
    return one
