"""The client's own pace: requests and tokens a minute, and pauses that a server asks for."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass

__all__ = ["Pace", "Sent"]

WINDOW_S = 60.0


@dataclass
class Sent:
    """A request in the window: when it went, and how many tokens it counts."""

    at: float
    tokens: int


class Pace:
    """Lets requests go, first come first served, so that no window of `window_s` seconds holds more than the limits.

    Tokens are estimated when a request goes and corrected through its `Sent` once the server has counted. A request
    that alone is above the limit goes when the window is empty.
    """

    def __init__(self, requests: int | None, tokens: int | None, window_s: float = WINDOW_S) -> None:
        self._requests, self._tokens, self._window_s = requests, tokens, window_s
        self._sent: deque[Sent] = deque()
        self._turn = asyncio.Lock()  # fair: waiters get it in the order in which they came
        self._paused_until = 0.0

    async def go(self, tokens: int) -> Sent:
        """Wait for this request's turn; it counts from then on."""
        async with self._turn:
            while (wait := self._wait(tokens)) > 0:
                await asyncio.sleep(wait)
            sent = Sent(time.monotonic(), tokens)
            if self._requests is not None or self._tokens is not None:
                self._sent.append(sent)
            return sent

    def pause(self, seconds: float) -> None:
        """Nobody goes before `seconds` are over."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    def _wait(self, tokens: int) -> float:
        """Seconds until there may be room; 0 or less where there is."""
        now = time.monotonic()
        while self._sent and self._sent[0].at <= now - self._window_s:
            self._sent.popleft()
        if now < self._paused_until:
            return self._paused_until - now
        full = self._requests is not None and len(self._sent) >= self._requests
        if self._tokens is not None and self._sent:
            full = full or sum(sent.tokens for sent in self._sent) + tokens > self._tokens
        return self._sent[0].at + self._window_s - now if full else 0.0
