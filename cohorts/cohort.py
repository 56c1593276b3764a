"""A cohort on disk, loaded and validated: which slides, and what is annotated on them.

    cohort = Cohort.load("my-cohort")       # raises CohortError that lists every fault of the text files
    cohort.check_slides()                   # opens the slides: faults of files, sizes and magnifications

Loading reads text only, so it is quick for thousands of slides; slides open when they are first asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from wsigym.errors import CohortError, Fault, InvalidArgumentError, SlideError, SlideOpenError, UnknownNameError
from wsigym.slides import Slide, open_slide

from .files import (
    ITEM_SOURCES,
    MANIFEST,
    NODES,
    PATHS,
    REGIONS,
    SlidePlaces,
    digest,
    item_tasks,
    read_lines,
    read_manifest,
)
from .invariants import Fence, is_url, manifest_faults, path_faults, region_faults, slide_faults, tree_of
from .item_files import evidence_faults
from .models import SPLITS, DiagnosticPath, Manifest, Node, SlideEntry
from .regions import Region, read_regions

__all__ = ["Cohort"]


class Cohort:
    """Slides and their annotations, made by `Cohort.load`. Immutable; pickles; equal files give an equal `sha256`.

    `slides`, `nodes` and `paths` are in the order of their files; `root` is the folder. Nodes, paths and regions are
    annotations, hidden from policies; queries are built from them.
    """

    def __init__(
        self,
        root: Path,
        manifest: Manifest,
        places: SlidePlaces,
        nodes: Sequence[tuple[int, Node]],
        paths: Sequence[DiagnosticPath],
        sha256: str,
        fence: Fence,
    ) -> None:
        self.root = root
        self.name = manifest.name
        self.slides = manifest.slides
        self.nodes = tuple(node for _, node in nodes)
        self.paths = tuple(paths)
        self.sha256 = sha256
        self._index_of = {entry.slide_id: index for index, entry in enumerate(manifest.slides)}
        self._places, self._fence = places, fence
        self._node_lines = tuple(line for line, _ in nodes)
        self._opened: dict[str, Slide] = {}

    @classmethod
    def load(cls, folder: str | Path, *, allow_outside: bool = False) -> Cohort:
        """Read and validate the text files of a cohort folder (or of that which holds the `cohort.json` given).

        `allow_outside` permits slide paths that are absolute, leave the folder, or are `file:` URLs, and symbolic links
        by which slides, images and features leave it. Raises `CohortError` with every fault found in `cohort.json`,
        `nodes.jsonl`, `paths.jsonl` and `regions/`.
        """
        cohort, faults = cls._read(folder, allow_outside)
        if cohort is None or faults:
            raise CohortError(faults)
        return cohort

    @classmethod
    def faults_of(cls, folder: str | Path, *, allow_outside: bool = False) -> list[Fault]:
        """Every fault of a cohort folder, none raised: of its text files, slides, items, references and images.

        Slides and nodes whose own lines are faulty are not held against each other, nor are such slides against items.
        """
        cohort, faults = cls._read(folder, allow_outside)
        if cohort is None:
            return faults
        fields = {fault.field for fault in faults if fault.file == MANIFEST}
        lines = {fault.line for fault in faults if fault.file == NODES}
        index_of = {entry.slide_id: index for index, entry in zip(cohort._places.indices, cohort.slides, strict=True)}
        unclear = {
            slide_id
            for slide_id, index in index_of.items()
            if fields & {f"slides.{index}.path", f"slides.{index}.slide_id"}
        }
        for slide_id, index in index_of.items():
            if slide_id in unclear:
                continue
            # Without the scale that is meant, what depends on it is no fault of its own.
            mpp = f"slides.{index}.mpp"
            follows = {mpp, "magnification"} if mpp in fields else set()
            faults += [
                fault
                for fault in cohort.check_slide(slide_id)
                if (fault.file != NODES or fault.line not in lines) and fault.field not in follows
            ]
        from .builders.casescope.cases import source_faults  # which build upon this module
        from .builders.pathview.checking import pathview_faults

        told = {fault.message for fault in faults if fault.file == MANIFEST}  # of slides that cannot be opened
        faults += source_faults(cohort.root)
        if cohort._places.whole:
            later = [*pathview_faults(cohort), *evidence_faults(cohort)]
            return faults + [fault for fault in later if fault.message not in told]
        sound = {
            slide_id
            for slide_id, index in index_of.items()
            if not any(field.startswith(f"slides.{index}.") for field in fields)
        }
        faults += [fault for fault in pathview_faults(cohort) if fault.field != "slide_id"]
        return faults + list(evidence_faults(cohort, sound))

    @classmethod
    def _read(cls, folder: str | Path, allow_outside: bool) -> tuple[Cohort | None, list[Fault]]:
        """The cohort as far as its files can be read, None where `cohort.json` has no slides, and the text's faults."""
        try:
            root = Path(folder)
        except TypeError:
            raise InvalidArgumentError(
                f"cohort is {folder!r}; allowed is the path of a cohort's folder, as text or a Path."
            ) from None
        if root.name == MANIFEST:
            root = root.parent
        if not (root / MANIFEST).exists():
            return None, [Fault(str(root / MANIFEST), None, "", "no such file; a cohort is a folder with one")]
        manifest, places, faults = read_manifest(root)
        nodes = read_lines(root, NODES, Node, faults)
        paths = read_lines(root, PATHS, DiagnosticPath, faults)
        asks = item_tasks(root) or any((root / folder).is_dir() for folder in ITEM_SOURCES)
        if manifest is not None and places.whole and not manifest.slides and not asks:
            return None, [Fault(MANIFEST, None, "slides", "is empty, and there are no items; a cohort has one or both")]
        if manifest is None:
            return None, faults
        fence = Fence(root, allow_outside)
        faults += manifest_faults(manifest, places, fence)
        if places.ids is not None:  # else what names a slide that is not there may name one whose id is not told
            tree = tree_of(nodes, places.ids)
            faults += tree.faults
            faults += path_faults(paths, tree, places.ids)
            faults += region_faults(root, places.ids)
        loaded = cls(root, manifest, places, nodes.valid, [path for _, path in paths.valid], digest(root), fence)
        return loaded, faults

    def slide(self, slide_id: str) -> SlideEntry:
        """The manifest's entry of a slide. Raises `UnknownNameError`."""
        if slide_id not in self._index_of:
            raise UnknownNameError("slide", slide_id, self._index_of)
        return self.slides[self._index_of[slide_id]]

    def open(self, slide_id: str) -> Slide:
        """The slide; its mpp is the cohort's where the cohort gives one. Raises `SlideError`, `UnknownNameError`.

        One object a slide; the files of those last read stay open, others open again when they are next read.
        """
        if slide_id not in self._opened:
            entry = self.slide(slide_id)
            if outside := self.outside(entry.path):
                raise SlideOpenError(outside)
            location = entry.path if is_url(entry.path) else str(self.root / entry.path)
            self._opened[slide_id] = open_slide(location, mpp=entry.mpp)
        return self._opened[slide_id]

    def outside(self, path: str) -> str:
        """How a path of the cohort's files leaves its folder, and what to do; "" where it does not, or is allowed to.

        To be asked before a file that the cohort names is read; `open` does.
        """
        return self._fence.crossed_by(path)

    def nodes_of(self, slide_id: str) -> tuple[Node, ...]:
        """The annotated nodes of a slide, in the order of the file."""
        return tuple(node for _, node in self._nodes_by_slide.get(slide_id, ()))

    def in_split(self, split: str | None) -> tuple[SlideEntry, ...]:
        """The slides of `train`, `val` or `test`; None means all. A split without slides is an error."""
        if split is None:
            return self.slides
        if split not in SPLITS:
            raise UnknownNameError("split", str(split), SPLITS)
        chosen = tuple(entry for entry in self.slides if entry.split == split)
        if not chosen:
            counts = Counter(entry.split or "none" for entry in self.slides)
            raise InvalidArgumentError(
                f"cohort {self.name!r} has no slide in split {split!r}; it has "
                + ", ".join(f"{count} in {name}" for name, count in sorted(counts.items()))
                + ". Choose another split, or none for all slides."
            )
        return chosen

    def regions(self, slide_id: str) -> list[Region]:
        """The annotated areas of a slide; an empty list where there is no file."""
        path = self.root / REGIONS / f"{self.slide(slide_id).slide_id}.geojson"
        return read_regions(path, f"{REGIONS}/{path.name}")[0] if path.is_file() else []

    def check_slides(self, split: str | None = None) -> list[Fault]:
        """Open every slide of the split and hold the annotations against it: all faults, none raised."""
        return [fault for entry in self.in_split(split) for fault in self.check_slide(entry.slide_id)]

    def check_slide(self, slide_id: str) -> list[Fault]:
        """Open one slide and hold its annotations against it: all faults, none raised."""
        at = self._index_of[self.slide(slide_id).slide_id]
        index, line = self._places.indices[at], self._places.lines[at]
        try:
            slide = self.open(slide_id)
        except SlideError as error:
            return [Fault(MANIFEST, line, f"slides.{index}.path", str(error))]
        return list(slide_faults(slide, self._nodes_by_slide.get(slide_id, ()), index, line))

    @cached_property
    def _nodes_by_slide(self) -> Mapping[str, list[tuple[int, Node]]]:
        found: dict[str, list[tuple[int, Node]]] = {}
        for line, node in zip(self._node_lines, self.nodes, strict=True):
            found.setdefault(node.slide_id, []).append((line, node))
        return found

    def __getstate__(self) -> dict[str, object]:
        # Open slides stay behind: they open again, once, in the process that gets the copy.
        return {**self.__dict__, "_opened": {}}

    def __repr__(self) -> str:
        return f"Cohort({self.name!r}, {len(self.slides)} slides, {len(self.nodes)} nodes, {self.root})"
