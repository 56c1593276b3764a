"""How annotation files are read, by the `format` of a source. A new format is a file and a line here.

csv         boxes, one a row: image, label and x1, y1, x2, y2 (or x, y, width, height)
coco        COCO JSON: boxes, or polygons; read as a stream
geojson, asap, imagescope, polygons     areas of one slide or image a file, called like it
instances   masks (PNG or NPY), 0 and a number for each object, called like the image
semantic    masks of classes, whose connected parts are the objects
labels      nothing but the label of each image in the table of images
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ..marks import Marks
from ..sources import Source
from . import boxes, coco, drawings, masks

__all__ = ["READERS", "Reader"]

Reader = Callable[[Path, Source, Marks], None]
"""Adds what the files of a source in a cohort's folder hold. Raises `CohortError` with the faults of all of them."""


def _no_files(root: Path, source: Source, marks: Marks) -> None:
    """The labels are in the table of images."""


READERS: Mapping[str, Reader] = {
    "csv": boxes.read,
    "coco": coco.read,
    "geojson": drawings.read,
    "asap": drawings.read,
    "imagescope": drawings.read,
    "polygons": drawings.read,
    "instances": masks.read_instances,
    "semantic": masks.read_semantic,
    "labels": _no_files,
}
