"""Parsers of model text: what is read, what is an error, and that no text raises anything else."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsigym.agents.parsing import (
    ExtractRoi,
    FinishAndReport,
    GetImageInfo,
    as_number,
    call_of,
    calls_in_text,
    candidates_of,
    is_refusal,
    judgement_of,
    page_answers_of,
    tile_answer_of,
    yes_probability,
)
from wsigym.errors import ParseError

# -- tools -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        {"x": 1, "y": 2, "w": 3, "h": 4},
        {"x": "1", "y": " 2.0 ", "w": 3.0, "h": "4e0", "reason": "dense"},
        {"x": 1, "y": 2, "width": 3, "height": 4},
        {"x": 1, "y": 2, "w": 3, "width": 3, "h": 4},
        {"bbox": [1, 2, 3, 4]},
        {"bbox": "[1, 2, 3, 4]"},
        {"bbox": "1, 2, 3, 4"},
        {"box": {"x": 1, "y": 2, "w": 3, "h": 4}},
    ],
)
@pytest.mark.parametrize("as_text", [False, True])
def test_a_look_in_its_spellings(arguments: dict[str, Any], as_text: bool) -> None:
    call = call_of("extract_roi", json.dumps(arguments) if as_text else arguments)
    assert isinstance(call, ExtractRoi)
    assert call.box == (1, 2, 3, 4)
    assert call.reason == arguments.get("reason")


def test_arguments_in_a_code_fence() -> None:
    call = call_of("extract_roi", '```json\n{"x": 1, "y": 2, "w": 3, "h": 4}\n```')
    assert isinstance(call, ExtractRoi)


@pytest.mark.parametrize(
    "arguments",
    [
        {"x1": 1, "y1": 2, "x2": 3, "y2": 4},
        {"x": 1, "y": 2, "x2": 3, "y2": 4},
        {"bbox_2d": [1, 2, 3, 4]},
        {"XMin": 1, "ymin": 2, "xmax": 3, "ymax": 4},
        {"left": 1, "top": 2, "right": 3, "bottom": 4},
        {"bbox": {"x1": 1, "y1": 2, "x2": 3, "y2": 4}},
    ],
)
@pytest.mark.parametrize("tool", ["extract_roi", "finish_and_report"])
def test_corners_are_an_error_and_never_a_guess(tool: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ParseError, match=r"corners.*x, y, w, h"):
        call_of(tool, arguments)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"x": 1, "y": 2, "w": 3}, "h is missing"),
        ({"x": 1, "y": 2, "w": 3, "h": "4px"}, "4px, which is not a number"),
        ({"x": "1,000", "y": 2, "w": 3, "h": 4}, "1,000, which is not a number"),
        ({"x": "1_0", "y": 2, "w": 3, "h": 4}, "not a number"),
        ({"x": True, "y": 2, "w": 3, "h": 4}, "True, which is not a number"),
        ({"x": None, "y": 2, "w": 3, "h": 4}, "None, which is not a number"),
        ({"x": 1, "y": 2, "w": 3, "width": 5, "h": 4}, "differ"),
        ({"bbox": [1, 2, 3]}, "four numbers"),
        ({"bbox": [1, 2, 3, 4, 5]}, "four numbers"),
        ({"bbox": None}, "four numbers"),
        ({"bbox": "A"}, "four numbers"),
        ({}, "x is missing"),
        ("{'x': 1, 'y': 2, 'w': 3, 'h': 4}", "not a JSON object"),
        ("[1, 2, 3, 4]", "not a JSON object"),
        ("null", "not a JSON object"),
        ("{", "not a JSON object"),
    ],
)
def test_a_look_that_cannot_be_read(arguments: Any, match: str) -> None:
    with pytest.raises(ParseError, match=match):
        call_of("extract_roi", arguments)


@pytest.mark.parametrize("value", ["NaN", "nan", "Infinity", "-inf", math.nan, math.inf, 10**400])
def test_numbers_that_are_not_finite_are_the_environments_affair(value: Any) -> None:
    call = call_of("extract_roi", {"x": value, "y": 0, "w": 1, "h": 1})
    assert isinstance(call, ExtractRoi)
    assert not math.isfinite(call.box[0])
    assert not math.isfinite(call_of("extract_roi", '{"x": NaN, "y": 0, "w": 1, "h": 1}').box[0])  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("confidence", "read"),
    [
        (0.5, 0.5),
        ("0.5", 0.5),
        (1, 1),
        ("85%", 0.85),
        ("85 %", 0.85),
        (85, None),
        (-0.1, None),
        ("high", None),
        (None, None),
        (True, None),
        (math.nan, None),
        ("NaN", None),
        ([0.5], None),
    ],
)
def test_a_confidence_is_in_0_to_1_or_not_stated(confidence: Any, read: float | None) -> None:
    call = call_of("finish_and_report", {"bbox": [1, 2, 3, 4], "conclusion": "c", "confidence": confidence})
    assert isinstance(call, FinishAndReport)
    assert call.confidence == (None if read is None else pytest.approx(read))
    assert (call.box, call.conclusion) == ((1, 2, 3, 4), "c")


@pytest.mark.parametrize("arguments", ["", "  ", "{}", "null", "nonsense", {}, {"x": 1}])
def test_get_image_info_takes_no_arguments(arguments: Any) -> None:
    assert call_of("get_image_info", arguments) == GetImageInfo()


@pytest.mark.parametrize("name", ["zoom", "", "Extract_ROI", "extract_roi "])
def test_another_tool_is_told_which_there_are(name: str) -> None:
    with pytest.raises(ParseError, match="get_image_info, extract_roi and finish_and_report"):
        call_of(name, {})


CALL = '{"tool": "get_image_info", "arguments": {}}'


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"I begin with the facts.\n```json\n{CALL}\n```\nThen I look.",
        f"<think>{{not json}} maybe {CALL.replace('get_image_info', 'finish_and_report')}</think>{CALL}",
        f"thought before </think> {CALL}",
        f"{{broken {CALL}",
        '{"name": "get_image_info", "arguments": {}}',
        '{"tool": "get_image_info"}',
        f"[{CALL}]",
    ],
)
def test_a_call_in_text(text: str) -> None:
    assert calls_in_text(text) == (("get_image_info", {}),)


def test_several_calls_in_text_keep_their_order() -> None:
    text = '{"tool": "extract_roi", "arguments": {"x": 1}} and then {"tool": "finish_and_report", "arguments": {}}'
    assert calls_in_text(text) == (("extract_roi", {"x": 1}), ("finish_and_report", {}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "null",
        "{}",
        "a",
        "A tumour.",
        CALL.replace('"', "'"),
        "get_image_info()",
        '{"tool": null}',
        '{"tool": "extract_roi", "arguments": "x"}',
        f"<think>{CALL}",
    ],
)
def test_no_call_in_text(text: str) -> None:
    assert calls_in_text(text) == ()


# -- the verifier ----------------------------------------------------------------------------------------------------


def test_candidates_in_the_order_given() -> None:
    text = (
        'Here: {"candidates": [{"bbox": [1, 2, 3, 4], "confidence": "60%", "reason": "dark"},'
        ' {"box": ["5", 6, 7.5, 8]},'
        ' {"bbox": [1, 2]}, {"x": 9, "y": 9, "w": 9, "h": 9}, "no"]}'
    )
    found = candidates_of(text)
    assert [candidate.box for candidate in found] == [(1, 2, 3, 4), (5, 6, 7.5, 8), (9, 9, 9, 9)]
    assert found[0].confidence == pytest.approx(0.6)
    assert (found[0].reason, found[1].confidence, found[1].reason) == ("dark", None, None)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "candidates"),
        ('{"candidates": []}', "list"),
        ('{"candidates": null}', "list"),
        ('{"candidates": [{"bbox": {"x1": 1, "y1": 1, "x2": 2, "y2": 2}}]}', "corners"),
        ('{"candidates": [{"bbox_2d": [1, 2, 3, 4]}]}', "corners"),
        ('{"candidates": [[1, 2, 3, 4]]}', "object with a bbox"),
    ],
)
def test_candidates_that_cannot_be_read(text: str, match: str) -> None:
    with pytest.raises(ParseError, match=match):
        candidates_of(text)


def test_the_last_verdict_counts() -> None:
    text = (
        '{"verdict": "conflicts", "confidence": 0.2} wait: '
        '{"verdict": " Supports", "confidence": 0.9, "bbox": [1, 2, 3, 4], "reason": "mitoses"}'
    )
    found = judgement_of(text)
    assert (found.verdict, found.confidence, found.box, found.reason) == ("supports", 0.9, (1, 2, 3, 4), "mitoses")
    assert judgement_of('{"verdict": "uninformative", "confidence": 1, "bbox": null}').box is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "supports",
        '{"verdict": "supports"}',
        '{"verdict": "maybe", "confidence": 1}',
        '{"verdict": null}',
        '{"verdict": "a", "confidence": 0.5}',
        '{"verdict": "supports", "confidence": 90}',
        '{"verdict": "supports", "confidence": 0.9, "bbox": {"x1": 0, "y1": 0, "x2": 1, "y2": 1}}',
    ],
)
def test_a_verdict_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ParseError):
        judgement_of(text)


# -- tiles -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "yes", "score"),
    [
        ("Yes 0.83", True, 0.83),
        ("no 0.05", False, 0.05),
        ("No, 0.05", False, 0.05),
        ("**Yes** (0.9)", True, 0.9),
        ("YES: score = 1", True, 1),
        ("Yes\n0.7", True, 0.7),
        ("Answer: Yes. Score: 80%", True, 0.8),
        ("Yes - .5", True, 0.5),
        ("Yes, suspicion 0.25.", True, 0.25),
        ("<think>No 0.1</think>Yes 0.9", True, 0.9),
        ('{"answer": "Yes", "score": 0.8}', True, 0.8),
        ('```json\n{"answer": "no", "score": "5%"}\n```', False, 0.05),
    ],
)
def test_an_answer_with_its_score(text: str, yes: bool, score: float) -> None:
    found = tile_answer_of(text)
    assert found.yes is yes
    assert found.score == pytest.approx(score)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a",
        "A 0.5",
        "Y 0.5",
        "N 0.5",
        "Nothing 0.5",
        "Yesterday 0.5",
        "None",
        "null",
        "Not sure 0.5",
        "0.83",
        "Yes",
        "No.",
        "Yes 83",
        "Yes -0.5",
        "Yes 0.5x",
        "Yes and no 0.5",
        "No idea",
        "I think Yes 0.5",
        "Yes/No 0.5",
        '{"answer": null, "score": 0.5}',
        '{"answer": "a", "score": 0.5}',
        '{"answer": "Yes", "score": null}',
        '{"answer": "Yes"}',
        "Yes nan",
        "Yes NaN",
        '{"answer": "Yes", "score": NaN}',
    ],
)
def test_what_is_no_answer(text: str) -> None:
    with pytest.raises(ParseError):
        tile_answer_of(text)


def logs(**shares: float) -> dict[str, float]:
    return {token.replace("_", " "): math.log(share) for token, share in shares.items()}


def test_probabilities_of_the_first_token_give_the_score() -> None:
    shares = logs(Yes=0.4, _yes=0.2, No=0.1, _no=0.1, Maybe=0.2)
    assert yes_probability(shares) == pytest.approx(0.75)
    found = tile_answer_of("Yes", shares)
    assert (found.yes, found.score) == (True, pytest.approx(0.75))
    assert tile_answer_of("Yes 0.1", shares).score == pytest.approx(0.75)
    assert tile_answer_of("No", shares).yes is False
    assert yes_probability({"▁Yes": math.log(0.6), "ĠNo": math.log(0.2)}) == pytest.approx(0.75)


def test_probabilities_of_another_beginning_are_not_used() -> None:
    assert yes_probability(logs(Nothing=0.9, Yes=0.05)) is None
    assert yes_probability({}) is None
    assert yes_probability({"Yes": math.nan, "No": math.inf}) is None
    with pytest.raises(ParseError, match="score is missing"):
        tile_answer_of("Yes", logs(Yes=0.3, The=0.7))


def test_a_page_of_answers() -> None:
    listed = [
        {"tile": 1, "answer": "Yes", "score": 0.8},
        {"tile": "2", "answer": "no", "score": "10%"},
        {"tile": 3, "answer": "maybe", "score": 0.8},
        {"tile": 4, "answer": "Yes", "score": 0.8},
        {"tile": 4, "answer": "No", "score": 0.1},
        {"tile": 9, "answer": "No", "score": 0.1},
        {"tile": 1.5, "answer": "No", "score": 0.1},
        None,
    ]
    found = page_answers_of(f"Well: {json.dumps({'tiles': listed})}", 5)
    assert {number: (each.yes, each.score) for number, each in found.items()} == {
        1: (True, 0.8),
        2: (False, pytest.approx(0.1)),
    }


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot assist with medical images.",
        "I am unable to provide a diagnosis",
        "I can\u2019t provide medical advice.",
        "As an AI, I won't interpret medical images",
        "I must decline.",
        "I'm not able to analyze pathology images.",
    ],
)
def test_refusals(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot see the target here; I will look further left.",
        "The image can't be read at this size.",
        "No tumour.",
        "I am sorry, the box was wrong: x = 3.",
    ],
)
def test_what_is_no_refusal(text: str) -> None:
    assert not is_refusal(text)


# -- any text --------------------------------------------------------------------------------------------------------

WORDS = "{ } [ ] : , tool arguments candidates verdict tiles bbox answer score confidence null NaN 1e999 - 0.5 Yes No a"
SCRAPS = st.lists(
    st.sampled_from(
        [*WORDS.split(), *("<think>", "</think>", "```", "\n", "\\", "\ud800", "\x00", "x1", "w", "%", " ", '"')]
    ),
    max_size=60,
).map("".join)
KEYS = st.sampled_from(
    [
        "tool",
        "name",
        "arguments",
        "candidates",
        "verdict",
        "confidence",
        "tiles",
        "tile",
        "answer",
        "score",
        "bbox",
        "box",
        "x",
        "y",
        "w",
        "h",
        "width",
        "x1",
        "reason",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)
TEXTS = st.text(max_size=200) | SCRAPS | JSON.map(json.dumps)


@given(text=TEXTS, name=st.sampled_from(["get_image_info", "extract_roi", "finish_and_report"]) | st.text(max_size=9))
def test_no_text_raises_anything_but_a_parse_error(text: str, name: str) -> None:
    readers = (
        lambda: call_of(name, text),
        lambda: [call_of(*call) for call in calls_in_text(text)],
        lambda: candidates_of(text),
        lambda: judgement_of(text),
        lambda: tile_answer_of(text),
        lambda: tile_answer_of(text, {text: -0.1, "Yes": -1.0}),
        lambda: page_answers_of(text, 4),
        lambda: as_number(text, "it"),
        lambda: is_refusal(text),
    )
    for read in readers:
        with contextlib.suppress(ParseError):
            read()


@given(arguments=st.dictionaries(KEYS, JSON, max_size=6), name=st.sampled_from(["extract_roi", "finish_and_report"]))
def test_no_arguments_raise_anything_but_a_parse_error(arguments: Any, name: str) -> None:
    with contextlib.suppress(ParseError):
        call = call_of(name, arguments)
        assert isinstance(call, ExtractRoi | FinishAndReport)
        assert all(isinstance(number, float) for number in call.box)


@given(text=st.text(alphabet="abcdefghijklmnopqrstuvwxyz .,'", max_size=80))
def test_no_letter_in_a_word_is_an_answer(text: str) -> None:
    """Prose without the word yes or no, or without a number, holds no answer."""
    with pytest.raises(ParseError):
        tile_answer_of(text)
    for read in (candidates_of, judgement_of):
        with pytest.raises(ParseError):
            read(text)
    assert calls_in_text(text) == ()


@pytest.mark.parametrize(
    "text",
    ["{" * 100_000, '{"a":' * 30_000, "[" * 100_000, '{"tool": ' + "[" * 50_000, "<think>" * 20_000, "Yes" * 50_000],
)
def test_long_nonsense_is_quick(text: str) -> None:
    assert calls_in_text(text) == ()
    with pytest.raises(ParseError):
        candidates_of(text)
    with pytest.raises(ParseError):
        tile_answer_of(text)
