"""The files of the suite, written as items come, and put in place together at the end."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from ...files import ITEMS, REFERENCES, item_files
from ...item_files import VOCABULARY, Asked, line_of
from ...writing import write_text
from .tasks import SUITE

__all__ = ["DROPPED", "Writer"]

DROPPED = f"{REFERENCES}/{SUITE}/dropped.csv"
"""What is in no item, and why; it stands with the references, as it tells of them."""


class Writer:
    """Writes the items of some tasks and the log of what was dropped; a context manager.

    Nothing that was there changes unless the block ends well. A task without an item has no files then. `items` counts
    the items of each task, `dropped` what each task would have asked by reason, and under "" the annotations.
    """

    def __init__(self, root: Path, tasks: Sequence[str], vocabulary: Mapping[str, Sequence[str]]) -> None:
        self.items: Counter[str] = Counter()
        self.dropped: dict[str, Counter[str]] = {task: Counter() for task in ("", *tasks)}
        self._root, self._tasks, self._vocabulary = root, tasks, vocabulary
        self._files: dict[str, TextIO] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Writer:
        names = [name for task in self._tasks for name in item_files(SUITE, task)]
        for name in (*names, DROPPED):
            (self._root / name).parent.mkdir(parents=True, exist_ok=True)
            self._files[name] = self._stack.enter_context(_aside(self._root / name).open("w", encoding="utf-8"))
        self._log: Any = csv.writer(self._files[DROPPED], lineterminator="\n")
        self._log.writerow(("task", "source", "image", "label", "annotation", "reason"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        for name in self._files:
            if error is not None:
                _aside(self._root / name).unlink(missing_ok=True)
        if error is not None:
            return
        if self.items["region-description"]:
            write_text(self._root / ITEMS / SUITE / VOCABULARY, json.dumps(self._vocabulary, indent=1) + "\n")
        for task in self._tasks:
            for name in reversed(item_files(SUITE, task)):  # references first, so that no item is without
                if self.items[task]:
                    _aside(self._root / name).replace(self._root / name)
                else:
                    _aside(self._root / name).unlink()
                    (self._root / name).unlink(missing_ok=True)
        _aside(self._root / DROPPED).replace(self._root / DROPPED)

    def ask(self, task: str, asked: Asked) -> None:
        """Write an item and its reference."""
        items, references = item_files(SUITE, task)
        self._files[items].write(line_of(asked.item))
        self._files[references].write(line_of(asked.reference))
        self.items[task] += 1

    def annotation(self, source: str, image: str, label: str, where: str, reason: str) -> None:
        """Log a dropped annotation."""
        self._log.writerow(("", source, image, label, where, reason))
        self.dropped[""][reason] += 1

    def item(self, task: str, source: str, image: str, label: str, reason: str) -> None:
        """Log what would have been an item."""
        self._log.writerow((task, source, image, label, "", reason))
        self.dropped[task][reason] += 1


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.part")
