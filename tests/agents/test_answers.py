"""Reading what servers answer: the ordinary, the incomplete, and whatever JSON there is."""

from __future__ import annotations

from typing import Any

import pytest
from chat_server import completion
from hypothesis import given
from hypothesis import strategies as st

from wsigym.agents.answers import ToolCall, read_answer, refused_answer

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def call(name: Any, arguments: Any, call_id: Any = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_of_a_text_beyond_any_limit_the_end_is_read() -> None:
    raw = completion("x" * 10_000_000 + "Answer: B", tool_calls=[call("f", "y" * 10_000_000)])
    reading = read_answer(raw)
    assert len(reading.text) == len(reading.tool_calls[0].arguments) == 200_000
    assert reading.text.endswith("xAnswer: B")


def test_an_ordinary_answer() -> None:
    raw = completion("hello", tool_calls=[call("f", '{"x": 1}')], refusal=None)
    raw["choices"][0]["logprobs"] = {
        "content": [
            {"token": "Yes", "logprob": -0.1, "top_logprobs": [{"token": "No", "logprob": -2.5}]},
            {"token": ".", "logprob": -0.2, "top_logprobs": []},
        ]
    }
    reading = read_answer(raw)
    assert reading.text == "hello"
    assert reading.tool_calls == (ToolCall("c1", "f", '{"x": 1}'),)
    assert reading.first_token_logprobs == {"Yes": -0.1, "No": -2.5}
    assert (reading.refusal, reading.finish_reason) == (None, "stop")
    assert (reading.tokens_in, reading.tokens_out, reading.tokens_cached) == (100, 10, 40)


@pytest.mark.parametrize(
    "raw", [None, 3, [], {}, {"choices": None}, {"choices": []}, {"choices": [{}]}, {"choices": [3]}]
)
def test_no_answer_at_all(raw: Any) -> None:
    with pytest.raises(ValueError, match=r"an answer|a choice"):
        read_answer(raw)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({}, ""),
        ({"content": None}, ""),
        ({"content": 3}, ""),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, 3, {}]}, "ab"),
        ({"content": "half \ud83d a pair"}, "half ? a pair"),
        ({"content": "<think>x</think>\n\nYes"}, "Yes"),
        ({"content": "x </think> y </think> Yes"}, "Yes"),
        ({"content": "\n<think>not done"}, ""),
        ({"content": "a < b, and no thought"}, "a < b, and no thought"),
    ],
)
def test_text(message: dict[str, Any], text: str) -> None:
    assert read_answer({"choices": [{"message": message}]}).text == text


def test_thoughts() -> None:
    def thought(**message: Any) -> str:
        return read_answer({"choices": [{"message": message}]}).thought

    assert thought(content="<think> x </think>Yes") == "x"
    assert thought(content="<think> x ") == "x"
    assert thought(content=None, reasoning_content="r") == "r"
    assert thought(content=None, reasoning="r") == "r"
    assert thought(content="Yes") == ""


@pytest.mark.parametrize(
    ("calls", "read"),
    [
        (None, ()),
        ([], ()),
        ("text", ()),
        ([call("f", {"x": 1})], (ToolCall("c1", "f", '{"x": 1}'),)),
        ([call("f", None)], (ToolCall("c1", "f", ""),)),
        (
            [call(None, "{}", None), call("g", "{}", None)],
            (ToolCall("call-0", "", "{}"), ToolCall("call-1", "g", "{}")),
        ),
        ([None, {"function": 3}], (ToolCall("call-0", "", ""), ToolCall("call-1", "", ""))),
    ],
)
def test_tool_calls(calls: Any, read: tuple[ToolCall, ...]) -> None:
    assert read_answer(completion(None, tool_calls=calls)).tool_calls == read


@pytest.mark.parametrize(
    "usage",
    [None, 3, {}, {"prompt_tokens": None}, {"prompt_tokens": -1, "completion_tokens": True},
     {"prompt_tokens": "7", "completion_tokens": float("nan"), "prompt_tokens_details": None},
     {"prompt_tokens": 10**400, "completion_tokens": 1e300, "prompt_tokens_details": {"cached_tokens": 10**10}}],
)  # fmt: skip
def test_usage_that_says_nothing(usage: Any) -> None:
    reading = read_answer(completion() | {"usage": usage})
    assert (reading.tokens_in, reading.tokens_out, reading.tokens_cached) == (None, None, None)


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        {},
        {"content": None},
        {"content": []},
        {"content": [None]},
        {"content": [{"token": "Yes"}]},
        {"content": [{"token": "Yes", "logprob": None}]},
        {"content": [{"token": "Yes", "logprob": float("-inf"), "top_logprobs": None}]},
        {"content": [{"token": "Yes", "logprob": -(10**400)}]},
    ],
)
def test_logprobs_that_say_nothing(logprobs: Any) -> None:
    raw = completion()
    raw["choices"][0]["logprobs"] = logprobs
    assert read_answer(raw).first_token_logprobs is None


def test_the_first_token_of_a_thought_is_no_answer() -> None:
    raw = completion("<think>x</think>Yes")
    raw["choices"][0]["logprobs"] = {"content": [{"token": "<think>", "logprob": -0.1}]}
    assert read_answer(raw).first_token_logprobs is None


def test_refusals() -> None:
    assert read_answer(completion(None, refusal="No.")).refusal == "No."
    assert read_answer(completion("x", refusal="")).refusal is None
    assert "content filter" in str(read_answer(completion(None, finish_reason="content_filter")).refusal)
    assert read_answer(refused_answer("policy")).refusal == "policy"


@given(JSON)
def test_any_json_is_read_or_is_no_answer(raw: Any) -> None:
    for shape in (
        raw,
        {"choices": [raw]},
        {"choices": [{"message": raw}]},
        {"choices": [{"message": {"content": raw}}]},
    ):
        try:
            reading = read_answer(shape)
        except ValueError:
            continue
        reading.text.encode()
    message = {"content": raw, "tool_calls": [raw, {"function": raw}, {"function": {"name": raw, "arguments": raw}}]}
    choice = {"message": message, "logprobs": {"content": [raw, raw]}, "finish_reason": raw}
    read_answer({"choices": [choice], "usage": {"prompt_tokens": raw, "prompt_tokens_details": raw}})
