"""Which queries an environment draws from: the stages of a curriculum.

A learner may start with what is easy (large regions near the middle of the search box, low magnifications) and go on
to all of it: `LocalizationEnv(queries={"region": (0.1, 1)})`, later `env.unwrapped.set_queries(None)`, or
`vector.call("set_queries", None)` for a vector of environments.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from wsigym.cohorts import LocalizationQuery, LocalizationReference
from wsigym.errors import InvalidArgumentError, UnknownNameError

__all__ = ["QueryFilter"]

Range = tuple[float, float]


@dataclass(frozen=True)
class QueryFilter:
    """Queries by up to three ranges (lowest, highest), ends included; None keeps all. Draws no random numbers.

    Attributes:
        magnification: the query's, objective-equivalent.
        region: the largest valid box's share of the search box's area, above 0 to 1.
        distance: from the search box's centre to the nearest valid box's, 0 to 1: 1 is a corner of the search box.

    The last two are read from the references, so that they are for training only: they tell where answers lie.
    """

    magnification: Range | None = None
    region: Range | None = None
    distance: Range | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                object.__setattr__(self, field.name, _range(field.name, value))

    def __str__(self) -> str:
        given = {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}
        return " and ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in given.items())

    @classmethod
    def of(cls, value: Any) -> QueryFilter:
        """A filter as it is, from a mapping of its fields, or of all queries for None.

        Raises `UnknownNameError` for another field, `InvalidArgumentError` for what is no range.
        """
        if isinstance(value, cls):
            return value
        if value is None:
            return cls()
        names = [field.name for field in fields(cls)]
        if not isinstance(value, Mapping):
            raise InvalidArgumentError(
                f"queries is {value!r}; allowed is a mapping of {', '.join(names)} to (lowest, highest), or None."
            )
        for name in value:
            if name not in names:
                raise UnknownNameError("range of queries", str(name), names)
        return cls(**value)

    def ids(self, queries: Iterable[tuple[LocalizationQuery, LocalizationReference]]) -> tuple[str, ...]:
        """The ids of those kept, in their order. Raises `InvalidArgumentError` where there is none."""
        measured = [(query.query_id, _measures(query, reference)) for query, reference in queries]
        kept = tuple(query_id for query_id, measures in measured if self._keeps(measures))
        if not kept:
            found = (
                f"{name} {min(values):.3g} to {max(values):.3g}"
                for name in measured[0][1]
                for values in [[measures[name] for _, measures in measured]]
            )
            raise InvalidArgumentError(f"no query is within {self}; found are {', '.join(found)}. Widen a range.")
        return kept

    def _keeps(self, measures: Mapping[str, float]) -> bool:
        ranges = ((getattr(self, name), value) for name, value in measures.items())
        return all(allowed is None or allowed[0] <= value <= allowed[1] for allowed, value in ranges)


def _measures(query: LocalizationQuery, reference: LocalizationReference) -> dict[str, float]:
    """The query's numbers, by the field that bounds them."""
    (x, y), searched = query.search_box.centre, query.search_box
    corner = math.hypot(searched.width / 2, searched.height / 2)
    return {
        "magnification": query.magnification,
        "region": max(box.area for box in reference.boxes) / searched.area,
        "distance": min(math.hypot(box.centre[0] - x, box.centre[1] - y) for box in reference.boxes) / corner,
    }


def _range(name: str, value: Any) -> Range:
    try:
        low, high = (float(end) for end in value)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not low <= high:
        raise InvalidArgumentError(f"queries: {name} is {value!r}; allowed are two numbers (lowest, highest).")
    return low, high
