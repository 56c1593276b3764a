"""Model endpoints: where a model is served, what it takes, and how it is asked."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Coordinates", "Endpoint"]

Coordinates = Literal["level0", "unit", "permille", "view_px"]
"""`level0`: level-0 pixels of the slide; `unit`: 0..1 and `permille`: 0..1000 of the search box; `view_px`: pixels of
the overview as sent."""


class Endpoint(BaseModel):
    """A model behind an OpenAI-compatible server, and how it is to be asked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    base_url: str | None = None
    model: str
    api_key_env: str | None = None
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    max_tokens: int = Field(default=2048, ge=1)
    timeout_s: float = Field(default=120.0, gt=0)
    retries: int = Field(default=4, ge=0)
    price_in: float | None = Field(default=None, ge=0)
    price_out: float | None = Field(default=None, ge=0)
    price_cached: float | None = Field(default=None, ge=0)
    max_image_px: int = Field(default=1024, ge=1)
    image_format: Literal["jpeg", "png"] = "jpeg"
    image_quality: int = Field(default=90, ge=1, le=100)
    image_tokens: int = Field(default=4096, ge=0)
    coordinates: Coordinates = "level0"
    tools: bool = True
    tool_images: bool = False
    reasons: bool = False
    keep_images: int = Field(default=4, ge=0)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    extra_body: dict[str, Any] = {}
