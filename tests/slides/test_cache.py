"""The process's decoded tiles: bounded in bytes, the least recently used leaving first."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from slides_builder import noise, write_slide

from wsigym.errors import InvalidArgumentError
from wsigym.slides import Box, cache_info, open_slide, set_cache_size
from wsigym.slides.cache import DEFAULT_CACHE_BYTES, TileCache


@pytest.fixture(autouse=True)
def _default_size() -> Iterator[None]:
    yield
    set_cache_size(DEFAULT_CACHE_BYTES)


def _tile(value: int) -> npt.NDArray[np.uint8]:
    return np.full((10, 10, 3), value, dtype=np.uint8)


def test_the_least_recently_used_leaves_first() -> None:
    cache = TileCache(900)
    for number in range(3):
        cache.put(number, _tile(number))
    assert cache.info() == (0, 0, 3, 900, 900)
    assert cache.get(0) is not None
    cache.put(3, _tile(3))
    assert [number for number in range(4) if cache.get(number) is not None] == [0, 2, 3]
    assert cache.info() == (4, 1, 3, 900, 900)
    cache.resize(300)
    assert cache.info().bytes == 300
    assert cache.get(3) is not None


def test_a_tile_larger_than_the_bound_is_not_kept_and_drives_no_other_out() -> None:
    cache = TileCache(299)
    cache.put("small", _tile(0)[:5].copy())
    cache.put("large", _tile(0))
    assert cache.get("large") is None
    assert cache.info()[2:4] == (1, 150)


def test_a_tile_put_twice_counts_once_and_is_read_only() -> None:
    cache = TileCache(1000)
    for _ in range(2):
        cache.put("same", _tile(1))
    assert cache.info().bytes == 300
    tile = cache.get("same")
    assert tile is not None
    assert not tile.flags.writeable


def test_what_is_kept_is_what_the_arrays_take(tmp_path: Path) -> None:
    """No array keeps a larger one alive: edge tiles are copies."""
    path = write_slide(tmp_path / "edges.tif", noise(100, 70), downsamples=(1,), compression="jpeg")
    set_cache_size(0)
    set_cache_size(DEFAULT_CACHE_BYTES)
    with open_slide(path) as slide:
        slide.read(slide.box)
        assert cache_info()[2:4] == (4, 100 * 70 * 3)


@pytest.mark.parametrize("backend", ["tiles", "tiffslide"])
def test_threads_with_a_tiny_cache_read_right_pixels(tmp_path: Path, backend: str) -> None:
    path = write_slide(tmp_path / "slide.tif", noise(700, 500), compression="jpeg", bigtiff=True)
    slide = open_slide(path, backend=backend)
    rng = np.random.default_rng(0)
    boxes = [Box(*(int(value) for value in rng.integers((-50, -50, 1, 1), (650, 450, 300, 300)))) for _ in range(60)]
    expected = [slide.read(box, (40, 30)).tobytes() for box in boxes]
    set_cache_size(5 * 64 * 64 * 3)

    def work(seed: int) -> bool:
        order = np.random.default_rng(seed).permutation(len(boxes))
        return all(slide.read(boxes[place], (40, 30)).tobytes() == expected[place] for place in order)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))
    info = cache_info()
    assert info.bytes <= info.max_bytes == 5 * 64 * 64 * 3
    assert info.tiles <= 5 * 16  # of the smallest levels


@pytest.mark.parametrize("size", [-1, 2.5, "256", True])
def test_a_size_is_a_number_of_bytes(size: int) -> None:
    with pytest.raises(InvalidArgumentError, match="max_bytes is"):
        set_cache_size(size)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("8", 8 * 2**20),
        ("0", 0),
        ("0.5", 2**19),
        (None, DEFAULT_CACHE_BYTES),
        ("lots", "a number of MiB"),
        ("-1", "a number of MiB"),
        ("nan", "a number of MiB"),
        ("inf", "a number of MiB"),
    ],
)
def test_the_environment_sets_the_size(text: str | None, answer: int | str) -> None:
    code = """
from wsigym.errors import InvalidArgumentError
from wsigym.slides import cache_info
try:
    print(cache_info().max_bytes)
except InvalidArgumentError as error:
    print(error)
"""
    environment = {name: value for name, value in os.environ.items() if name != "WSIGYM_CACHE_MB"}
    if text is not None:
        environment["WSIGYM_CACHE_MB"] = text
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert str(answer) in done.stdout
