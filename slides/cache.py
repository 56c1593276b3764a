"""Decoded tiles, kept for all slides and environments of a process within a bound in bytes."""

from __future__ import annotations

import itertools
import os
import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

__all__ = [
    "CACHE_MB_VARIABLE",
    "DEFAULT_CACHE_BYTES",
    "CacheInfo",
    "TileCache",
    "cache_info",
    "next_token",
    "set_cache_size",
    "tiles",
]

DEFAULT_CACHE_BYTES = 256 * 2**20
CACHE_MB_VARIABLE = "WSIGYM_CACHE_MB"

Tile = npt.NDArray[np.uint8]


class CacheInfo(NamedTuple):
    """Look-ups that found their tile and that did not, tiles kept now, and their bytes against the bound."""

    hits: int
    misses: int
    tiles: int
    bytes: int
    max_bytes: int


class TileCache:
    """Tiles by key, the least recently used leaving first. For any number of threads.

    Tiles are shared: whoever gets one does not write to it, and they are marked so.
    """

    def __init__(self, max_bytes: int) -> None:
        self._lock = threading.Lock()
        self._tiles: OrderedDict[Hashable, Tile] = OrderedDict()
        self._bytes = self._hits = self._misses = 0
        self._max_bytes = max_bytes

    def get(self, key: Hashable) -> Tile | None:
        with self._lock:
            tile = self._tiles.get(key)
            if tile is None:
                self._misses += 1
            else:
                self._hits += 1
                self._tiles.move_to_end(key)
            return tile

    def put(self, key: Hashable, tile: Tile) -> None:
        """Keep a tile, which holds no larger memory than its own, unless it alone is larger than the bound."""
        tile.flags.writeable = False
        with self._lock:
            if tile.nbytes > self._max_bytes or key in self._tiles:  # in the latter case another thread was quicker
                return
            self._tiles[key] = tile
            self._bytes += tile.nbytes
            self._shrink()

    def resize(self, max_bytes: int) -> None:
        with self._lock:
            self._max_bytes = max_bytes
            self._shrink()

    def info(self) -> CacheInfo:
        with self._lock:
            return CacheInfo(self._hits, self._misses, len(self._tiles), self._bytes, self._max_bytes)

    def emptied(self) -> TileCache:
        """A new cache of the same bound."""
        return TileCache(self._max_bytes)

    def _shrink(self) -> None:
        while self._bytes > self._max_bytes:
            self._bytes -= self._tiles.popitem(last=False)[1].nbytes


_cache: TileCache | None = None


def tiles() -> TileCache:
    """The process's cache."""
    global _cache
    if _cache is None:
        _cache = TileCache(_bytes_from_environment())
    return _cache


_tokens = itertools.count()


def next_token() -> int:
    """A number that no other open file of this process has: what the keys of its tiles begin with."""
    return next(_tokens)


def set_cache_size(max_bytes: int) -> None:
    """Bound the decoded tiles that this process keeps, from now on; 0 keeps none. The default is 256 MiB.

    The environment variable `WSIGYM_CACHE_MB` sets it (in MiB) for processes that have not called this.
    """
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 0:
        raise InvalidArgumentError(f"max_bytes is {max_bytes!r}; it is a whole number of bytes, 0 or more.")
    tiles().resize(max_bytes)


def cache_info() -> CacheInfo:
    """How the decoded tiles of this process fare: hits, misses, tiles, bytes, max_bytes."""
    return tiles().info()


def _bytes_from_environment() -> int:
    text = os.environ.get(CACHE_MB_VARIABLE)
    if text is None:
        return DEFAULT_CACHE_BYTES
    try:
        megabytes = float(text)
        size = int(megabytes * 2**20)
    except (ValueError, OverflowError):
        size = -1
    if size < 0:
        raise InvalidArgumentError(f"{CACHE_MB_VARIABLE} is {text!r}; it is a number of MiB, 0 or more, such as 256.")
    return size


def _after_fork() -> None:
    """A child starts with an empty cache: another thread of the parent may have held the lock, or been half-way."""
    global _cache
    if _cache is not None:
        _cache = _cache.emptied()


os.register_at_fork(after_in_child=_after_fork)
