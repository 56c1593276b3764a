"""The hidden side of evidence items: one line of `references/<suite>/<task>.jsonl` each, joined by `item_id`."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence, Set
from typing import Any

from pydantic import Field

from .items import EvidenceItem
from .models import Line, Name

__all__ = ["EvidenceReference", "KnownEntity", "entity_faults", "folded", "reference_faults"]

MAX_COORDINATE = 1000
"""Boxes of answers are x1, y1, x2, y2 in thousandths of the image's width and height (PathView-Bench)."""


class EvidenceReference(Line):
    """The answer to an item. No policy and no model sees it.

    `answer` by the item's kind of answer: option, the place from 0 among its options; boxes, a list of
    `[x1, y1, x2, y2]` in 0..1000; number; terms, a list of standard terms; json, an object; ranking, the places of the
    options from first to last; text; diagnosis, `{"diagnosis": entity}`. `accepted` are further answers that are as
    right, `half` those that earn half. `strata` are what tables can split by and a model may not see; `provenance` says
    where the answer comes from.
    """

    item_id: Name
    answer: Any
    accepted: tuple[Any, ...] = ()
    half: tuple[Any, ...] = ()
    strata: dict[str, str | float | None] = Field(default_factory=dict)
    provenance: dict[str, Any] = Field(default_factory=dict)


class KnownEntity(Line):
    """A diagnosis as free answers are graded against it: one of the list in `references/<suite>/ontology.json`."""

    entity: Name
    synonyms: tuple[Name, ...] = ()
    behaviour: Name
    lineage: Name
    family: Name
    parent: Name | None = None


def folded(name: str) -> str:
    """A name as names are compared: case, punctuation and compatibility forms do not count, a plus sign does."""
    return " ".join(re.findall(r"[\w+]+", unicodedata.normalize("NFKC", name).casefold()))


def entity_faults(entities: Sequence[KnownEntity]) -> Iterator[tuple[str, str]]:
    """What is wrong between the entities of a suite: (field, message) each. Names that two share, parents that are
    no entity, and parents that go in a circle, each circle once."""
    owners: dict[str, int] = {}
    parents: dict[str, str | None] = {}
    for place, each in enumerate(entities):
        names = [("entity", each.entity), *((f"synonyms.{n}", name) for n, name in enumerate(each.synonyms))]
        for field, name in names:
            owner = owners.setdefault(folded(name), place)
            if owner != place:
                said = (
                    f"{name!r} is a name of {entities[owner].entity!r}, entry {owner}, already; a name has one entity"
                )
                yield f"{place}.{field}", said
        parents.setdefault(each.entity, each.parent)
    told: set[str] = set()
    for place, each in enumerate(entities):
        if each.parent is not None and each.parent not in parents:
            yield f"{place}.parent", f"no entity {each.parent!r} in the file"
            continue
        way = [each.entity]
        while (parent := parents.get(way[-1])) is not None and parent not in way:
            way.append(parent)
        if parent == each.entity and not told.intersection(way):
            told.update(way)
            yield f"{place}.parent", f"goes in a circle: {' -> '.join([*way, each.entity])}; break it"


def reference_faults(
    item: EvidenceItem, reference: EvidenceReference, vocabulary: Set[str]
) -> Iterator[tuple[str, str]]:
    """What is wrong with a reference beside its item: (field, message) each. `vocabulary` are the terms or
    entities allowed."""
    answers = [("answer", reference.answer)]
    for name, further in (("accepted", reference.accepted), ("half", reference.half)):
        answers += [(f"{name}.{place}", answer) for place, answer in enumerate(further)]
    for field, answer in answers:
        message = _wrong(item, answer, vocabulary)
        if message:
            yield field, f"{message}; found {_shown(answer)}"


def _wrong(item: EvidenceItem, answer: Any, vocabulary: Set[str]) -> str:
    """What is wrong with an answer as the reference of an item, "" if nothing."""
    kind, count = item.answer.kind, len(item.options)
    if kind == "option":
        ok = isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < count
        return "" if ok else f"is not among the {count} options of the item; allowed are the places 0 to {count - 1}"
    if kind == "boxes":
        return _wrong_boxes(answer)
    if kind == "number":
        return "" if _is_finite(answer) else "a finite number is needed"
    if kind == "terms":
        if not isinstance(answer, list) or not answer or not all(isinstance(term, str) for term in answer):
            return "a list with at least one term is needed"
        unknown = [term for term in answer if term not in vocabulary]
        return f"{', '.join(map(repr, unknown))} outside the vocabulary of the suite" if unknown else ""
    if kind == "diagnosis":
        ok = isinstance(answer, dict) and list(answer) == ["diagnosis"] and isinstance(answer["diagnosis"], str)
        if not ok:
            return 'an object {"diagnosis": entity} is needed'
        return "" if answer["diagnosis"] in vocabulary else "is no entity of the suite's ontology"
    if kind == "json":
        return "" if isinstance(answer, dict) and answer else "an object with at least one field is needed"
    if kind == "ranking":
        ok = isinstance(answer, list) and sorted(map(repr, answer)) == sorted(map(repr, range(count)))
        return "" if ok else f"each of the places 0 to {count - 1} is needed once"
    return "" if isinstance(answer, str) and answer.strip() else "text with at least one visible character is needed"


def _wrong_boxes(answer: Any) -> str:
    if not isinstance(answer, list) or not answer:
        return "a list with at least one box is needed"
    for box in answer:
        if not isinstance(box, list) or len(box) != 4 or not all(map(_is_finite, box)):
            return "a box is four finite numbers [x1, y1, x2, y2]"
        x1, y1, x2, y2 = box
        if not (0 <= x1 < x2 <= MAX_COORDINATE and 0 <= y1 < y2 <= MAX_COORDINATE):
            return f"a box has 0 <= x1 < x2 <= {MAX_COORDINATE} and 0 <= y1 < y2 <= {MAX_COORDINATE}"
    return ""


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
