"""A cohort on disk, loaded and validated: which slides, and what is annotated on them.

    cohort = Cohort.load("my-cohort")       # raises CohortError that lists every fault of the text files
    cohort.check_slides()                   # opens the slides: faults of files, sizes and magnifications

Loading reads text only, so it is quick for thousands of slides; slides open when they are first asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from wsigym.errors import CohortError, Fault, InvalidArgumentError, SlideError, UnknownNameError
from wsigym.slides import Slide, open_slide
from wsigym.slides.geometry import UPSAMPLING_TOLERANCE

from .models import SPLITS, DiagnosticPath, Manifest, Node, SlideEntry
from .regions import Region, read_regions

__all__ = ["Cohort"]

Line = TypeVar("Line", bound=BaseModel)


class Cohort:
    """Slides and their annotations. Immutable; pickles; equal content gives an equal `sha256`.

    Annotations (`nodes`, `paths`, `regions`) are hidden from policies; queries are built from them.
    """

    def __init__(
        self,
        root: Path,
        manifest: Manifest,
        nodes: Mapping[int, Node],
        paths: Mapping[int, DiagnosticPath],
        sha256: str,
    ) -> None:
        self.root = root
        self.name = manifest.name
        self.slides = manifest.slides
        self.nodes = tuple(nodes.values())
        self.paths = tuple(paths.values())
        self.sha256 = sha256
        self._node_lines = tuple(nodes)
        self._opened: dict[str, Slide] = {}

    @classmethod
    def load(cls, folder: str | Path, *, allow_outside: bool = False) -> Cohort:
        """Read and validate the text files of a cohort folder.

        `allow_outside` permits slide paths that are absolute or leave the folder. Raises `CohortError` with
        every fault found in `cohort.json`, `nodes.jsonl`, `paths.jsonl` and `regions/`.
        """
        root = Path(folder)
        if root.name == "cohort.json":
            root = root.parent
        if not (root / "cohort.json").is_file():
            raise CohortError(
                [Fault(str(root / "cohort.json"), None, "", "no such file; a cohort is a folder with one")]
            )
        manifest = _read_manifest(root / "cohort.json")
        faults = list(_manifest_faults(manifest, allow_outside=allow_outside))
        nodes = _read_lines(root / "nodes.jsonl", Node, faults)
        paths = _read_lines(root / "paths.jsonl", DiagnosticPath, faults)
        faults += _node_faults(nodes, manifest)
        faults += _path_faults(paths, nodes, manifest)
        faults += _region_faults(root, manifest)
        if faults:
            raise CohortError(faults)
        return cls(root, manifest, nodes, paths, _digest(root))

    def slide(self, slide_id: str) -> SlideEntry:
        """The manifest's entry of a slide."""
        try:
            return self._entries[slide_id]
        except KeyError:
            raise UnknownNameError("slide", slide_id, self._entries) from None

    def open(self, slide_id: str) -> Slide:
        """The slide, opened once a process and kept; its mpp is the cohort's where the cohort gives one."""
        if slide_id not in self._opened:
            entry = self.slide(slide_id)
            location = entry.path if _is_url(entry.path) else str(self.root / entry.path)
            self._opened[slide_id] = open_slide(location, mpp=entry.mpp)
        return self._opened[slide_id]

    def in_split(self, split: str | None) -> tuple[SlideEntry, ...]:
        """The slides of `train`, `val` or `test`; None means all. A split without slides is an error."""
        if split is None:
            return self.slides
        if split not in SPLITS:
            raise UnknownNameError("split", split, SPLITS)
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
        path = self.root / "regions" / f"{self.slide(slide_id).slide_id}.geojson"
        return read_regions(path, path.name)[0] if path.is_file() else []

    def check_slides(self, split: str | None = None) -> list[Fault]:
        """Open every slide of the split and hold the annotations against it: all faults, none raised."""
        return [fault for entry in self.in_split(split) for fault in self.check_slide(entry.slide_id)]

    def check_slide(self, slide_id: str) -> list[Fault]:
        """Open one slide and hold its annotations against it: all faults, none raised."""
        try:
            slide = self.open(slide_id)
        except SlideError as error:
            return [Fault("cohort.json", None, f"slides[{slide_id}].path", str(error))]
        return [
            fault
            for line, node in zip(self._node_lines, self.nodes, strict=True)
            if node.slide_id == slide_id
            for fault in _node_on_slide_faults(line, node, slide)
        ]

    @cached_property
    def _entries(self) -> Mapping[str, SlideEntry]:
        return {entry.slide_id: entry for entry in self.slides}

    def __getstate__(self) -> dict[str, object]:
        # Open slides stay behind: they open again, once, in the process that gets the copy.
        return {**self.__dict__, "_opened": {}}

    def __repr__(self) -> str:
        return f"Cohort({self.name!r}, {len(self.slides)} slides, {len(self.nodes)} nodes, {self.root})"


def _is_url(path: str) -> bool:
    return "://" in path


def _leaves_folder(path: str) -> bool:
    for flavour in (PurePosixPath(path), PureWindowsPath(path)):
        depth = 0
        if flavour.is_absolute() or flavour.drive or flavour.root:
            return True
        for part in flavour.parts:
            depth += -1 if part == ".." else 1
            if depth < 0:
                return True
    return False


def _validation_faults(error: ValidationError, file: str, line: int | None) -> Iterator[Fault]:
    for problem in error.errors():
        field = ".".join(str(part) for part in problem["loc"])
        found = repr(problem["input"])
        found = found if len(found) <= 120 else found[:117] + "..."
        missing = problem["type"] == "missing"
        yield Fault(file, line, field, problem["msg"] if missing else f"{problem['msg']}; found {found}")


def _read_manifest(path: Path) -> Manifest:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise CohortError(
            [Fault(path.name, error.lineno, "", f"not JSON: {error.msg}, column {error.colno}")]
        ) from None
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise CohortError([Fault(path.name, None, "", f"not readable: {error}")]) from None
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        raise CohortError(list(_validation_faults(error, path.name, None))) from None


def _read_lines(path: Path, model: type[Line], faults: list[Fault]) -> dict[int, Line]:
    """The valid lines of a JSONL file by line number; faulty ones go to `faults`. No file: no lines."""
    if not path.is_file():
        return {}
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        faults.append(Fault(path.name, None, "", f"not readable as UTF-8 text: {error}"))
        return {}
    lines: dict[int, Line] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            lines[number] = model.model_validate(json.loads(line))
        except json.JSONDecodeError as error:
            faults.append(Fault(path.name, number, "", f"not JSON: {error.msg}, column {error.colno}"))
        except RecursionError:
            faults.append(Fault(path.name, number, "", "not JSON: nested too deeply"))
        except ValidationError as error:
            faults += _validation_faults(error, path.name, number)
    return lines


def _manifest_faults(manifest: Manifest, *, allow_outside: bool) -> Iterator[Fault]:
    for slide_id, count in Counter(entry.slide_id for entry in manifest.slides).items():
        if count > 1:
            yield Fault("cohort.json", None, f"slides[{slide_id}]", f"slide_id stands {count} times; ids are unique")
    for entry in manifest.slides:
        if not allow_outside and not _is_url(entry.path) and _leaves_folder(entry.path):
            yield Fault(
                "cohort.json",
                None,
                f"slides[{entry.slide_id}].path",
                f"{entry.path!r} leaves the cohort folder; allow it with allow_outside=True (--allow-outside)",
            )


def _node_faults(nodes: Mapping[int, Node], manifest: Manifest) -> Iterator[Fault]:
    slide_ids = {entry.slide_id for entry in manifest.slides}
    first_line: dict[tuple[str, str], int] = {}
    for line, node in nodes.items():
        if node.slide_id not in slide_ids:
            yield Fault("nodes.jsonl", line, "slide_id", str(UnknownNameError("slide", node.slide_id, slide_ids)))
        earlier = first_line.setdefault((node.slide_id, node.node_id), line)
        if earlier != line:
            yield Fault(
                "nodes.jsonl", line, "node_id", f"{node.node_id!r} stands on line {earlier} already; ids are unique"
            )
    by_id = {key: nodes[line] for key, line in first_line.items()}
    for line, node in nodes.items():
        if node.parent_id is None:
            continue
        parent = by_id.get((node.slide_id, node.parent_id))
        if parent is None:
            siblings = [node_id for slide_id, node_id in by_id if slide_id == node.slide_id]
            yield Fault("nodes.jsonl", line, "parent_id", str(UnknownNameError("node", node.parent_id, siblings)))
            continue
        if not parent.box.contains(node.box):
            yield Fault(
                "nodes.jsonl",
                line,
                "box",
                f"{node.box.to_list()} of {node.node_id!r} leaves {parent.box.to_list()} of parent {parent.node_id!r}",
            )
        if _is_own_ancestor(node, by_id):
            yield Fault("nodes.jsonl", line, "parent_id", f"{node.node_id!r} is its own ancestor; trees have no cycles")
        elif node.magnification <= parent.magnification:
            yield Fault(
                "nodes.jsonl",
                line,
                "magnification",
                f"{node.magnification:g} is not above the parent's {parent.magnification:g} ({parent.node_id!r})",
            )


def _is_own_ancestor(node: Node, by_id: Mapping[tuple[str, str], Node]) -> bool:
    seen: set[str] = set()
    above = node.parent_id
    while above is not None and above not in seen:
        if above == node.node_id:
            return True
        seen.add(above)
        parent = by_id.get((node.slide_id, above))
        above = parent.parent_id if parent else None
    return False


def _path_faults(paths: Mapping[int, DiagnosticPath], nodes: Mapping[int, Node], manifest: Manifest) -> Iterator[Fault]:
    slide_ids = {entry.slide_id for entry in manifest.slides}
    by_id = {(node.slide_id, node.node_id): node for node in nodes.values()}
    first_line: dict[tuple[str, str], int] = {}
    for line, path in paths.items():
        if path.slide_id not in slide_ids:
            yield Fault("paths.jsonl", line, "slide_id", str(UnknownNameError("slide", path.slide_id, slide_ids)))
            continue
        earlier = first_line.setdefault((path.slide_id, path.path_id), line)
        if earlier != line:
            yield Fault(
                "paths.jsonl", line, "path_id", f"{path.path_id!r} stands on line {earlier} already; ids are unique"
            )
        above: str | None = None
        for node_id in path.node_ids:
            node = by_id.get((path.slide_id, node_id))
            if node is None:
                siblings = [known for slide_id, known in by_id if slide_id == path.slide_id]
                yield Fault("paths.jsonl", line, "node_ids", str(UnknownNameError("node", node_id, siblings)))
                break
            if node.parent_id != above:
                yield Fault(
                    "paths.jsonl",
                    line,
                    "node_ids",
                    f"{node_id!r} follows {above!r}, but its parent is {node.parent_id!r}; "
                    "a path leads from a node without parent to its descendants, one step at a time",
                )
                break
            above = node_id


def _region_faults(root: Path, manifest: Manifest) -> Iterator[Fault]:
    for entry in manifest.slides:
        path = root / "regions" / f"{entry.slide_id}.geojson"
        if path.is_file():
            yield from read_regions(path, f"regions/{path.name}")[1]


def _node_on_slide_faults(line: int, node: Node, slide: Slide) -> Iterator[Fault]:
    if not slide.box.contains(node.box):
        yield Fault(
            "nodes.jsonl", line, "box", f"{node.box.to_list()} leaves the slide of {slide.width} x {slide.height} px"
        )
    if slide.magnification is None:
        yield Fault(
            "nodes.jsonl",
            line,
            "magnification",
            f"{node.magnification:g}x is asked for, but the microns per pixel of {slide.path} are unknown "
            f"({slide.resolution.found}); give mpp for slide {node.slide_id!r} in cohort.json",
        )
    elif node.magnification > slide.magnification * UPSAMPLING_TOLERANCE:
        yield Fault(
            "nodes.jsonl",
            line,
            "magnification",
            f"{node.magnification:g}x is beyond the scan's {slide.magnification:.3g}x ({slide.mpp:g} um/px)",
        )


def _digest(root: Path) -> str:
    """sha256 over the names and bytes of all the cohort's text files; slides themselves are not read."""
    digest = hashlib.sha256()
    for path in _text_files(root):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _text_files(root: Path) -> Iterable[Path]:
    names = [root / name for name in ("cohort.json", "nodes.jsonl", "paths.jsonl")]
    return [path for path in names if path.is_file()] + sorted((root / "regions").glob("*.geojson"))
