"""What requests cost, and a purse that never pays more than its limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from wsigym.errors import CostLimitError, InvalidArgumentError

from .endpoints import Endpoint

__all__ = ["Purse", "Reserved", "cost_usd", "most_tokens_in"]

TEMPLATE_TOKENS = 64
"""Allowance for what a server's chat template puts around a message, beside the message's own JSON."""


def cost_usd(endpoint: Endpoint, tokens_in: int, tokens_out: int, tokens_cached: int = 0) -> float | None:
    """The price of a request in USD; None where the endpoint has none. `tokens_cached` are part of `tokens_in`."""
    if endpoint.price_in is None or endpoint.price_out is None:
        return None
    cached = min(max(tokens_cached, 0), tokens_in)
    price_cached = endpoint.price_in if endpoint.price_cached is None else endpoint.price_cached
    paid = (tokens_in - cached) * endpoint.price_in + cached * price_cached + tokens_out * endpoint.price_out
    return paid / 1e6


def most_tokens_in(endpoint: Endpoint, text_bytes: int, messages: int, images: int) -> int:
    """An upper bound on the input tokens of a request.

    A token of the byte-level vocabularies that models use covers at least one byte, so text has at most as many tokens
    as UTF-8 bytes (all of the request's JSON without its images counts as text), plus `TEMPLATE_TOKENS` a message. An
    image counts `Endpoint.image_tokens`, more in proportion where images may be larger than 1024 x 1024 px.
    """
    larger = max(1.0, (endpoint.max_image_px / 1024) ** 2)
    return text_bytes + TEMPLATE_TOKENS * messages + int(images * endpoint.image_tokens * larger + 0.5)


class Reserved:
    """Money put aside for one request. Until `settle` is called it counts at its maximum; unsettled, it goes back."""

    def __init__(self, most_usd: float) -> None:
        self.most_usd = most_usd
        self.paid_usd = 0.0

    def settle(self, usd: float | None) -> None:
        """What the request did cost; None, where the server did not say, counts as the maximum."""
        self.paid_usd = self.most_usd if usd is None else usd


class Purse:
    """What may be spent, shared by all requests of a run in one event loop.

    `spent_usd` is what was paid before, such as by the run that this one resumes. A request is let through when what is
    spent, what others in flight cost at most and what it costs at most stay within the limit; while others may still
    turn out cheaper, it waits. A try that failed is not billed.
    """

    def __init__(self, limit_usd: float, spent_usd: float = 0.0) -> None:
        if not limit_usd >= 0 or limit_usd == float("inf"):
            raise InvalidArgumentError(f"--max-cost is {limit_usd}; a number of USD from 0 is needed.")
        self.limit_usd = limit_usd
        self.spent_usd = spent_usd
        self._in_flight: set[Reserved] = set()
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def in_flight_usd(self) -> float:
        """What the requests under way cost at most."""
        return sum(reserved.most_usd for reserved in self._in_flight)

    @asynccontextmanager
    async def reserve(self, most_usd: float) -> AsyncIterator[Reserved]:
        """Put money aside for the request of the block. Raises `CostLimitError` where it could pass the limit."""
        while True:
            if self.spent_usd + most_usd > self.limit_usd:
                raise CostLimitError(
                    f"the next request may cost up to {most_usd:.4f} USD, and {self.spent_usd:.4f} of --max-cost "
                    f"{self.limit_usd:g} are spent. What was answered is kept: a higher --max-cost goes on from here."
                )
            if self.spent_usd + self.in_flight_usd + most_usd <= self.limit_usd:
                break
            turned = asyncio.get_running_loop().create_future()
            self._waiting.append(turned)
            await turned
        reserved = Reserved(most_usd)
        self._in_flight.add(reserved)
        try:
            yield reserved
        finally:
            self._in_flight.remove(reserved)
            self.spent_usd += reserved.paid_usd
            for turned in self._waiting:
                if not turned.done():
                    turned.set_result(None)
            self._waiting.clear()
