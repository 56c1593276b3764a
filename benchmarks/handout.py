"""Which worker plays which episodes, by one rule for every engine, and what becomes of those whose worker dies."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from .episodes import Setup, failed_record
from .records import EpisodeKey, EpisodeRecord

__all__ = ["DEATHS_ALLOWED", "Handout"]

DEATHS_ALLOWED = 1
"""How often the worker of an episode may die before the episode is given up."""

MAX_CHUNK = 16
"""Episodes handed to a worker at once, and then those that finish the last one's slide."""

SLIDE_CHUNKS = 3
"""How many chunks more a worker is given to finish a slide whose tiles are in its cache. Together with the chunk they
are no more than its share of the run."""


class Handout:
    """The episodes of a run in the order of play, given out to `workers` in chunks of neighbours, slide by slide.

    `left` counts those without a record; whoever gets a record from a worker takes one off.
    """

    def __init__(self, setup: Setup, keys: Sequence[EpisodeKey], workers: int) -> None:
        self.left = len(keys)
        self._setup = setup
        self._waiting = deque(keys)
        self._chunk = max(1, min(MAX_CHUNK, len(keys) // (4 * workers) if workers else 1))
        self._deaths: Counter[EpisodeKey] = Counter()

    @property
    def waiting(self) -> int:
        """How many no worker has been given."""
        return len(self._waiting)

    def chunk(self) -> list[EpisodeKey]:
        """The next episodes. Each worker decodes a slide's tiles for itself, so that only a long one is shared."""
        chunk: list[EpisodeKey] = []
        while self._waiting and (len(chunk) < self._chunk or self._goes_on(chunk)):
            chunk.append(self._waiting.popleft())
        return chunk

    def _goes_on(self, chunk: Sequence[EpisodeKey]) -> bool:
        slide = self._slide(self._waiting[0])
        return slide is not None and slide == self._slide(chunk[-1]) and len(chunk) < (1 + SLIDE_CHUNKS) * self._chunk

    def _slide(self, key: EpisodeKey) -> str | float | None:
        return self._setup.items[key.item, key.rotation].groups.get("slide")

    def lost(self, unfinished: Sequence[EpisodeKey], how: str) -> EpisodeRecord | None:
        """A worker died with these episodes unfinished, of which it was playing the first: they come first again.

        One that was under way when its worker died, twice, is given up: its record is returned, and says `how`.
        """
        again, record = list(unfinished), None
        if again:
            self._deaths[again[0]] += 1
            if (times := self._deaths[again[0]]) > DEATHS_ALLOWED:
                error = f"its worker process died {times} times ({how} the last time)"
                record = failed_record(self._setup, again.pop(0), error)
                self.left -= 1
        self._waiting.extendleft(reversed(again))
        return record
