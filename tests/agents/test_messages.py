"""Messages on the wire and by reference; which images are sent; images; disclosure; prompts; the table of agents."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_stub import StubClient

from wsigym.agents import Endpoint, ToolCall
from wsigym.agents.disclosure import Tissue, disclosed, magnification_label
from wsigym.agents.images import EpisodeImages, encoded
from wsigym.agents.messages import ImageRef, Message, by_reference, for_the_wire, images_to_send, system, user
from wsigym.agents.prompting import prompt
from wsigym.agents.registry import AGENTS, agent_names, make_agent
from wsigym.envs.views import View
from wsigym.errors import InvalidArgumentError, UnknownNameError
from wsigym.slides import Box

PROMPTS = Path(__file__).resolve().parents[2] / "agents" / "prompts"


def ref(name: str, box: tuple[int, int, int, int] = (0, 0, 8, 8), magnification: float = 10) -> ImageRef:
    return ImageRef(name, box, magnification, (8, 8))


def wire(*messages: Message, keep: int = 9) -> list[dict[str, Any]]:
    return for_the_wire(messages, images_to_send(messages, keep), lambda image: f"data:{image.name}")


# -- messages --------------------------------------------------------------------------------------------------------


def test_text_is_plain_and_images_are_parts() -> None:
    assert wire(system("a"), user("b", "c")) == [
        {"role": "system", "content": "a"},
        {"role": "user", "content": "b\nc"},
    ]
    (message,) = wire(user("see", ref("roi-1")))
    assert message["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:roi-1"}},
    ]


def test_calls_and_their_answers() -> None:
    call = ToolCall("a", "extract_roi", "{}")
    said, told = wire(Message("assistant", (), (call,)), Message("tool", ("ok",), call_id="a"))
    assert said["content"] is None
    assert said["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "extract_roi", "arguments": "{}"}}
    ]
    assert told == {"role": "tool", "content": "ok", "tool_call_id": "a"}


def test_two_messages_of_a_user_are_one_on_the_wire() -> None:
    assert wire(user("a"), user("b")) == [{"role": "user", "content": "a\nb"}]
    assert len(by_reference((user("a"), user("b")))) == 2


@given(st.lists(st.sampled_from(["overview", "roi-1", "roi-2", "roi-3", "roi-4"]), max_size=9), st.integers(0, 5))
def test_the_overview_and_the_last_images_are_sent(names: list[str], keep: int) -> None:
    asked = [user(ref(name)) for name in names]
    others = [name for name in names if name != "overview"]
    kept = set(others[len(others) - min(keep, len(others)) :]) | {name for name in names if name == "overview"}
    assert {image.name for image in images_to_send([*asked, Message("assistant", ("x",))], keep)} == kept


@given(st.integers(0, 3), st.integers(1, 6))
def test_what_the_model_has_not_seen_is_sent_however_much(keep: int, new: int) -> None:
    looks = [user(ref(f"roi-{number}")) for number in range(new)]
    sent = images_to_send([user(ref("old")), Message("assistant", ("x",)), *looks], keep)
    assert {image.name for image in sent} - {"old"} == {f"roi-{number}" for number in range(new)}
    assert ("old" in {image.name for image in sent}) == (keep > new)


def test_a_line_stands_in_for_an_image_that_is_dropped() -> None:
    first, second = wire(user(ref("overview"), ref("roi-1")), Message("assistant", ("x",)), user(ref("roi-2")), keep=1)[
        ::2
    ]
    assert [part["type"] for part in first["content"]] == ["image_url", "text"]
    assert first["content"][1]["text"] == "[roi-1 is no longer shown]"
    assert second["content"][0]["type"] == "image_url"


# -- images ----------------------------------------------------------------------------------------------------------


class Source:
    """An image of noise; counts how often it is read."""

    def __init__(self) -> None:
        self.read: list[tuple[str, int]] = []

    def image(self, name: str, side_px: int) -> View:
        self.read.append((name, side_px))
        pixels = np.random.default_rng(0).integers(0, 256, (30, 40, 3), np.uint8)
        return View(pixels, Box(10, 20, 400, 300), 4.0, (40, 30))


def images_of(**settings: Any) -> tuple[Source, EpisodeImages]:
    source = Source()
    return source, EpisodeImages(source, StubClient(lambda messages: "", **settings).endpoint)


def test_an_image_is_read_at_the_endpoints_size_once() -> None:
    source, images = images_of(max_image_px=123)
    image = asyncio.run(images.ref("roi-1"))
    assert image == ImageRef("roi-1", (10, 20, 400, 300), 4.0, (40, 30))
    assert images.url(image) == images.url(image)
    assert source.read == [("roi-1", 123)]
    assert images.sent([image, image]).pixels == 2 * 40 * 30
    images.forget_but(frozenset())
    with pytest.raises(KeyError):
        images.url(image)


def test_png_keeps_every_pixel_in_the_right_order() -> None:
    pixels = np.zeros((4, 5, 3), np.uint8)
    pixels[..., 0], pixels[1, 2] = 200, (10, 20, 30)
    back = cv2.cvtColor(cv2.imdecode(np.frombuffer(encoded(pixels, "png", 1), np.uint8), 1), cv2.COLOR_BGR2RGB)
    assert (back == pixels).all()


def test_jpeg_has_the_quality_asked_for_and_is_the_same_each_time() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    best, worst = encoded(pixels, "jpeg", 95), encoded(pixels, "jpeg", 20)
    assert best[:2] == worst[:2] == b"\xff\xd8"
    assert len(best) > 2 * len(worst)
    assert encoded(pixels, "jpeg", 95) == best


# -- disclosure ------------------------------------------------------------------------------------------------------

HALF = Tissue(np.array([[True, True, False, False]] * 4), Box(0, 0, 400, 400))
"""Tissue on the left half."""


@pytest.mark.parametrize(
    ("boxes", "share"),
    [
        ([(0, 0, 400, 400)], 1.0),
        ([(0, 0, 200, 200)], 0.5),
        ([(200, 0, 200, 400)], 0.0),
        ([(0, 0, 50, 100)], 1 / 16),
        ([(0, 0, 100, 100), (100, 0, 100, 100)], 0.25),
        ([(0, 0, 100, 100), (0, 0, 100, 100)], 0.125),
        ([(-500, -500, 5000, 5000)], 1.0),
        ([], 0.0),
    ],
)
def test_the_share_of_the_tissue_under_boxes(boxes: list[tuple[int, int, int, int]], share: float) -> None:
    assert HALF.share(boxes) == pytest.approx(share)


def test_no_tissue_is_nothing_disclosed() -> None:
    assert Tissue(np.zeros((2, 2), np.bool_), Box(0, 0, 9, 9)).share([(0, 0, 9, 9)]) == 0


@pytest.mark.parametrize(
    ("magnification", "label"),
    [(0.1, 1.25), (1.25, 1.25), (1.37, 1.25), (1.4, 2.5), (2.5, 2.5), (9.9, 10), (10.9, 10), (11.1, 20), (40, 40)],
)
def test_magnifications_are_told_as_the_next_one_up(magnification: float, label: float) -> None:
    assert magnification_label(magnification) == label


def test_what_is_disclosed() -> None:
    images = [ref("a", (0, 0, 200, 200), 9), ref("a", (0, 0, 200, 200), 9), ref("b", (0, 0, 400, 400), 1)]
    found = disclosed([*images, ImageRef("file", None, None, (9, 9))], ["target", "mpp", "target"], HALF)
    assert found.tissue_share == {"1.25": 1.0, "10": 0.5}
    assert found.metadata == ("mpp", "target")
    assert disclosed(images, [], None).tissue_share == {}


# -- prompts and the table -------------------------------------------------------------------------------------------


def test_prompts_are_versioned_and_known_by_their_hash() -> None:
    files = sorted(PROMPTS.glob("*.md"))
    assert len(files) == 7
    for file in files:
        found = prompt(file.stem)
        assert found.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
        assert file.stem.rpartition("-v")[2].isdecimal()
    with pytest.raises(KeyError):
        prompt("localizer-v1").filled(rois=1)


def test_agents_by_name() -> None:
    client: Any = StubClient(lambda messages: "")
    for name, card in AGENTS.items():
        assert make_agent(name, [client], card.environment) is not make_agent(name, [client], card.environment)
        make_agent(name, [client] * len(card.roles), card.environment)
        with pytest.raises(InvalidArgumentError, match="endpoints"):
            make_agent(name, [client] * (len(card.roles) + 1), card.environment)
        with pytest.raises(InvalidArgumentError, match="endpoints"):
            make_agent(name, [], card.environment)
    assert agent_names("wsigym/Localization-v0") == ("localizer", "verifier")
    with pytest.raises(UnknownNameError, match="localizer"):
        make_agent("localiser", [client], "wsigym/Localization-v0")
    with pytest.raises(InvalidArgumentError, match=r"plays wsigym/Localization-v0; .* tile-scorer"):
        make_agent("localizer", [client], "wsigym/Exploration-v0")


def test_the_table_of_agents_is_light() -> None:
    code = "import sys, wsigym.agents.registry; print([n for n in ('langgraph', 'openai') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_agent_without_images_says_what_it_needs() -> None:
    client: Any = StubClient(lambda messages: "")
    agent = make_agent("localizer", [client], "wsigym/Localization-v0")
    with pytest.raises(InvalidArgumentError, match="see_images"):
        agent.reset({}, {})
    assert isinstance(client.endpoint, Endpoint)
