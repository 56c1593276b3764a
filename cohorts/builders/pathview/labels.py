"""`pathview/labels.toml`: from the raw labels of annotation files to the standard ones that items ask for.

    background = ["glass", "artefact"]          raw labels of nothing that is asked for; their annotations are dropped

    [standard."tumour cell"]
    kind = "cell"                               cell, structure (gland, vessel ...) or lesion
    raw = ["neoplastic", "Tumor"]               what files call it, beside the name itself
    aliases = ["neoplastic cell"]               what an answer may call it, beside the name itself
    organ_agnostic = true                       looks alike in every organ (default false)

Raw labels are compared as they are written.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from wsigym.errors import CohortError, Fault

from ...files import read_text, validation_faults
from ...models import Line, Name

__all__ = ["LABELS", "Kind", "Labels", "StandardLabel", "load_labels", "read_toml"]

LABELS = "pathview/labels.toml"

Kind = Literal["cell", "structure", "lesion"]

_Model = TypeVar("_Model", bound=BaseModel)


class StandardLabel(Line):
    """One standard label, as in the module's example."""

    kind: Kind
    raw: tuple[Name, ...] = ()
    aliases: tuple[Name, ...] = ()
    organ_agnostic: bool = False


class _LabelFile(Line):
    background: tuple[Name, ...] = ()
    standard: dict[Name, StandardLabel]


@dataclass(frozen=True)
class Labels:
    """The standard labels by name, in the file's order, and the standard name of each raw label, None of background."""

    standard: dict[str, StandardLabel]
    of_raw: dict[str, str | None]

    @property
    def vocabulary(self) -> dict[str, list[str]]:
        """The terms that answers may hold, with their aliases, as a suite's `vocabulary.json` has them."""
        return {name: list(label.aliases) for name, label in self.standard.items()}

    def of_kinds(self, kinds: Iterable[Kind]) -> list[str]:
        """The names of the labels of these kinds, in the file's order."""
        wanted = set(kinds)
        return [name for name, label in self.standard.items() if label.kind in wanted]


def load_labels(root: Path) -> Labels:
    """The labels of a cohort folder. Raises `CohortError` with every fault."""
    found, text = read_toml(root, LABELS, _LabelFile)
    faults: list[Fault] = []
    of_raw: dict[str, str | None] = {}
    said: dict[str, str] = {}

    def put(raw: str, name: str | None, field: str) -> None:
        if of_raw.setdefault(raw, name) != name:
            other = of_raw[raw] or "background"
            faults.append(Fault(LABELS, _line_of(text, raw), field, f"{raw!r} is mapped to {other!r} already"))

    for name in found.standard:
        put(name, name, f"standard.{name}")
    for raw in found.background:
        put(raw, None, "background")
    for name, label in found.standard.items():
        for raw in label.raw:
            put(raw, name, f"standard.{name}.raw")
        for word in (name, *label.aliases):
            other = said.setdefault(" ".join(word.casefold().split()), name)
            if other != name:
                message = f"{word!r} is a word for {other!r} already; answers could not be told apart"
                faults.append(Fault(LABELS, _line_of(text, word), f"standard.{name}.aliases", message))
    if not found.standard:
        faults.append(Fault(LABELS, None, "standard", "is empty; at least one standard label is needed"))
    if faults:
        raise CohortError(faults)
    return Labels(dict(found.standard), of_raw)


def read_toml(root: Path, name: str, model: type[_Model]) -> tuple[_Model, str]:
    """A TOML file of a cohort as `model`, and its text. Raises `CohortError`; lists count as tuples."""
    text, faults = read_text(root / name, name)
    if text is None:
        raise CohortError(faults)
    try:
        content: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CohortError([Fault(name, None, "", f"not TOML: {error}")]) from None
    try:
        return model.model_validate(content), text
    except ValidationError as error:
        raise CohortError(list(validation_faults(error, name, None))) from None


def _line_of(text: str, word: str) -> int | None:
    """The last line that holds a word in quotes: where the later of two uses stands."""
    lines = [number for number, line in enumerate(text.splitlines(), 1) if f'"{word}"' in line or f"'{word}'" in line]
    return lines[-1] if lines else None
