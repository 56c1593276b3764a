"""What a cohort's files may hold: one pydantic model for each kind of line.

Every field's meaning, unit and range is said here once; the loader turns violations into faults that name
the file and the line. Nodes and paths are annotations: they are hidden from every policy.
"""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from wsigym.errors import InvalidArgumentError
from wsigym.slides import Box
from wsigym.slides.resolution import PLAUSIBLE_MPP

__all__ = ["COHORT_FORMAT", "SPLITS", "DiagnosticPath", "Line", "Manifest", "Node", "PathDetails", "SlideEntry"]

COHORT_FORMAT = "wsigym-cohort/1"
SPLITS = ("train", "val", "test")

MIN_MPP, MAX_MPP = PLAUSIBLE_MPP

UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"})
"""Unicode categories without a shape of their own: controls, formats such as the zero-width space, halves of surrogate
pairs, separators. What Python's tables do not know yet may well have one."""

MAX_COORDINATE = 2**31
"""Level-0 pixels; no slide is as large, and arithmetic on what is larger may overflow."""


def _parse_box(value: Any) -> Any:
    if isinstance(value, Box):
        return value
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(number, (int, float)) and not isinstance(number, bool) for number in value
    ):
        raise ValueError("a box is a list of four numbers [x, y, width, height] in level-0 pixels")
    try:
        box = Box.of(value)
    except InvalidArgumentError as error:
        raise ValueError(str(error)) from None
    if box.is_empty:
        raise ValueError("a box needs a width and a height of at least 1 pixel")
    if max(map(abs, box.to_list())) > MAX_COORDINATE:
        raise ValueError(f"a box's numbers lie within -{MAX_COORDINATE:,} to {MAX_COORDINATE:,} pixels")
    return box


def _visible(value: str) -> str:
    for character in value:  # the first is one nearly always
        if unicodedata.category(character) not in UNSEEN:
            return value
    raise ValueError("text with at least one visible character is needed")


def _file_stem(value: str) -> str:
    if not value.strip(". ") or any(character in "/\\" or ord(character) < 32 for character in value):
        raise ValueError("a slide_id names files, so it holds no slash and no control character, and not only dots")
    return value


def _not_empty(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise ValueError("a list with at least one entry is needed")
    return values


def _location(value: str) -> str:
    if any(ord(character) < 32 for character in value):
        raise ValueError("a path or URL holds no control character")
    return value


JsonBox = Annotated[Box, BeforeValidator(_parse_box), PlainSerializer(lambda box: box.to_list())]
"""A non-empty `Box`, written as `[x, y, width, height]` in level-0 pixels."""

Visible = Annotated[str, AfterValidator(_visible)]
"""Text with at least one visible character."""

Name = Annotated[Visible, Field(max_length=4096)]
"""Such text of a length that a line of a table can hold."""

FileStem = Annotated[str, Field(max_length=200), AfterValidator(_file_stem)]
"""Text that can name a file."""


class Line(BaseModel):
    """Base of what a line of a file holds: frozen, and no field but those named."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class SlideEntry(Line):
    """One slide of `cohort.json`. Only `slide_id` and `path` are required.

    `path` is relative to the cohort folder, absolute, or a URL that fsspec opens. `mpp` (um/px at level 0)
    overrides what the file says. `patient_id` groups slides for splits and intervals.
    """

    slide_id: FileStem
    path: Annotated[Name, AfterValidator(_location)]
    patient_id: Name | None = None
    organ: Name | None = None
    split: Literal["train", "val", "test"] | None = None
    mpp: Annotated[float, Field(ge=MIN_MPP, le=MAX_MPP, allow_inf_nan=False, strict=True)] | None = None


class Manifest(Line):
    """`cohort.json`. A cohort without slides has items whose images are files."""

    format: Literal["wsigym-cohort/1"]
    name: Name
    slides: tuple[SlideEntry, ...]


class Node(Line):
    """One line of `nodes.jsonl`: an annotated box with its finding, at the magnification where it is seen.

    `box` is in level-0 pixels and lies inside the parent's; `magnification` is above the parent's.
    `parent_id` None makes it the first node of a path.
    """

    slide_id: Name
    node_id: Name
    parent_id: Name | None = None
    magnification: Annotated[float, Field(gt=0, le=200, allow_inf_nan=False, strict=True)]
    box: JsonBox
    finding: Name


class PathDetails(Line):
    """The structured part of a diagnosis; every field may be absent."""

    subtype: str | None = None
    invasion: str | None = None
    grade: str | None = None
    marker: str | None = None
    morphology: str | None = None


class DiagnosticPath(Line):
    """One line of `paths.jsonl`: nodes from the first to the last magnification, and what they amount to."""

    slide_id: Name
    path_id: Name
    node_ids: Annotated[tuple[Name, ...], AfterValidator(_not_empty)]
    diagnosis: Name
    category: Name | None = None
    details: PathDetails = PathDetails()
