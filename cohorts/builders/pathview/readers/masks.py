"""Masks: images of whole numbers, as PNG (8 or 16 bit, one channel) or NPY, called like the image that they are of.

Instances: 0 is nothing, every other number one object. Its class is that of most of its pixels: in the second channel
of an NPY mask (height, width, 2), or in a mask of classes (`types` of the source); else all are the source's `label`.
Semantic: 0 is nothing, every other number a class; the parts of a class that hang together (also by a corner) are its
objects. `classes` of the source names the numbers; one that it lacks is its own raw label.
A mask may be smaller than its image, by one factor in both directions; a mask of a slide covers the whole slide.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import shapely
from PIL import Image
from scipy.ndimage import find_objects

from wsigym.errors import AnnotationError, CohortError

from ....item_files import NOT_AN_IMAGE
from ..faults import Faults
from ..marks import Marks, Outline
from ..sources import Source
from .drawings import outline_of

__all__ = ["read_instances", "read_semantic"]

Mask = npt.NDArray[np.int64]


def read_instances(root: Path, source: Source, marks: Marks) -> None:
    """Raises `CohortError` with every mask that cannot be read."""
    types = {path.stem: path for path in source.files(root, source.types, "types")} if source.types else {}
    faults = Faults()
    for path in source.files(root, source.annotations, "annotations"):
        name = path.relative_to(root).as_posix()
        with faults.of_file(name):
            _read_instances(root, name, path, types, source, marks)
    if faults:
        raise CohortError(faults.listed)


def _read_instances(root: Path, name: str, path: Path, types: Mapping[str, Path], source: Source, marks: Marks) -> None:
    mask = _read(name, path)
    classes: Mask | None = None
    if mask.ndim == 3:
        mask, classes = mask[..., 0], mask[..., 1]
    elif source.types:
        if path.stem not in types:
            raise AnnotationError(name, "", f"no file of types {source.types!r} is called {path.stem!r}")
        classes = _read(types[path.stem].relative_to(root).as_posix(), types[path.stem])
        if classes.shape != mask.shape:
            raise AnnotationError(name, "", f"is {mask.shape}, its types {classes.shape}; the two must be alike")
    elif source.label is None:
        raise AnnotationError(name, "", "holds no classes, and the source has neither types nor a label")
    marks.frame(path.stem, mask.shape[1], mask.shape[0])
    numbers, compact = np.unique(mask, return_inverse=True)
    compact = compact.reshape(mask.shape).astype(np.int32) + (numbers[0] != 0)
    numbers = numbers[numbers != 0]
    for place, (number, found) in enumerate(zip(numbers.tolist(), find_objects(compact), strict=True), start=1):
        part = compact[found] == place
        label = source.label or ""
        if classes is not None:
            label = _class_name(source, int(np.bincount(classes[found][part]).argmax()))
        _add(marks, source, name, number, path.stem, label, part, found)


def read_semantic(root: Path, source: Source, marks: Marks) -> None:
    """Raises `CohortError` with every mask that cannot be read."""
    faults = Faults()
    for path in source.files(root, source.annotations, "annotations"):
        name = path.relative_to(root).as_posix()
        with faults.of_file(name):
            _read_semantic(name, path, source, marks)
    if faults:
        raise CohortError(faults.listed)


def _read_semantic(name: str, path: Path, source: Source, marks: Marks) -> None:
    mask = _read(name, path)
    if mask.ndim == 3:
        raise AnnotationError(name, "", f"has the shape {mask.shape}; a mask of classes is (height, width)")
    marks.frame(path.stem, mask.shape[1], mask.shape[0])
    for number in np.unique(mask).tolist():
        if number == 0:
            continue
        _, parts = cv2.connectedComponents((mask == number).astype(np.uint8), connectivity=8)
        for place, found in enumerate(find_objects(parts), start=1):
            part = parts[found] == place
            _add(marks, source, name, number, path.stem, _class_name(source, number), part, found)


def _add(
    marks: Marks, source: Source, name: str, number: int, image: str, label: str, part: Any, found: tuple[slice, slice]
) -> None:
    """Add the object whose pixels within the window `found` are `part`."""
    rows, columns = found
    box = (float(columns.start), float(rows.start), float(columns.stop), float(rows.stop))
    outline = _rings(part, columns.start, rows.start) if source.view == "slide" else None
    marks.add(name, number, image, label, box, outline)


def _rings(part: npt.NDArray[np.bool_], left: int, top: int) -> Outline:
    """The rings around an object and its holes, along the edges of its pixels."""
    edges = np.diff(np.pad(part.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    (rows, starts), (_, ends) = np.nonzero(edges > 0), np.nonzero(edges < 0)  # runs of each row, in the same order
    runs = shapely.box(left + starts, top + rows, left + ends, top + rows + 1)
    return outline_of(shapely.union_all(runs))


def _class_name(source: Source, number: int) -> str:
    return source.classes.get(str(number), str(number))


def _read(name: str, path: Path) -> Mask:
    """Whole numbers from 0, (height, width), of an NPY file also (height, width, 2). Raises `AnnotationError`."""
    try:
        if path.suffix.casefold() == ".npy":
            array = np.load(path, allow_pickle=False)
        else:
            with Image.open(path) as image:
                if image.mode not in ("L", "P", "I", "I;16", "I;16B", "1"):
                    raise AnnotationError(name, "", f"is of mode {image.mode}; a mask has one channel of whole numbers")
                array = np.asarray(image)
    except (*NOT_AN_IMAGE, EOFError) as error:
        raise AnnotationError(name, "", f"cannot be read as a mask: {error}") from None
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 2)) or not array.size:
        raise AnnotationError(name, "", f"has the shape {array.shape}; needed is (height, width) or (height, width, 2)")
    if array.dtype.kind == "f":
        if not np.isfinite(array).all() or (array != np.round(array)).any():
            raise AnnotationError(name, "", "holds numbers that are not whole; a mask has whole numbers from 0")
    elif array.dtype.kind not in "iub":
        raise AnnotationError(name, "", f"holds {array.dtype}; a mask has whole numbers from 0")
    if array.min() < 0:
        raise AnnotationError(name, "", f"holds {array.min()}; a mask has whole numbers from 0")
    whole: Mask = array.astype(np.int64)
    return whole
