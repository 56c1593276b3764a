"""Prices, the bound on a request's tokens, and a purse that no order of events makes overspend."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsigym.agents.costs import Purse, Reserved, cost_usd, most_tokens_in
from wsigym.agents.endpoints import Endpoint
from wsigym.errors import CostLimitError, InvalidArgumentError

PRICED = Endpoint(name="e", base_url="http://h/v1", model="m", price_in=2.0, price_out=8.0, price_cached=0.5)


def test_cost_by_hand() -> None:
    # 600 x 2 + 400 x 0.5 + 50 x 8 = 1,800 millionths.
    assert cost_usd(PRICED, 1000, 50, 400) == pytest.approx(0.0018)
    assert cost_usd(PRICED.model_copy(update={"price_cached": None}), 1000, 50, 400) == pytest.approx(0.0024)
    assert cost_usd(PRICED, 100, 0, 900) == pytest.approx(100 * 0.5 / 1e6)  # more cached than there was
    assert cost_usd(PRICED.model_copy(update={"price_in": None, "price_out": None}), 1, 1) is None


def test_bound_by_hand() -> None:
    assert most_tokens_in(PRICED, 1000, 3, 2) == 1000 + 3 * 64 + 2 * 4096
    larger = PRICED.model_copy(update={"max_image_px": 2048})
    assert most_tokens_in(larger, 0, 0, 2) == 2 * 4 * 4096


@given(
    limit=st.floats(0, 2),
    spent=st.floats(0, 1),
    requests=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(0, 3)), max_size=12),
    seed=st.integers(0, 100),
)
def test_never_more_than_the_limit(
    limit: float, spent: float, requests: list[tuple[float, float, int]], seed: int
) -> None:
    """Each request costs a share of its maximum, is not counted by the server, fails, or is given up."""
    purse, rng, worst = Purse(limit, spent), random.Random(seed), [0.0]

    async def request(most: float, share: float, ending: int) -> None:
        async with purse.reserve(most) as reserved:
            worst.append(purse.spent_usd + purse.in_flight_usd)
            for _ in range(rng.randrange(3)):
                await asyncio.sleep(0)
            if ending == 0:
                raise RuntimeError("the server failed")
            reserved.settle(None if ending == 1 else share * most)

    async def all_requests() -> None:
        tasks = [asyncio.ensure_future(request(*each)) for each in requests]
        await asyncio.sleep(0)
        for task, (_, _, ending) in zip(tasks, requests, strict=True):
            if ending == 3:
                task.cancel()
        async with asyncio.timeout(5):  # nobody waits for ever
            done = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(
            each is None or isinstance(each, CostLimitError | RuntimeError | asyncio.CancelledError) for each in done
        )

    asyncio.run(all_requests())
    assert max(worst) <= max(limit, 0) + 1e-9 or max(worst) == 0
    assert purse.spent_usd <= max(limit, spent) + 1e-9
    assert purse.in_flight_usd == 0


def test_what_is_not_counted_costs_the_maximum() -> None:
    reserved = Reserved(0.5)
    assert reserved.paid_usd == 0
    reserved.settle(None)
    assert reserved.paid_usd == 0.5
    reserved.settle(0.25)
    assert reserved.paid_usd == 0.25


def test_waits_while_others_may_turn_out_cheaper() -> None:
    async def scenario() -> None:
        purse = Purse(1.0)
        order: list[str] = []

        async def second() -> None:
            async with purse.reserve(0.6) as reserved:
                order.append("second")
                reserved.settle(0.6)

        async with purse.reserve(0.6) as first:
            waiting = asyncio.ensure_future(second())
            await asyncio.sleep(0.01)
            order.append("first")
            first.settle(0.1)
        await waiting
        assert order == ["first", "second"]
        assert purse.spent_usd == pytest.approx(0.7)
        with pytest.raises(CostLimitError, match=r"may cost up to 0.4000 USD, and 0.7000 of --max-cost 1 are spent"):
            async with purse.reserve(0.4):
                pass

    asyncio.run(scenario())


@pytest.mark.parametrize("limit", [-1.0, float("nan"), float("inf")])
def test_a_limit_is_an_amount(limit: float) -> None:
    with pytest.raises(InvalidArgumentError, match="a number of USD from 0 is needed"):
        Purse(limit)
