"""A conversation with a model: messages whose images are references, and the form in which they are sent.

Images become bytes only when a request is made; until then a message names them. Of the images of a conversation the
overview and the last N are sent, and whatever the model has not seen yet; a line of text stands in for each older one,
so that a long episode does not outgrow the model's context.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from wsigym.cohorts.items import letter

from .client import ToolCall

__all__ = [
    "OVERVIEW",
    "ImageRef",
    "Message",
    "by_reference",
    "for_the_wire",
    "images_to_send",
    "item_text",
    "request_text",
    "system",
    "user",
]

OVERVIEW = "overview"


@dataclass(frozen=True)
class ImageRef:
    """An image of the episode by its name, with what it shows.

    `box` is in level-0 pixels and `magnification` objective-equivalent, both None for an image that is no part of a
    slide; `size` is (width, height) as sent.
    """

    name: str
    box: tuple[int, int, int, int] | None
    magnification: float | None
    size: tuple[int, int]


@dataclass(frozen=True)
class Message:
    """One message. A tool's answer has the `call_id` that it answers; an assistant's may have `calls`."""

    role: Literal["system", "user", "assistant", "tool"]
    parts: tuple[str | ImageRef, ...]
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None

    @property
    def images(self) -> tuple[ImageRef, ...]:
        return tuple(part for part in self.parts if isinstance(part, ImageRef))


def system(text: str) -> Message:
    return Message("system", (text,))


def user(*parts: str | ImageRef) -> Message:
    return Message("user", parts)


def request_text(kind: str, facts: Mapping[str, Any]) -> str:
    """What stands before the images of a request that is no conversation: what is wanted, and the facts as JSON."""
    return f"Request: {kind}\n```json\n{json.dumps(facts, ensure_ascii=False)}\n```"


def item_text(question: str, options: Sequence[str], answer_words: str) -> str:
    """An evidence item after its images: question, options as lines "A. ...", how to answer (CaseScope's order)."""
    listed = "\n".join(f"{letter(place)}. {option}" for place, option in enumerate(options))
    return "\n\n".join(part for part in (question, listed, answer_words) if part)


def images_to_send(messages: Iterable[Message], keep: int) -> frozenset[ImageRef]:
    """The images of a conversation that are sent: the overview, those after the last answer, the last `keep` in all."""
    shown: list[ImageRef] = []
    new = 0
    overview: set[ImageRef] = set()
    for message in messages:
        new = 0 if message.role == "assistant" else new + len(message.images)
        shown += message.images
        overview.update(image for image in message.images if image.name == OVERVIEW)
    others = [image for image in shown if image.name != OVERVIEW]
    return frozenset(others[max(0, len(others) - keep) :]).union(shown[len(shown) - new :], overview)


def for_the_wire(
    messages: Sequence[Message], sent: frozenset[ImageRef], url_of: Callable[[ImageRef], str]
) -> list[dict[str, Any]]:
    """The messages as chat-completions servers take them; `url_of` gives the data URL of an image that is sent."""

    def image(ref: ImageRef) -> dict[str, Any]:
        if ref not in sent:
            return {"type": "text", "text": f"[{ref.name} is no longer shown]"}
        return {"type": "image_url", "image_url": {"url": url_of(ref)}}

    merged: list[Message] = []
    for message in messages:
        if message.role == "user" and merged and merged[-1].role == "user":
            # Templates of some open models want users and assistants to take turns.
            merged[-1] = user(*merged[-1].parts, *message.parts)
        else:
            merged.append(message)
    return [_form(message, image) for message in merged]


def by_reference(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages with images by reference, for transcripts: of type "image", with what an `ImageRef` holds."""

    def image(ref: ImageRef) -> dict[str, Any]:
        return {
            "type": "image",
            "name": ref.name,
            "box": None if ref.box is None else list(ref.box),
            "magnification": ref.magnification,
            "size": list(ref.size),
        }

    return [_form(message, image) for message in messages]


def _form(message: Message, image: Callable[[ImageRef], dict[str, Any]]) -> dict[str, Any]:
    """One message as a dict. Content is plain text where there are no images, as servers of text models want it."""
    if message.images:
        parts = [
            image(part) if isinstance(part, ImageRef) else {"type": "text", "text": part} for part in message.parts
        ]
        form: dict[str, Any] = {"role": message.role, "content": parts}
    else:
        words = "\n".join(str(part) for part in message.parts)
        form = {"role": message.role, "content": words or None}  # null beside calls: an empty text is refused by some
    if message.call_id is not None:
        form["tool_call_id"] = message.call_id
    if message.calls:
        form["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    return form
