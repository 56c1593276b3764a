"""Answers that stand where nobody is asked: in names of files, ids, groups, what is told of the specimen, EXIF."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from wsigym.cohorts import Asked, ImageSpec
from wsigym.cohorts.item_files import load_entities
from wsigym.errors import CohortError

from ..pictures import plain
from ..results import Checked, Finding
from .check import Audited, suite_of
from .texts import folded

__all__ = ["hidden_answers"]

MIN_LETTERS = 3
"""Shorter answers stand in other words and numbers by chance."""

SQUASHED_LETTERS = 8
"""Answers of two words or more are also looked for written as one, if as long as this."""

CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")

ENTITY = ("entity", "diagnosis")
"""Fields of a reference's provenance that name what the case is."""

Place = tuple[str, str]
"""Where a text stands, and the text."""


def hidden_answers(audited: Audited) -> Checked:
    """Texts beside the question that hold the answer, as whole words, and of an item's options no other.

    Looked for are the right options, terms, texts and diagnoses, the case's entity, and the entity's synonyms. Looked
    through are the item's id, set and groups, its specimen, names of its files and slides, the texts inside image files
    and what slide files say of themselves. Numbers, boxes and truth values are not looked for: they stand anywhere.
    """
    findings: list[Finding] = []
    not_looked: list[str] = []
    looked = 0
    slides = _Slides(audited)
    for name, asked in audited.tasks.items():
        synonyms = _synonyms(audited, name)
        skipped = 0
        found: dict[str, list[str]] = {}
        for each in asked:
            right, wrong = _answers(each, synonyms)
            if not right:
                skipped += 1
                continue
            looked += 1
            for what in _tells(_places(each, audited, slides), right, wrong):
                found.setdefault(what, []).append(each.item.item_id)
        findings += (Finding(name, tuple(items), what) for what, items in found.items())
        if skipped:
            not_looked.append(f"{name}: {skipped:,} items whose answer is no text of {MIN_LETTERS} letters or more")
    not_looked += slides.unreadable
    return Checked("answers beside the question", looked, "items", tuple(findings), tuple(dict.fromkeys(not_looked)))


def _answers(asked: Asked, synonyms: Mapping[str, tuple[str, ...]]) -> tuple[set[str], set[str]]:
    """What tells the answer, and what tells another option; folded."""
    item, reference = asked.item, asked.reference
    options = [folded(option) for option in item.options]
    said: list[str] = []
    for answer in (reference.answer, *reference.accepted):
        if item.answer.kind == "option":
            said.append(item.options[answer])
        elif item.answer.kind == "ranking":
            said.append(item.options[answer[0]])
        else:
            said += _texts(answer)
    entities = [reference.provenance[key] for key in ENTITY if isinstance(reference.provenance.get(key), str)]
    said += entities
    right = {folded(text) for text in said}
    right |= {folded(synonym) for text in right for synonym in synonyms.get(text, ())}
    wrong = {option for option in options if option not in right}
    return {text for text in right if sum(map(str.isalpha, text)) >= MIN_LETTERS}, wrong


def _texts(answer: Any) -> list[str]:
    if isinstance(answer, str):
        return [answer]
    if isinstance(answer, list):
        return [text for part in answer for text in _texts(part)]
    return [text for part in answer.values() for text in _texts(part)] if isinstance(answer, dict) else []


def _synonyms(audited: Audited, task: str) -> Mapping[str, tuple[str, ...]]:
    try:
        entities = load_entities(audited.cohort, suite_of(task))
    except CohortError:  # the suite has no ontology
        return {}
    return {folded(each.entity): each.synonyms for each in entities}


def _places(asked: Asked, audited: Audited, slides: _Slides) -> Iterator[Place]:
    item = asked.item
    yield "item_id", item.item_id
    if item.set_id is not None:
        yield "set_id", item.set_id
    for kind, name in item.group.items():
        yield f"group {kind}", name
    for field in ("organ", "site"):
        value = getattr(item.metadata, field)
        if value is not None:
            yield f"metadata {field}", value
    if item.features is not None:
        yield "file name", item.features.features
        yield "file name", item.features.coordinates
    for image in item.images:
        for part in image.parts:
            yield from slides.places(part.slide_id) if part.slide_id is not None else _of_file(part, audited)


def _of_file(part: ImageSpec, audited: Audited) -> Iterator[Place]:
    assert part.file is not None
    yield "file name", part.file
    for where, text in audited.pictures.texts.get(plain(part), {}).items():
        yield f"{where} of {part.file}", text


class _Slides:
    """Names of slides, and what their files say of themselves, each read once."""

    def __init__(self, audited: Audited) -> None:
        self._cohort = audited.cohort
        self._seen: dict[str, list[Place]] = {}
        self.unreadable: list[str] = []

    def places(self, slide_id: str) -> list[Place]:
        if slide_id not in self._seen:
            self._seen[slide_id] = list(self._read(slide_id))
        return self._seen[slide_id]

    def _read(self, slide_id: str) -> Iterator[Place]:
        from wsigym.errors import SlideError

        yield "slide_id", slide_id
        yield "file name", self._cohort.slide(slide_id).path
        try:
            properties = self._cohort.open(slide_id).properties
        except SlideError as error:
            self.unreadable.append(f"what slide {slide_id} says of itself: {error}")
            return
        for name, value in properties.items():
            yield f"{name} of slide {slide_id}", value


def _tells(places: Iterable[Place], right: set[str], wrong: set[str]) -> list[str]:
    """Where the answer is told; not where all that is named of the options is more than the answer."""
    hits, others = [], False
    for where, text in places:
        words, squashed = _words(text)
        hit = next((answer for answer in sorted(right) if _stands(answer, words, squashed)), None)
        if hit is not None:
            hits.append(f"{where} holds {hit!r}")
        others = others or any(_stands(option, words, squashed) for option in wrong)
    return [] if others else list(dict.fromkeys(hits))


@lru_cache(maxsize=50_000)
def _words(text: str) -> tuple[str, str]:
    """The words of a text between spaces, camel case parted; and all letters as one."""
    words = f" {folded(CAMEL.sub(' ', text))} "
    return words, words.replace(" ", "")


def _stands(answer: str, words: str, squashed: str) -> bool:
    if not answer:
        return False
    one = answer.replace(" ", "")
    return f" {answer} " in words or (one != answer and len(one) >= SQUASHED_LETTERS and one in squashed)
