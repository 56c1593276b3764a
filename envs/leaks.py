"""Does an environment show what it must hide? Marked references, and a search for the marks in all that is seen.

    secrets = secrets_of(cohort)        # node ids, diagnoses ...: give them unlikely names and numbers
    found = find_secrets(info, secrets)

Images are not searched: their bytes cannot hold a number above 255, and reading text from pixels is no test's work.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from wsigym.cohorts import Cohort

__all__ = ["Secrets", "find_secrets", "numbers_in", "secrets_of", "walk"]

SMALLEST_SECRET = 256
"""Smaller numbers are everywhere: counts, sizes, colours."""

WHOLE_NUMBER = re.compile(r"(?<![\w.])(\d+)(?:\.0+)?(?!\w|\.\d)")
"""A number that stands by itself in a text, such as 7919 or 7919.0; not the digits of a hash or of another decimal."""


@dataclasses.dataclass(frozen=True)
class Secrets:
    """What must not be seen: texts (wherever they stand in a text), and whole numbers from 256."""

    texts: frozenset[str] = frozenset()
    numbers: frozenset[int] = frozenset()

    def without(self, numbers: Iterable[int]) -> Secrets:
        """These secrets but for some numbers, which the task itself shows."""
        return Secrets(self.texts, self.numbers - frozenset(numbers))


def secrets_of(cohort: Cohort) -> Secrets:
    """The annotations of a cohort: ids and conclusions as texts; corners, sides and far corners of boxes as numbers.

    Of items, the texts of what their references say of the answer. Findings are not among them, as they are what
    queries ask for, nor are the classes of regions.
    """
    from wsigym.cohorts.files import item_tasks  # only here, so that checking a foreign environment reads no cohort
    from wsigym.cohorts.item_files import load_items

    texts = {node.node_id for node in cohort.nodes}
    for path in cohort.paths:
        texts |= {path.path_id, path.diagnosis, path.category or "", *filter(None, path.details.model_dump().values())}
    numbers: set[int] = set()
    for node in cohort.nodes:
        numbers |= {*node.box.to_list(), node.box.right, node.box.bottom}
    for entry in cohort.slides:
        for region in cohort.regions(entry.slide_id):
            numbers |= {round(value) for value in _coordinates(region.area)}
    for suite, task in item_tasks(cohort.root):
        for asked in load_items(cohort, suite, task):
            told = asked.reference.model_dump(exclude={"item_id"})
            texts |= {leaf for _, leaf in walk(told) if isinstance(leaf, str)}
    return Secrets(frozenset(texts - {""}), frozenset(number for number in numbers if number >= SMALLEST_SECRET))


def _coordinates(area: Any) -> list[float]:
    import shapely  # only here, so that checking an environment that is not wsigym's reads no geometry library

    found: list[float] = shapely.get_coordinates(area).ravel().tolist()
    return found


def find_secrets(value: Any, secrets: Secrets, where: str = "") -> Iterator[tuple[str, str | int]]:
    """Each place in `value` that holds a secret, with the secret. `where` begins the places' names."""
    for place, leaf in walk(value, where):
        if not isinstance(leaf, np.ndarray) or leaf.dtype.kind in "SU":
            text = repr(leaf)
            yield from ((place, secret) for secret in secrets.texts if secret in text or secret in str(leaf))
        yield from ((place, number) for number in secrets.numbers & numbers_in(leaf))


def numbers_in(value: Any) -> set[int]:
    """The whole numbers, from 256, that a value holds: as numbers of any type, or written in its texts."""
    numbers: set[int] = set()
    for _, leaf in walk(value):
        if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "iuf":
            wide = leaf.astype(np.float64).ravel()
            wide = wide[np.isfinite(wide) & (np.abs(wide) < 2**53)]
            numbers.update(int(number) for number in np.unique(wide[wide == np.floor(wide)]))
        elif isinstance(leaf, int | float | np.number):
            numbers.update([int(leaf)] if np.isfinite(leaf) and leaf == int(leaf) else [])
        elif leaf is not None:
            numbers.update(int(digits[:30]) for digits in WHOLE_NUMBER.findall(str(leaf)))
    return {number for number in numbers if number >= SMALLEST_SECRET}


def walk(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested data with their places, such as `info['roi'][2]`. Arrays of numbers are leaves."""
    if isinstance(value, Mapping):
        for key in value:
            yield from walk(value[key], f"{where}[{key!r}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from walk(getattr(value, field.name), f"{where}.{field.name}")
    elif isinstance(value, Set):
        for each in sorted(value, key=repr):
            yield from walk(each, f"{where}{{}}")
    elif isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object):
        for index, each in enumerate(value if value.__class__ is not np.ndarray else value.ravel().tolist()):
            yield from walk(each, f"{where}[{index}]")
    else:
        yield where, value
