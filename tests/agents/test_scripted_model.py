"""The scripted model as a function of the request: what it reads, what it calls, what it answers."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from wsigym.agents.client import STOP_THINKING
from wsigym.agents.messages import item_text
from wsigym.agents.prompting import prompt
from wsigym.agents.scripted_chat import json_objects
from wsigym.agents.scripted_model import Reply, next_message
from wsigym.agents.tools import TOOLS, must_call, tools_as_text
from wsigym.cohorts.builders.casescope.tasks import DIAGNOSE, JUDGE
from wsigym.cohorts.builders.pathview.questions import BOXES, COUNT, TERMS
from wsigym.errors import InvalidArgumentError
from wsigym.scoring.answers import Vocabulary
from wsigym.scoring.items import parse_answer

PINK, NUCLEAR = (235, 170, 200), (80, 50, 130)
SEARCH_BOX = (1000, 2000, 4000, 4000)
TARGET = (3000, 3500, 900, 900)
"""The one dense block of the slide, level-0 pixels."""

RANGES = {"level0": (1000, 2000, 5000, 6000), "unit": (0, 0, 1, 1), "permille": (0, 0, 1000, 1000)}
RANGES["view_px"] = (0, 0, 200, 200)


def shown(x: float, y: float, w: float, h: float, px: int) -> str:
    """The data URL of a part of the slide at `px` pixels a side."""
    xs, ys = x + (np.arange(px) + 0.5) * w / px, y + (np.arange(px) + 0.5) * h / px
    inside_x = (xs >= TARGET[0]) & (xs < TARGET[0] + TARGET[2])
    inside_y = (ys >= TARGET[1]) & (ys < TARGET[1] + TARGET[3])
    pixels = np.full((px, px, 3), PINK, np.uint8)
    pixels[np.ix_(inside_y, inside_x)] = NUCLEAR
    return url_of(pixels)


def url_of(pixels: npt.NDArray[np.uint8]) -> str:
    encoded = io.BytesIO()
    Image.fromarray(pixels).save(encoded, "PNG")
    return "data:image/png;base64," + base64.b64encode(encoded.getvalue()).decode()


def plain(colour: tuple[int, int, int], px: int = 64) -> str:
    return url_of(np.full((px, px, 3), colour, np.uint8))


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def facts(convention: str = "level0", rois_left: int = 4) -> dict[str, Any]:
    edges = dict(zip(("x_min", "y_min", "x_max", "y_max"), RANGES[convention], strict=True))
    return {
        "slide_size": [9000, 9000],
        "mpp": 0.25,
        "search_box": list(SEARCH_BOX),
        "target": "a dense nest",
        "magnification": 10,
        "rois_left": rois_left,
        "coordinates": {"convention": convention, **edges, "meaning": "x, y, w, h"},
    }


def to_level0(box: list[float], convention: str) -> tuple[float, ...]:
    x_min, y_min, x_max, y_max = RANGES[convention]
    across, down = SEARCH_BOX[2] / (x_max - x_min), SEARCH_BOX[3] / (y_max - y_min)
    x, y, w, h = box
    return SEARCH_BOX[0] + (x - x_min) * across, SEARCH_BOX[1] + (y - y_min) * down, w * across, h * down


class Play:
    """An episode with the scripted model: answers its calls as the localizer does, until it finishes."""

    def __init__(self, convention: str, *, tools: bool = True, keep: int = 99, budget: int = 4) -> None:
        self.convention, self.tools, self.keep, self.budget = convention, tools, keep, budget
        system = "You have tools.\n" + ("" if tools else tools_as_text())
        self.messages: list[dict[str, Any]] = [
            {"role": "system", "content": system},
            {"role": "user", "content": "Find a dense nest."},
        ]
        self.looks: list[list[float]] = []

    def request(self) -> dict[str, Any]:
        messages = [dict(message) for message in self.messages]
        with_looks = [each for each in messages if isinstance(each["content"], list)][1:]
        for each in with_looks[: max(0, len(with_looks) - self.keep)]:
            each["content"] = [text("[no longer shown]") if "image_url" in part else part for part in each["content"]]
        return {"messages": messages, **({"tools": list(TOOLS)} if self.tools else {})}

    def calls(self) -> Iterator[tuple[str, dict[str, Any]]]:
        while True:
            reply = next_message(self.request())
            if self.tools:
                assert reply.call is not None
                name, arguments = reply.call
            else:
                assert reply.data is not None
                name, arguments = reply.data["tool"], reply.data["arguments"]
            yield name, arguments
            if name == "finish_and_report":
                return
            self._answer(name, arguments)

    def _answer(self, name: str, arguments: dict[str, Any]) -> None:
        if name == "get_image_info":
            result, url = facts(self.convention, self.budget - len(self.looks)), shown(*SEARCH_BOX, 200)
        else:
            box = [arguments[key] for key in "xywh"]
            self.looks.append(box)
            result = {"roi": box, "magnification": 8.0, "rois_left": self.budget - len(self.looks)}
            url = shown(*to_level0(box, self.convention), 220)
        if self.tools:
            call = {"id": "c", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            self.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            self.messages.append({"role": "tool", "tool_call_id": "c", "content": json.dumps(result)})
            self.messages.append({"role": "user", "content": [text("The image:"), image(url)]})
        else:
            said = json.dumps({"tool": name, "arguments": arguments})
            self.messages.append({"role": "assistant", "content": said})
            told = [text(f"{name} result:\n{json.dumps(result)}"), image(url)]
            self.messages.append({"role": "user", "content": told})


@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize("convention", RANGES)
def test_it_finds_the_dense_block_in_every_convention(convention: str, tools: bool) -> None:
    calls = list(Play(convention, tools=tools).calls())
    names = [name for name, _ in calls]
    assert names[0] == "get_image_info"
    assert names[-1] == "finish_and_report"
    assert set(names[1:-1]) == {"extract_roi"}
    x, y, w, h = to_level0(calls[-1][1]["bbox"], convention)
    assert x + w / 2 == pytest.approx(TARGET[0] + TARGET[2] / 2, abs=70)
    assert y + h / 2 == pytest.approx(TARGET[1] + TARGET[3] / 2, abs=70)
    assert 0 < calls[-1][1]["confidence"] <= 1


def test_boxes_are_written_in_numbers_that_the_convention_has() -> None:
    for convention, whole in (("level0", True), ("permille", True), ("unit", False)):
        _, call = list(Play(convention).calls())[1]
        assert all(isinstance(call[key], int) == whole for key in "xywh")


def test_what_it_saw_stays_in_its_reasons_when_old_images_are_dropped() -> None:
    def with_decoy(keep: int) -> tuple[str, dict[str, Any]]:
        return list(Play("level0", keep=keep).calls())[-1]

    assert with_decoy(1) == with_decoy(99)
    everything = list(Play("level0", keep=0).calls())
    assert everything[-1][0] == "finish_and_report"


def test_old_looks_count_by_their_reasons_alone() -> None:
    """The look that a reason calls dense is the answer, though its image is gone and the overview is empty."""
    dense = {
        "x": 1,
        "y": 2,
        "w": 3,
        "h": 4,
        "reason": "The last look: nuclear density 0.9000 in [4000, 5000, 500, 500].",
    }
    call = {"id": "c", "type": "function", "function": {"name": "extract_roi", "arguments": json.dumps(dense)}}
    messages = [
        {"role": "user", "content": [text(json.dumps(facts(rois_left=0))), image(plain(PINK))]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": json.dumps({"roi": [3900, 4900, 700, 700], "rois_left": 0})},
    ]
    reply = next_message({"messages": messages, "tools": list(TOOLS)})
    assert reply.call is not None
    assert reply.call[0] == "finish_and_report"
    assert reply.call[1]["bbox"] == [4000, 5000, 500, 500]


def after_a_look(rois_left: int) -> tuple[str, dict[str, Any]]:
    """What it calls after a look that was dense all over, where the overview was pale."""
    call = {"id": "c", "type": "function", "function": {"name": "extract_roi", "arguments": "{}"}}
    told = json.dumps({"roi": [2000, 3000, 1000, 1000], "rois_left": rois_left})
    messages = [
        {"role": "user", "content": [text(json.dumps(facts())), image(plain(PINK))]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": told},
        {"role": "user", "content": [text("The look:"), image(plain(NUCLEAR))]},
    ]
    reply = next_message({"messages": messages, "tools": list(TOOLS)})
    assert reply.call is not None
    return reply.call


def test_a_look_counts_by_its_image_and_is_noted() -> None:
    name, arguments = after_a_look(3)
    assert name == "extract_roi"
    assert "The last look: nuclear density 1.0000 in [2000, 3000, " in arguments["reason"]


def test_told_that_the_budget_is_spent_it_finishes() -> None:
    name, arguments = after_a_look(0)
    assert name == "finish_and_report"
    x, y, w, h = arguments["bbox"]
    assert x >= 2000
    assert x + w <= 3000
    assert y >= 3000
    assert y + h <= 4000


def test_json_is_found_wherever_it_stands() -> None:
    assert list(json_objects('{bad {"a": 1} and {"b": {"c": 2}} {')) == [{"a": 1}, {"b": {"c": 2}}]
    assert list(json_objects("{" * 5000)) == []


def test_it_spends_no_more_than_it_has() -> None:
    play = Play("unit", budget=1)
    assert [name for name, _ in play.calls()] == ["get_image_info", "extract_roi", "finish_and_report"]
    assert [name for name, _ in Play("unit", budget=0).calls()] == ["get_image_info", "finish_and_report"]


def test_made_to_finish_it_finishes() -> None:
    play = Play("unit")
    request = {**play.request(), "tool_choice": must_call("finish_and_report")}
    reply = next_message(request)
    assert reply.call is not None
    assert reply.call[0] == "finish_and_report"


def test_it_is_a_function_of_the_request() -> None:
    play = Play("unit")
    for _ in zip(play.calls(), range(3), strict=False):
        request = play.request()
        assert next_message(request) == next_message(json.loads(json.dumps(request)))


# -- the other requests ---------------------------------------------------------------------------------------------


def asked(kind: str, told: dict[str, Any], *urls: str, **more: Any) -> Reply:
    words = f"Request: {kind}\n```json\n{json.dumps(told)}\n```"
    content = [text(words), *(image(url) for url in urls)]
    return next_message(
        {"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": content}], **more}
    )


def test_candidates_are_ranked_and_avoid_what_was_judged() -> None:
    told = {**facts("permille"), "candidates_wanted": 3, "judged": []}
    first = asked("propose", told, shown(*SEARCH_BOX, 200)).data
    assert first is not None
    assert len(first["candidates"]) == 3
    confidences = [each["confidence"] for each in first["candidates"]]
    assert confidences == sorted(confidences, reverse=True)
    x, y, w, h = to_level0(first["candidates"][0]["bbox"], "permille")
    assert x < TARGET[0] + TARGET[2] / 2 < x + w
    assert y < TARGET[1] + TARGET[3] / 2 < y + h
    judged = [{"bbox": first["candidates"][0]["bbox"], "verdict": "conflicts"}]
    again = asked("propose", {**told, "judged": judged}, shown(*SEARCH_BOX, 200)).data
    assert again is not None
    assert first["candidates"][0] not in again["candidates"]


def test_a_look_is_judged_by_its_nuclei() -> None:
    told = {"target": "a nest", "magnification": 10, "coordinates": facts("permille")["coordinates"]}
    dense, pale, glass = (asked("judge", told, plain(c)).data for c in (NUCLEAR, PINK, (245, 245, 245)))
    assert dense is not None
    assert pale is not None
    assert glass is not None
    assert (dense["verdict"], pale["verdict"], glass["verdict"]) == ("supports", "conflicts", "uninformative")
    assert len(dense["bbox"]) == 4
    assert pale["bbox"] is None
    assert all(0 <= each["confidence"] <= 1 for each in (dense, pale, glass))


def test_tiles_are_scored_by_their_nuclei() -> None:
    told = {"target": "tumour", "magnification": 10}
    yes, no = (asked("score tile", told, plain(colour)) for colour in (NUCLEAR, PINK))
    assert yes.text.startswith("Yes 0.")
    assert no.text.startswith("No 0.")
    with_logprobs = asked("score tile", told, plain(NUCLEAR), logprobs=True)
    assert with_logprobs.text == "Yes"
    assert with_logprobs.yes is not None
    assert with_logprobs.yes > 0.5
    page = asked("score page", {**told, "tiles": 2}, plain(NUCLEAR), plain(PINK)).data
    assert page is not None
    assert [(each["tile"], each["answer"]) for each in page["tiles"]] == [(1, "Yes"), (2, "No")]


def test_letters_come_from_the_seed_and_are_all_drawn() -> None:
    def letter(number: int, seed: int) -> str:
        question = f"Question {number}?\nA. one\nB. two\nC. three\nAnswer with the letter."
        return next_message({"messages": [{"role": "user", "content": question}]}, seed).text

    first = [letter(number, 0) for number in range(60)]
    assert first == [letter(number, 0) for number in range(60)]
    assert first != [letter(number, 1) for number in range(60)]
    assert set(first) == {"A", "B", "C"}


def test_it_names_the_colours_of_an_image_it_knows_nothing_else_of() -> None:
    halves = np.full((20, 20, 3), (220, 20, 20), np.uint8)
    halves[:, 10:] = (20, 20, 220)
    reply = next_message({"messages": [{"role": "user", "content": [text("?"), image(url_of(halves))]}]})
    assert reply.text.startswith("red on the left, blue on the right")


def test_an_unknown_tool_is_called_as_its_schema_allows() -> None:
    properties = {"colour": {"enum": ["red"]}, "n": {"type": "integer"}, "more": {"type": "string"}}
    parameters = {"type": "object", "properties": properties, "required": ["colour", "n"]}
    tool = {"type": "function", "function": {"name": "paint", "parameters": parameters}}
    reply = next_message({"messages": [{"role": "user", "content": "paint"}], "tools": [tool]})
    assert reply.call == ("paint", {"colour": "red", "n": 0})
    none = next_message({"messages": [{"role": "user", "content": "paint"}], "tools": [tool], "tool_choice": "none"})
    assert none.call is None


def test_told_to_stop_thinking_it_answers_what_was_asked_before() -> None:
    question = {"role": "user", "content": "Which?\nA. one\nB. two"}
    stop = [{"role": "assistant", "content": "hm"}, {"role": "user", "content": STOP_THINKING}]
    assert next_message({"messages": [question, *stop]}) == next_message({"messages": [question]})


@pytest.mark.parametrize(
    "url", ["http://example.org/x.png", "data:image/png;base64,AAAA", "data:image/png;base64,%%", "", 5]
)
def test_an_image_that_cannot_be_read_is_an_error(url: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        next_message({"messages": [{"role": "user", "content": [image(url)]}]})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@given(
    told=st.dictionaries(st.sampled_from(sorted({*facts(), "roi", "error"})), JSON),
    arguments=JSON,
    kind=st.sampled_from(["", "propose", "judge", "score tile", "score page"]),
    tools=st.booleans(),
)
def test_no_facts_whatever_break_it(told: dict[str, Any], arguments: Any, kind: str, tools: bool) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "extract_roi", "arguments": json.dumps(arguments)}}
    first = f"Request: {kind}\n{json.dumps(facts() | told)}"
    messages = [
        {"role": "user", "content": [text(first), image(plain(NUCLEAR, 8))]},
        {"role": "assistant", "content": json.dumps(arguments), "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": json.dumps(told)},
        {"role": "user", "content": [text(first), image(plain(PINK, 8))]},
    ]
    request = {"messages": messages, **({"tools": list(TOOLS)} if tools else {})}
    assert isinstance(next_message(request), Reply)


FORMS = {
    "json": JUDGE.words,
    "diagnosis": DIAGNOSE.words,
    "boxes": BOXES.words,
    "number": COUNT.words,
    "terms": TERMS.words,
}
VOCABULARY = Vocabulary(["tumour cell", "lymphocyte"], {"epithelial": "epithelial cell", "stromal": "stromal cell"})


@pytest.mark.parametrize("kind", FORMS)
def test_items_without_options_are_answered_in_their_form(kind: str) -> None:
    asked = item_text("Judge whether each is true or false:\n1. It is.\nOrgan: colon.", (), FORMS[kind])
    reference = {"json": {"answers": [True, True, False, False]}}.get(kind, [[0, 0, 9, 9]])
    vocabulary = VOCABULARY if kind == "terms" else None
    said = set()
    for seed in range(30):
        request = {"messages": [{"role": "user", "content": [image(plain(PINK)), text(asked)]}]}
        reply = next_message(request, seed)
        words = reply.text if reply.data is None else json.dumps(reply.data)
        assert parse_answer(kind, words, reference, vocabulary=vocabulary) is not None, words
        assert next_message(request, seed) == reply
        said.add(words)
    assert len(said) > 1


def test_a_question_is_rewritten_with_all_that_it_holds() -> None:
    asked = 'Which image shows this finding at 10x: "Crowded glands"?'
    texts = [prompt("stem-v1").filled(question=asked)]
    first = next_message({"messages": [{"role": "user", "content": texts[0]}]})
    assert first.text.endswith('which image shows this finding at 10x: "Crowded glands"?')
    assert first.text != asked
    again = [*texts, "That cannot be used (not one question). Try again."]
    repeated = next_message({"messages": [{"role": "user", "content": text} for text in again]})
    assert repeated.text.endswith(first.text.partition(", ")[2])
