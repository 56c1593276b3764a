"""Raw labels that `labels.toml` does not know: all of them are told at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wsigym.errors import Fault

from .labels import LABELS, Labels
from .sources import Picture

__all__ = ["Unmapped"]


class Unmapped:
    """Gathers them over sources."""

    def __init__(self) -> None:
        self._sources_of: dict[str, set[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._sources_of)

    def look(self, labels: Labels, source: str, raw: Iterable[str], pictures: Sequence[Picture]) -> None:
        """Look through the raw labels of a source's annotations and of its pictures."""
        for label in (*raw, *(picture.label for picture in pictures if picture.label is not None)):
            if label not in labels.of_raw:
                self._sources_of.setdefault(label, set()).add(source)

    @property
    def faults(self) -> list[Fault]:
        """One for each label, by name."""
        found = []
        for label, names in sorted(self._sources_of.items()):
            sources = ", ".join(sorted(names))
            message = f"raw label {label!r} of source {sources} is in no standard label nor in background"
            found.append(Fault(LABELS, None, "standard", message))
        return found
