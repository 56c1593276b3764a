"""The client: asks an endpoint, keeps the answer, pays for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .records import RequestRecord

if TYPE_CHECKING:
    from .costs import Purse
    from .endpoints import Endpoint
    from .request_log import RequestLog

__all__ = ["Answer", "Client", "ImagesSent", "ToolCall", "Turn"]


@dataclass(frozen=True)
class Turn:
    """Which question of which episode: the canonical JSON of the episode's key, and a count of its requests from 0."""

    episode: str
    number: int


@dataclass(frozen=True)
class ImagesSent:
    """The images in a request: how many, bytes as encoded (before base64), pixels; sums over all of its messages."""

    count: int = 0
    bytes: int = 0
    pixels: int = 0


@dataclass(frozen=True)
class ToolCall:
    """A tool call as the model wrote it: `name` may be no tool's, `arguments` may be no JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Answer:
    """What a model answered. All of it may be empty.

    `refusal` is the model's or the server's word that it declines. `first_token_logprobs` maps each candidate for the
    first token to its natural-log probability, None where they were not asked for or not given.
    """

    text: str
    tool_calls: tuple[ToolCall, ...]
    refusal: str | None
    finish_reason: str
    first_token_logprobs: Mapping[str, float] | None
    request: RequestRecord


class Client:
    """Asks one endpoint. One a run, shared by its episodes, in one event loop."""

    def __init__(self, endpoint: Endpoint, *, log: RequestLog | None = None, purse: Purse | None = None) -> None:
        self.endpoint = endpoint
        self._log, self._purse = log, purse

    async def ask(
        self,
        turn: Turn,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: str | Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        logprobs: bool = False,
        transcript: Sequence[Mapping[str, Any]] = (),
        images: ImagesSent = ImagesSent(),
        prompt_sha256: str | None = None,
    ) -> Answer:
        """One answer. Raises `EndpointError`, `CostLimitError`, `RunWriteError`."""
        raise NotImplementedError

    async def close(self) -> None:
        """Let the connections go."""
