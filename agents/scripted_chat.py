"""A chat-completions request, read as far as the scripted model needs it: who said what, facts, calls, images.

Nothing is remembered between requests: all that the scripted model knows is in the messages that it is sent.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from wsigym.errors import InvalidArgumentError

from .client import STOP_THINKING

__all__ = ["Call", "Conversation", "Result", "image_size", "json_objects", "numbers", "pixels_of"]


@dataclass(frozen=True)
class Call:
    """A tool call that the assistant made. `arguments` is empty where it wrote no JSON object."""

    name: str
    arguments: Mapping[str, Any]


@dataclass
class Result:
    """A JSON object that the assistant was told, and the images (URLs) between it and the next one."""

    facts: Mapping[str, Any]
    images: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Conversation:
    """The messages in the order of the request.

    `told` joins the texts of system, user and tool; `last_text` is the last user or tool message's. `images` are all
    image URLs. `stopped`: a reasoning model was told to stop thinking, and what it is to answer stands before that.
    """

    told: str
    last_text: str
    images: tuple[str, ...]
    calls: tuple[Call, ...]
    results: tuple[Result, ...]
    stopped: bool

    @classmethod
    def of(cls, messages: Sequence[Mapping[str, Any]]) -> Conversation:
        """Raises `InvalidArgumentError` where a message has no shape that the protocol knows."""
        stopped = bool(messages) and _parts(messages[-1])[0] == STOP_THINKING
        if stopped:
            messages = messages[:-2]
        told: list[str] = []
        images: list[str] = []
        calls: list[Call] = []
        results: list[Result] = []
        for message in messages:
            text, urls = _parts(message)
            if message.get("role") == "assistant":
                calls.extend(_calls(message, text))
                continue
            told.append(text)
            images.extend(urls)
            results.extend(Result(facts) for facts in json_objects(text))
            if results:
                results[-1].images.extend(urls)
        last = told[-1] if told else ""
        return cls("\n".join(told), last, tuple(images), tuple(calls), tuple(results), stopped)


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """Every outermost JSON object in a text, wherever it stands."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError):
            end = start + 1
        else:
            yield value
        start = text.find("{", end)


def pixels_of(url: str) -> npt.NDArray[np.uint8]:
    """uint8 (height, width, 3): the image of a data URL. Raises `InvalidArgumentError` for anything else."""
    with _opened(url) as image:
        return np.asarray(image.convert("RGB"))


def image_size(url: str) -> tuple[int, int]:
    """(width, height) from the image's header. Raises like `pixels_of`."""
    with _opened(url) as image:
        return image.size


@contextmanager
def _opened(url: str) -> Iterator[Image.Image]:
    content = _bytes_of(url)
    try:
        with Image.open(BytesIO(content)) as image:
            yield image
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:  # what Pillow raises for damaged files
        raise InvalidArgumentError(f"an image of {len(content)} bytes cannot be decoded: {error}") from None


def _bytes_of(url: str) -> bytes:
    head, comma, content = url.partition(",")
    if not (comma and head.startswith("data:image/") and head.endswith(";base64")):
        raise InvalidArgumentError(
            f"image_url begins {url[:40]!r}; only data URLs (data:image/jpeg;base64,...) are taken: nothing is fetched."
        )
    try:
        return base64.b64decode(content, validate=True)
    except binascii.Error as error:
        raise InvalidArgumentError(f"an image's base64 cannot be decoded: {error}") from None


def _parts(message: Mapping[str, Any]) -> tuple[str, list[str]]:
    """(text, image URLs) of a message's content, which is text or a list of parts."""
    content = message.get("content")
    if content is None:
        return "", []
    if isinstance(content, str):
        return content, []
    texts, urls = [], []
    for part in content if isinstance(content, list) else [content]:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind == "image_url" and isinstance(url := _url(part["image_url"]), str):
            urls.append(url)
        else:
            raise InvalidArgumentError(
                f"a part of a message's content is {str(part)[:60]}; text and image_url are known."
            )
    return "\n".join(texts), urls


def _url(image_url: Any) -> Any:
    return image_url.get("url") if isinstance(image_url, Mapping) else None


def _calls(message: Mapping[str, Any], text: str) -> Iterator[Call]:
    """The calls of an assistant's message: the protocol's own, or JSON in its text."""
    for call in message.get("tool_calls") or ():
        function = call.get("function", {})
        arguments = next(json_objects(str(function.get("arguments"))), {})
        yield Call(str(function.get("name")), arguments)
    for found in json_objects(text):
        if isinstance(found.get("tool"), str) and isinstance(found.get("arguments"), Mapping):
            yield Call(found["tool"], found["arguments"])


def numbers(values: Any, count: int) -> tuple[float, ...] | None:
    """`count` finite numbers, or None where `values` is anything else."""
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != count:
        return None
    if not all(isinstance(value, (int, float)) and math.isfinite(value) for value in values):
        return None
    return tuple(float(value) for value in values)
