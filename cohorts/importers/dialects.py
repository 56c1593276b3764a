"""The table of dialects, and reading one file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wsigym.errors import AnnotationError, UnknownNameError, WsigymWarning
from wsigym.slides import Box

from . import asap, coco, geojson, imagescope, polygons
from .shapes import Annotations, Drawing, settle

__all__ = ["DIALECTS", "Dialect", "dialect_called", "read_annotations", "read_drawings"]


@dataclass(frozen=True)
class Dialect:
    """How one kind of file is read, and what its class names are mapped to unless the user says otherwise."""

    read: Callable[[str, bytes], list[Drawing]]
    classes: Mapping[str, str]


DIALECTS: Mapping[str, Dialect] = {
    "asap": Dialect(asap.read, asap.CLASSES),
    "imagescope": Dialect(imagescope.read, imagescope.CLASSES),
    "geojson": Dialect(geojson.read, geojson.CLASSES),
    "coco": Dialect(coco.read, coco.CLASSES),
    "polygons": Dialect(polygons.read, polygons.CLASSES),
}


def dialect_called(name: str) -> Dialect:
    """The dialect of a name; `UnknownNameError` lists what there is."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise UnknownNameError("annotation dialect", name, DIALECTS) from None


def read_drawings(path: str | Path, dialect: str) -> list[Drawing]:
    """What a file draws, slide by slide, before its geometry is judged. COCO files may hold many slides.

    Raises `AnnotationError` if the file cannot be read, is cut short, or is of another dialect.
    """
    reader = dialect_called(dialect)
    return reader.read(str(path), content_of(path))


def read_annotations(
    path: str | Path, dialect: str, *, classes: Mapping[str, str] | None = None, slide_box: Box | None = None
) -> Annotations:
    """The areas of a file on one slide, in level-0 pixels.

    `classes` maps the file's class names (`{"Tumor": "tumour"}`; the key `""` means areas without a class) over the
    dialect's own table. Areas are clipped to `slide_box` where it is given. Areas of class "exclusion" are cut out of
    the others. Each shape that is skipped or repaired gives one `WsigymWarning`, which names it by its index.

    Raises `AnnotationError` if the file cannot be read, is of another dialect, holds faulty shapes and not one valid
    area, or holds several slides.
    """
    drawings = read_drawings(path, dialect)
    if len(drawings) != 1:
        raise AnnotationError(
            str(path), "", f"it holds {len(drawings)} slides; read_drawings and settle read them one by one"
        )
    found = settle(str(path), drawings[0], {**DIALECTS[dialect].classes, **(classes or {})}, slide_box)
    for warning in found.warnings:
        warnings.warn(warning, WsigymWarning, stacklevel=2)
    return found


def content_of(path: str | Path) -> bytes:
    """The bytes of an annotation file; `AnnotationError` where there are none to read."""
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise AnnotationError(str(path), "", f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not content.strip():
        raise AnnotationError(str(path), "", "is empty (0 bytes of content)")
    return content
