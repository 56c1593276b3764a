"""What a server answered, read with patience: local servers leave fields out, or fill them in ways of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .records import RequestRecord

__all__ = ["Answer", "Reading", "ToolCall", "read_answer", "refused_answer"]

MOST = 10**9
"""No answer has as many tokens, and no logarithm of a probability is as far from 0: such a number says nothing."""

MOST_CHARACTERS = 200_000
"""More than any limit on tokens lets a model write. Of a longer text the end is read, where answers stand: it would go
back to the model in every later request, and take seconds to parse. The log keeps the whole."""


@dataclass(frozen=True)
class ToolCall:
    """A tool call as the model wrote it: `name` may be no tool's, `arguments` may be no JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Answer:
    """What a model answered. All of it may be empty.

    `text` is without the thoughts of a reasoning model. `refusal` is the model's or the server's word that it declines.
    `first_token_logprobs` maps each candidate for the first token to its natural-log probability, None where they
    were not asked for or not given.
    """

    text: str
    tool_calls: tuple[ToolCall, ...]
    refusal: str | None
    finish_reason: str
    first_token_logprobs: Mapping[str, float] | None
    request: RequestRecord


@dataclass(frozen=True)
class Reading:
    """The parts of a server's answer. `thought` is what a reasoning model thought, where the server shows it."""

    text: str
    thought: str
    tool_calls: tuple[ToolCall, ...]
    refusal: str | None
    finish_reason: str
    first_token_logprobs: Mapping[str, float] | None
    tokens_in: int | None
    tokens_out: int | None
    tokens_cached: int | None


def read_answer(raw: Any) -> Reading:
    """Read a chat completion. Raises `ValueError`, in words for a message, where it has no choice with a message."""
    if not isinstance(raw, dict):
        raise ValueError("an answer that is no JSON object")
    choices = raw.get("choices")
    if not isinstance(choices, list) or not choices:
        raise ValueError("an answer without choices")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise ValueError("a choice without a message")
    content = _text(message.get("content"))
    thought, text = _split_thought(content)
    thought = thought or _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
    finish_reason = _text(choice.get("finish_reason")) or "unknown"
    refusal = _text(message.get("refusal")) or None
    if refusal is None and finish_reason == "content_filter":
        refusal = "stopped by the server's content filter"
    usage = _mapping(raw.get("usage"))
    return Reading(
        text=text,
        thought=thought,
        tool_calls=_tool_calls(message.get("tool_calls")),
        refusal=refusal,
        finish_reason=finish_reason,
        # Of an answer that begins with a thought, the first token is the thought's.
        first_token_logprobs=_first_token(choice.get("logprobs")) if text == content else None,
        tokens_in=_count(usage.get("prompt_tokens")),
        tokens_out=_count(usage.get("completion_tokens")),
        tokens_cached=_count(_mapping(usage.get("prompt_tokens_details")).get("cached_tokens")),
    )


def refused_answer(said: str) -> dict[str, Any]:
    """The answer that stands for a server's refusal to let the model answer at all."""
    message = {"role": "assistant", "content": None, "refusal": said}
    choice = {"index": 0, "finish_reason": "content_filter", "message": message}
    return {"choices": [choice], "usage": {"prompt_tokens": 0, "completion_tokens": 0}}


def _split_thought(content: str) -> tuple[str, str]:
    """Thought and answer of a text in which servers without a parser for thoughts leave both."""
    thought, mark, text = content.rpartition("</think>")
    if mark:
        return thought.strip().removeprefix("<think>").strip(), text.strip()
    if content.lstrip().startswith("<think>"):
        return content.strip().removeprefix("<think>").strip(), ""
    return "", content


def _text(value: Any) -> str:
    """Text that UTF-8 can hold, its end where it is very long; of a list of parts, as some servers write content, the
    text ones joined."""
    if isinstance(value, list):
        value = "".join(_text(part.get("text")) for part in value if isinstance(part, dict))
    return value[-MOST_CHARACTERS:].encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else ""


def _tool_calls(value: Any) -> tuple[ToolCall, ...]:
    calls = []
    for number, each in enumerate(value if isinstance(value, list) else []):
        function = _mapping(_mapping(each).get("function"))
        arguments = function.get("arguments")
        if arguments is not None and not isinstance(arguments, str):  # a dict in place of its JSON
            arguments = json.dumps(arguments)
        # Without an id of the server's, one that is the call's own within the message.
        call_id = _text(_mapping(each).get("id")) or f"call-{number}"
        calls.append(ToolCall(call_id, _text(function.get("name")), _text(arguments)))
    return tuple(calls)


def _first_token(value: Any) -> dict[str, float] | None:
    tokens = _mapping(value).get("content")
    if not isinstance(tokens, list) or not tokens:
        return None
    first = _mapping(tokens[0])
    others = first.get("top_logprobs")
    found: dict[str, float] = {}
    for candidate in (first, *(others if isinstance(others, list) else ())):
        token, logprob = _mapping(candidate).get("token"), _mapping(candidate).get("logprob")
        if isinstance(token, str) and isinstance(logprob, int | float) and -MOST < logprob < MOST:
            found.setdefault(_text(token), float(logprob))
    return found or None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    """A number of tokens; None where the server wrote something else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MOST:
        return None
    return int(value)
