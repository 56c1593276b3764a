"""What went wrong with a try, in words for the user, and whether another try may help."""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from typing import Any

from .endpoints import Endpoint

__all__ = ["TryError", "retry_after", "said_by", "status_error"]

RETRIED = (408, 409, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529)
"""As the openai client retries (408, 409, 5xx), with 425 "too early" and the proxies' own numbers named."""

LONGEST_SAID = 300
"""Characters of a server's own words that a message repeats."""

_CONTEXT = re.compile(
    r"context[ _](?:length|size|window)|maximum (?:context|model|prompt)|prompt is too long|too many (?:input )?tokens"
    r"|max_model_len|n_ctx|exceeds? (?:the )?(?:available |maximum |max )?(?:context|token)",
    re.IGNORECASE,
)
_IMAGE = re.compile(
    r"(?:image|vision|multimodal)[^.]{0,60}(?:not support|unsupported|invalid|too (?:large|big)|can ?not|could not)"
    r"|(?:not support|unsupported|invalid|cannot (?:read|identify)|at most \d+|data required for)[^.]{0,60}"
    r"(?:image|vision|multimodal)|not a multimodal model|mmproj|image_parse_error",
    re.IGNORECASE,
)
_MODEL = re.compile(r"model[^.]{0,200}(?:not (?:found|exist)|does not exist|unknown|not loaded)|model_not_found", re.I)
_MONEY = re.compile(r"insufficient_quota|billing|credit balance|insufficient (?:credits|funds|balance)", re.IGNORECASE)
_FILTER = re.compile(r"content_filter|content_policy|content management policy|safety system", re.IGNORECASE)

_HINTS = (
    (re.compile(r"max_completion_tokens"), 'Set token_limit = "max_completion_tokens" for this endpoint.'),
    (re.compile(r"temperature", re.I), 'Set temperature = "server" for this endpoint, so that none is sent.'),
    (re.compile(r"\btools?\b|tool[_-]", re.I), "Set tools = false for this endpoint: they are then described in text."),
    (re.compile(r"logprobs", re.I), "The server gives no logprobs with these settings."),
)
"""What a server's words about a setting mean for the endpoint's."""


class TryError(Exception):
    """A try that gave no answer. Its text is a whole sentence for the user.

    `again`: another try may help. `limited`: the server asks for a slower pace (429). `wait_s`: how long it says to
    wait. `lasting`: no request to this endpoint will fare better. `refusal`: the server's words where it declined to
    have this content answered at all, which is an answer rather than a failure. `no_model`: the model is not there.
    """

    def __init__(
        self,
        text: str,
        *,
        again: bool = False,
        limited: bool = False,
        wait_s: float | None = None,
        lasting: bool = False,
        refusal: str | None = None,
        no_model: bool = False,
    ) -> None:
        super().__init__(text)
        self.again, self.limited, self.wait_s, self.lasting = again, limited, wait_s, lasting
        self.refusal, self.no_model = refusal, no_model


def status_error(
    endpoint: Endpoint, status: int, said: str, headers: Mapping[str, str], *, images: int, tools: bool
) -> TryError:
    """What a status other than 2xx means. `said` is the server's own words, without any key in them."""
    where, quoted = f"endpoint {endpoint.name!r} ({endpoint.base_url})", f": {said}" if said else ""
    wait_s = retry_after(headers)
    if status in (401, 403):
        # The server's words are left out: they may show a part of the key.
        how = f"refused the key in ${endpoint.api_key_env}" if endpoint.api_key_env else "asks for a key"
        todo = "Check the key" if endpoint.api_key_env else "Name the variable that holds it as api_key_env"
        return TryError(f"{where} {how} (HTTP {status}). {todo}, and that it may use {endpoint.model!r}.", lasting=True)
    if status == 402 or (status == 429 and _MONEY.search(said)):
        return TryError(f"{where} says that the account has no money left (HTTP {status}){quoted}.", lasting=True)
    if status == 429:
        return TryError(
            f"{where} allows no more requests for now (HTTP 429){quoted}. Set requests_per_minute or tokens_per_minute "
            "for this endpoint, or a lower --concurrency.",
            again=True,
            limited=True,
            wait_s=wait_s,
        )
    if 300 <= status < 400:
        return TryError(
            f"{where} sends requests on to {headers.get('location', 'another place')} (HTTP {status}), which is not "
            "followed. Give the final address as base_url.",
            lasting=True,
        )
    if 400 <= status < 500 and _FILTER.search(said):
        return TryError(f"{where} declines this content (HTTP {status}){quoted}.", refusal=said)
    if status == 404 or (status in (400, 422) and _MODEL.search(said)):
        return TryError(
            f"{where} has no model {endpoint.model!r} (HTTP {status}){quoted}.", lasting=True, no_model=True
        )
    if status == 413 or (status < 501 and _CONTEXT.search(said)):
        return TryError(
            f"{where} finds the request too long (HTTP {status}){quoted}. Lower keep_images, max_image_px or "
            "max_tokens for this endpoint, or serve the model with a longer context."
        )
    if images and _IMAGE.search(said):
        return TryError(
            f"{where} does not take the image (HTTP {status}){quoted}. A model with vision is needed; try image_format "
            "or a lower max_image_px where it has it. `wsigym endpoint check` tells what the server takes."
        )
    if status in RETRIED:
        return TryError(f"{where} failed (HTTP {status}){quoted}.", again=True, wait_s=wait_s)
    for pattern, hint in _HINTS if status in (400, 422) else ():
        if pattern.search(said) and (tools or "tools =" not in hint):
            return TryError(f"{where} refused the request (HTTP {status}){quoted}. {hint}", lasting=True)
    return TryError(f"{where} refused the request (HTTP {status}){quoted}.")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from 0 that `Retry-After` asks for, given in seconds or as an HTTP date (RFC 9110, 10.2.3)."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if not math.isnan(seconds) else None


def said_by(body: str) -> str:
    """A server's own words about what is wrong, in one short line; empty where it has none."""
    try:
        content: Any = json.loads(body)
    except ValueError:
        content = re.sub(r"<[^>]*>", " ", body)
    parts: list[str] = []
    if isinstance(content, dict):
        inner = content.get("error", content)
        if isinstance(inner, dict):
            named = (inner.get(name) for name in ("message", "detail", "code", "type"))
            parts = [each if isinstance(each, str) else json.dumps(each) for each in named if each is not None]
        else:
            parts = [str(inner)]
    else:
        parts = [str(content)]
    text = " ".join(" ".join(parts).encode("utf-8", "replace").decode("utf-8").split())
    return text if len(text) <= LONGEST_SAID else text[: LONGEST_SAID - 3] + "..."
