"""Items that are the same: the same words, options and pictures, within a split or across splits."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping

from wsigym.cohorts import Asked, ImageSpec

from ..pictures import Key, plain
from ..results import Checked, Finding
from .check import Audited

__all__ = ["same_items"]

MARKS = re.compile(r"[\W_]+")


def same_items(audited: Audited) -> Checked:
    """Items of one task that differ in nothing that is shown but the order of options, case and punctuation.

    Pictures that show the same count as the same. Where the answers differ too, it is said.
    """
    first = {spec: place for place, specs in enumerate(audited.pictures.same) for spec in specs}
    findings, looked = [], 0
    for name, asked in audited.tasks.items():
        looked += len(asked)
        seen: dict[str, list[Asked]] = {}
        for each in asked:
            seen.setdefault(_content(each, first), []).append(each)
        for alike in seen.values():
            if len(alike) > 1:
                findings.append(Finding(name, tuple(each.item.item_id for each in alike), _told(alike)))
    return Checked("same items", looked, "items", tuple(findings))


def _told(alike: list[Asked]) -> str:
    splits = sorted({each.item.split or "no split" for each in alike})
    where = f"in {' and '.join(splits)}" if len(splits) > 1 else f"within {splits[0]}"
    answers = {_answer(each) for each in alike}
    return f"{len(alike)} items show the same, {where}" + (", with different answers" if len(answers) > 1 else "")


def _content(asked: Asked, first: Mapping[Key, int]) -> str:
    item = asked.item
    pictures = [[_picture(plain(part), first) for part in image.parts] for image in item.images]
    features = None if item.features is None else item.features.features
    options = sorted(map(folded, item.options))
    return json.dumps([folded(item.text), options, pictures, features], sort_keys=True)


def _picture(part: ImageSpec, first: Mapping[Key, int]) -> object:
    return first.get(part, part.model_dump(mode="json"))


def _answer(asked: Asked) -> str:
    answer = asked.reference.answer
    if asked.item.answer.kind == "option":
        answer = folded(asked.item.options[answer])
    return json.dumps(answer, sort_keys=True)


def folded(text: str) -> str:
    """The words alone: without case, punctuation and Unicode's other spellings."""
    return MARKS.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()
