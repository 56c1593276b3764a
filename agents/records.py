"""What a record keeps of an agent: its requests, their price, and what was disclosed to whom."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["AgentRecord", "Disclosure", "RequestRecord"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RequestRecord(_Part):
    """One question to a model and its answer, as the agent asked it.

    `turn` counts the requests of an episode from 0. Tokens are the server's own count, None where it gives none;
    `tokens_cached` are those of `tokens_in` that it had cached. `seconds` is the time from the first sending to the
    whole answer, with the `retries` and the pauses between. `cost_usd` is None where the endpoint has no price; where
    the server does not count tokens, it is the most that the request can have cost. `image_bytes` is the size of the
    encoded images, before base64. `forced`: a reasoning model came to its token limit and was made to answer, in a
    second request that all figures include. `replayed`: the answer came from the request log, and the figures are those
    of the first time. `sha256` is that of the request's body, as in the log's line; of a forced answer, of the second.
    """

    endpoint: str
    turn: int = Field(ge=0)
    sha256: str
    tokens_in: int | None = Field(ge=0)
    tokens_out: int | None = Field(ge=0)
    tokens_cached: int | None = Field(default=None, ge=0)
    seconds: float = Field(ge=0)
    retries: int = Field(default=0, ge=0)
    cost_usd: float | None = Field(default=None, ge=0)
    image_count: int = Field(default=0, ge=0)
    image_bytes: int = Field(default=0, ge=0)
    image_pixels: int = Field(default=0, ge=0)
    forced: bool = False
    finish_reason: str
    replayed: bool = False
    prompt_sha256: str | None = None


class Disclosure(_Part):
    """What an episode showed to an endpoint.

    `metadata` names the fields told; `tissue_share` is, by magnification, the share in 0..1 of the search box's tissue
    that was sent as pixels of that magnification.
    """

    metadata: tuple[str, ...] = ()
    tissue_share: dict[str, float] = {}


class AgentRecord(_Part):
    """What an agent did in one episode, beside its steps.

    `endpoints` maps each endpoint's name to its place, `disclosure` to what it was shown; `prompts` each prompt's name
    to the sha256 of its text.
    `checkpoints` are the agent's own judgements on the way; `end_reason` says why the agent gave no answer.
    """

    requests: tuple[RequestRecord, ...] = ()
    endpoints: dict[str, Literal["local", "external"]] = {}
    prompts: dict[str, str] = {}
    disclosure: dict[str, Disclosure] = {}
    checkpoints: tuple[dict[str, Any], ...] = ()
    end_reason: str | None = None
