"""The client's pace, with a short window in place of a minute."""

from __future__ import annotations

import asyncio
import time

from wsigym.agents.pacing import Pace

WINDOW_S = 0.3


def gone(pace: Pace, tokens: list[int]) -> list[float]:
    """Seconds at which each request went, in the order in which they came."""

    async def go(tokens: int) -> float:
        await pace.go(tokens)
        return time.monotonic() - began

    async def all_of_them() -> list[float]:
        return list(await asyncio.gather(*map(go, tokens)))

    began = time.monotonic()
    return asyncio.run(all_of_them())


def test_no_window_holds_more_requests() -> None:
    at = gone(Pace(2, None, WINDOW_S), [0] * 7)
    assert at == sorted(at)
    assert all(later - earlier >= WINDOW_S for earlier, later in zip(at, at[2:], strict=False))
    assert at[-1] < 4 * WINDOW_S


def test_no_window_holds_more_tokens() -> None:
    at = gone(Pace(None, 100, WINDOW_S), [60, 40, 1, 100, 500])
    assert at[1] < WINDOW_S <= at[2]
    assert at[3] - at[2] >= WINDOW_S
    assert at[4] - at[3] >= WINDOW_S  # more than any window may hold: alone


def test_counted_tokens_replace_the_guess() -> None:
    async def scenario() -> float:
        pace = Pace(None, 100, WINDOW_S)
        sent = await pace.go(90)
        sent.tokens = 10
        began = time.monotonic()
        await pace.go(90)
        return time.monotonic() - began

    assert asyncio.run(scenario()) < WINDOW_S / 2


def test_a_pause_is_everybodys() -> None:
    pace = Pace(None, None)
    pace.pause(0.2)
    pace.pause(0.1)  # a shorter one does not shorten it
    at = gone(pace, [0] * 5)
    assert min(at) >= 0.15
    assert max(at) < 1
