"""Raw labels that `labels.toml` does not know: all of them are told at once."""

from __future__ import annotations

from collections.abc import Sequence

from wsigym.errors import Fault

from .labels import LABELS, Labels
from .marks import Marks
from .sources import Picture

__all__ = ["Unmapped"]


class Unmapped:
    """Gathers them over sources."""

    def __init__(self) -> None:
        self._sources_of: dict[str, set[str]] = {}
        self._first: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._sources_of)

    def look(self, labels: Labels, marks: Marks, pictures: Sequence[Picture]) -> None:
        """Look through the raw labels of a source's annotations and of its pictures."""
        of_pictures = [(picture.label, picture.where) for picture in pictures if picture.label is not None]
        for label, where in (*zip(marks.labels, marks.first, strict=True), *of_pictures):
            if label not in labels.of_raw:
                self._sources_of.setdefault(label, set()).add(marks.source)
                self._first.setdefault(label, where)

    @property
    def faults(self) -> list[Fault]:
        """One for each label, by name."""
        found = []
        for label, names in sorted(self._sources_of.items()):
            sources = ", ".join(sorted(names))
            message = (
                f"raw label {label!r} of source {sources} is in no standard label nor in background; first at "
                f"{self._first[label]}"
            )
            found.append(Fault(LABELS, None, "standard", message))
        return found
