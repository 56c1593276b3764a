"""What chats for fine-tuning are written with: a model's messages, image files each once, a JSONL that is whole or not
there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from wsigym.agents.answers import read_answer
from wsigym.cohorts import Cohort
from wsigym.slides import Box

__all__ = ["IMAGES", "ChatImages", "new_file", "said"]

IMAGES = ("refs", "files")


def said(answer: Mapping[str, Any]) -> dict[str, Any]:
    """A model's message, as the agent read it from the server's answer."""
    reading = read_answer(answer)
    message: dict[str, Any] = {"role": "assistant", "content": reading.text or reading.refusal or ""}
    if reading.tool_calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in reading.tool_calls
        ]
    return message


class ChatImages:
    """The images of chats as PNG files in NAME_images beside NAME.jsonl, each written once."""

    def __init__(self, cohort: Cohort, target: Path) -> None:
        self._cohort = cohort
        self._folder = target.with_name(f"{target.stem}_images")
        self._written: dict[str, str] = {}

    @property
    def written(self) -> int:
        return len(self._written)

    def of_box(self, image: Mapping[str, Any]) -> str:
        """The file of a slide's box, relative to the JSONL; written where it is not there yet."""
        slide_id, box, (width, height) = image["slide_id"], image["box"], image["size"]
        return self.file(
            [slide_id, box], image["size"], lambda: self._cohort.open(slide_id).read(Box.of(box), (width, height))
        )

    def file(self, shown: Sequence[Any], size: Sequence[int], read: Callable[[], Any]) -> str:
        """Likewise of what `shown` and `size` name, whose pixels `read` gives."""
        name = hashlib.sha256(json.dumps([*shown, size]).encode()).hexdigest()[:24]
        if name not in self._written:
            from PIL import Image

            self._folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(read()).save(self._folder / f"{name}.png")
            self._written[name] = f"{self._folder.name}/{name}.png"
        return self._written[name]


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its name once it is whole."""
    aside = path.with_name(path.name + ".tmp")
    try:
        aside.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            yield file
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
