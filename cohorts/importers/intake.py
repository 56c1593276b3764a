"""Annotation files into a cohort's own files: all of them or, if one cannot be read, none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from wsigym.cohorts.cohort import Cohort
from wsigym.cohorts.files import MANIFEST, NODES, PATHS, REGIONS, Lines, read_lines
from wsigym.cohorts.invariants import Fence, is_url, path_faults, tree_of
from wsigym.cohorts.models import COHORT_FORMAT, DiagnosticPath, Manifest, Node, SlideEntry
from wsigym.cohorts.writing import region_feature, write_features, write_text
from wsigym.errors import AnnotationError, CohortError, Fault, InvalidArgumentError, SlideError, UnknownNameError
from wsigym.slides import Box, open_slide

from .dialects import dialect_called, read_drawings
from .matching import SlideNames, slides_in
from .nodes import read_nodes
from .shapes import Annotations, settle

__all__ = ["Import", "ImportReport", "import_annotations", "import_nodes"]

Result = TypeVar("Result")
NO_CLASS = "(none: --class =NAME)"
"""How a message calls the class of areas whose annotator gave none, and how it is renamed."""

Progress = Callable[[int, int], None]
"""Called after each file with how many are read, and how many there are."""


@dataclass(frozen=True)
class Import:
    """What became of the annotations of one slide: how many areas or nodes were written, and where.

    `left_out` counts marks that are no areas by kind; `clipped` the areas cut at the slide's edge.
    """

    slide_id: str
    file: str
    written: str
    count: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    clipped: int = 0


@dataclass(frozen=True)
class ImportReport:
    """What an import did. `unmatched` are files (or images of a file) that are called like no slide.

    `without_file` are slides that no file is for, `added` those that were not in the cohort, and `outside` those of
    them that lie outside its folder, or are links to there, so that loading it needs `allow_outside`.
    """

    imports: tuple[Import, ...]
    unmatched: tuple[str, ...]
    without_file: tuple[str, ...]
    added: tuple[str, ...]
    outside: tuple[str, ...]
    warnings: tuple[str, ...]


def import_annotations(
    files: Iterable[str | Path],
    dialect: str,
    cohort: str | Path,
    *,
    slides: str | Path | None = None,
    classes: Mapping[str, str] | None = None,
    replace: bool = False,
    allow_outside: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """Write the areas of annotation files into a cohort, as `regions/<slide_id>.geojson`.

    A file belongs to the slide of the same name (`tumor_001.xml`, `tumor_001.tif`; letter case may differ). The slides
    are the cohort's and, where `slides` is given, those in that folder and below it: the ones that a file is for are
    added to `cohort.json`, which is made if there is none. `classes` and repairs are as in `read_annotations`; areas
    are clipped to their slide; a slide that cannot be opened gives a warning and its areas stay whole.

    A regions file that is there already is an error unless `replace` is True. Raises `AnnotationError` for files that
    cannot be read, `UnknownNameError` for a name in `classes` that no file has, `InvalidArgumentError` if no file
    matches a slide, `CohortError` if the cohort is faulty. Then nothing has been written.
    """
    names = {**dialect_called(dialect).classes, **(classes or {})}
    target = _Target(cohort, slides, allow_outside=allow_outside)
    labels: set[str | None] = set()

    def read(file: str) -> list[tuple[SlideEntry, str, Annotations]]:
        found = []
        drawings = read_drawings(file, dialect)
        for drawing in drawings:
            labels.update(drawing.labels)
            entry = target.slide_for(drawing.stem, file if len(drawings) == 1 else f"{file} ({drawing.stem})")
            if entry is not None:
                found.append((entry, file, settle(file, drawing, names, target.box_of(entry))))
        return found

    read_files = _each(files, read, progress)
    _check_classes(classes or {}, labels)
    chosen = target.one_file_a_slide([one for found in read_files for one in found])
    path_of = {entry.slide_id: target.root / REGIONS / f"{entry.slide_id}.geojson" for entry, _, _ in chosen}
    if not replace:
        _refuse([f"{REGIONS}/{path.name}" for path in path_of.values() if path.exists()])
    for entry, _, found in chosen:
        write_features(path_of[entry.slide_id], map(region_feature, found.regions))
    imports = [
        Import(entry.slide_id, file, str(path_of[entry.slide_id]), len(found.regions), found.left_out, found.clipped)
        for entry, file, found in chosen
    ]
    return target.finish(imports, [warning for _, _, found in chosen for warning in found.warnings])


def import_nodes(
    files: Iterable[str | Path],
    cohort: str | Path,
    *,
    slides: str | Path | None = None,
    replace: bool = False,
    allow_outside: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """Write the rectangles of GeoJSON files into a cohort's `nodes.jsonl`, as in `read_nodes`.

    Files are matched to slides as in `import_annotations`. Lines of the file are sorted by slide, in the order of
    `cohort.json`. Nodes that a slide has already are an error unless `replace` is True, which drops all of them.
    Raises the same errors, and `CohortError` if a path of `paths.jsonl` would break.
    """
    target = _Target(cohort, slides, allow_outside=allow_outside)

    def read(file: str) -> list[tuple[SlideEntry, str, list[Node]]]:
        entry = target.slide_for(Path(file).stem, file)
        return (
            [] if entry is None else [(entry, file, read_nodes(file, entry.slide_id, slide_box=target.box_of(entry)))]
        )

    chosen = target.one_file_a_slide([one for found in _each(files, read, progress) for one in found])
    fresh = {entry.slide_id: nodes for entry, _, nodes in chosen}
    if not replace:
        _refuse(sorted({f"nodes of {node.slide_id}" for node in target.nodes if node.slide_id in fresh}))
    nodes = [node for node in target.nodes if node.slide_id not in fresh]
    nodes += [node for found in fresh.values() for node in found]
    target.write_nodes(nodes)
    imports = [Import(entry.slide_id, file, str(target.root / NODES), len(found)) for entry, file, found in chosen]
    return target.finish(imports, [])


class _Target:
    """The cohort that an import writes into, as it is and as it will be."""

    def __init__(self, cohort: str | Path, slides: str | Path | None, *, allow_outside: bool) -> None:
        folder = Path(cohort)
        self.root = folder.parent if folder.name == MANIFEST else folder
        self.nodes: tuple[Node, ...] = ()
        self.known: tuple[SlideEntry, ...] = ()
        self.name = Path(self.root).resolve().name
        if (self.root / MANIFEST).exists():
            loaded = Cohort.load(self.root, allow_outside=allow_outside)
            self.nodes, self.known, self.name = loaded.nodes, loaded.slides, loaded.name
        elif slides is None:
            raise InvalidArgumentError(
                f"{self.root} has no {MANIFEST}, so it says no slides; name the folder of the slides "
                "(--slides DIR), and one is made."
            )
        places = {self._place(entry) for entry in self.known}
        ids = {entry.slide_id for entry in self.known}
        self.offered = [
            entry
            for entry in (slides_in(Path(slides), self.root) if slides is not None else [])
            if entry.slide_id not in ids and self._place(entry) not in places
        ]
        self.names = SlideNames([*self.known, *self.offered])
        self.matched: dict[str, SlideEntry] = {}
        self.unmatched: list[str] = []
        self.warnings: list[str] = []

    def _place(self, entry: SlideEntry) -> Path:
        """Where a slide's file is, links followed, so that one file is one slide however it is written."""
        return (self.root / entry.path).resolve()

    def slide_for(self, stem: str, shown: str) -> SlideEntry | None:
        """The slide called `stem`; where there is none, `shown` is noted."""
        entry = self.names.find(stem)
        if entry is None:
            self.unmatched.append(shown)
        else:
            self.matched[entry.slide_id] = entry
        return entry

    def box_of(self, entry: SlideEntry) -> Box | None:
        """The slide's size; None with a warning where it cannot be opened."""
        try:
            slide = open_slide(entry.path if is_url(entry.path) else self.root / entry.path, mpp=entry.mpp)
        except SlideError as error:
            self.warnings.append(f"{entry.slide_id}: its size is not known, so nothing is clipped to it: {error}")
            return None
        slide.close()
        return slide.box

    def one_file_a_slide(self, found: list[tuple[SlideEntry, str, Result]]) -> list[tuple[SlideEntry, str, Result]]:
        """`found`, in the cohort's order of slides, once it is sure that each slide has one file and that any has."""
        file_of: dict[str, str] = {}
        for entry, file, _ in found:
            other = file_of.setdefault(entry.slide_id, file)
            if other != file:
                raise InvalidArgumentError(
                    f"{other} and {file} are both for slide {entry.slide_id!r}; import one file a slide."
                )
        if not found:
            raise InvalidArgumentError(
                f"no file matches a slide by its name. Files: {_some(self.unmatched)}. Slides: "
                f"{_some([entry.slide_id for entry in (*self.known, *self.offered)])}."
            )
        order = {entry.slide_id: index for index, entry in enumerate(self.slides)}
        return sorted(found, key=lambda one: order[one[0].slide_id])

    @property
    def slides(self) -> tuple[SlideEntry, ...]:
        """The cohort's slides after the import."""
        return (*self.known, *self.added)

    @property
    def added(self) -> tuple[SlideEntry, ...]:
        return tuple(entry for entry in self.offered if self.matched.get(entry.slide_id) is entry)

    def write_nodes(self, nodes: Iterable[Node]) -> None:
        """`nodes.jsonl`, sorted by slide. Raises `CohortError` where `paths.jsonl` would no longer hold."""
        order = {entry.slide_id: index for index, entry in enumerate(self.slides)}
        ordered = sorted(nodes, key=lambda node: order[node.slide_id])
        faults: list[Fault] = []
        tree = tree_of(Lines(valid=list(enumerate(ordered, start=1))), order)
        faults += path_faults(read_lines(self.root, PATHS, DiagnosticPath, faults), tree, order)
        if faults:
            raise CohortError(faults)
        lines = (json.dumps(node.model_dump(mode="json")) for node in ordered)
        write_text(self.root / NODES, "".join(f"{line}\n" for line in lines))

    def finish(self, imports: Iterable[Import], warnings: Iterable[str]) -> ImportReport:
        """Write `cohort.json` where slides came in, last, so that an import cut short shows; and the report."""
        if self.added:
            manifest = Manifest(format=COHORT_FORMAT, name=self.name, slides=self.slides)
            write_text(self.root / MANIFEST, json.dumps(manifest.model_dump(exclude_none=True), indent=1) + "\n")
        fence = Fence(self.root, allow_outside=False)
        return ImportReport(
            tuple(imports),
            tuple(self.unmatched),
            tuple(entry.slide_id for entry in (*self.known, *self.offered) if entry.slide_id not in self.matched),
            tuple(entry.slide_id for entry in self.added),
            tuple(entry.slide_id for entry in self.added if fence.crossed_by(entry.path)),
            (*self.warnings, *warnings),
        )


def _each(
    files: Iterable[str | Path], read: Callable[[str], list[Result]], progress: Progress | None
) -> list[list[Result]]:
    """What `read` gives for each file; one error that names all the files that it cannot read."""
    results: list[list[Result]] = []
    errors: list[AnnotationError] = []
    listed = [str(file) for file in files]
    for done, file in enumerate(listed, start=1):
        try:
            results.append(read(file))
        except AnnotationError as error:
            errors.append(error)
        if progress is not None:
            progress(done, len(listed))
    if len(errors) == 1:
        raise errors[0]
    if errors:
        lines = "\n".join(str(error) for error in errors)
        raise AnnotationError(errors[0].file, "", f"it and {len(errors) - 1} more cannot be imported:\n{lines}")
    return results


def _check_classes(classes: Mapping[str, str], labels: set[str | None]) -> None:
    known = {label or "" for label in labels}
    for name, new_name in classes.items():
        if name not in known:
            raise UnknownNameError("class", name, sorted(label or NO_CLASS for label in known))
        if not new_name.strip():
            raise InvalidArgumentError(f"class {name!r} is mapped to nothing; give it a name, such as 'tumour'.")


def _refuse(existing: list[str]) -> None:
    if existing:
        raise InvalidArgumentError(
            f"the cohort has {_some(existing)} already, and nothing was written. Pass replace=True (--replace) to "
            "overwrite, or move the old ones away."
        )


def _some(names: list[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
