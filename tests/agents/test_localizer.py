"""The localizer: its conversation, its ends, and what it never does. The model is a function here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from cohort_builder import SLIDE_PX
from model_stub import StubClient, answer, called, play

from wsigym.agents import Answer, ToolCall
from wsigym.agents.localizer import Localizer
from wsigym.envs import LocalizationEnv

LOOK = {"x": 0.25, "y": 0.25, "w": 0.5, "h": 0.5, "reason": "crowded"}
REPORT = {"conclusion": "glands", "bbox": [0.25, 0.25, 0.5, 0.5], "confidence": 0.7}

INFO, ROI, END = "get_image_info", "extract_roi", "finish_and_report"


@pytest.fixture(scope="module")
def env(tiny_cohort: Path) -> LocalizationEnv:
    return LocalizationEnv(tiny_cohort, view_px=64, overview_px=64, budget=3)


def in_turn(*replies: str | Answer) -> Callable[[list[dict[str, Any]]], str | Answer]:
    """One reply after the other; the last for ever."""
    given = iter(replies)
    last = replies[-1]
    return lambda messages: next(given, last)


def episode(
    env: gym.Env[Any, Any], *replies: str | Answer, **settings: Any
) -> tuple[dict[str, Any], StubClient, Localizer]:
    client = StubClient(in_turn(*replies), **{"coordinates": "unit", **settings})
    agent = Localizer(client)  # type: ignore[arg-type]
    info = asyncio.run(play(env, agent, {"query_id": env.unwrapped.query_ids[0]}))  # type: ignore[attr-defined]
    return info, client, agent


def roles(request: dict[str, Any]) -> list[str]:
    return [message["role"] for message in request["messages"]]


def images_in(request: dict[str, Any]) -> int:
    contents = [message["content"] for message in request["messages"] if isinstance(message["content"], list)]
    return sum(part["type"] == "image_url" for content in contents for part in content)


def told(request: dict[str, Any], place: int = -1) -> dict[str, Any]:
    """The JSON of a tool's message, by default the last."""
    tools = [message for message in request["messages"] if message["role"] == "tool"]
    found: dict[str, Any] = json.loads(tools[place]["content"])
    return found


# -- the loop --------------------------------------------------------------------------------------------------------


def test_the_papers_loop(env: LocalizationEnv) -> None:
    info, client, agent = episode(env, called(INFO), called(ROI, **LOOK), called(END, **REPORT))
    assert info["outcome"] == "scored"
    first, second, third = client.requests
    assert roles(first) == ["system", "user"]
    assert roles(second) == ["system", "user", "assistant", "tool", "user"]
    assert roles(third) == [*roles(second), "assistant", "tool", "user"]
    assert [images_in(each) for each in client.requests] == [0, 1, 2]
    facts = told(second)
    assert facts["search_box"] == [0, 0, SLIDE_PX, SLIDE_PX]
    assert facts["coordinates"]["convention"] == "unit"
    assert facts["rois_left"] == 3
    assert told(third) == {"roi": [0.25, 0.25, 0.5, 0.5], "magnification": 2.5, "rois_left": 2}
    look, report = info["steps"]
    assert look["remarks"] == {"reason": "crowded"}
    assert look["info"]["roi"] == (512, 512, 1024, 1024)
    assert report["remarks"] == {"conclusion": "glands"}
    assert report["action"]["confidence"] == pytest.approx(0.7)
    record = agent.record()
    assert record is not None
    assert [request.turn for request in record.requests] == [0, 1, 2]
    assert list(record.prompts) == ["localizer-v1"]
    assert {request["prompt_sha256"] for request in client.requests} == set(record.prompts.values())
    assert set(record.disclosure) == {"stub"}
    assert record.disclosure["stub"].metadata == ("magnification", "mpp", "search_box", "slide_size", "target")
    assert record.end_reason is None
    assert agent.record() is None, "a record is given once"


def test_what_is_sent_is_counted(env: LocalizationEnv) -> None:
    _, client, _ = episode(env, called(INFO), called(ROI, **LOOK), called(END, **REPORT), image_format="png")
    images = client.requests[-1]["images"]
    assert images.count == 2
    assert images.pixels == 32 * 32 + 64 * 64, "the slide at 0.625x, and half of it a side at 2.5x"
    urls = [
        part["image_url"]["url"]
        for message in client.requests[-1]["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]
    assert all(url.startswith("data:image/png;base64,") for url in urls)
    assert images.bytes == sum(len(url.partition(",")[2]) * 3 // 4 - url.count("=") for url in urls)


def test_transcripts_hold_what_is_new_with_images_by_reference(env: LocalizationEnv) -> None:
    _, client, _ = episode(env, called(INFO), called(ROI, **LOOK), called(END, **REPORT))
    first, second, third = (request["transcript"] for request in client.requests)
    assert [message["role"] for message in first] == ["system", "user"]
    assert [message["role"] for message in second] == ["tool", "user"]
    assert [message["role"] for message in third] == ["tool", "user"]
    assert third[-1]["content"][-1] == {
        "type": "image",
        "name": "roi-1",
        "box": [512, 512, 1024, 1024],
        "magnification": 2.5,
        "size": [64, 64],
    }
    assert "base64" not in json.dumps([first, second, third])


def test_several_calls_in_one_message_are_done_in_turn(env: LocalizationEnv) -> None:
    calls = (
        ToolCall("a", ROI, json.dumps(LOOK)),
        ToolCall("b", INFO, ""),
        ToolCall("c", ROI, json.dumps({**LOOK, "x": 7})),
        ToolCall("d", "zoom", "{}"),
    )
    info, client, _ = episode(env, answer("I look.", calls=calls), called(END, **REPORT))
    assert len(client.requests) == 2
    messages = client.requests[1]["messages"]
    # Servers want every call answered, in messages of tools, before the user speaks.
    assert roles(client.requests[1]) == ["system", "user", "assistant", "tool", "tool", "tool", "tool", "user"]
    assert [message.get("tool_call_id") for message in messages[3:7]] == ["a", "b", "c", "d"]
    assert images_in(client.requests[1]) == 2
    assert [call["id"] for call in messages[2]["tool_calls"]] == ["a", "b", "c", "d"]
    assert messages[2]["tool_calls"][1]["function"]["arguments"] == "{}"
    assert "x is 7; allowed is 0 to 1" in told(client.requests[1], 2)["error"]
    assert [("error" in step["info"]) for step in info["steps"]] == [False, True, False]


def test_no_more_than_eight_calls_of_a_message(env: LocalizationEnv) -> None:
    calls = tuple(ToolCall(str(number), INFO, "{}") for number in range(100))
    _, client, _ = episode(env, answer("", calls=calls), called(END, **REPORT))
    assert roles(client.requests[1]).count("tool") == 8
    assert len(client.requests[1]["messages"][2]["tool_calls"]) == 8
    assert images_in(client.requests[1]) == 1, "the overview is shown once, however often it is asked for"


def test_images_in_tool_messages_where_the_endpoint_takes_them(env: LocalizationEnv) -> None:
    _, client, _ = episode(env, called(INFO), called(ROI, **LOOK), called(END, **REPORT), tool_images=True)
    assert roles(client.requests[2]) == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert images_in(client.requests[2]) == 2


def test_tools_as_text(env: LocalizationEnv) -> None:
    def text(tool: str, **arguments: Any) -> str:
        return json.dumps({"tool": tool, "arguments": arguments})

    replies = (text(INFO), f"I look there: {text(ROI, **LOOK)}", text(END, **REPORT))
    info, client, agent = episode(env, *replies, tools=False)
    assert info["outcome"] == "scored"
    assert all(request.get("tools") is None for request in client.requests)
    assert "extract_roi" in client.requests[0]["messages"][0]["content"]
    assert roles(client.requests[2]) == ["system", "user", "assistant", "user", "assistant", "user"]
    assert client.requests[2]["messages"][3]["content"][0]["text"].startswith("get_image_info result:\n{")
    record = agent.record()
    assert record is not None
    assert list(record.prompts) == ["localizer-v1", "tools-as-text-v1"]


def test_a_call_in_text_is_taken_where_tools_were_offered(env: LocalizationEnv) -> None:
    info, client, _ = episode(env, json.dumps({"tool": END, "arguments": REPORT}))
    assert (info["outcome"], len(client.requests)) == ("scored", 1)


def test_old_images_are_dropped_but_for_the_overview(env: LocalizationEnv) -> None:
    looks = [called(ROI, **{**LOOK, "w": 0.1 * number}) for number in (1, 2, 3)]
    _, client, _ = episode(env, called(INFO), *looks, called(END, **REPORT), keep_images=1)
    last = client.requests[-1]
    shown = json.dumps(last["messages"])
    assert images_in(last) == last["images"].count == 2
    assert "[roi-1 is no longer shown]" in shown
    assert "[roi-2 is no longer shown]" in shown
    assert "[roi-3 is no longer shown]" not in shown
    assert "[overview" not in shown


def test_several_looks_of_one_message_are_all_shown(env: LocalizationEnv) -> None:
    calls = tuple(ToolCall(str(n), ROI, json.dumps({**LOOK, "w": 0.1 * n})) for n in (1, 2, 3))
    _, client, _ = episode(env, answer("", calls=calls), called(END, **REPORT), keep_images=1)
    assert images_in(client.requests[1]) == 3


def test_the_newest_look_is_always_shown(env: LocalizationEnv) -> None:
    _, client, _ = episode(env, called(INFO), called(ROI, **LOOK), called(END, **REPORT), keep_images=0)
    assert images_in(client.requests[-1]) == 2


def test_the_same_episode_asks_the_same_and_nothing_stays(env: LocalizationEnv) -> None:
    replies = (called(INFO), called(ROI, **LOOK), called(END, **REPORT))
    client = StubClient(in_turn(*replies, *replies), coordinates="unit")
    agent = Localizer(client)  # type: ignore[arg-type]
    options = {"query_id": env.query_ids[0]}
    for _ in range(2):
        asyncio.run(play(env, agent, options))
    first, second = client.requests[:3], client.requests[3:]
    for one, other in zip(first, second, strict=True):
        assert json.dumps(one["messages"]) == json.dumps(other["messages"])
        assert one["turn"] == other["turn"]


# -- invalid requests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "box", "words"),
    [
        ({"coordinates": "unit"}, {"x": 25}, "x is 25; allowed is 0 to 1"),
        ({"coordinates": "permille"}, {"x": 2000, "w": 1}, "x is 2000; allowed is 0 to 1000"),
        ({"coordinates": "permille"}, {"x": 0, "y": 0, "w": 1200, "h": 500}, "w is 1200; allowed is 0 to 1000"),
        ({"coordinates": "view_px"}, {"y": 33, "w": 1, "h": 1}, "y is 33; allowed is 0 to 32"),
        ({"coordinates": "level0"}, {"x": "nan"}, "x is nan"),
        ({"coordinates": "level0"}, {"x": 9000, "y": 9000}, "outside the search box"),
        ({"coordinates": "unit"}, {"w": 0}, "under one level-0 pixel"),
    ],
)
def test_an_invalid_look_is_told_with_bounds_and_reason(
    env: LocalizationEnv, settings: dict[str, Any], box: dict[str, Any], words: str
) -> None:
    info, client, _ = episode(env, called(ROI, **{**LOOK, **box}), **settings)
    assert info["outcome"] == "invalid"
    assert [told(request)["error"].rpartition("This is")[2] for request in client.requests[1:]] == [
        f" {number} of 3 invalid requests in a row that end the task." for number in (1, 2)
    ]
    error = told(client.requests[1])
    assert words in error["error"]
    assert (
        error["coordinates"]["x_max"]
        == {"unit": 1, "permille": 1000, "view_px": 32, "level0": SLIDE_PX}[settings["coordinates"]]
    )
    assert error["rois_left"] == 3


def test_a_look_that_is_answered_starts_the_count_of_invalid_ones_anew(env: LocalizationEnv) -> None:
    wrong, right = called(ROI, **{**LOOK, "x": 7}), called(ROI, **LOOK)
    _, client, _ = episode(env, wrong, wrong, right, wrong, called(END, **REPORT))
    assert "This is 2 of 3" in told(client.requests[2])["error"]
    assert "This is 1 of 3" in told(client.requests[4])["error"]


def test_a_clipped_look_says_so_in_the_models_own_coordinates(env: LocalizationEnv) -> None:
    _, client, _ = episode(env, called(ROI, **{**LOOK, "x": 0.75}), called(END, **REPORT))
    assert told(client.requests[1])["roi"] == [0.75, 0.25, 0.25, 0.5]
    assert "Clipped" in told(client.requests[1])["note"]


def test_a_spent_budget_leaves_only_the_report(env: LocalizationEnv) -> None:
    info, client, _ = episode(env, called(ROI, **LOOK))
    assert info["outcome"] == "budget_exhausted"
    choices = [request["tool_choice"] for request in client.requests]
    finish = {"type": "function", "function": {"name": END}}
    assert choices == ["auto", "auto", "auto", finish, finish, finish]
    assert told(client.requests[3])["next"] == "The budget of ROIs is spent: call finish_and_report now."
    assert "budget of ROIs is spent" in told(client.requests[4])["error"]


# -- ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I think the target is at the top.",
        called("zoom", x=1),
        called(ROI, x1=1, y1=2, x2=3, y2=4),
        answer("", calls=(ToolCall("a", ROI, '{"x": 1, "y'),)),
        called(END, conclusion="a"),
    ],
)
def test_three_messages_in_a_row_without_a_call_are_unparsed(env: LocalizationEnv, reply: str | Answer) -> None:
    info, client, agent = episode(env, reply)
    assert (info["outcome"], len(client.requests), info["steps"]) == ("unparsed", 3, [])
    for request in client.requests:
        for message in request["messages"]:
            for call in message.get("tool_calls", ()):
                assert isinstance(json.loads(call["function"]["arguments"]), dict), "broken JSON is not sent back"
    record = agent.record()
    assert record is not None
    assert record.end_reason is not None
    assert record.end_reason.startswith("unparsed: 3 messages in a row")


def test_a_message_that_can_be_read_starts_the_count_anew(env: LocalizationEnv) -> None:
    info, client, _ = episode(env, "hm", "hm", called(INFO), "hm", "hm", called(END, **REPORT))
    assert (info["outcome"], len(client.requests)) == ("scored", 6)
    assert client.requests[1]["messages"][-1]["content"].startswith("That cannot be used: no call of a tool")


@pytest.mark.parametrize(
    "reply", ["I'm sorry, but I can't help with that.", answer("", refusal="no"), answer("No.", refusal="declined")]
)
def test_a_refusal_ends_the_episode_at_once(env: LocalizationEnv, reply: str | Answer) -> None:
    info, client, _ = episode(env, called(ROI, **LOOK), reply)
    assert (info["outcome"], len(client.requests), len(info["steps"])) == ("refused", 2, 1)


def test_a_call_beside_an_apology_is_a_call(env: LocalizationEnv) -> None:
    report = ToolCall("a", END, json.dumps(REPORT))
    info, _, _ = episode(env, answer("I'm sorry, I can't help with more.", calls=(report,)))
    assert info["outcome"] == "scored"


def test_asking_for_ever_exhausts_the_budget(env: LocalizationEnv) -> None:
    info, client, _ = episode(env, called(INFO))
    assert info["outcome"] == "budget_exhausted"
    assert len(client.requests) == 3 * (3 + 2)
    assert "two messages left" in json.dumps(client.requests[-2]["messages"])
    assert [request["tool_choice"] == "auto" for request in client.requests] == [True] * 13 + [False] * 2
    assert images_in(client.requests[-1]) == 1


def test_asking_between_looks_is_counted_over_the_whole_episode(env: LocalizationEnv) -> None:
    turns = count()
    client = StubClient(
        lambda messages: called(ROI, **LOOK) if next(turns) in (4, 9) else called(INFO), coordinates="unit"
    )
    info = asyncio.run(play(env, Localizer(client)))  # type: ignore[arg-type]
    assert (info["outcome"], len(client.requests), len(info["steps"])) == ("budget_exhausted", 15, 2)


# -- where nothing may leave -----------------------------------------------------------------------------------------


def test_tracing_is_off_whatever_the_environment_says(env: LocalizationEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    """LangGraph hands runs to LangSmith where variables say so; the states of an agent must not leave that way."""
    from langsmith import utils

    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING_V2"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("LANGSMITH_API_KEY", "none")
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "http://127.0.0.1:9")
    utils.get_env_var.cache_clear()
    seen = []

    def reply(messages: list[dict[str, Any]]) -> Answer:
        seen.append(utils.tracing_is_enabled())
        return called(END, **REPORT)

    try:
        assert utils.tracing_is_enabled()
        asyncio.run(play(env, Localizer(StubClient(reply, coordinates="unit"))))  # type: ignore[arg-type]
    finally:
        monkeypatch.undo()
        utils.get_env_var.cache_clear()
    assert seen == [False]


def test_a_blinded_target_is_not_given(tiny_cohort: Path) -> None:
    from wsigym.envs.blind import BlindImages, BlindText

    client = StubClient(in_turn(called(INFO), called(END, **REPORT)), coordinates="unit", image_format="png")
    blind = BlindText(LocalizationEnv(tiny_cohort, view_px=64, overview_px=64))
    asyncio.run(play(blind, Localizer(client)))  # type: ignore[arg-type]
    assert "Target: (not given)" in client.requests[0]["messages"][1]["content"]
    agent = Localizer(StubClient(in_turn(called(INFO), called(END, **REPORT)), coordinates="unit"))  # type: ignore[arg-type]
    white = BlindImages(LocalizationEnv(tiny_cohort, view_px=64, overview_px=64))
    asyncio.run(play(white, agent, source=white))
    record = agent.record()
    assert record is not None
    assert set(record.disclosure["stub"].tissue_share.values()) == {0.0}
