"""The score of one answer to one item: its value, what was understood, why, and how the episode ended.

Every kind of answer has one rule, so that the reference itself scores 1 and a wrong answer 0. What a suite reports
over many items (circular accuracy, macro-F1, mean absolute error ...) is computed from the answers, not from these
values. Wrong, unanswered and refused stay three things: all have the value 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from wsigym.errors import InvalidArgumentError, UnknownNameError

from .answers import (
    Vocabulary,
    fold,
    is_insufficient,
    is_refusal,
    parse_bools,
    parse_boxes,
    parse_json_object,
    parse_number,
    parse_option,
    parse_ranking,
    parse_terms,
    strip_reasoning,
)
from .boxes import union_dice
from .diagnosis import DIFFERENTIALS, DiagnosisTable
from .terms import entity_recall

__all__ = ["ItemScore", "parse_answer", "score_item", "score_parsed"]

ItemOutcome = Literal["scored", "unparsed", "refused"]


@dataclass(frozen=True, slots=True)
class ItemScore:
    """`value` in 0..1; `answer` as understood, a JSON value, None where nothing was; `explanation` in one sentence."""

    value: float
    answer: Any
    explanation: str
    outcome: ItemOutcome


def score_item(
    kind: str,
    answer: str,
    reference: Any,
    *,
    accepted: Sequence[Any] = (),
    half: Sequence[Any] = (),
    options: Sequence[str] = (),
    images: bool = False,
    vocabulary: Vocabulary | DiagnosisTable | None = None,
) -> ItemScore:
    """Score the reply `answer` of a `kind` against the reference or, if better, another right answer.

    The `accepted` are as right as the reference; those of `half` earn half of what they would (CaseScope's A1: an
    entity of the same family and behaviour). A `diagnosis` is graded against a `DiagnosisTable` given as `vocabulary`,
    and its answer tells beside what was said how it was graded: "entity", "error", "top3". Other arguments are those of
    `parse_answer` and `score_parsed`, and so are the errors; nothing in a reply raises.
    """
    table = vocabulary if isinstance(vocabulary, DiagnosisTable) else None
    terms = vocabulary if isinstance(vocabulary, Vocabulary) else None
    parsed = parse_answer(kind, answer, reference, options=options, images=images, vocabulary=terms)
    if parsed is not None and kind == "diagnosis":
        return _graded(parsed, reference, accepted, table)
    if parsed is None:
        refused = is_refusal(answer) or is_insufficient(answer)
        return ItemScore(0.0, None, f"no {kind} in the answer", "refused" if refused else "unparsed")
    value = max(score_parsed(kind, parsed, right) for right in (reference, *accepted))
    value = max([value, *(score_parsed(kind, parsed, right) / 2 for right in half)])
    if kind == "text" and not value and is_refusal(answer):  # any words are a text
        return ItemScore(0.0, None, "no text in the answer", "refused")
    return ItemScore(value, parsed, f"{_SAYS[kind]}: {value:.3g}", "scored")


def parse_answer(
    kind: str,
    answer: str,
    reference: Any = None,
    *,
    options: Sequence[str] = (),
    images: bool = False,
    vocabulary: Vocabulary | None = None,
) -> Any:
    """What the reply says as a JSON value, None where it says nothing of its kind.

    `option`: the place among `options` (`images` as in `parse_option`); words for insufficient evidence are the option
    that says so. `boxes`: a list of [x1, y1, x2, y2]. `number`: a number. `terms`: a list of terms of `vocabulary`.
    `ranking`: a list of places. `json`: an object; where the `reference` has a list of truth values, under its key.
    `text`: the reply without its reasoning. `diagnosis`: an object of "diagnosis", "differential" (two at most) and
    "confidence", from a JSON object that names a diagnosis. Raises `UnknownNameError` for an unknown kind,
    `InvalidArgumentError` for terms without a vocabulary.
    """
    if kind not in _PARSERS:
        raise UnknownNameError("kind of answer", kind, _PARSERS)
    return _PARSERS[kind](answer, reference, options, images, vocabulary)


def score_parsed(kind: str, answer: Any, reference: Any) -> float:
    """The value in 0..1 of an understood answer beside one right answer.

    `option`, `number`, `text` (compared by `answers.fold`): 1 if equal, else 0; chance 1 / options for an option.
    `boxes`: `union_dice`. `terms`: `entity_recall`. `ranking`: 1 / rank of the reference's first option, 0 where it is
    not ranked (reciprocal rank; chance over n options is the mean of 1 / r). `json`: the share of the reference's
    values that the answer has under the same key, each truth value of a list counting alone (chance 1/2).
    """
    if kind == "boxes":
        return union_dice(answer, reference)
    if kind == "terms":
        return entity_recall(answer, reference)
    if kind == "ranking":
        return 1 / (answer.index(reference[0]) + 1) if reference[0] in answer else 0.0
    if kind == "json":
        return _shared(answer, reference)
    return float(_alike(answer, reference))


def _graded(answer: dict[str, Any], reference: Any, accepted: Sequence[Any], table: DiagnosisTable | None) -> ItemScore:
    if table is None:
        raise InvalidArgumentError("a diagnosis is asked for without a table of entities to grade it against.")
    grade = table.grade(
        reference["diagnosis"],
        answer["diagnosis"],
        answer["differential"],
        alternates=[each["diagnosis"] for each in accepted],
    )
    told = answer | {"entity": grade.entity, "error": grade.error, "top3": grade.top3}
    return ItemScore(grade.grade, told, f"{_SAYS['diagnosis']}: {grade.grade:.3g}", "scored")


_SAYS = {
    "option": "1 if the option is the right one",
    "boxes": "Dice of the unions of boxes",
    "number": "1 if the number is the right one",
    "terms": "share of the right terms named",
    "json": "share of the right values",
    "ranking": "1 / rank of the right option",
    "text": "1 if the text is the right one",
    "diagnosis": "1 for the entity, 1/2 within its family and behaviour",
}


def _shared(answer: Mapping[str, Any], reference: Mapping[str, Any]) -> float:
    points: list[bool] = []
    for key, right in reference.items():
        stated = answer.get(key)
        if isinstance(right, list):
            values = stated if isinstance(stated, list) and len(stated) == len(right) else [None] * len(right)
            points += [_alike(value, one) for value, one in zip(values, right, strict=True)]
        else:
            points.append(_alike(stated, right))
    return sum(points) / len(points) if points else 0.0


def _alike(answer: Any, right: Any) -> bool:
    """Texts are compared folded; a truth value is not a number, and a missing value is nothing's equal."""
    if isinstance(answer, str) and isinstance(right, str):
        return bool(fold(answer)) and fold(answer) == fold(right)
    return answer is not None and isinstance(answer, bool) == isinstance(right, bool) and bool(answer == right)


def _option(answer: str, _: Any, options: Sequence[str], images: bool, __: Vocabulary | None) -> int | None:
    chosen = parse_option(answer, options, images=images)
    if chosen is None and is_insufficient(answer):
        saying = [place for place, option in enumerate(options) if is_insufficient(option)]
        return saying[0] if len(saying) == 1 else None
    return chosen


def _boxes(answer: str, *_: object) -> list[list[int]] | None:
    boxes = parse_boxes(answer)
    return None if boxes is None else [list(box) for box in boxes]


def _json(answer: str, reference: Any, *_: object) -> dict[str, Any] | None:
    if isinstance(reference, Mapping) and len(reference) == 1:
        [(key, right)] = reference.items()
        if isinstance(right, list) and right and all(isinstance(value, bool) for value in right):
            values = parse_bools(answer, len(right), key)
            return None if values is None else {key: list(values)}
    return parse_json_object(answer)


def _terms(answer: str, _: Any, __: Sequence[str], ___: bool, vocabulary: Vocabulary | None) -> list[str] | None:
    if vocabulary is None:
        raise InvalidArgumentError(
            "terms are asked for without a vocabulary; give the standard terms and their aliases."
        )
    named = parse_terms(answer, vocabulary)
    return None if named is None else list(named)


def _ranking(answer: str, _: Any, options: Sequence[str], *__: object) -> list[int] | None:
    ranked = parse_ranking(answer, options)
    return None if ranked is None else list(ranked)


def _text(answer: str, *_: object) -> str | None:
    reply = strip_reasoning(answer).strip()
    return reply if fold(reply) else None


def _diagnosis(answer: str, *_: object) -> dict[str, Any] | None:
    told = parse_json_object(answer)
    named = None if told is None else told.get("diagnosis")
    if told is None or not isinstance(named, str) or not fold(named):
        return None
    further = told.get("differential")
    listed = [text for text in further if isinstance(text, str)] if isinstance(further, list) else []
    return {"diagnosis": named, "differential": listed[:DIFFERENTIALS], "confidence": told.get("confidence")}


_PARSERS: dict[str, Callable[..., Any]] = {
    "option": _option,
    "boxes": _boxes,
    "number": lambda answer, *_: parse_number(answer),
    "terms": _terms,
    "json": _json,
    "ranking": _ranking,
    "text": _text,
    "diagnosis": _diagnosis,
}
