"""Episodes in flight side by side, for policies that spend their time waiting for a model.

One event loop in one process; environments work in threads, so that the loop is free for those who wait. Each seat has
an environment and a policy of its own and takes the next episode when its last is over, so that memory depends on the
seats and not on the episodes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from wsigym.errors import CostLimitError, EndpointError

from .episodes import Environments, MakePolicy, Seat, Setup
from .records import EpisodeKey, EpisodeRecord

__all__ = ["play_together"]


def play_together(
    setup: Setup,
    environments: Environments,
    make_policy: MakePolicy,
    keys: Sequence[EpisodeKey],
    *,
    seats: int,
    keep: Callable[[EpisodeRecord], None],
    close: Callable[[], Awaitable[None]],
) -> str | None:
    """Play the episodes in order, `seats` at once; `keep` gets each record the moment its episode is over.

    Returns None where all were played, else why no further one was begun: the cost limit, or an endpoint that would
    fail each of them alike. Those under way then play on until they are over or fail in the same way. `close` is
    awaited in the loop at the end, however that comes. Raises `RunWriteError`, and what `keep` raises; Ctrl-C ends it
    with `KeyboardInterrupt`, the episodes under way unrecorded.
    """
    table = _Table(setup, environments, make_policy, keys, keep)
    with asyncio.Runner() as loop:
        loop.run(table.play(min(seats, len(keys)), close))
    return table.stopped


class _Table:
    def __init__(
        self,
        setup: Setup,
        environments: Environments,
        make_policy: MakePolicy,
        keys: Sequence[EpisodeKey],
        keep: Callable[[EpisodeRecord], None],
    ) -> None:
        self.stopped: str | None = None
        self._setup, self._environments, self._make_policy = setup, environments, make_policy
        self._waiting = deque(keys)
        self._keep = keep

    async def play(self, seats: int, close: Callable[[], Awaitable[None]]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(seats):
                    group.create_task(self._at_a_seat())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await close()

    async def _at_a_seat(self) -> None:
        seat = Seat(self._setup, self._environments, self._make_policy, asyncio.to_thread)
        try:
            while self._waiting:
                self._keep(await seat.play(self._waiting.popleft()))
        except (CostLimitError, EndpointError) as error:
            self._waiting.clear()
            self.stopped = self.stopped or str(error)
        finally:
            seat.close()
