"""The episodes of one call of `run` that are not there yet: played, kept the moment they are over, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .engines import Engine
from .episodes import MakePolicy, Player
from .models import AGENT, Models, OpenModels, Spent
from .records import EpisodeKey, EpisodeRecord
from .run_folder import RunFolder
from .together import play_together

__all__ = ["Playing", "Progress", "RunSummary"]


class Progress(Protocol):
    """Called once before the first episode and after each."""

    def __call__(self, done: int, asked: int, /, note: str = "") -> None:
        """`done` of `asked` episodes are there; `note` says what was spent, where agents play."""


@dataclass(frozen=True)
class RunSummary:
    """What a call of `run` did. `failed` episodes ended in an infrastructure error; another call repeats them.

    `outcomes` counts how those played ended. Where agents played, `spent` is what this call's requests took, and
    `spent_in_all` what the run folder's did, those of unfinished episodes included. `stopped` says why no further
    episode was begun, such as the cost limit.
    """

    folder: Path
    asked: int
    finished_before: int
    played: int
    failed: int
    first_error: str | None
    outcomes: Mapping[str, int]
    stopped: str | None = None
    spent: Spent | None = None
    spent_in_all: Spent | None = None


class Playing:
    """What is left to play of `keys`: baselines first, as they are quick and cost nothing, then agents."""

    def __init__(self, folder: RunFolder, keys: Sequence[EpisodeKey], progress: Progress | None) -> None:
        self._folder, self._progress = folder, progress
        self._asked = len(keys)
        todo = [key for key in keys if key not in folder.finished]
        self._before = self._asked - len(todo)
        self._agents = [key for key in todo if key.policy.startswith(AGENT)]
        self._baselines = [key for key in todo if not key.policy.startswith(AGENT)]
        self._outcomes: Counter[str] = Counter()
        self._first_error: str | None = None
        self._models: OpenModels | None = None

    def all(self, player: Player, models: Models | None, engine: Engine, concurrency: int) -> RunSummary:
        """Play them; `models` is None where agents ask none that a run knows of."""
        self._tell()
        with closing(engine(player, self._baselines)) as records:
            for record in records:
                self._keep(record)
        if models is None:
            stopped = self._together(player, lambda name, _: player.setup.make_policy(name), concurrency, _nothing)
            return self._summary(stopped)
        with models.opened(self._folder.folder) as self._models:
            stopped = self._together(player, self._models.make_policy, concurrency, self._models.close)
            return self._summary(stopped)

    def _together(
        self, player: Player, make_policy: MakePolicy, concurrency: int, close: Callable[[], Awaitable[None]]
    ) -> str | None:
        if not self._agents:
            return None
        return play_together(
            player.setup,
            player.environments,
            make_policy,
            self._agents,
            seats=concurrency,
            keep=self._keep,
            close=close,
        )

    def _keep(self, record: EpisodeRecord) -> None:
        self._folder.append(record)
        self._outcomes[record.outcome] += 1
        if record.outcome == "infrastructure_error":
            self._first_error = self._first_error or record.error
        self._tell()

    def _tell(self) -> None:
        if self._progress is None:
            return
        cost = self._models.in_all.cost_usd if self._models else None
        self._progress(self._before + self._outcomes.total(), self._asked, "" if cost is None else f"{cost:.2f} USD")

    def _summary(self, stopped: str | None) -> RunSummary:
        models = self._models
        return RunSummary(
            self._folder.folder,
            self._asked,
            self._before,
            self._outcomes.total(),
            self._outcomes["infrastructure_error"],
            self._first_error,
            dict(self._outcomes),
            stopped,
            models.spent if models else None,
            models.in_all if models else None,
        )


async def _nothing() -> None:
    pass
