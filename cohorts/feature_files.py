"""Features of slides for models that read them: pairs of `.npy` files, and what may be wrong with one.

A file's header is read first and held against the file's size, so that one that tells of more than there is is never
made room for. Nothing is unpickled.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

from .items import FeatureFiles

if TYPE_CHECKING:
    from .cohort import Cohort

__all__ = ["Numbers", "feature_faults", "load_features"]

Numbers = npt.NDArray[np.floating[Any] | np.integer[Any]]

BLOCK = 2**20
"""Values that are looked at together: a few megabytes."""

MAGIC, ZIP_MAGIC = b"\x93NUMPY", b"PK"

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""By the version of the format; 3.0 is for names of fields alone."""


class _NoFeatures(Exception):  # noqa: N818  # a fault on its way to the list of them
    """What is wrong with a file."""


@dataclass(frozen=True)
class _Array:
    """A two-dimensional array of numbers in a file, not read yet: all but its values is known to be right."""

    path: Path
    name: str
    begins: int
    dtype: np.dtype[Any]
    shape: tuple[int, int]
    order: Literal["C", "F"]

    def blocks(self) -> Iterator[tuple[int, Numbers]]:
        """The values as they lie in the file, each block with the place of its first; they are finite."""
        count = math.prod(self.shape)
        with self.path.open("rb") as file:
            file.seek(self.begins)
            for start in range(0, count, BLOCK):
                wanted = min(BLOCK, count - start)
                block = np.fromfile(file, self.dtype, wanted)
                if len(block) < wanted:
                    raise _NoFeatures(f"{self.name!r} became shorter while it was read")
                finite = np.isfinite(block)
                if not finite.all():
                    place = int(np.argmin(finite))
                    row, column = np.unravel_index(start + place, self.shape, self.order)
                    raise _NoFeatures(
                        f"{self.name!r} has {block[place]} in row {row}, column {column} (counted from 0); "
                        "finite numbers are needed"
                    )
                yield start, block

    def values(self) -> Numbers:
        """All of it."""
        flat = np.empty(math.prod(self.shape), self.dtype)
        for start, block in self.blocks():
            flat[start : start + len(block)] = block
        return flat.reshape(self.shape, order=self.order)


def load_features(cohort: Cohort, files: FeatureFiles) -> tuple[Numbers, Numbers]:
    """Features (n, d) and the level-0 coordinates x, y (n, 2) of each; dtypes are the files', all values are finite.

    Raises `InvalidArgumentError` with what is wrong with either file.
    """
    found, faults = _opened(cohort, files)
    try:
        if not faults:
            return found["features"].values(), found["coordinates"].values()
    except (_NoFeatures, OSError) as error:
        raise InvalidArgumentError(f"{error}.") from None
    raise InvalidArgumentError("; ".join(message for _, message in faults) + ".")


def feature_faults(cohort: Cohort, files: FeatureFiles, *, decode: bool) -> list[tuple[str, str]]:
    """What is wrong with an item's features: the field ("features" or "coordinates") and a message for each.

    Headers are read and held against the files' sizes; with `decode`, all values are looked at, a block at a time.
    """
    found, faults = _opened(cohort, files)
    for field, array in found.items() if decode else ():
        try:
            for _ in array.blocks():
                pass
        except (_NoFeatures, OSError) as error:
            faults.append((field, str(error)))
    return faults


def _opened(cohort: Cohort, files: FeatureFiles) -> tuple[dict[str, _Array], list[tuple[str, str]]]:
    """The arrays by field, of those files that hold one; and what is wrong with the others."""
    found: dict[str, _Array] = {}
    faults: list[tuple[str, str]] = []
    for field, name in (("features", files.features), ("coordinates", files.coordinates)):
        try:
            if outside := cohort.outside(name):
                raise _NoFeatures(outside)
            array = _array(cohort.root / name, name)
            if field == "coordinates":
                _check_coordinates(array, found.get("features"))
            found[field] = array
        except _NoFeatures as error:
            faults.append((field, str(error)))
    return found, faults


def _check_coordinates(array: _Array, features: _Array | None) -> None:
    rows = array.shape[0] if features is None else features.shape[0]
    if array.shape != (rows, 2):
        wanted = "n, 2" if features is None else f"{rows}, 2"
        each = "" if features is None else f", x and y of each of the {rows} rows of {features.name!r}"
        raise _NoFeatures(f"{array.name!r} has shape {array.shape}; ({wanted}) is needed{each}")


def _array(path: Path, name: str) -> _Array:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe may wait for ever
            raise _NoFeatures(_no_array(name, "not a regular file"))
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
            if magic != MAGIC:
                is_zip = magic.startswith(ZIP_MAGIC)
                said = "an .npz archive, which holds several" if is_zip else "not in the .npy format"
                raise _NoFeatures(_no_array(name, said))
            file.seek(0)
            try:
                version = np.lib.format.read_magic(file)
                if version not in HEADERS:
                    said = f"version {version[0]}.{version[1]} of the .npy format, which numbers do not need"
                    raise _NoFeatures(_no_array(name, said))
                shape, by_columns, dtype = HEADERS[version](file)
            except _NoFeatures:
                raise
            except Exception as error:  # numpy evaluates the header's text, which may break it in many ways
                said = (str(error).splitlines() or [""])[0][:80]
                raise _NoFeatures(_no_array(name, f"its header cannot be read: {said}")) from None
            begins, size = file.tell(), os.fstat(file.fileno()).st_size
    except OSError as error:
        raise _NoFeatures(_no_array(name, error.strerror or str(error))) from None
    if dtype.kind not in "iuf":
        raise _NoFeatures(f"{name!r} is of dtype {dtype}; numbers, whole or floating, are needed")
    if len(shape) != 2 or min(shape) < 1:
        raise _NoFeatures(f"{name!r} has shape {shape}; two axes are needed, each of length 1 or more")
    told, there = math.prod(shape) * dtype.itemsize, size - begins
    if told > there:
        raise _NoFeatures(
            f"{name!r} tells of shape {shape} of {dtype}, {told:,} bytes, and {there:,} follow; it was cut short, or "
            "its header is wrong"
        )
    return _Array(path, name, begins, dtype, (shape[0], shape[1]), "F" if by_columns else "C")


def _no_array(name: str, said: str) -> str:
    return f"{name!r} is no array ({said}); save one with numpy.save"
