"""What is wrong with a source's files, gathered while they are read on: of a million faulty rows not all are told."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from wsigym.errors import AnnotationError, Fault

__all__ = ["TOLD", "Faults"]

TOLD = 1000
"""Faults of one file that are told one by one; of the others how many there are."""

_LINE = re.compile(r"line (\d+)(?:, column (\d+))?")


class Faults:
    """Faults by file, in the order in which they were found."""

    def __init__(self) -> None:
        self._told: dict[str, list[Fault]] = defaultdict(list)
        self._untold: dict[str, int] = defaultdict(int)

    def __bool__(self) -> bool:
        return bool(self._told)

    def add(self, file: str, line: int | None, field: str, message: str) -> None:
        """Note a fault, as `Fault` has it."""
        told = self._told[file]
        if len(told) < TOLD:
            told.append(Fault(file, line, field, message))
        else:
            self._untold[file] += 1

    @contextmanager
    def of_file(self, file: str) -> Iterator[None]:
        """A block that reads a file: an `AnnotationError` in it is a fault of the file, and ends the block."""
        try:
            yield
        except AnnotationError as error:
            place = _LINE.fullmatch(error.position)
            if place is None:
                self.add(file, None, error.position, error.reason)
            else:
                self.add(file, int(place[1]), "", error.reason + (f", column {place[2]}" if place[2] else ""))

    @property
    def listed(self) -> list[Fault]:
        """File by file; the last of a file with very many says how many more there are."""
        found: list[Fault] = []
        for file, told in self._told.items():
            found += told
            if file in self._untold:
                found.append(Fault(file, None, "", f"and {self._untold[file]:,} faults more"))
        return found
