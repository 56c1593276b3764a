"""Reading and writing the items of a cohort and their references, and what may be wrong with them.

    items/<suite>/<task>.jsonl         EvidenceItem, one a line
    references/<suite>/<task>.jsonl    EvidenceReference, one a line
    items/<suite>/vocabulary.json      {"term": ["alias", ...]}: what answers of kind terms may hold
    references/<suite>/ontology.json   [KnownEntity, ...]: what answers of kind diagnosis are graded against

Only tasks with answers of kind terms need a vocabulary; the aliases are other spellings of a term. Only those with
answers of kind diagnosis need an ontology.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from PIL import Image, UnidentifiedImageError
from pydantic import BaseModel, TypeAdapter, ValidationError

from wsigym.errors import CohortError, Fault, InvalidArgumentError, SlideError, UnknownNameError
from wsigym.slides.geometry import UPSAMPLING_TOLERANCE

from .feature_files import feature_faults
from .files import (
    ITEMS,
    REFERENCES,
    item_files,
    item_tasks,
    json_fault,
    parse_json,
    read_lines,
    read_text,
    validation_faults,
)
from .items import EvidenceItem, FeatureFiles, ImageSpec
from .models import Name
from .references import EvidenceReference, KnownEntity, entity_faults, reference_faults
from .writing import write_text

if TYPE_CHECKING:
    from .cohort import Cohort

__all__ = [
    "ONTOLOGY",
    "VOCABULARY",
    "Asked",
    "evidence_faults",
    "image_faults",
    "line_of",
    "load_entities",
    "load_items",
    "load_vocabulary",
    "not_an_image",
    "write_items",
]

VOCABULARY, ONTOLOGY = "vocabulary.json", "ontology.json"

_T = TypeVar("_T")

NOT_AN_IMAGE = (OSError, ValueError, SyntaxError, KeyError, IndexError, TypeError, Image.DecompressionBombError)
"""What Pillow raises on files that are none, or broken."""

EIGHT_BIT = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
"""Pillow's modes that turn into RGB without a change of scale; 16-bit grey would be cut off at 255."""


ALIKE = ("suite", "task", "answer", "options", "evidence", "metadata", "set_id", "split")
"""What many items of a task have in common."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An item with its reference, and the 1-based line of the item where it was read from a file."""

    item: EvidenceItem
    reference: EvidenceReference
    line: int | None = None


def load_items(cohort: Cohort, suite: str, task: str, split: str | None = None) -> tuple[Asked, ...]:
    """The items of a task with their references, in the order of their file; those of one split where it is given.

    Raises `CohortError` with every fault of the two files, `UnknownNameError` where the cohort has no such items, and
    `InvalidArgumentError` where the split has none. Images are not opened: see `image_faults`.
    """
    asked = _load(str(cohort.root), suite, task, cohort.sha256)
    if split is None:
        return asked
    chosen = tuple(each for each in asked if each.item.split == split)
    if not chosen:
        raise InvalidArgumentError(
            f"cohort {cohort.name!r} has no item of {suite}/{task} in split {split!r}; it has "
            f"{len(asked)} in {', '.join(sorted({each.item.split or 'none' for each in asked}))}."
        )
    return chosen


@lru_cache(maxsize=2)
def _load(root: str, suite: str, task: str, sha256: str) -> tuple[Asked, ...]:
    """Kept for the cohort's sha256, as the runner and each environment ask for the same."""
    known = item_tasks(Path(root))
    if (suite, task) not in known:
        names = [f"{suite}/{task}" for suite, task in known]
        raise UnknownNameError("items of the cohort (`wsigym items build` makes them)", f"{suite}/{task}", names)
    asked, faults = _read(Path(root), suite, task)
    if faults:
        raise CohortError(faults)
    if not asked:
        raise CohortError([Fault(item_files(suite, task)[0], None, "", "holds no item; at least one is needed")])
    return tuple(asked)


def evidence_faults(cohort: Cohort, slides: Set[str] | None = None) -> Iterator[Fault]:
    """Every fault of a cohort's items, references, vocabularies and images, which are decoded.

    Where `slides` are given, images of other slides are not looked at.
    """
    for suite, task in item_tasks(cohort.root):
        asked, faults = _read(cohort.root, suite, task)
        yield from faults
        yield from image_faults(cohort, asked, decode=True, slides=slides)


def _read(root: Path, suite: str, task: str) -> tuple[list[Asked], list[Fault]]:
    """The items that have a reference, and every fault of the two files."""
    items_file, references_file = item_files(suite, task)
    faults: list[Fault] = []
    items = read_lines(root, items_file, EvidenceItem, faults, ALIKE)
    references = read_lines(root, references_file, EvidenceReference, faults, ())
    # An item whose own line is broken excuses its reference, and the other way round.
    meant_items, meant_references = _meant(items.broken), _meant(references.broken)
    vocabulary: Mapping[str, object] = {}
    kinds = {item.answer.kind for _, item in items.valid}
    if "terms" in kinds:
        vocabulary, unusable = _vocabulary(root, suite)
        faults += unusable
    elif "diagnosis" in kinds:
        entities, unusable = _entities(root, suite)
        vocabulary = {each.entity: each for each in entities}
        faults += unusable
    line_of: dict[str, int] = {}
    answers: dict[str, tuple[int, EvidenceReference]] = {}
    for line, item in items.valid:
        if (item.suite, item.task) != (suite, task):
            field, found, wanted = ("suite", item.suite, suite) if item.suite != suite else ("task", item.task, task)
            faults.append(Fault(items_file, line, field, f"{found!r} lies in the file of {wanted!r}"))
        earlier = line_of.setdefault(item.item_id, line)
        if earlier != line:
            message = f"{item.item_id!r} stands on line {earlier} already; ids are unique"
            faults.append(Fault(items_file, line, "item_id", message))
    for line, reference in references.valid:
        if reference.item_id in answers:
            message = f"{reference.item_id!r} stands on line {answers[reference.item_id][0]} already; ids are unique"
            faults.append(Fault(references_file, line, "item_id", message))
            continue
        answers[reference.item_id] = (line, reference)
        if reference.item_id not in line_of and not {reference.item_id, None} & meant_items:
            message = f"no item {reference.item_id!r} in {items_file}; remove the line or mend the id"
            faults.append(Fault(references_file, line, "item_id", message))
    asked = []
    for line, item in items.valid:
        if item.item_id not in answers:
            if not {item.item_id, None} & meant_references:
                faults.append(Fault(items_file, line, "item_id", f"{item.item_id!r} has no line in {references_file}"))
            continue
        answer_line, reference = answers[item.item_id]
        faults += (
            Fault(references_file, answer_line, field, message)
            for field, message in reference_faults(item, reference, vocabulary.keys())
        )
        asked.append(Asked(item, reference, line))
    return asked, faults


def _meant(broken: Iterable[object]) -> set[str | None]:
    """The item ids that broken lines may be of; None is any. A JSON value that is no object is a line of none."""
    found: set[str | None] = set()
    for content in broken:
        if isinstance(content, dict):
            item_id = content.get("item_id")
            found.add(item_id if isinstance(item_id, str) else None)
        elif content is None:
            found.add(None)
    return found


def load_vocabulary(cohort: Cohort, suite: str) -> Mapping[str, Sequence[str]]:
    """The standard terms of a suite with their other spellings. Raises `CohortError`."""
    vocabulary, faults = _vocabulary(cohort.root, suite)
    if faults:
        raise CohortError(faults)
    return vocabulary


def _vocabulary(root: Path, suite: str) -> tuple[Mapping[str, Sequence[str]], list[Fault]]:
    file = f"{ITEMS}/{suite}/{VOCABULARY}"
    terms: TypeAdapter[dict[str, tuple[str, ...]]] = TypeAdapter(dict[Name, tuple[Name, ...]])
    vocabulary, faults = _of_suite(root, file, terms, {})
    means = {term.casefold(): term for term in vocabulary}
    for term, aliases in vocabulary.items():
        for place, alias in enumerate(aliases):
            other = means.setdefault(alias.casefold(), term)
            if other != term:
                message = f"{alias!r} means {other!r} already; a spelling means one term"
                faults.append(Fault(file, None, f"{term}.{place}", message))
    return vocabulary, faults


def load_entities(cohort: Cohort, suite: str) -> Sequence[KnownEntity]:
    """The diagnoses that free answers of a suite are graded against. Raises `CohortError`."""
    entities, faults = _entities(cohort.root, suite)
    if faults:
        raise CohortError(faults)
    return entities


def _entities(root: Path, suite: str) -> tuple[Sequence[KnownEntity], list[Fault]]:
    file = f"{REFERENCES}/{suite}/{ONTOLOGY}"
    entities, faults = _of_suite(root, file, TypeAdapter(tuple[KnownEntity, ...]), ())
    return entities, faults + [Fault(file, None, field, message) for field, message in entity_faults(entities)]


def _of_suite(root: Path, name: str, model: TypeAdapter[_T], nothing: _T) -> tuple[_T, list[Fault]]:
    """A JSON file that a suite's tasks share, and its faults; `nothing` where it cannot be read."""
    text, faults = read_text(root / name, name)
    if text is None:
        return nothing, faults
    try:
        return model.validate_python(parse_json(text)), []
    except ValidationError as error:
        return nothing, list(validation_faults(error, name, None))
    except ValueError as error:
        return nothing, [json_fault(error, name, None)]


# -- images and features ------------------------------------------------------------------------------------------


def image_faults(
    cohort: Cohort, asked: Iterable[Asked], *, decode: bool = False, slides: Set[str] | None = None
) -> Iterator[Fault]:
    """What is wrong with the images and features of items. Files are opened, each once, and read whole with `decode`.

    A slide's box has to lie on its slide, at no higher magnification than the scan's; only on one of `slides` where
    they are given.
    """
    seen: dict[ImageSpec, str] = {}
    read: dict[FeatureFiles, list[tuple[str, str]]] = {}
    for each in asked:
        item, file = each.item, item_files(each.item.suite, each.item.task)[0]
        for place, spec in enumerate(item.images):
            for tile, part in enumerate(spec.parts):
                if part.slide_id is not None and slides is not None and part.slide_id not in slides:
                    continue
                if part not in seen:
                    seen[part] = _image_fault(cohort, part, decode)
                if seen[part]:
                    field = f"images.{place}.tiles.{tile}" if spec.tiles else f"images.{place}"
                    yield Fault(file, each.line, f"{field}.{'box' if part.file is None else 'file'}", seen[part])
        if item.features is not None:
            if item.features not in read:
                read[item.features] = feature_faults(cohort, item.features, decode=decode)
            for field, message in read[item.features]:
                yield Fault(file, each.line, f"features.{field}", message)


def _image_fault(cohort: Cohort, spec: ImageSpec, decode: bool) -> str:
    if spec.file is not None:
        if outside := cohort.outside(spec.file):
            return outside
        said = not_an_image(cohort.root / spec.file, decode)
        return f"{spec.file!r} cannot be read as an image ({said}); a PNG or JPEG file is needed" if said else ""
    assert spec.slide_id is not None
    assert spec.box is not None
    assert spec.magnification is not None
    try:
        slide = cohort.open(spec.slide_id)
    except (SlideError, UnknownNameError) as error:
        return str(error)
    if not slide.box.contains(spec.box):
        return f"{spec.box.to_list()} leaves slide {spec.slide_id!r}, which is {slide.width} x {slide.height} px"
    if slide.magnification is None:
        return f"slide {spec.slide_id!r} tells no microns per pixel; give its mpp in cohort.json"
    if spec.magnification > slide.magnification * UPSAMPLING_TOLERANCE:
        return f"{spec.magnification:g}x is beyond the scan of slide {spec.slide_id!r}, {slide.magnification:.4g}x"
    return ""


def not_an_image(path: Path, decode: bool) -> str:
    """Why a file cannot be shown as an image, "" where it can. With `decode` it is read whole."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):  # reading one may wait for ever
            return "not a regular file"
        with Image.open(path) as image:
            if image.mode not in EIGHT_BIT:
                return f"its pixels are {image.mode}, which is not 8 bits a channel"
            if decode:
                image.load()
    except UnidentifiedImageError:
        return "of no known format"
    except NOT_AN_IMAGE as error:
        return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ""


# -- writing ------------------------------------------------------------------------------------------------------


def write_items(root: Path, suite: str, task: str, asked: Iterable[Asked]) -> None:
    """Write the two files of a task, whole or not at all; defaults are left out. They replace what was there."""
    items_file, references_file = item_files(suite, task)
    listed = list(asked)
    write_text(root / references_file, "".join(line_of(each.reference) for each in listed))
    write_text(root / items_file, "".join(line_of(each.item) for each in listed))


def line_of(model: BaseModel) -> str:
    """A line of a file; defaults are left out."""
    return json.dumps(model.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False, allow_nan=False) + "\n"
