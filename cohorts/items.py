"""Evidence items: what a static task shows a model, one line of `items/<suite>/<task>.jsonl` each.

Everything in an item may be shown. What may not lies in another file and another type (`references.py`). The text that
a model reads is made from an item's parts by `EvidenceItem.text`, so that a change of the evidence (fewer images, no
specimen site) changes the sentences that describe it, and no others.
"""

from __future__ import annotations

import hashlib
import random
import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from .models import JsonBox, Line, Name, Visible

__all__ = [
    "MAX_OPTIONS",
    "AnswerFormat",
    "EvidenceItem",
    "EvidenceWords",
    "FeatureFiles",
    "ImageSpec",
    "Metadata",
    "TextFinding",
    "in_base_order",
    "letter",
]

MAX_OPTIONS = 10
"""CaseScope's ten-way task has the most."""

GROUPS = ("patient", "case", "slide", "set", "source")
"""What items can be grouped by, the independent unit first: splits keep it whole, intervals resample it."""

NO_IMAGE = "No image is shown: answer from the text."

FEATURES_ALONE = "No image is shown: the evidence is features of a slide, for models that read features."
"""True for a model that reads them and for one that does not."""

AnswerKind = Literal["option", "boxes", "number", "terms", "json", "ranking", "text", "diagnosis"]

_T = TypeVar("_T")


_CONTROL = re.compile(r"[\x00-\x1f]")


def _inside(value: str) -> str:
    parts = value.replace("\\", "/").split("/")
    if value.startswith(("/", "\\")) or ":" in parts[0] or ".." in parts or _CONTROL.search(value):
        raise ValueError("a file's path is relative to the cohort's folder and stays inside it")
    return value


def _as_read(text: str) -> str:
    """A text without what readers don't tell apart: case, runs of spaces, Unicode's other spellings, unseen characters.

    Signs stay, as "HER2 +" is not "HER2 -".
    """
    if text.isascii():  # which has none of these but case and spaces
        return " ".join(text.casefold().split())
    shown = "".join(letter for letter in unicodedata.normalize("NFKC", text) if unicodedata.category(letter) != "Cf")
    return " ".join(shown.casefold().split())


def _no_two_alike(options: tuple[str, ...]) -> tuple[str, ...]:
    seen: dict[str, int] = {}
    for place, option in enumerate(options):
        earlier = seen.setdefault(_as_read(option), place)
        if earlier != place:
            raise ValueError(f"{letter(earlier)} and {letter(place)} are the same, {option!r}")
    return options


def _of_something(group: dict[str, str]) -> dict[str, str]:
    if not group:
        raise ValueError(f"is empty; it names at least one of {', '.join(GROUPS)}")
    return group


RelativePath = Annotated[Name, AfterValidator(_inside)]


class ImageSpec(Line):
    """One image: a `file` of the cohort, a `box` (level-0 pixels) of a slide at a magnification, or numbered `tiles`.

    `magnification` of a file is what it is known to show; of a slide's box it is also the most detail ever shown.
    Tiles are shown as one image, in reading order, each with its number.
    """

    file: RelativePath | None = None
    slide_id: Name | None = None
    box: JsonBox | None = None
    magnification: Annotated[float, Field(gt=0, le=200, allow_inf_nan=False, strict=True)] | None = None
    tiles: tuple[ImageSpec, ...] = ()

    @model_validator(mode="after")
    def _one_kind(self) -> ImageSpec:
        of_slide = (self.slide_id, self.box, self.magnification)
        whole_slide_box = all(part is not None for part in of_slide)
        is_file = self.file is not None and self.slide_id is None and self.box is None
        is_tiles = self.file is None and of_slide == (None, None, None)
        if [is_file, self.file is None and whole_slide_box, is_tiles and bool(self.tiles)].count(True) != 1 or (
            self.tiles and not is_tiles
        ):
            raise ValueError("an image is a file, or a slide_id with its box and magnification, or tiles")
        if any(tile.tiles for tile in self.tiles):
            raise ValueError("tiles are files or boxes of slides, not tiles again")
        return self

    @property
    def parts(self) -> tuple[ImageSpec, ...]:
        """The images that are read: the tiles, or the image itself."""
        return self.tiles or (self,)


class FeatureFiles(Line):
    """Features of a slide for models that read them: `.npy` files of the cohort.

    `features` holds (n, d) numbers, `coordinates` (n, 2) level-0 pixels x, y of each.
    """

    features: RelativePath
    coordinates: RelativePath


class TextFinding(Line):
    """Evidence in words: what is seen at a magnification."""

    magnification: Annotated[float, Field(gt=0, le=200, allow_inf_nan=False, strict=True)]
    text: Name


class AnswerFormat(Line):
    """What kind of answer is parsed, and the sentence that tells the model how to give it.

    `words_for_text` are said instead where all images are taken away.
    """

    kind: AnswerKind
    words: Name
    words_for_text: Name | None = None


class Metadata(Line):
    """What is told of the specimen beside the evidence. Nothing here may hold the answer."""

    organ: Name | None = None
    site: Name | None = None
    magnification: Annotated[float, Field(gt=0, le=200, allow_inf_nan=False, strict=True)] | None = None


class EvidenceWords(Line):
    """The sentence that introduces the images: for `one`, for `many` ("{count}" is their number), for `none` left.

    `mosaic` is for many in one image, numbered; if it is not given, that is said after `many`. Where none is left but
    features are, and `none` is not given, `FEATURES_ALONE` is said.
    """

    one: Name
    many: Name
    none: Name = NO_IMAGE
    mosaic: Name | None = None

    def sentence(self, images: Sequence[ImageSpec]) -> str:
        """The sentence for these images."""
        count = sum(len(image.parts) for image in images)
        if count <= 1:
            return self.one if count else self.none
        words = self.many
        if any(len(image.tiles) > 1 for image in images):
            words = self.mosaic or f"{words} They are shown in one image, numbered 1 to {{count}} in reading order."
        return words.replace("{count}", str(count))


class EvidenceItem(Line):
    """One item. `item_id` is unique in its task, and made of nothing that tells the answer.

    `images` go from the lowest to the highest power, where that of all is known and the options do not name them;
    `findings` too. `options` stand in the order of rotation 0 (see `in_base_order`). `evidence` introduces the images,
    and is needed where there are any. `group` says what the item belongs to: at least one of patient, case, slide, set,
    source; it is never shown.
    """

    item_id: Name
    suite: Name
    task: Name
    question: Name
    answer: AnswerFormat
    options: Annotated[
        tuple[Name, ...], Field(max_length=MAX_OPTIONS, validate_default=True), AfterValidator(_no_two_alike)
    ] = ()
    images: tuple[ImageSpec, ...] = ()
    evidence: Annotated[EvidenceWords | None, Field(validate_default=True)] = None
    findings: tuple[TextFinding, ...] = ()
    features: FeatureFiles | None = None
    metadata: Metadata = Metadata()
    group: Annotated[dict[Literal["patient", "case", "slide", "set", "source"], Visible], AfterValidator(_of_something)]
    set_id: Name | None = None
    split: Literal["train", "val", "test"] | None = None

    @field_validator("options")
    @classmethod
    def _enough_to_choose_among(cls, options: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        answer = info.data.get("answer")
        if answer is not None and answer.kind in ("option", "ranking") and len(options) < 2:
            raise ValueError(f"an answer of kind {answer.kind} chooses among at least two options")
        return options

    @field_validator("images")
    @classmethod
    def _rising(cls, images: tuple[ImageSpec, ...], info: ValidationInfo) -> tuple[ImageSpec, ...]:
        if len(images) > 1 and not _name_images(info.data.get("options", ())):
            known = [image.magnification for image in images if image.magnification is not None]
            if len(known) == len(images):
                _check_rising("images", known)
        return images

    @field_validator("findings")
    @classmethod
    def _rising_findings(cls, findings: tuple[TextFinding, ...]) -> tuple[TextFinding, ...]:
        _check_rising("findings", [finding.magnification for finding in findings])
        return findings

    @field_validator("evidence")
    @classmethod
    def _introduces_images(cls, evidence: EvidenceWords | None, info: ValidationInfo) -> EvidenceWords | None:
        if evidence is None and info.data.get("images"):
            raise ValueError(
                "is missing where there are images; say how they are introduced: "
                '{"one": "...", "many": "... {count} ..."}'
            )
        return evidence

    @property
    def text(self) -> str:
        """What the model reads before the options: the evidence, the specimen, the findings, the question."""
        lines = [] if self.evidence is None else [self.evidence.sentence(self.images)]
        if self.features is not None and not self.findings and lines in ([], [NO_IMAGE]):
            lines = [FEATURES_ALONE]
        if self.metadata.site is not None:
            lines.append(f"Specimen site: {self.metadata.site}.")
        elif self.metadata.organ is not None:
            lines.append(f"Organ: {self.metadata.organ}.")
        lines += [f"At {finding.magnification:g}x: {finding.text}" for finding in self.findings]
        return "\n".join([*lines, self.question])

    @property
    def asks_for_image(self) -> bool:
        """Whether the options name the images: "Image 1", "Image 2" ... in any order."""
        return _name_images(self.options)


def _check_rising(what: str, magnifications: Sequence[float]) -> None:
    for one, other in pairwise(magnifications):
        if other < one:
            raise ValueError(f"{what} go from low to high power, and {other:g}x stands after {one:g}x")


def _name_images(options: Sequence[str]) -> bool:
    return bool(options) and sorted(options) == sorted(f"Image {number}" for number in range(1, len(options) + 1))


def in_base_order(options: Sequence[_T], item_id: str, seed: int) -> list[_T]:
    """The options in the order of rotation 0: a Fisher-Yates shuffle seeded with sha256 of the seed and the id."""
    order = list(options)
    random.Random(hashlib.sha256(f"{seed}\0{item_id}".encode()).digest()).shuffle(order)
    return order


def letter(place: int) -> str:
    """The letter of the option at a place from 0: A, B, C ..."""
    return chr(ord("A") + place)
