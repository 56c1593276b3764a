"""What a model wrote, read as calls, boxes, candidates, verdicts and scores; or `ParseError`, and nothing else.

What is taken: numbers written as strings or floats; JSON in code fences, between sentences, or after <think> blocks;
`width` and `height` for `w` and `h`. What is not guessed: a box by its corners (x1, y1, x2, y2, bbox_2d ...) where x,
y, w, h was asked for, numbers with units or thousands separators, JSON with single quotes, a score of 83 where 0 to 1
was asked for. A message of a `ParseError` says what to write instead, since it is told to the model.

NaN and infinities are numbers here: the environment answers them as the invalid requests that they are.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from wsigym.errors import ParseError
from wsigym.scoring.answers import json_spans, strip_reasoning

from .coordinates import BoxNumbers

__all__ = [
    "NO_CALL",
    "Call",
    "Candidate",
    "ExtractRoi",
    "FinishAndReport",
    "GetImageInfo",
    "Judgement",
    "TileAnswer",
    "Verdict",
    "as_number",
    "call_of",
    "calls_in_text",
    "candidates_of",
    "is_refusal",
    "judgement_of",
    "page_answers_of",
    "tile_answer_of",
    "yes_probability",
]

Verdict = Literal["supports", "conflicts", "uninformative"]

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?(?:nan|inf|infinity)", re.IGNORECASE | re.ASCII)

CORNERS = frozenset(
    [
        *("x1", "y1", "x2", "y2", "x_1", "y_1", "x_2", "y_2", "x0", "y0"),
        *("xmin", "ymin", "xmax", "ymax", "x_min", "y_min", "x_max", "y_max"),
        *("left", "top", "right", "bottom", "bbox_2d", "box_2d", "bbox_xyxy", "xyxy"),
    ]
)
"""Keys of boxes given by their corners."""

REFUSALS = re.compile(
    r"\b(?:can(?:no|')?t|cannot|can not|won't|will not|(?:am|'m) (?:un|not )able to|must decline to|decline to) "
    r"(?:help|assist|comply|fulfil|engage|diagnose|(?:interpret|analy[sz]e) (?:medical|pathology)"
    r"|(?:provide|give|offer) (?:an? |any )?(?:medical|diagnos)"
    r"|(?:process|answer|continue with) (?:this|that|your) (?:request|question|task))"
    r"|\bI must decline\b|\bI (?:have to|must) refuse\b|\bI refuse to\b",
    re.IGNORECASE,
)
"""The fixed list of phrases by which a model turns a task down. It is narrower than the list for items of evidence
(`wsigym.scoring.answers`): "I cannot see the target yet" is no refusal while one may go on looking."""

YES_OR_NO = re.compile(r"[\s*_\"'`>(\[]*(?:answer\s*[:=]\s*)?[\s*_\"'`]*(yes|no)(?![\w'])[*_\"'`\])]*", re.IGNORECASE)
"""The whole word at the start: not the first letters of "Nothing", nor a word inside a sentence."""

AFTER_YES_OR_NO = re.compile(
    r"\s*(?:[,;:.(|\u2013\u2014]+\s*|-+\s+)?(?:(?:score|suspicion|confidence|probability)\s*[:=]?\s*)?[*_`(]*"
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(?P<percent>%)?(?!\w|\.\d)",
    re.IGNORECASE | re.ASCII,
)
STANDS_ALONE = re.compile(r"\s*(?:$|[.,;:!\n(\-\u2013\u2014])")
"""What may follow a Yes or No without a number: "No idea" and "Yes and no" are no answers."""

LOGPROB_MASS = 0.5
"""First-token probabilities count where Yes and No hold this much of them: else the answer begins with another word."""


@dataclass(frozen=True)
class GetImageInfo:
    """get_image_info()."""


@dataclass(frozen=True)
class ExtractRoi:
    """extract_roi(x, y, w, h, reason), its numbers as the model gave them."""

    box: BoxNumbers
    reason: str | None


@dataclass(frozen=True)
class FinishAndReport:
    """finish_and_report(conclusion, bbox, confidence); a confidence that is none in 0..1 is "not stated"."""

    box: BoxNumbers
    conclusion: str | None
    confidence: float | None


Call = GetImageInfo | ExtractRoi | FinishAndReport


@dataclass(frozen=True)
class Candidate:
    """Where the target could be."""

    box: BoxNumbers
    confidence: float | None
    reason: str | None


@dataclass(frozen=True)
class Judgement:
    """What one look says of the target; `box`, where given, lies inside the look's image."""

    verdict: Verdict
    confidence: float
    box: BoxNumbers | None
    reason: str | None


@dataclass(frozen=True)
class TileAnswer:
    """Yes or No, and the tumour suspicion in 0..1."""

    yes: bool
    score: float


# -- the agents' tools -----------------------------------------------------------------------------------------------


def call_of(name: str, arguments: str | Mapping[str, Any]) -> Call:
    """The call of a tool by its name and its arguments, which are an object or JSON text of one."""
    if name not in ("get_image_info", "extract_roi", "finish_and_report"):
        raise ParseError(
            f"there is no tool {_short(name)!r}; the tools are get_image_info, extract_roi and finish_and_report."
        )
    if name == "get_image_info":
        return GetImageInfo()
    given = _arguments(name, arguments)
    if name == "extract_roi":
        return ExtractRoi(_box_argument(name, given), _text(given.get("reason")))
    confidence = _stated_confidence(given.get("confidence"))
    return FinishAndReport(_box_argument(name, given), _text(given.get("conclusion")), confidence)


NO_CALL = (
    'no call of a tool was found. Call one; as text that is one JSON object, such as {"tool": "get_image_info", '
    '"arguments": {}}, with double quotes.'
)


def calls_in_text(text: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    """(name, arguments) of each JSON object `{"tool": NAME, "arguments": {...}}` in a text, in order; maybe none.

    `name` for `tool` is taken too.
    """
    calls = []
    for found in _objects(text):
        name = found.get("tool", found.get("name"))
        arguments = found.get("arguments", {})
        if isinstance(name, str) and isinstance(arguments, dict):
            calls.append((name, arguments))
    return tuple(calls)


def _arguments(name: str, arguments: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(arguments, Mapping):
        return arguments
    try:
        found = json.loads(_unfenced(arguments), strict=False)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ParseError(f"the arguments of {name} are not a JSON object: {_short(arguments)!r}.")
    return found


def _box_argument(name: str, given: Mapping[str, Any]) -> BoxNumbers:
    """The box among a tool's arguments: x, y, w, h by their names, or together as `bbox`."""
    _refuse_corners(given)
    for key in ("bbox", "box"):
        if key in given:
            return _box(given[key], f"{key} of {name}")
    return _box(given, f"the arguments of {name}")


def _box(value: object, what: str) -> BoxNumbers:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = re.split(r"[\s,]+", str(value).strip("[]() \t\n"))
    if isinstance(value, Mapping):
        _refuse_corners(value)
        numbers = [_named_number(value, names, what) for names in (("x",), ("y",), ("w", "width"), ("h", "height"))]
    elif isinstance(value, list) and len(value) == 4:
        numbers = [as_number(number, f"a number of {what}") for number in value]
    else:
        raise ParseError(f"{what} is {_short(value)}; it must be four numbers x, y, w, h.")
    x, y, w, h = numbers
    return x, y, w, h


def _named_number(given: Mapping[str, Any], names: tuple[str, ...], what: str) -> float:
    found = [as_number(given[name], f"{name} in {what}") for name in names if name in given]
    if not found:
        raise ParseError(f"{names[0]} is missing in {what}; needed are x, y, w and h.")
    if len(found) > 1 and found[0] != found[1]:
        raise ParseError(f"{' and '.join(names)} in {what} differ; give {names[0]} alone.")
    return found[0]


def _refuse_corners(given: Mapping[str, Any]) -> None:
    corners = sorted(key for key in map(str, given) if key.lower() in CORNERS)
    if corners:
        raise ParseError(
            f"a box was given by its corners ({', '.join(corners[:4])}); give x, y, w, h: the top left corner, the "
            "width and the height."
        )


def as_number(value: object, what: str) -> float:
    """A number, or text that is one and nothing else; NaN and infinities too. Raises `ParseError` for all other."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
        return float(value)
    raise ParseError(f"{what} is {_short(value)}, which is not a number.")


def _stated_confidence(value: object) -> float | None:
    """0..1, from a number in 0..1 or a percentage with its sign; None for anything else."""
    share = 1.0
    if isinstance(value, str) and value.strip().endswith("%"):
        value, share = value.strip()[:-1], 0.01
    try:
        number = share * as_number(value, "confidence")
    except ParseError:
        return None
    return number if 0 <= number <= 1 else None


# -- the verifier's answers ------------------------------------------------------------------------------------------


def candidates_of(text: str) -> tuple[Candidate, ...]:
    """The last JSON object with "candidates": each one's bbox, confidence and reason, in the order given.

    A candidate that cannot be read is left out; where that leaves none, its `ParseError` is raised.
    """
    listed = _last_object_with("candidates", text)["candidates"]
    fault = ParseError('"candidates" must be a list of objects with a bbox.')
    found = []
    for each in listed if isinstance(listed, list) else []:
        try:
            if not isinstance(each, dict):
                raise ParseError(f"a candidate is {_short(each)}; it must be an object with a bbox.")
            box = _box_argument("a candidate", each)
            found.append(Candidate(box, _stated_confidence(each.get("confidence")), _text(each.get("reason"))))
        except ParseError as error:
            fault = error
    if not found:
        raise fault
    return tuple(found)


def judgement_of(text: str) -> Judgement:
    """The last JSON object with "verdict": verdict, confidence, reason, and maybe a bbox inside the image."""
    found = _last_object_with("verdict", text)
    verdict = str(found["verdict"]).strip().lower()
    if verdict not in get_args(Verdict):
        raise ParseError(
            f'"verdict" is {_short(found["verdict"])}; it must be "supports", "conflicts" or "uninformative".'
        )
    confidence = _stated_confidence(found.get("confidence"))
    if confidence is None:
        raise ParseError(f'"confidence" is {_short(found.get("confidence"))}; it must be a number from 0 to 1.')
    box = None if found.get("bbox") is None else _box(found["bbox"], "bbox")
    return Judgement(verdict, confidence, box, _text(found.get("reason")))  # type: ignore[arg-type]  # one of the three


# -- the tile scorer's answers ---------------------------------------------------------------------------------------


def tile_answer_of(text: str, first_token_logprobs: Mapping[str, float] | None = None) -> TileAnswer:
    """`Yes 0.83`, or an object {"answer": "Yes", "score": 0.83}; with usable probabilities the score may be absent.

    The score is then p(Yes) / (p(Yes) + p(No)); the verdict is always the word that was written.
    """
    text = strip_reasoning(text)
    probability = yes_probability(first_token_logprobs or {})
    if found := [each for each in _objects(text) if "answer" in each]:
        return _tile_object(found[-1], probability)
    word = YES_OR_NO.match(text)
    if word is None:
        raise ParseError("the answer must begin with Yes or No, then a score from 0 to 1, such as: Yes 0.83")
    rest = text[word.end() :]
    number = AFTER_YES_OR_NO.match(rest)
    if number is None and not STANDS_ALONE.match(rest):
        raise ParseError("after Yes or No stands a score from 0 to 1 and nothing else, such as: No 0.05")
    if probability is not None:
        return TileAnswer(_is_yes(word[1]), probability)
    if number is None:
        raise ParseError("the score is missing: Yes or No, then a score from 0 to 1, such as: Yes 0.83")
    return TileAnswer(_is_yes(word[1]), _score(number["number"] + (number["percent"] or "")))


def page_answers_of(text: str, tiles: int) -> dict[int, TileAnswer]:
    """The last JSON object with "tiles", as answers by the tile's number, 1 to `tiles`.

    A tile that cannot be read, or that is answered twice, is left out. Raises `ParseError` where there is no list.
    """
    listed = _last_object_with("tiles", text)["tiles"]
    if not isinstance(listed, list):
        raise ParseError('"tiles" must be a list of objects with tile, answer and score.')
    answers: dict[int, TileAnswer] = {}
    twice = set()
    for each in listed:
        try:
            if not isinstance(each, dict):
                continue
            number = as_number(each.get("tile"), "tile")
            if number not in range(1, tiles + 1):
                continue
            place = int(number)
            twice.update({place} & answers.keys())
            answers[place] = _tile_object(each, None)
        except ParseError:
            continue
    return {place: answer for place, answer in answers.items() if place not in twice}


def yes_probability(first_token_logprobs: Mapping[str, float]) -> float | None:
    """p(Yes) / (p(Yes) + p(No)) over all spellings of the first token; None where these are not what is begun with."""
    mass = {"yes": 0.0, "no": 0.0}
    for token, logprob in first_token_logprobs.items():
        word = token.strip(" \t\n\u2581\u0120\u010a*_\"'`.,:").lower()  # with the blanks of the usual tokenizers
        if word in mass and logprob <= 0:
            mass[word] += math.exp(logprob)
    both = mass["yes"] + mass["no"]
    return mass["yes"] / both if both >= LOGPROB_MASS else None


def _tile_object(found: Mapping[str, Any], probability: float | None) -> TileAnswer:
    answer = found.get("answer")
    if not isinstance(answer, str) or answer.strip().lower() not in ("yes", "no"):
        raise ParseError(f'"answer" is {_short(answer)}; it must be "Yes" or "No".')
    return TileAnswer(_is_yes(answer), _score(found.get("score")) if probability is None else probability)


def _is_yes(word: str) -> bool:
    return word.strip().lower() == "yes"


def _score(value: object) -> float:
    score = _stated_confidence(value)
    if score is None:
        raise ParseError(
            f"the score is {_short(value)}; it must be a number from 0 to 1, or a percentage with its sign."
        )
    return score


# -- text ------------------------------------------------------------------------------------------------------------


def is_refusal(text: str) -> bool:
    """Whether a text holds one of the fixed phrases of a refusal. Look for an answer first."""
    return REFUSALS.search(strip_reasoning(text).replace("\u2019", "'")) is not None


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a text, those inside others not; fences, sentences and broken pieces are passed over."""
    text = strip_reasoning(text)
    for start, end in json_spans(text):
        try:
            found = json.loads(text[start:end], strict=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def _last_object_with(key: str, text: str) -> dict[str, Any]:
    found = [each for each in _objects(text) if key in each]
    if not found:
        raise ParseError(f'no JSON object with "{key}" was found; answer with that object alone, with double quotes.')
    return found[-1]


def _unfenced(text: str) -> str:
    """A text without a code fence around it; an empty one is an empty object, as some servers write no arguments."""
    fenced = re.fullmatch(r"\s*```\w*\n(.*?)```\s*", text, re.DOTALL)
    return (fenced[1] if fenced else text).strip() or "{}"


def _text(value: object) -> str | None:
    """What a model said beside its numbers; what is no text, such as null, was not said."""
    return value.strip() or None if isinstance(value, str) else None


def _short(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
