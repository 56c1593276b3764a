"""What replies say: tables of replies with the answer a reader would take from them, and properties of any text."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wsigym.scoring.answers import (
    INSUFFICIENT,
    Vocabulary,
    fold,
    is_insufficient,
    is_refusal,
    parse_bools,
    parse_boxes,
    parse_count,
    parse_json_object,
    parse_number,
    parse_option,
    parse_ranking,
    parse_terms,
    strip_reasoning,
)

TRIAGE = ["Non-neoplastic", "Benign", "Borderline, in situ or precursor", "Malignant"]
A, B, C, D = range(4)
TEN = [
    "Squamous cell carcinoma",
    "Squamous cell carcinoma in situ",
    "Adenocarcinoma",
    "B-cell lymphoma",
    "Melanoma",
    "Leiomyoma",
    "Schwannoma",
    "Helicobacter pylori gastritis",
    "Lipoma",
    "Granuloma",
]
FIELDS = ["Image 3", "Image 1", "Image 2"]
VOCABULARY = Vocabulary(
    ["tumour cell", "lymphocyte", "stroma", "necrosis", "gland"],
    {"TIL": "lymphocyte", "tumor cell": "tumour cell", "lymphoid cells": "lymphocyte", "fat": "adipocyte"},
)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        # A letter at the start: bare, bracketed, bold, with its text, in other forms of the letter.
        ("B", B),
        ("b", B),
        ("  B.\n", B),
        ("(B)", B),
        ("[B]", B),
        ("b)", B),
        ("**B**", B),
        ("**(B)** because of the border", B),
        ("**B. Benign**", B),
        ("`B`", B),
        ('"B"', B),
        ("B) Benign", B),
        ("B: Benign", B),
        ("B - Benign", B),
        ("B — the border is smooth", B),
        ("B. The border is smooth.", B),
        ("B, because the border is smooth", B),
        ("B Benign", B),
        ("B is correct", B),
        ("B because of the border", B),
        ("B\n\nThe border is smooth.", B),
        ("Option B", B),
        ("Option (B): Benign", B),
        ("# B", B),
        ("- B", B),
        ("A", A),
        ("a", A),
        ("\uff22", B),
        ("【B】", B),
        ("\uff08\uff22\uff09", B),
        ("B是正确的", B),
        # Letters that are no options.
        ("A lesion is seen.", None),
        ("a lesion", None),
        ("An answer", None),
        ("B-cells are seen", None),
        ("B cells are seen", None),
        ("B\u2013cells are seen", None),
        ("C-kit positive", None),
        ("D. melanogaster", None),
        ("Bland cells", None),
        ("AB", None),
        ("A B", None),
        ("E", None),
        ("Z", None),
        ("1", None),
        ("null", None),
        ("None", None),
        ("none of them", None),
        ("I think it is B", None),
        ("Б", None),
        # Denied, or not one.
        ("B is incorrect.", None),
        ("B is not supported.", None),
        ("Not B", None),
        ("A and B", None),
        ("A, B", None),
        ("A/B", None),
        ("A & B", None),
        ("B or C", None),
        ("(A) and (C)", None),
        ("A. Non-neoplastic and B. Benign", None),
        ("Both A and B", None),
        ("A\nB", None),
        ("A. Non-neoplastic\nB. Benign\nC. Borderline\nD. Malignant", None),
        ("B. Malignant", None),
        ("B\nThe answer is C", None),
        # Boxed.
        (r"so \boxed{B}", B),
        (r"$\boxed{\text{B}}$", B),
        (r"\boxed{\textbf{(B)}}", B),
        (r"\boxed{B. Benign}", B),
        (r"it must be \boxed{Malignant}.", D),
        (r"\boxed{B} and again \boxed{B}", B),
        (r"\boxed{A} or \boxed{B}", None),
        (r"\boxed{}", None),
        (r"\boxed{something else}", None),
        # A stated answer; the last statement counts, options weighed before don't.
        ("The answer is B.", B),
        ("the correct answer is: **B**", B),
        ("Final answer: (D)", D),
        ("**Answer:** D", D),
        ("**Answer: A**", A),
        ("Answer:\nB", B),
        ("Answer: a", A),
        ("The answer is A, as mitoses are absent", A),
        ("The answer is A because mitoses are absent", A),
        ("The best choice is option C", C),
        ("The correct option is D) Malignant", D),
        ("I would choose D", D),
        ("I'd go with (C).", C),
        ("C is the best answer.", C),
        ("At first the answer is A. On reflection C is the best answer.", C),
        ("Here C is the best answer. So the answer is D.", D),
        ("Subselection: B", None),
        ("First I thought that the answer is A. On reflection the answer is D.", D),
        ("It could be A. It could be B.\nFinal answer: C\nThis rests on the border.", C),
        ('{"answer": "B"}', B),
        ('{"answer": "Malignant", "confidence": 90}', D),
        ("答案\uff1aB", B),
        ("答案是B。", B),
        ("Ответ: B", B),
        ("Die Antwort ist B.", B),
        ("La respuesta es B", B),
        ("정답: B", B),
        ("answer: Malignant", D),
        ("Diagnosis: malignant", D),
        ("B, A biopsy would help", B),
        ("A or B? Final answer: B", B),
        ("A or B.\nFinal answer: B", B),
        ("A or B?", None),
        ("The answer is B or C", None),
        ("The answer is A lesion of the skin", None),
        ("Answer: a lesion", None),
        ("The answer is B-cell lymphoma", None),
        ("The answer is not B.", None),
        ("The answer is B. Malignant", None),
        ('{"answer": null}', None),
        ("Answer: none", None),
        # Tags, as reasoning models write them; the words of other languages.
        ("<answer>B</answer>", B),
        ("<think>The answer is A</think>\n<answer> B. Benign </answer>", B),
        ("<answer>Malignant</answer>", D),
        ("<answer>A</answer> or <answer>B and C</answer>", None),
        ("<answer></answer>", None),
        ("La respuesta correcta es B", B),
        ("La bonne réponse est la B", B),
        ("La réponse correcte est B.", B),
        ("A resposta correta é B", B),
        ("Die richtige Antwort lautet: B", B),
        ("答えはBです", B),
        ("选B", B),
        ("我选 B。", B),
        ("不选B", None),
        ("选项B不对", None),
        # Signs that no one sees.
        ("B\u200b", B),
        ("\ufeffB", B),
        ("\u202eB", B),
        ("Mali\u00adgnant", D),
        ("Differential diagnosis: something else", None),
        # A last line that is an option; a list of the options first is no answer.
        ("We weigh A and B.\nMitoses abound.\n\nD", D),
        ("Mitoses abound.\n**D. Malignant**", D),
        ("Mitoses abound.\nMalignant", D),
        ("A. Non-neoplastic: no\nB. Benign: yes\n\nAnswer: B", B),
        ("A. Non-neoplastic: no\nB. Benign: yes\n\nB", B),
        # The text of one option.
        ("Benign", B),
        ("benign.", B),
        ("**Benign**", B),
        ("Borderline, in situ or precursor", C),
        ("BORDERLINE,  IN SITU OR PRECURSOR", C),
        ("Non neoplastic", A),
        ("Benign, as the border is smooth", B),
        ("This lesion is malignant.", D),
        ("This is malignant, not benign.", D),
        ("Not benign but malignant.", D),
        ("malignant rather than benign", D),
        ("Malignant.\n\nMitoses abound.", D),
        ("This is not malignant.", None),
        ("It isn't malignant", None),
        ("Malignant is unlikely", None),
        ("A malignant tumour is unlikely here.", None),
        ("no evidence that it is malignant", None),
        ("Benign or malignant", None),
        ("malignantly", None),
        ("I cannot tell whether it is malignant", None),
        # Reasoning is dropped.
        ("<think>The answer is A</think>B", B),
        ("<think>A</think>\n\n<think>C</think>B", B),
        ("The answer is A</think>\nC", C),
        ("<THINK>A</THINK>C", C),
        ("<think>the answer is B", None),
        ("<think>the answer is B</think>", None),
        # Nothing.
        ("", None),
        (" \n\t ", None),
        ("...", None),
        ("****", None),
    ],
)
def test_one_option_of_four(reply: str, answer: int | None) -> None:
    assert parse_option(reply, TRIAGE) == answer


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("B-cell lymphoma", 3),
        ("B cell lymphoma", 3),
        ("This is a B-cell lymphoma.", 3),
        ("H. pylori gastritis", None),
        ("H. Helicobacter pylori gastritis", 7),
        ("H&E shows a lesion", None),
        ("H&E stain shows melanoma", 4),
        ("H and E stain", None),
        ("For this H&E is the best stain", None),
        ("C, I think", 2),
        ("E. coli", None),
        ("I think melanoma", 4),
        ("I", 8),
        ("I.", 8),
        ("(I)", 8),
        ("I. Lipoma", 8),
        ("I choose I", 8),
        ("I'm unable", None),
        ("I\u2019m unable", None),
        ("I, as an AI, cannot", None),
        ("I cannot say", None),
        ("J. Granuloma", 9),
        ("K", None),
        ("Squamous cell carcinoma", 0),
        ("Squamous cell carcinoma in situ", 1),
        ("The answer is squamous cell carcinoma in situ, clearly", 1),
        ("This is squamous cell carcinoma.", 0),
        ("C: Adenocarcinoma. B-cell lymphoma is less likely", 2),
        ("Schwannoma\n\nSpindle cells, unlike leiomyoma.", 6),
        ("Melanoma (E)", 4),
        ("Schwannoma vs leiomyoma", None),
        ("Differential diagnosis: melanoma, lipoma", None),
    ],
)
def test_one_option_of_ten(reply: str, answer: int | None) -> None:
    assert parse_option(reply, TEN) == answer


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Image 3", 0),
        ("The finding is in image 2.", 2),
        ("Figure #1 shows it best", 1),
        ("I see it in image 2. Only image 2 has it.", 2),
        ("B", 1),
        ("Image 1 shows fat. The answer is Image 3.", 0),
        ("Image 1 and Image 2", None),
        ("Image 9", None),
        ("Image 12", None),
        ("2", None),
        ("", None),
    ],
)
def test_one_image_as_option(reply: str, answer: int | None) -> None:
    assert parse_option(reply, FIELDS, images=True) == answer


def test_an_image_is_an_option_only_where_images_are_asked_for() -> None:
    reply = "Fig. 2 is typical; see figure 2, all over."
    assert parse_option(reply, ["Image 1", "Image 2"], images=True) == 1
    assert parse_option(reply, ["Image 1", "Image 2"]) is None


def test_options_that_differ_in_signs_only() -> None:
    options = ["ER+", "ER-", "<5 %", ">5 %"]
    assert [parse_option(option, options) for option in options] == [0, 1, 2, 3]
    assert parse_option("5 %", options) is None


def test_options_with_the_same_text_are_told_apart_by_their_letters_only() -> None:
    assert parse_option("B", ["same", "same"]) == 1
    assert parse_option("same", ["same", "same"]) is None


def test_short_options_are_not_found_within_sentences() -> None:
    options = ["Yes", "No"]
    assert [parse_option(reply, options) for reply in ("Yes", "no.", "Yes, it is.", "There is no necrosis.")] == [
        0,
        1,
        0,
        None,
    ]


def test_the_article_before_the_text_of_option_a() -> None:
    options = ["Benign", "Malignant"]
    assert parse_option("A benign lesion is unlikely.", options) is None
    assert parse_option("A Benign", options) == 0
    assert parse_option("A (benign)", options) == 0


def test_no_options_no_answer() -> None:
    assert parse_option("A", []) is None


@given(st.integers(0, 9), st.sampled_from(["{}", "({})", "**{}**", "{}.", "Answer: {}", "so\n\n{}", r"\boxed{{{}}}"]))
def test_every_letter_in_every_form(index: int, form: str) -> None:
    assert parse_option(form.format(chr(ord("A") + index)), TEN) == index


@given(st.integers(0, 9), st.sampled_from(["{}", "**{}**", "The answer is {}.", "Reasons.\n\n{}"]))
def test_every_text_in_every_form(index: int, form: str) -> None:
    assert parse_option(form.format(TEN[index]), TEN) == index


@given(st.integers(0, 9), st.integers(0, 9))
def test_a_letter_with_the_text_of_another_option_is_none(letter: int, text: int) -> None:
    reply = f"{chr(ord('A') + letter)}. {TEN[text]}"
    assert parse_option(reply, TEN) == (letter if letter == text else None)


PARSERS: list[Callable[[str], object]] = [
    lambda text: parse_option(text, TEN),
    lambda text: parse_option(text, FIELDS, images=True),
    parse_boxes,
    parse_number,
    parse_count,
    parse_json_object,
    lambda text: parse_bools(text, 4),
    lambda text: parse_ranking(text, TEN),
    lambda text: parse_terms(text, VOCABULARY),
]
TESTS: list[Callable[[str], bool]] = [is_refusal, is_insufficient, lambda text: is_insufficient(text, TEN)]

FRAGMENTS = st.sampled_from(
    [
        *(
            "A",
            "B.",
            "(C)",
            "answer",
            ":",
            " is ",
            "**",
            "\n",
            "[",
            "]",
            "{",
            "}",
            '"',
            ",",
            "1",
            "true",
            "null",
            "<think>",
        ),
        *(
            "</think>",
            r"\boxed{",
            "Image 2",
            "Melanoma",
            "not",
            "no ",
            "\x00",
            "ﷺ",
            "\ud800",
            "答案",
            "٣",
            "²",
            "-",
            "1e9",
        ),
    ]
)


@given(st.one_of(st.text(max_size=200), st.lists(FRAGMENTS, max_size=30).map("".join)))
@example("\ud800")
@example("\x003\x00")
@example("\x0099\x00")
def test_no_text_raises(text: str) -> None:
    for parse in PARSERS + TESTS:
        parse(text)
    index = parse_option(text, TEN)
    assert index is None or 0 <= index < len(TEN)


@given(st.text(alphabet=" \t\r\n\u00a0\u2003\u200b\ufeff\u2060*_`", max_size=30))
def test_what_is_empty_is_no_answer(text: str) -> None:
    for reply in (text, f"<think>The answer is A [1,2,3,4] true 7 stroma</think>{text}"):
        assert [parse(reply) for parse in PARSERS] == [None] * len(PARSERS)
        assert not any(test(reply) for test in TESTS)


LONG = [
    *(
        "A",
        "answer: ",
        "answer is *",
        r"\boxed{",
        "<think>",
        "{",
        '{"a":',
        "Melanoma ",
        "B, ",
        " ",
        "A.\n",
        "[1,2,3,4",
        "1,",
    ),
    *("ﷺ", "Image 1 ", "answer: B and ", "no stroma ", "答案"),
]


@pytest.mark.parametrize("parse", PARSERS + TESTS)
def test_a_hundred_kilobytes_take_linear_time(parse: Callable[[str], object]) -> None:
    for piece in LONG:
        began = time.process_time()
        parse((piece * 100_000)[:100_000])
        # A second or two at worst, for signs that stand for eighteen letters each; anything quadratic takes minutes.
        assert time.process_time() - began < 5, piece


def test_a_long_answer_ends_with_its_option() -> None:
    assert parse_option("We consider A and melanoma. " * 4000 + "\nFinal answer: E", TEN) == 4


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("a<think>b</think>c", "ac"),
        ("a<thinking>b</thinking>c", "ac"),
        ("a</think>c", "c"),
        ("a<think>b", "a"),
        ("a<think>b<think>c</think>d", "ad"),
        ("I think so", "I think so"),
        ("a < think", "a < think"),
    ],
)
def test_reasoning(text: str, rest: str) -> None:
    assert strip_reasoning(text) == rest


def test_what_texts_are_compared_by() -> None:
    assert fold(" **Well-differentiated** “Tumour”. ") == "well differentiated tumour"
    assert fold("Straße") == fold("STRASSE")
    assert fold("ER+") != fold("ER-")


@pytest.mark.parametrize(
    ("reply", "boxes"),
    [
        ("[10, 20, 30, 40]", ((10, 20, 30, 40),)),
        ("[[10,20,30,40],[50,60,70,80]]", ((10, 20, 30, 40), (50, 60, 70, 80))),
        ('```json\n[{"bbox_2d": [10, 20, 30, 40], "label": "gland"}]\n```', ((10, 20, 30, 40),)),
        ("<box>(10,20),(30,40)</box>", ((10, 20, 30, 40),)),
        ("(10, 20, 30, 40)", ((10, 20, 30, 40),)),
        ("[30, 40, 10, 20]", ((10, 20, 30, 40),)),
        ("[-5, 20, 1200, 40]", ((0, 20, 1000, 40),)),
        ("[10.4, 20.6, 30, 40]", ((10, 21, 30, 40),)),
        ("[10, 20, 10, 40]", ()),
        ("[1100, 20, 1200, 40]", ()),
        ("[]", ()),
        ("no boxes: [[]]", ()),
        ("I first saw [1,1,2,2]. Answer: [10, 20, 30, 40]", ((10, 20, 30, 40),)),
        ("Answer: see above, [10, 20, 30, 40]", ((10, 20, 30, 40),)),
        ("[10, 20, 30, 40] is my answer: sure", ((10, 20, 30, 40),)),
        ("[10, 20, 30]", None),
        ("[1, 2, 3, 4, 5]", None),
        ("[NaN, 20, 30, 40]", None),
        ("[1e9, 20, 30, 40]", None),
        ("[" + "9" * 5000 + ", 20, 30, 40]", None),
        ("10 20 30 40", None),
        ("none", None),
        ("<think>[10, 20, 30, 40]</think>", None),
    ],
)
def test_boxes(reply: str, boxes: tuple[tuple[int, int, int, int], ...] | None) -> None:
    assert parse_boxes(reply) == boxes


@given(st.lists(st.tuples(*[st.integers(-100, 1100)] * 4), max_size=6))
def test_boxes_are_on_the_grid_and_have_an_area(boxes: list[tuple[int, int, int, int]]) -> None:
    parsed = parse_boxes(json.dumps(boxes))
    assert parsed is not None
    assert len(parsed) <= len(boxes)
    for x1, y1, x2, y2 in parsed:
        assert 0 <= x1 < x2 <= 1000
        assert 0 <= y1 < y2 <= 1000


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        ("12", 12),
        ("12 nuclei", 12),
        ("There are 12 nuclei.", 12),
        ("**12**", 12),
        ("Twelve", 12),
        ("zero", 0),
        ("1,234", 1234),
        ("about ~12", 12),
        ("12.0", 12),
        ("2.5", 2.5),
        ("-3", -3),
        ("\uff11\uff12", 12),
        ("١٢", 12),
        ("I count 5 here and 7 there.\nThe total count is 12.", 12),
        ("5 + 7, answer: 12", 12),
        ("answer: 12. Of 20 fields.", 12),
        (r"\boxed{12}", 12),
        ("5 here\n7 there\n12", 12),
        ('{"count": 12}', 12),
        ("12, yes 12", 12),
        ("10-15", None),
        ("10 to 15", None),
        ("between 10 and 15", None),
        ("answer: 10 or 11", None),
        ("CD34", None),
        ("many", None),
        ("null", None),
        ("one cannot count", None),
        ("1.2.3", None),
        ("9" * 400, None),
        ("<think>12</think>", None),
    ],
)
def test_numbers(reply: str, number: float | None) -> None:
    assert parse_number(reply) == number


def test_counts_are_whole_and_not_negative() -> None:
    assert [parse_count(reply) for reply in ("12", "12.0", "0", "2.5", "-3", "")] == [12, 12, 0, None, None, None]


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": {"b": [1]}}\n```', {"a": {"b": [1]}}),
        ('First {"a": 1}, then {"a": 2}.', {"a": 2}),
        ('{"a": "}"}', {"a": "}"}),
        (r'{"a": "\"}"}', {"a": '"}'}),
        ('{ {"a": 1}', {"a": 1}),
        ('5" wide {"a": 1}', {"a": 1}),
        ('{"a": 1} {broken}', {"a": 1}),
        ('<think>{"a": 1}</think>', None),
        ('{"a": NaN}', None),
        ('{"a": ', None),
        ("[1]", None),
        ("{}", {}),
    ],
)
def test_json_objects(reply: str, value: object) -> None:
    assert parse_json_object(reply) == value


@given(st.dictionaries(st.text(), st.one_of(st.none(), st.booleans(), st.text(), st.lists(st.integers()))))
def test_any_json_object_is_read_back(value: dict[str, object]) -> None:
    assert parse_json_object(f"Here it is:\n```json\n{json.dumps(value)}\n```") in (
        value,
        None if "think" in str(value) else value,
    )


@pytest.mark.parametrize(
    ("reply", "values"),
    [
        ('{"answers": [true, false, false, true]}', (True, False, False, True)),
        ('```json\n{"answers": ["True", "false", false, true]}\n```', (True, False, False, True)),
        ("{'answers': [True, False, False, True]}", (True, False, False, True)),
        ("1. True\n2. False\n3. False\n4. True", (True, False, False, True)),
        ("true, false, false, true", (True, False, False, True)),
        ('{"answers": [true, false, false]}', None),
        ('{"answers": [true, false, false, null]}', None),
        ('{"answers": [1, 0, 0, 1]}', None),
        ('{"answers": [true, false, false, true, true]}', None),
        ('{"answers": null}', None),
        ("true, false, null, true", None),
        ("true false true", None),
        ("untrue false true false", None),
        ("", None),
    ],
)
def test_truth_values(reply: str, values: tuple[bool, ...] | None) -> None:
    assert parse_bools(reply, 4) == values


@pytest.mark.parametrize(
    ("reply", "ranking"),
    [
        ("B > A > D > C", (B, A, D, C)),
        ("B, A, D, C", (B, A, D, C)),
        ('["B", "A", "D", "C"]', (B, A, D, C)),
        ('{"ranking": ["B", "A", "D", "C"]}', (B, A, D, C)),
        ("1. B\n2. A\n3. D\n4. C", (B, A, D, C)),
        ("1. Benign\n2. Malignant", (B, D)),
        ("Malignant > Benign", (D, B)),
        ("My ranking is: D > B", (D, B)),
        ("D", (D,)),
        ("B > B", None),
        ("B > E", None),
        ("B because of A", None),
        ("", None),
    ],
)
def test_rankings(reply: str, ranking: tuple[int, ...] | None) -> None:
    assert parse_ranking(reply, TRIAGE) == ranking


@given(st.permutations(range(10)), st.sampled_from([" > ", ", ", "\n", "; "]))
def test_any_order_is_read_back(order: list[int], separator: str) -> None:
    assert parse_ranking(separator.join(chr(ord("A") + index) for index in order), TEN) == tuple(order)
    assert parse_ranking(separator.join(TEN[index] for index in order), TEN) == tuple(order)


@pytest.mark.parametrize(
    ("reply", "terms"),
    [
        ("stroma", ("stroma",)),
        ('["Stroma", "Lymphocytes"]', ("stroma", "lymphocyte")),
        ("tumor cells, TILs and necrosis", ("tumour cell", "lymphocyte", "necrosis")),
        ("- glands\n- stroma\n- glands", ("gland", "stroma")),
        ("tumour-cells", ("tumour cell",)),
        ("stroma without necrosis", ("stroma",)),
        ("no necrosis, stroma", ("stroma",)),
        ("No necrosis", None),
        ("adipocytes and fat", ("adipocyte",)),
        ("stromal", None),
        ("null", None),
        ("", None),
        ("<think>stroma</think>", None),
    ],
)
def test_terms(reply: str, terms: tuple[str, ...] | None) -> None:
    assert parse_terms(reply, VOCABULARY) == terms


def test_the_longest_spelling_counts() -> None:
    vocabulary = Vocabulary(["carcinoma", "squamous cell carcinoma"])
    assert parse_terms("squamous cell carcinoma", vocabulary) == ("squamous cell carcinoma",)
    assert vocabulary.standard("Squamous-cell carcinomas") == "squamous cell carcinoma"
    assert vocabulary.standard("sarcoma") is None


@pytest.mark.parametrize(
    ("reply", "refused"),
    [
        ("I'm sorry, but I can't assist with that.", True),
        ("I\u2019m unable to view images.", True),
        ("As an AI, I do not diagnose.", True),
        ("Please consult a pathologist.", True),
        ("B", False),
        ("", False),
        ("<think>I cannot</think>B", False),
        ("Malignancy cannot be excluded", False),
    ],
)
def test_refusals(reply: str, refused: bool) -> None:
    assert is_refusal(reply) == refused


@pytest.mark.parametrize(
    ("reply", "insufficient"),
    [
        ("Insufficient information", True),
        ("C", True),
        ("C. Insufficient information", True),
        ("It cannot be determined from this view.", True),
        ("There is not enough information.", True),
        ("Lung", False),
        ("A, although it cannot be determined for sure", False),
        ("", False),
    ],
)
def test_insufficiency(reply: str, insufficient: bool) -> None:
    assert is_insufficient(reply, ["Lung", "Liver", INSUFFICIENT]) == insufficient
