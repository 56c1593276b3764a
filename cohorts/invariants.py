"""What must hold between the files of a cohort, and between a cohort and its slides.

A fault is reported once, where it is to be mended: what only follows from it (a child of a node whose own line is
broken, a path through a cycle) is not. Everything here is linear in the number of lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath

from wsigym.errors import Fault
from wsigym.slides import Slide
from wsigym.slides.geometry import UPSAMPLING_TOLERANCE

from .files import MANIFEST, NODES, PATHS, REGIONS, Lines, SlidePlaces, region_files
from .models import DiagnosticPath, Manifest, Node
from .regions import read_regions

__all__ = ["Fence", "Tree", "is_url", "manifest_faults", "path_faults", "region_faults", "slide_faults", "tree_of"]

Key = tuple[str, str]
"""(slide_id, node_id)."""

LOCAL_SCHEMES = ("file:", "local:")
"""URLs that name local files, so that they may leave the cohort's folder."""


@dataclass
class Tree:
    """The nodes of a cohort by (slide_id, node_id) as far as they make sense, and the faults where they do not.

    `doubtful` nodes have a faulty parent. `unread` are the node ids of faulty lines, so that a reference to them is
    no fault of its own; `anything_unread` is True where a line does not even tell its id.
    """

    nodes: dict[Key, Node] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    doubtful: set[Key] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    anything_unread: bool = False

    def add_fault(self, line: int, place: str, message: str) -> None:
        self.faults.append(Fault(NODES, line, place, message))

    def excuses(self, node_id: str) -> bool:
        """Whether a reference to a node that is not there may be due to a line that is reported already."""
        return self.anything_unread or node_id in self.unread


class Fence:
    """Which paths of a cohort leave its folder, by their text or by a symbolic link; none where that is allowed.

    The folder itself may be reached by a link. Folders are resolved once, so that many files in one cost a look each.
    """

    def __init__(self, root: Path, allow_outside: bool) -> None:
        self._root, self._allow_outside = os.fspath(root), allow_outside
        self._resolved: dict[str, str] = {}

    def __reduce__(self) -> tuple[type[Fence], tuple[Path, bool]]:
        # On another machine, folders may be links to other places.
        return type(self), (Path(self._root), self._allow_outside)

    def crossed_by(self, path: str) -> str:
        """How a path, relative to the folder, leaves it, and what to do; "" where it does not, or may."""
        if self._allow_outside:
            return ""
        allow = "or allow it with allow_outside=True (--allow-outside)"
        if _leaves_folder(path):
            return f"{path!r} leaves the cohort's folder; use a path inside it, {allow}"
        target = None if is_url(path) else self._link_out(path)
        if target is None:
            return ""
        return f"{path!r} leaves the cohort's folder by a link, to {target!r}; put the file itself there, {allow}"

    def _link_out(self, path: str) -> str | None:
        """Where a path leads outside; None where it stays inside, or nobody can say where it leads."""
        try:
            folder, name = os.path.split(os.path.join(self._root, path))  # noqa: PTH118  # Path is 10 times as slow
            place = os.path.join(self._resolve(folder), name)  # noqa: PTH118
            if name in ("", ".", "..") or os.path.islink(place):  # noqa: PTH114
                place = os.path.realpath(place)
            root = self._resolve(self._root)
        except ValueError:  # no file can be called so
            return None
        return None if place == root or place.startswith(root.rstrip(os.sep) + os.sep) else place

    def _resolve(self, folder: str) -> str:
        if folder not in self._resolved:
            self._resolved[folder] = os.path.realpath(folder)
        return self._resolved[folder]


def manifest_faults(manifest: Manifest, places: SlidePlaces, fence: Fence) -> Iterator[Fault]:
    """Slide ids that stand twice, and paths that leave the cohort's folder."""
    first: dict[str, tuple[int, int]] = {}
    for index, line, entry in zip(places.indices, places.lines, manifest.slides, strict=True):
        earlier, its_line = first.setdefault(entry.slide_id, (index, line))
        if earlier != index:
            message = f"{entry.slide_id!r} stands on line {its_line} already (slides.{earlier}); ids are unique"
            yield Fault(MANIFEST, line, f"slides.{index}.slide_id", message)
        if crossing := fence.crossed_by(entry.path):
            yield Fault(MANIFEST, line, f"slides.{index}.path", crossing)


def tree_of(lines: Lines[Node], slide_ids: Iterable[str]) -> Tree:
    """The nodes of `nodes.jsonl` held against each other: slides, ids, parents, cycles, boxes, magnifications."""
    tree = Tree()
    for content in lines.broken:
        node_id = content.get("node_id") if isinstance(content, dict) else None
        if isinstance(node_id, str) and node_id.strip():
            tree.unread.add(node_id)
        else:
            tree.anything_unread = True
    known = set(slide_ids)
    line_of: dict[Key, int] = {}
    for line, node in lines.valid:
        key = (node.slide_id, node.node_id)
        if node.slide_id not in known:
            tree.unread.add(node.node_id)
            tree.add_fault(line, "slide_id", f"no slide {node.slide_id!r} in {MANIFEST}; use one of its slide_ids")
        elif key in line_of:
            tree.add_fault(line, "node_id", f"{node.node_id!r} stands on line {line_of[key]} already; ids are unique")
        else:
            line_of[key] = line
            tree.nodes[key] = node
    _check_cycles(tree, line_of)
    for key, node in tree.nodes.items():
        if node.parent_id is not None and key not in tree.doubtful:
            _check_edge(tree, key, line_of[key])
    tree.faults.sort(key=lambda fault: fault.line or 0)
    return tree


def _check_cycles(tree: Tree, line_of: Mapping[Key, int]) -> None:
    """One fault a cycle, on its first line. Every node is walked over once."""
    walk_of: dict[Key, int] = {}
    for walk, start in enumerate(tree.nodes):
        chain: list[Key] = []
        key: Key | None = start
        while key is not None and key in tree.nodes and key not in walk_of:
            walk_of[key] = walk
            chain.append(key)
            parent_id = tree.nodes[key].parent_id
            key = None if parent_id is None else (key[0], parent_id)
        if key is not None and walk_of.get(key) == walk:
            cycle = chain[chain.index(key) :]
            tree.doubtful.update(cycle)
            shown = [node_id for _, node_id in cycle[:5]] + ["..."] * (len(cycle) > 5) + [cycle[0][1]]
            message = f"{' < '.join(shown)}: a node cannot be its own ancestor; make one of them a node without parent"
            tree.add_fault(min(line_of[member] for member in cycle), "parent_id", message)


def _check_edge(tree: Tree, key: Key, line: int) -> None:
    node = tree.nodes[key]
    assert node.parent_id is not None
    parent = tree.nodes.get((node.slide_id, node.parent_id))
    if parent is None:
        tree.doubtful.add(key)
        if not tree.excuses(node.parent_id):
            message = f"no node {node.parent_id!r} on slide {node.slide_id!r}; use a node_id of this slide, or null"
            tree.add_fault(line, "parent_id", message)
        return
    if not parent.box.contains(node.box):
        message = (
            f"{node.box.to_list()} of {node.node_id!r} leaves {parent.box.to_list()} of its parent "
            f"{parent.node_id!r}; a box lies inside its parent's"
        )
        tree.add_fault(line, "box", message)
    if node.magnification <= parent.magnification:
        message = (
            f"{node.magnification:g} of {node.node_id!r} is not above {parent.magnification:g} of its parent "
            f"{parent.node_id!r}; magnification rises from parent to child"
        )
        tree.add_fault(line, "magnification", message)


def path_faults(paths: Lines[DiagnosticPath], tree: Tree, slide_ids: Iterable[str]) -> Iterator[Fault]:
    """The paths of `paths.jsonl` held against the tree: slides, unique ids, nodes from a first one downwards."""
    known = set(slide_ids)
    line_of: dict[Key, int] = {}
    for line, path in paths.valid:
        if path.slide_id not in known:
            message = f"no slide {path.slide_id!r} in {MANIFEST}; use one of its slide_ids"
            yield Fault(PATHS, line, "slide_id", message)
            continue
        earlier = line_of.setdefault((path.slide_id, path.path_id), line)
        if earlier != line:
            yield Fault(PATHS, line, "path_id", f"{path.path_id!r} stands on line {earlier} already; ids are unique")
        message = _broken_path(path, tree)
        if message:
            yield Fault(PATHS, line, "node_ids", message)


def _broken_path(path: DiagnosticPath, tree: Tree) -> str:
    """What is wrong with the nodes of a path, "" if nothing or if the tree's own faults may explain it."""
    above: str | None = None
    for node_id in path.node_ids:
        node = tree.nodes.get((path.slide_id, node_id))
        if node is None:
            if tree.excuses(node_id):
                return ""
            return f"no node {node_id!r} on slide {path.slide_id!r}; use node_ids of this slide"
        if (path.slide_id, node_id) in tree.doubtful:
            return ""
        if node.parent_id != above:
            stands = f"stands after {above!r}" if above is not None else "stands first"
            parent = f"its parent is {node.parent_id!r}" if node.parent_id is not None else "it has no parent"
            return (
                f"{node_id!r} {stands}, but {parent}; a path leads from a node without parent to its descendants, "
                "one step at a time"
            )
        above = node_id
    return ""


def region_faults(root: Path, slide_ids: Iterable[str]) -> Iterator[Fault]:
    """The files of `regions/`: each is named after a slide and holds areas."""
    known = set(slide_ids)
    for path in region_files(root):
        file = f"{REGIONS}/{path.name}"
        if path.stem not in known:
            yield Fault(file, None, "", f"no slide {path.stem!r} in {MANIFEST}; the file is named <slide_id>.geojson")
        yield from read_regions(path, file)[1]


def slide_faults(slide: Slide, nodes: Iterable[tuple[int, Node]], index: int, line: int) -> Iterator[Fault]:
    """An open slide held against its nodes. `index` and `line` say where `cohort.json` has it."""
    nodes = list(nodes)
    if nodes and slide.magnification is None:
        message = (
            f"is missing, and {slide.path} does not tell its microns per pixel (found: {slide.resolution.found}); "
            "nodes are seen at a magnification, so give mpp"
        )
        yield Fault(MANIFEST, line, f"slides.{index}.mpp", message)
    for node_line, node in nodes:
        if not slide.box.contains(node.box):
            message = (
                f"{node.box.to_list()} of {node.node_id!r} leaves slide {node.slide_id!r}, "
                f"which is {slide.width} x {slide.height} px"
            )
            yield Fault(NODES, node_line, "box", message)
        if slide.magnification is not None and node.magnification > slide.magnification * UPSAMPLING_TOLERANCE:
            message = (
                f"{node.magnification:g} of {node.node_id!r} is beyond the scan of slide {node.slide_id!r}, "
                f"which is {slide.magnification:.4g}x ({slide.mpp:.4g} um/px)"
            )
            yield Fault(NODES, node_line, "magnification", message)


def is_url(path: str) -> bool:
    """Whether a slide's path is a URL, which `open_slide` gets as it is."""
    return "://" in path


def _leaves_folder(path: str) -> bool:
    """Whether a path names something outside the cohort's folder, by its text alone."""
    if not path.startswith("/") and not any(sign in path for sign in ("..", ":", "\\")):
        return False  # as nearly all are
    if is_url(path):
        return any(part.lower().startswith(LOCAL_SCHEMES) for part in path.split("::"))
    for flavour in (PurePosixPath(path), PureWindowsPath(path)):
        if flavour.is_absolute() or flavour.drive or flavour.root:
            return True
        depth = 0
        for part in flavour.parts:
            depth += -1 if part == ".." else 1
            if depth < 0:
                return True
    return False
