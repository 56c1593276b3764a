"""Every kind of answer: the reference scores 1, a wrong answer 0, and what is unanswered is neither."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsigym.errors import InvalidArgumentError, UnknownNameError
from wsigym.scoring.answers import Vocabulary
from wsigym.scoring.items import ItemScore, parse_answer, score_item, score_parsed

OPTIONS = ("Benign", "Malignant", "Insufficient information")
VOCABULARY = Vocabulary(["stroma", "necrosis", "gland"], {"TIL": "lymphocyte"})
RIGHT: list[tuple[str, str, Any]] = [
    ("option", "B", 1),
    ("option", "malignant", 1),
    ("boxes", "[[0, 0, 10, 10], [20, 20, 30, 30]]", [[0, 0, 10, 10], [20, 20, 30, 30]]),
    ("number", "12 nuclei", 12),
    ("number", "12.0", 12),
    ("terms", "stroma, TILs", ["stroma", "lymphocyte"]),
    ("json", '{"answers": [true, false, true, false]}', {"answers": [True, False, True, False]}),
    ("json", '{"diagnosis": "Basal-cell carcinoma", "confidence": 80}', {"diagnosis": "basal cell carcinoma"}),
    ("ranking", "B > A > C", [1, 0, 2]),
    ("text", "<think>hm</think> **Melanoma.**", "melanoma"),
]
WRONG: list[tuple[str, str, Any]] = [
    ("option", "A", 1),
    ("boxes", "[[500, 500, 600, 600]]", [[0, 0, 10, 10]]),
    ("boxes", "[]", [[0, 0, 10, 10]]),
    ("number", "13", 12),
    ("terms", "gland", ["stroma"]),
    ("json", '{"answers": [false, true]}', {"answers": [True, False]}),
    ("json", '{"diagnosis": null}', {"diagnosis": "melanoma"}),
    ("json", '{"diagnosis": ""}', {"diagnosis": "melanoma"}),
    ("json", '{"count": true}', {"count": 1}),
    ("ranking", "A, C", [1, 0, 2]),
    ("text", "Naevus", "melanoma"),
]


def score(kind: str, answer: str, reference: Any, **more: Any) -> ItemScore:
    return score_item(kind, answer, reference, options=OPTIONS, vocabulary=VOCABULARY, **more)


@pytest.mark.parametrize(("kind", "answer", "reference"), RIGHT)
def test_the_reference_scores_one(kind: str, answer: str, reference: Any) -> None:
    result = score(kind, answer, reference)
    assert (result.value, result.outcome) == (1, "scored")
    assert json.loads(json.dumps(result.answer)) == result.answer
    assert score_parsed(kind, result.answer, reference) == 1


@pytest.mark.parametrize(("kind", "answer", "reference"), WRONG)
def test_a_wrong_answer_scores_zero_and_is_scored(kind: str, answer: str, reference: Any) -> None:
    result = score(kind, answer, reference)
    assert (result.value, result.outcome) == (0, "scored")
    assert result.answer is not None


@pytest.mark.parametrize(("kind", "reference"), [(kind, reference) for kind, _, reference in RIGHT])
@pytest.mark.parametrize("answer", ["", "  \n", "<think>B [1,1,2,2] 12 stroma {}</think>", "**"])
def test_an_empty_answer_is_unparsed(kind: str, reference: Any, answer: str) -> None:
    result = score(kind, answer, reference)
    assert result == ItemScore(0, None, f"no {kind} in the answer", "unparsed")


@pytest.mark.parametrize("kind", ["option", "boxes", "number", "terms", "json", "ranking"])
def test_refusals_are_not_merely_unparsed(kind: str) -> None:
    reference = {name: reference for name, _, reference in RIGHT}[kind]
    assert score(kind, "I'm sorry, I cannot help with this.", reference).outcome == "refused"
    assert score(kind, "Nothing to say.", reference).outcome == "unparsed"


def test_a_refusal_as_text_is_one_unless_it_is_the_answer() -> None:
    reply = "I'm sorry, I can't help with that."
    assert score_item("text", reply, "sheets").outcome == "refused"
    assert score_item("text", reply, reply).value == 1
    assert score_item("text", "cords", "sheets").outcome == "scored"


def test_words_for_insufficient_evidence_are_the_option_that_says_so() -> None:
    assert score("option", "It cannot be determined from this view.", 2).value == 1
    assert score_item("option", "It cannot be determined.", 0, options=("Benign", "Malignant")).outcome == "refused"
    assert score("boxes", "There is insufficient information.", [[0, 0, 1, 1]]).outcome == "refused"


def test_partial_values() -> None:
    assert score("json", '{"answers": [true, true, true, true]}', {"answers": [True, False, True, False]}).value == 0.5
    assert score("json", '{"a": 1}', {"a": 1, "b": "x"}).value == 0.5
    assert score("json", '{"a": [1, 2, 3]}', {"a": [1, 2], "b": 1}).value == 0
    assert score("terms", "stroma", ["stroma", "gland"]).value == 0.5
    assert score("ranking", "A, C, B", [1, 0, 2]).value == pytest.approx(1 / 3)
    assert score("boxes", "[[5, 0, 15, 10]]", [[0, 0, 10, 10]]).value == 0.5


def test_other_right_answers() -> None:
    name = {"diagnosis": "Melanoma"}
    assert score("json", '{"diagnosis": "MM"}', name).value == 0
    assert score("json", '{"diagnosis": "MM"}', name, accepted=[{"diagnosis": "MM"}]).value == 1
    assert score("json", '{"diagnosis": "Naevus"}', name, half=[{"diagnosis": "Naevus"}]).value == 0.5
    assert score("json", '{"diagnosis": "Melanoma"}', name, half=[{"diagnosis": "Naevus"}]).value == 1


def test_nothing_is_not_even_the_answer_nothing() -> None:
    assert score_parsed("json", {"a": "", "b": None}, {"a": "", "b": None}) == 0


def test_truth_values_out_of_order_or_number_are_no_answer() -> None:
    assert score("json", '{"answers": [true]}', {"answers": [True, False]}).outcome == "unparsed"
    assert parse_answer("json", "true, false", {"answers": [True, False]}) == {"answers": [True, False]}


def test_bad_calls() -> None:
    with pytest.raises(UnknownNameError, match="option"):
        score("opion", "A", 0)
    with pytest.raises(InvalidArgumentError, match="vocabulary"):
        score_item("terms", "stroma", ["stroma"])


@given(st.sampled_from(RIGHT), st.text(max_size=100))
def test_any_reply_has_a_value(case: tuple[str, str, Any], reply: str) -> None:
    kind, _, reference = case
    result = score(kind, reply, reference)
    assert 0 <= result.value <= 1
    assert (result.outcome == "scored") == (result.answer is not None)
    assert result.outcome == "scored" or result.value == 0
