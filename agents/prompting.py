"""The prompts: files of their own in prompts/, NAME-vN.md. A change of words is a new version, and a record names the
sha256 of the file that it was made with."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import Template

__all__ = ["Prompt", "prompt"]


@dataclass(frozen=True)
class Prompt:
    """A prompt's file: its name without the ending, its text with $placeholders, and the sha256 of that text."""

    name: str
    text: str
    sha256: str

    def filled(self, **values: object) -> str:
        """The text with every placeholder replaced; one without a value is a `KeyError`."""
        return Template(self.text).substitute({name: str(value) for name, value in values.items()}).strip()


@cache
def prompt(name: str) -> Prompt:
    """The prompt of a name such as "localizer-v1"."""
    text = (resources.files("wsigym.agents") / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    return Prompt(name, text, hashlib.sha256(text.encode()).hexdigest())
