"""From sources to items: each source is read once, whatever tasks are built, and each picture is held but once.

What is held in memory is the columns of one source's annotations (38 bytes each, see `marks`) and the list of pictures;
items are written as they come.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wsigym.errors import CohortError, Fault, InvalidArgumentError, SlideReadError, UnknownNameError

from ...cohort import Cohort
from ...item_files import NOT_AN_IMAGE, Asked
from ...items import EvidenceItem, EvidenceWords, Metadata, in_base_order
from ...references import EvidenceReference
from ..building import Evenly
from .area import fraction_of, tissue_of
from .field import BACKGROUND, Field, field_of
from .labels import Labels, load_labels
from .marks import Marks, Outline
from .questions import Asking, NotAskedError, Question
from .readers import READERS
from .sources import SOURCES, Picture, Source, load_pictures, load_sources
from .splits import split_pictures
from .tasks import SUITE, TASKS, TaskRule
from .unmapped import Unmapped
from .writing import Writer

Progress = Callable[[int, int], None]

__all__ = ["PathViewBuilt", "build_pathview", "has_sources"]

WORDS = {
    "region": EvidenceWords(one="The image shows a field of a slide.", many="{count} fields are shown."),
    "slide": EvidenceWords(one="The image shows a whole slide at low power.", many="{count} slides are shown."),
}


@dataclass(frozen=True)
class PathViewBuilt:
    """What was built: pictures and annotations read, items by task, pictures by split, and what was dropped by reason:
    of each task what it would have asked, and under "" annotations."""

    pictures: int
    annotations: int
    items: dict[str, int]
    splits: dict[str, int]
    dropped: dict[str, dict[str, int]]


def has_sources(root: Path) -> bool:
    """Whether a cohort folder says what the suite's items are built from."""
    return (root / SOURCES).is_file()


def build_pathview(
    cohort: Cohort, tasks: Sequence[str] = (), *, seed: int = 0, progress: Progress | None = None
) -> PathViewBuilt:
    """Build the items of some of the suite's tasks (all by default) from `pathview/sources.toml` and `labels.toml`.

    Files of these tasks are replaced, all or none. `seed` is of the splits, of what is asked, and of the options.
    `progress(done, total)` is called after each picture. Raises `CohortError` for faults of the two files, of tables
    of images; and for those of annotation files and raw labels that `labels.toml` lacks, all of them;
    `InvalidArgumentError` where nothing can be asked.
    """
    names = [rule.name for rule in TASKS]
    for task in tasks:
        if task not in names:
            raise UnknownNameError(f"task of {SUITE}", task, names)
    if not has_sources(cohort.root):
        raise InvalidArgumentError(
            f"cohort {cohort.name!r} has no {SOURCES}, which says what is annotated where; docs/pathview.md shows one."
        )
    rules = [rule for rule in TASKS if not tasks or rule.name in tasks]
    labels, sources = load_labels(cohort.root), load_sources(cohort.root)
    pictures = _pictures(cohort, sources)
    splits = dict(zip(map(id, pictures), split_pictures(pictures, seed), strict=True))
    organs = tuple(sorted({picture.organ for picture in pictures if picture.organ is not None}))
    unmapped = Unmapped()
    faults: list[Fault] = []
    annotations = done = 0
    with Writer(cohort.root, [rule.name for rule in rules], labels.vocabulary) as writer:
        for source in sources:
            marks = Marks(source.name, writer)
            try:
                READERS[source.format](cohort.root, source, marks)
            except CohortError as error:
                faults += error.faults
            annotations += len(marks)
            of_source = [picture for picture in pictures if picture.source == source.name]
            unmapped.look(labels, marks, of_source)
            if not unmapped and not faults:
                builder = _SourceBuilder(cohort, marks, labels, organs, seed, rules, writer)
                for picture in of_source:
                    builder.build(picture, splits[id(picture)])
                    done += 1
                    if progress is not None:
                        progress(done, len(pictures))
                builder.tell_unknown(of_source)
        if unmapped or faults:
            raise CohortError(faults + unmapped.faults)
        if not writer.items.total():
            reasons = Counter(reason for counts in writer.dropped.values() for reason in counts)
            said = "; ".join(sorted(reasons)) or "no picture has an annotation"
            raise InvalidArgumentError(f"no item of {SUITE} can be built from cohort {cohort.name!r}: {said}.")
    return PathViewBuilt(
        len(pictures),
        annotations,
        {rule.name: writer.items[rule.name] for rule in rules},
        dict(Counter(splits.values())),
        {task: dict(counts) for task, counts in writer.dropped.items()},
    )


def _pictures(cohort: Cohort, sources: Iterable[Source]) -> list[Picture]:
    """The pictures of all sources. Raises `CohortError` with the faults of all."""
    pictures: list[Picture] = []
    faults: list[Fault] = []
    for source in sources:
        try:
            pictures += load_pictures(cohort, source)
        except CohortError as error:
            faults += error.faults
    if faults:
        raise CohortError(faults)
    return pictures


class _SourceBuilder:
    """The items of one source's pictures."""

    def __init__(
        self,
        cohort: Cohort,
        marks: Marks,
        labels: Labels,
        organs: tuple[str, ...],
        seed: int,
        rules: Sequence[TaskRule],
        writer: Writer,
    ) -> None:
        self._cohort, self._marks, self._labels = cohort, marks, labels
        self._organs, self._seed, self._rules, self._writer = organs, seed, rules, writer
        self._evenly = defaultdict[tuple[str, str], Evenly](Evenly)  # by task and split
        place_of = {name: place for place, name in enumerate(labels.standard)}
        of_raw = [labels.of_raw[raw] for raw in marks.labels]
        self._standard: npt.NDArray[np.intp] = np.array(
            [BACKGROUND if name is None else place_of[name] for name in of_raw], np.intp
        )
        self._in_source = tuple(name for name in labels.standard if name in of_raw)

    def build(self, picture: Picture, split: str) -> None:
        """Write the items of a picture."""
        label = None if picture.label is None else self._labels.of_raw[picture.label]
        field = field_of(picture, self._marks, self._standard, self._labels, label, self._writer)
        fraction = partial(_fraction, self._cohort, picture, lru_cache(1)(partial(tissue_of, self._cohort, picture)))
        for rule in self._rules:
            if rule.view != picture.view:
                continue
            digest = hashlib.sha256(f"{rule.name}\0{picture.source}\0{picture.name}".encode()).hexdigest()[:16]
            asking = Asking(
                self._labels,
                self._in_source,
                self._organs,
                self._seed,
                digest,
                self._evenly[rule.name, split],
                partial(fraction, field.size),
            )
            for target in asking.shuffled(rule.targets(field, asking), "target"):
                try:
                    question = rule.rule(field, asking, target)
                except NotAskedError as reason:
                    self._writer.item(rule.name, picture.source, picture.name, target, str(reason))
                    continue
                self._writer.ask(rule.name, _asked(rule, picture, split, field, question, asking, target))
                break

    def tell_unknown(self, pictures: Iterable[Picture]) -> None:
        """Log the images that something is annotated on and that are not among the pictures."""
        known = {name for picture in pictures for name in picture.annotated_as}
        for image in self._marks.images:
            if image not in known:
                found = self._marks.of_image(image)
                for label, place in zip(found.labels.tolist(), found.places.tolist(), strict=True):
                    raw, where = self._marks.labels[label], self._marks.where(place)
                    reason = "no image of the source has this name"
                    self._writer.annotation(self._marks.source, image, raw, where, reason)


def _fraction(
    cohort: Cohort,
    picture: Picture,
    tissue: object,
    size: tuple[float, float],
    outlines: Sequence[Outline],
) -> float | None:
    try:
        return fraction_of(tissue(), outlines, size)  # type: ignore[operator]
    except (SlideReadError, *NOT_AN_IMAGE) as error:
        file, _, line = picture.where.rpartition(":")
        raise CohortError([Fault(file, int(line) if line.isdigit() else None, "image", str(error))]) from None


def _asked(
    rule: TaskRule, picture: Picture, split: str, field: Field, question: Question, asking: Asking, target: str
) -> Asked:
    options = question.options if question.ordered else tuple(in_base_order(question.options, asking.key, asking.seed))
    group = dict(picture.groups) or {"set": picture.name}
    item = EvidenceItem.model_validate(
        {
            "item_id": asking.key,
            "suite": SUITE,
            "task": rule.name,
            "question": question.text,
            "answer": question.form,
            "options": options,
            "images": (picture.image,),
            "evidence": WORDS[rule.view],
            "features": picture.features,
            "metadata": Metadata(magnification=picture.image.magnification),
            "group": group | {"source": picture.source},
            "split": split,
        }
    )
    provenance: dict[str, Any] = {"image": picture.name}
    if question.asked_box is not None:
        provenance["asked_box"] = question.asked_box
    if question.boxes:
        provenance["boxes"] = list(question.boxes)
    provenance |= question.notes
    reference = EvidenceReference(
        item_id=asking.key,
        answer=options.index(question.right) if options else question.right,
        strata={"organ": picture.organ, **({"target": target} if target else {})},
        provenance=provenance,
    )
    return Asked(item, reference)
