"""Open files: which are kept open, whether they are still what they were, and whose they are after a fork."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from wsigym.errors import SlideReadError

from .backends import Backend

__all__ = ["MAX_OPEN_FILES", "FileState", "OpenFiles", "check_unchanged", "file_state", "open_files"]

MAX_OPEN_FILES = 64
"""Slides kept open at once. Systems allow a process 256 files (macOS) or 1,024 (Linux) unless told otherwise."""


class FileState(NamedTuple):
    """What tells a file from another that took its place."""

    inode: int
    size: int
    modified_ns: int


def file_state(location: str) -> FileState | None:
    """The state of a local file; None for a URL. Raises `OSError` where there is none."""
    if "://" in location:
        return None
    status = os.stat(location)  # noqa: PTH116  # on every read; a Path would cost more than the call
    return FileState(status.st_ino, status.st_size, status.st_mtime_ns)


def check_unchanged(location: str, before: FileState | None) -> None:
    """Raise `SlideReadError` unless the file is the one that was opened."""
    if before is None:
        return
    try:
        now = file_state(location)
    except OSError as error:
        raise SlideReadError(f"{location}: the file is no longer there ({error.strerror}).") from error
    if now != before:
        raise SlideReadError(
            f"{location}: the file was replaced or changed after it was opened; what is known of it no longer holds. "
            f"Open it again."
        )


class OpenFiles:
    """Backends by (name, location), the least recently used leaving first. For any number of threads.

    A backend that leaves is not closed but let go: it closes when the last read that uses it is done.
    """

    def __init__(self, limit: int) -> None:
        self._lock = threading.Lock()
        self._open: OrderedDict[tuple[str, str], tuple[FileState | None, Backend]] = OrderedDict()
        self.limit = limit

    def __len__(self) -> int:
        return len(self._open)

    def get(self, name: str, location: str, state: FileState | None, opener: Callable[[str], Backend]) -> Backend:
        """The open backend of a file in the given state, opened if it is not."""
        key = name, location
        with self._lock:
            found = self._open.get(key)
            if found is not None and found[0] == state:
                self._open.move_to_end(key)
                return found[1]
        # Two threads may both open; one of the two is let go.
        backend = opener(location)
        self.put(name, location, state, backend)
        return backend

    def put(self, name: str, location: str, state: FileState | None, backend: Backend) -> None:
        leaving = []  # until the lock is free: closing a file may take its time
        with self._lock:
            leaving.append(self._open.pop((name, location), None))
            self._open[name, location] = state, backend
            while len(self._open) > self.limit:
                leaving.append(self._open.popitem(last=False)[1])

    def drop(self, name: str, location: str) -> None:
        with self._lock:
            leaving = self._open.pop((name, location), None)
        del leaving


_open_files = OpenFiles(MAX_OPEN_FILES)
_inherited: list[OpenFiles] = []


def open_files() -> OpenFiles:
    """The process's open files."""
    return _open_files


def _after_fork() -> None:
    """A child opens files for itself: those of its parent share offsets, and locks that may be held for ever.

    They are kept, not closed, since closing takes such locks too.
    """
    global _open_files
    _inherited.append(_open_files)
    _open_files = OpenFiles(_open_files.limit)


os.register_at_fork(after_in_child=_after_fork)
