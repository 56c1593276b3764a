"""Which slide an annotation file belongs to: the one of the same name."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from wsigym.cohorts.models import SlideEntry
from wsigym.errors import InvalidArgumentError

__all__ = ["SLIDE_SUFFIXES", "SlideNames", "slides_in"]

SLIDE_SUFFIXES = (".svs", ".tif", ".tiff", ".ndpi", ".mrxs", ".scn", ".bif", ".vms", ".vmu", ".svslide")
"""What OpenSlide and TiffSlide read, one file a slide."""


def slides_in(folder: Path, root: Path) -> list[SlideEntry]:
    """The slides in a folder and those below it, by path; `path` is relative to `root` where they lie in it.

    Raises `InvalidArgumentError` if there is no such folder, or no slide in it.
    """
    if not folder.is_dir():
        raise InvalidArgumentError(f"{folder} is not a folder; --slides names the folder that holds the slides.")
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SLIDE_SUFFIXES and path.is_file())
    if not found:
        raise InvalidArgumentError(f"{folder} holds no slide; looked for files ending in {' '.join(SLIDE_SUFFIXES)}.")
    return [SlideEntry(slide_id=_bare(path.name), path=_path_from(root, path)) for path in found]


def _path_from(root: Path, path: Path) -> str:
    path, root = Path(os.path.abspath(path)), Path(os.path.abspath(root))  # noqa: PTH100  (links stay links)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _bare(name: str) -> str:
    """A slide's name without its ending: `a.ome.tif` is `a`."""
    stem = PurePosixPath(name).stem
    return stem.removesuffix(".ome") or stem


class SlideNames:
    """Slides by the names that files may use for them: slide_id, file name, file name without ending."""

    def __init__(self, slides: Iterable[SlideEntry]) -> None:
        self._by_name: dict[str, dict[str, SlideEntry]] = {}
        for entry in slides:
            file_name = PurePosixPath(entry.path).name
            for name in {entry.slide_id, file_name, PurePosixPath(file_name).stem, _bare(file_name)}:
                for spelling in {name, name.casefold()}:
                    self._by_name.setdefault(spelling, {})[entry.path] = entry

    def find(self, stem: str) -> SlideEntry | None:
        """The slide called `stem`, in that spelling or else in any case; None if there is none, an error if several."""
        found = self._by_name.get(stem) or self._by_name.get(stem.casefold()) or {}
        if len(found) > 1:
            raise InvalidArgumentError(
                f"{stem!r} could be any of {', '.join(sorted(found))}; rename them, or give a folder with one of them."
            )
        return next(iter(found.values()), None)
