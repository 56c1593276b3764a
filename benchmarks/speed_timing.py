"""Timing side by side: contestants take turns, so that what else the machine does falls on all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

__all__ = ["Ratio", "Seconds", "interleaved", "ratio"]


class Seconds(NamedTuple):
    """What one turn took: by the clock, and of this process's CPUs."""

    wall: float
    cpu: float


class Ratio(NamedTuple):
    """A ratio of medians, and the lowest and highest ratio of one round."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}-{self.high:.2f})"


def interleaved(contestants: Mapping[str, Callable[[int], object]], repeats: int) -> dict[str, list[Seconds]]:
    """Run every contestant once a round, in an order that rotates, with the round's number.

    Rounds count from 1; one round before, number 0, warms up and is not counted.
    """
    names = list(contestants)
    taken: dict[str, list[Seconds]] = {name: [] for name in names}
    for number in range(repeats + 1):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            wall, cpu = time.perf_counter(), time.process_time()
            contestants[name](number)
            seconds = Seconds(time.perf_counter() - wall, time.process_time() - cpu)
            if number:
                taken[name].append(seconds)
    return taken


def ratio(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """How many times `below` goes into `above`, round by round."""
    rounds = [one / other for one, other in zip(above, below, strict=True)]
    return Ratio(statistics.median(above) / statistics.median(below), min(rounds), max(rounds))
