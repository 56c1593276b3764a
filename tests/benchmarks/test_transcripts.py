"""Chats for fine-tuning: one episode a line, what was said and shown, and only of slides that may be trained on."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cohort_builder import build_cohort, read_lines, write_lines
from PIL import Image
from record_builder import agent_record, record, request, written_run

from wsigym.agents.endpoints import Endpoint
from wsigym.agents.scripted_server import ScriptedServer
from wsigym.benchmarks.run_folder import load_run
from wsigym.benchmarks.runner import run
from wsigym.benchmarks.transcripts import Exported, export_transcripts
from wsigym.errors import InvalidArgumentError, RunError, UnknownNameError

pytestmark = pytest.mark.network

SLIDES = ({"slide_id": "s1", "split": "train"}, {"slide_id": "s2", "split": "test"}, {"slide_id": "s3"})
QUERIES = 5


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a cohort, a run on it with two agents, a baseline and a control, and the server's wire log."""
    folder = tmp_path_factory.mktemp("played")
    build_cohort(folder / "cohort", slides=SLIDES)
    with ScriptedServer(wire_log=folder / "wire.jsonl") as server:
        run(
            "evipath/localization",
            policies=["agent:localizer", "agent:verifier", "search-centre"],
            endpoints=[Endpoint(name="e", base_url=server.base_url, model="scripted", image_format="png")],
            cohort=folder / "cohort",
            budgets=["2"],
            blind=["images"],
            out=folder / "run",
        )
    return folder


@pytest.fixture
def export(played: Path, tmp_path: Path) -> Callable[..., tuple[Exported, list[dict[str, Any]]]]:
    def call(**arguments: Any) -> tuple[Exported, list[dict[str, Any]]]:
        done = export_transcripts(played / "run", tmp_path / "chats.jsonl", **arguments)
        return done, read_lines(tmp_path / "chats.jsonl")

    return call


def test_one_line_an_episode_of_the_train_split(export: Any, played: Path) -> None:
    done, lines = export()
    assert (done.episodes, len(lines), done.images) == (2 * QUERIES, 2 * QUERIES, 0)
    records = {record.key: record for record in load_run(played / "run").records}
    for line in lines:
        found = next(record for key, record in records.items() if key._asdict() == line["episode"])
        assert (line["score"], line["outcome"], line["split"]) == (found.score, found.outcome, "train")
        assert found.groups["slide"] == "s1"
    assert dict(done.left_out) == {
        "asked no model": 6 * QUERIES,
        "are of split test (--all-splits)": 2 * QUERIES,
        "are of slides without a split (--all-splits)": 2 * QUERIES,
        "are controls that did not see all": 2 * QUERIES * 3,
    }


def test_other_splits_are_written_when_asked(export: Any) -> None:
    done, lines = export(all_splits=True)
    assert done.episodes == 6 * QUERIES
    assert {line["split"] for line in lines} == {"train", "test", None}


def test_a_chat_is_what_was_sent_and_answered(export: Any, played: Path) -> None:
    _, lines = export()
    last_bodies: dict[str, Any] = {}
    logged = {(line["episode"], line["sha256"]) for line in read_lines(played / "run" / "requests.jsonl")}
    wire = {line["sha256"]: line["body"] for line in read_lines(played / "wire.jsonl")}
    for episode, sha256 in logged:
        body = wire[sha256]
        if len(body["messages"]) >= len(last_bodies.get(episode, {"messages": ()})["messages"]):
            last_bodies[episode] = body
    localizer = [line for line in lines if line["episode"]["policy"] == "agent:localizer"]
    assert len(localizer) == QUERIES
    for line in localizer:
        key = json.dumps(line["episode"], sort_keys=True, separators=(",", ":"))
        body = last_bodies[key]
        *told, answer = line["messages"]
        assert answer["role"] == "assistant"
        assert answer["tool_calls"][0]["function"]["name"] == "finish_and_report"
        assert [texts(message) for message in told] == [texts(message) for message in body["messages"]]
        assert line["tools"] == body["tools"]


def texts(message: dict[str, Any]) -> Any:
    """A message without its images, which the two forms hold differently."""
    content = message["content"]
    if isinstance(content, list):
        content = [part["text"] if part["type"] == "text" else "image" for part in content]
    return message["role"], content or None, message.get("tool_calls"), message.get("tool_call_id")


def test_separate_questions_are_separate_chats(export: Any) -> None:
    _, lines = export()
    several = [line for line in lines if "conversations" in line]
    assert {line["episode"]["policy"] for line in several} == {"agent:verifier"}
    for line in several:
        assert "messages" not in line
        for chat in line["conversations"]:
            assert [message["role"] for message in chat["messages"]][:3] == ["system", "user", "assistant"]


def test_images_are_references_or_the_very_pixels(export: Any, played: Path, tmp_path: Path) -> None:
    _, lines = export()
    references = [part for line in lines for part in images_of(line)]
    assert references
    assert all(part.keys() == {"type", "slide_id", "name", "box", "magnification", "size"} for part in references)
    (tmp_path / "chats.jsonl").unlink()

    done, lines = export(images="files")
    parts = [part for line in lines for part in images_of(line)]
    files = {part["image"] for part in parts}
    assert done.images == len(files) == len(list((tmp_path / "chats_images").iterdir()))
    sent = [image for line in read_lines(played / "wire.jsonl") for image in sent_images(line["body"])]
    for part in parts:
        pixels = np.asarray(Image.open(tmp_path / part["image"]))
        assert list(pixels.shape[1::-1]) == part["size"]
        assert any(np.array_equal(pixels, image) for image in sent)


def images_of(line: dict[str, Any]) -> list[dict[str, Any]]:
    chats = line.get("conversations") or [line]
    messages = [message for chat in chats for message in chat["messages"] if isinstance(message["content"], list)]
    return [part for message in messages for part in message["content"] if part["type"] == "image"]


def sent_images(body: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    parts = [
        part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]
    ]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))) for url in urls]


def test_a_score_to_choose_by(export: Any, played: Path) -> None:
    scores = sorted(line["score"] for line in export()[1])
    middle = (scores[4] + scores[5]) / 2
    export_to = played / "good.jsonl"
    done = export_transcripts(played / "run", export_to, min_score=middle)
    assert done.episodes == sum(score >= middle for score in scores) < len(scores)
    assert done.left_out[f"scored less than {middle:g}"] == len(scores) - done.episodes


def test_what_cannot_be_written_is_told(export: Any, played: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="'refs'"):
        export(images="ref")
    with pytest.raises(InvalidArgumentError, match=r"no episode to write: .*scored less than 1"):
        export(min_score=1.0)
    assert not list(tmp_path.iterdir())
    export()
    with pytest.raises(InvalidArgumentError, match="exists"):
        export()
    failed = written_run(tmp_path / "F", [agent_record(None, request(), split="train"), record(0.5, split="train")])
    with pytest.raises(InvalidArgumentError, match="1 ended in an infrastructure error; 1 asked no model"):
        export_transcripts(failed, tmp_path / "x.jsonl")
    with pytest.raises(InvalidArgumentError, match="it holds none"):
        export_transcripts(written_run(tmp_path / "N", []), tmp_path / "x.jsonl")


def test_a_log_that_lacks_a_request(played: Path, tmp_path: Path) -> None:
    folder = written_run(tmp_path / "R", [agent_record(0.5, request(), split="train")])
    with pytest.raises(RunError, match=r"requests.jsonl cannot be read"):
        export_transcripts(folder, tmp_path / "x.jsonl")
    write_lines(folder / "requests.jsonl", read_lines(played / "run" / "requests.jsonl"))
    with pytest.raises(RunError, match="lacks request 0 of"):
        export_transcripts(folder, tmp_path / "x.jsonl")
    assert not list(tmp_path.glob("x.jsonl*"))
