"""`pathview/sources.toml`: which images are annotated, in which files, and how these are read.

    [[source]]
    name = "lizard"
    view = "region"                      a field at high power, or "slide": a macro view of a whole slide
    format = "coco"                      see `readers`
    annotations = "lizard/*.json"        a pattern within the cohort's folder
    images = "lizard/images.csv"         tables of images (a pattern too), or a pattern of image files
    organ = "colon"                      where the table does not say it
    magnification = 20                   where the table does not say it

A table of images has the columns `image` (its name), `file`; or `slide_id` with `x`, `y`, `width`, `height` in level-0
pixels (left out: the whole slide); and where known `magnification`, `organ`, `patient`, `case`, `slide`, `label` (of
the whole image), `features` and `coordinates` (`.npy` files for models that read features). Without `images`, a source
of slides has those of the cohort. What is annotated on a slide is called by its `slide_id` and is in its level-0
pixels; what is annotated on a file by its name, with or without ending, and is in its own pixels.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from PIL import Image
from pydantic import Field, ValidationError

from wsigym.errors import CohortError, Fault, InvalidArgumentError, SlideError, UnknownNameError
from wsigym.slides import Box

from ...cohort import Cohort
from ...files import validation_faults
from ...item_files import not_an_image
from ...items import FeatureFiles, ImageSpec, RelativePath
from ...models import Line, Name
from .labels import read_toml

__all__ = ["FORMATS", "SOURCES", "Picture", "Source", "load_pictures", "load_sources"]

SOURCES = "pathview/sources.toml"

FORMATS = ("csv", "coco", "geojson", "asap", "imagescope", "polygons", "instances", "semantic", "labels")

MACRO_MAGNIFICATION, MACRO_PX = 2.5, 1024
"""The view of a whole slide: at 2.5x, or lower where it would be longer than 1,024 px (this project's choice)."""

COLUMNS = (
    "image", "file", "slide_id", "x", "y", "width", "height", "magnification", "organ", "patient", "case", "slide",
    "label", "features", "coordinates",
)  # fmt: skip

GROUPS = ("patient", "case", "slide")

SIDES = ("x", "y", "width", "height")

MAX_MAGNIFICATION = 200


class Source(Line):
    """One source, as in the module's example. `classes` names the values of a mask; `types` is the pattern of files
    that hold the class of each pixel of an instance mask, `label` the class of all its instances where there is none.
    """

    name: Name
    view: Literal["region", "slide"]
    format: Literal["csv", "coco", "geojson", "asap", "imagescope", "polygons", "instances", "semantic", "labels"]
    annotations: RelativePath | None = None
    images: RelativePath | None = None
    organ: Name | None = None
    magnification: Annotated[float, Field(gt=0, le=MAX_MAGNIFICATION, allow_inf_nan=False)] | None = None
    classes: dict[str, Name] = Field(default_factory=dict)
    types: RelativePath | None = None
    label: Name | None = None

    def files(self, root: Path, pattern: str | None, wanted: str) -> list[Path]:
        """The files of a pattern, by name. Raises `CohortError` where there are none."""
        found = sorted(path for path in root.glob(pattern) if path.is_file()) if pattern else []
        if not found:
            message = f"source {self.name!r}: no file matches {wanted} {pattern!r}"
            raise CohortError([Fault(SOURCES, None, f"source.{self.name}.{wanted}", message)])
        return found


class _SourceFile(Line):
    source: tuple[Source, ...]


@dataclass(frozen=True, eq=False)
class Picture:
    """One image that is asked about.

    `box` is what it shows in the pixels that annotations are in: (left, top, width, height) of a slide's level 0, or
    (0, 0, width, height) of a file; `frame` is the (width, height) of all of the slide or file. `annotated_as` are
    the names that annotation files may call it by. `where` is its row for messages.
    """

    name: str
    source: str
    view: str
    image: ImageSpec
    box: tuple[float, float, float, float]
    frame: tuple[float, float]
    annotated_as: tuple[str, ...]
    groups: Mapping[str, str]
    organ: str | None = None
    label: str | None = None
    features: FeatureFiles | None = None
    given_split: str | None = None
    where: str = field(default="")

    @property
    def of_slide(self) -> bool:
        """Whether it is a part of a slide, whose annotations go beyond it."""
        return self.image.slide_id is not None

    @cached_property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """What it may share with other pictures that have to be in its split."""
        own = ("file", self.image.file) if self.image.file is not None else ("slide", str(self.image.slide_id))
        return (*self.groups.items(), own)


def load_sources(root: Path) -> tuple[Source, ...]:
    """The sources of a cohort folder. Raises `CohortError` with every fault."""
    found, _ = read_toml(root, SOURCES, _SourceFile)
    faults = []
    seen: set[str] = set()
    for place, source in enumerate(found.source):
        at = f"source.{place}"
        if source.name in seen:
            faults.append(Fault(SOURCES, None, f"{at}.name", f"{source.name!r} is the name of an earlier source"))
        seen.add(source.name)
        if source.annotations is None and source.format != "labels":
            faults.append(Fault(SOURCES, None, f"{at}.annotations", f"is missing; format {source.format!r} needs it"))
        if source.images is None and source.view == "region":
            faults.append(Fault(SOURCES, None, f"{at}.images", "is missing; a source of regions says which they are"))
    if faults:
        raise CohortError(faults)
    return found.source


def load_pictures(cohort: Cohort, source: Source) -> list[Picture]:
    """The pictures of a source. Image files are opened for their size. Raises `CohortError` with every fault."""
    faults: list[Fault] = []
    pictures: list[Picture] = []
    for where, row in _rows(cohort, source, faults):
        try:
            pictures.append(_picture(cohort, source, where, row))
        except _CellError as error:
            faults.append(Fault(*_place(where), error.column, str(error)))
        except (SlideError, UnknownNameError, InvalidArgumentError) as error:
            faults.append(Fault(*_place(where), "slide_id", str(error)))
        except ValidationError as error:
            faults += validation_faults(error, *_place(where))
    names: dict[str, str] = {}
    for picture in pictures:
        if picture.name in names:
            message = f"{picture.name!r} is the name of another image of the source, {names[picture.name]}"
            faults.append(Fault(*_place(picture.where), "image", message))
        names[picture.name] = picture.where
    if faults:
        raise CohortError(faults)
    return pictures


class _CellError(Exception):
    """What is wrong with a cell, or with several, of an image's row; the text says it without the column."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column


def _place(where: str) -> tuple[str, int | None]:
    """The file and the line that a picture's `where` names."""
    file, _, line = where.rpartition(":")
    return (file, int(line)) if line.isdigit() else (where, None)


def _rows(cohort: Cohort, source: Source, faults: list[Fault]) -> Iterator[tuple[str, dict[str, str]]]:
    """(where, row) of each image: of the table, of the files of a pattern, or of the cohort's slides. What is wrong
    with a table goes to `faults`."""
    if source.images is None:
        for entry in cohort.slides:
            yield f"slide {entry.slide_id}", {"image": entry.slide_id, "slide_id": entry.slide_id}
    elif source.images.endswith(".csv"):
        for path in source.files(cohort.root, source.images, "images"):
            yield from _table(cohort.root, path.relative_to(cohort.root).as_posix(), faults)
    else:
        for path in source.files(cohort.root, source.images, "images"):
            name = path.relative_to(cohort.root).as_posix()
            yield name, {"image": path.stem, "file": name}


def _table(root: Path, name: str, faults: list[Fault]) -> Iterator[tuple[str, dict[str, str]]]:
    try:
        with (root / name).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            unknown = [column for column in reader.fieldnames or () if column not in COLUMNS]
            if "image" not in (reader.fieldnames or ()) or unknown:
                found = ", ".join(reader.fieldnames or ()) or "none"
                message = f"has the columns {found}; 'image' is needed, allowed are {', '.join(COLUMNS)}"
                faults.append(Fault(name, 1, "", message))
                return
            for row in reader:
                if None in row or None in row.values():
                    message = f"has another number of cells than the {len(reader.fieldnames or ())} columns"
                    faults.append(Fault(name, reader.line_num, "", message))
                    continue
                yield f"{name}:{reader.line_num}", {key: cell.strip() for key, cell in row.items() if cell.strip()}
    except OSError as error:
        faults.append(Fault(name, None, "", f"cannot be read: {error.strerror or error}"))
    except (UnicodeDecodeError, csv.Error) as error:
        faults.append(Fault(name, None, "", f"not a table in UTF-8: {error}"))


def _picture(cohort: Cohort, source: Source, where: str, row: Mapping[str, str]) -> Picture:
    name = row.get("image", "")
    if not name:
        raise _CellError("image", "the image has no name")
    magnification = _number(row, "magnification")
    if magnification is None:
        magnification = source.magnification
    elif not 0 < magnification <= MAX_MAGNIFICATION:
        raise _CellError("magnification", f"is {magnification:g}; above 0 to {MAX_MAGNIFICATION} is allowed")
    groups = {key: row[key] for key in GROUPS if key in row}
    organ = row.get("organ", source.organ)
    split = None
    if "slide_id" in row:
        entry = cohort.slide(row["slide_id"])
        organ, split = organ or entry.organ, entry.split
        groups = {"slide": entry.slide_id} | groups
        if entry.patient_id is not None:
            groups.setdefault("patient", entry.patient_id)
        image, box = _part_of_slide(cohort, source, row, magnification)
        slide = cohort.open(entry.slide_id)
        frame = float(slide.width), float(slide.height)
        annotated_as: tuple[str, ...] = (entry.slide_id,)
    elif "file" in row:
        image = ImageSpec(file=row["file"], magnification=magnification)
        if outside := cohort.outside(row["file"]):
            raise _CellError("file", outside)
        said = not_an_image(cohort.root / row["file"], decode=False)
        if said:
            raise _CellError(
                "file", f"{row['file']!r} cannot be read as an image ({said}); a PNG or JPEG file is needed"
            )
        with Image.open(cohort.root / row["file"]) as opened:
            frame = float(opened.width), float(opened.height)
        box = (0.0, 0.0, *frame)
        paths = PurePosixPath(name), PurePosixPath(row["file"])
        annotated_as = (name, *(part for path in paths for part in (path.name, path.stem)))
    else:
        raise _CellError("file", "the image has neither a file nor a slide_id")
    features = None
    if "features" in row or "coordinates" in row:
        features = FeatureFiles(features=row.get("features", ""), coordinates=row.get("coordinates", ""))
    ordered = {key: groups[key] for key in GROUPS if key in groups}
    return Picture(
        name=name,
        source=source.name,
        view=source.view,
        image=image,
        box=box,
        frame=frame,
        annotated_as=annotated_as,
        groups=ordered,
        organ=organ,
        label=row.get("label"),
        features=features,
        given_split=split,
        where=where,
    )


def _part_of_slide(
    cohort: Cohort, source: Source, row: Mapping[str, str], magnification: float | None
) -> tuple[ImageSpec, tuple[float, float, float, float]]:
    slide = cohort.open(row["slide_id"])
    sides = [_number(row, side) for side in SIDES]
    given = [side for side in sides if side is not None]
    if given and len(given) < 4:
        missing = next(side for side, value in zip(SIDES, sides, strict=True) if value is None)
        raise _CellError(missing, "is missing; a part of a slide needs x, y, width and height")
    try:
        box = Box.of(given) if given else slide.box
    except InvalidArgumentError as error:
        raise _CellError("x", str(error)) from None
    if not slide.box.contains(box) or box.is_empty:
        raise _CellError(
            "x", f"{box.to_list()} is not within slide {row['slide_id']!r}, {slide.width} x {slide.height} px"
        )
    if slide.magnification is None:
        raise _CellError(
            "slide_id", f"slide {row['slide_id']!r} tells no microns per pixel; give its mpp in cohort.json"
        )
    if source.view == "slide":
        fits = slide.magnification * MACRO_PX / max(box.width, box.height)
        magnification = min(magnification or MACRO_MAGNIFICATION, fits, slide.magnification)
    shown = magnification or slide.magnification
    return (
        ImageSpec(slide_id=row["slide_id"], box=box, magnification=round(shown, 6)),
        (float(box.x), float(box.y), float(box.width), float(box.height)),
    )


def _number(row: Mapping[str, str], column: str) -> float | None:
    if column not in row:
        return None
    try:
        number = float(row[column])
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _CellError(column, f"is {row[column]!r}; a finite number is needed")
    return number
