"""Demonstrations as chats: the agent's own messages, an expert's answers, nothing said that is false."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cohort_builder import build_cohort, read_lines, write_lines
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from wsigym.agents.endpoints import Endpoint
from wsigym.agents.scripted_server import ScriptedServer
from wsigym.agents.tools import TOOLS
from wsigym.baselines.expert_episodes import tree_queries
from wsigym.benchmarks.demo_chats import CONFIDENCE, write_chats
from wsigym.benchmarks.demo_looks import planned_looks
from wsigym.benchmarks.runner import run
from wsigym.benchmarks.transcripts import export_transcripts
from wsigym.cohorts import Cohort
from wsigym.errors import CohortError, InvalidArgumentError, UnknownNameError
from wsigym.slides import Box

SPLITS = ("train", "val", "test")


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    slides = [{"slide_id": split, "split": split} for split in SPLITS]
    return Cohort.load(build_cohort(tmp_path_factory.mktemp("splits"), slides=slides))


def calls(line: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    functions = [call["function"] for message in line["messages"] for call in message.get("tool_calls", ())]
    return [(function["name"], json.loads(function["arguments"])) for function in functions]


def images_of(line: dict[str, Any]) -> list[dict[str, Any]]:
    contents = [message["content"] for message in line["messages"] if isinstance(message["content"], list)]
    return [part for content in contents for part in content if part["type"] == "image"]


# -- the looks --------------------------------------------------------------------------------------------------------

SEARCHED = Box(500, 300, 4000, 3000)
boxes = st.builds(
    lambda x, y, w, h: Box(SEARCHED.x + x, SEARCHED.y + y, w, h),
    st.integers(0, 3000),
    st.integers(0, 2000),
    st.integers(1, 1000),
    st.integers(1, 1000),
)


@given(
    valid=st.lists(boxes, min_size=1, max_size=3),
    rois=st.integers(0, 10),
    detours=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 2**31),
)
def test_looks(valid: list[Box], rois: int, detours: float, seed: int) -> None:
    overview = np.random.default_rng(seed).random((48, 64)).astype(np.float32)
    rng = np.random.default_rng(seed)
    looks, answer = planned_looks(SEARCHED, valid, rois, overview=overview, detours=detours, rng=rng)
    assert answer in valid
    assert len(looks) <= rois
    assert all(SEARCHED.contains(look.box) and not look.box.is_empty for look in looks)
    way = [look for look in looks if look.kind != "detour"]
    assert [look.kind for look in way] in ([], ["close"], ["wide", "close"])
    assert bool(way) == bool(rois)
    assert all(look.box.contains(answer) for look in way)
    if len(way) == 2:
        assert way[0].box.contains(way[1].box)
        assert way[0].box.width >= 1.2 * way[1].box.width
    if looks:
        assert looks[-1].kind == "close"
    for place, look in enumerate(looks):
        if look.kind == "detour":
            assert all(look.box.intersection(box).is_empty for box in valid)
            others = [*looks[:place], *way]
            assert all(2 * look.box.intersection(each.box).area < look.box.area for each in others)
    if detours == 0:
        assert looks == way


def test_looks_are_not_always_centred_and_answers_are_drawn() -> None:
    valid = [Box(1000, 1000, 300, 300), Box(3000, 2000, 300, 300)]
    overview = np.zeros((32, 32), np.float32)
    planned = [
        planned_looks(SEARCHED, valid, 5, overview=overview, detours=0, rng=np.random.default_rng(seed))
        for seed in range(20)
    ]
    assert {answer for _, answer in planned} == set(valid)
    assert len({looks[-1].box for looks, _ in planned}) > 10


def test_a_detour_goes_where_the_stain_is_and_not_to_glass() -> None:
    overview = np.zeros((30, 40), np.float32)
    overview[20:, 30:] = 1  # the lower right corner
    looks, _ = planned_looks(
        SEARCHED, [Box(600, 400, 200, 200)], 10, overview=overview, detours=1, rng=np.random.default_rng(0)
    )
    stained = Box(SEARCHED.x + 3000, SEARCHED.y + 2000, 1000, 1000)
    detours = [look.box for look in looks if look.kind == "detour"]
    assert 2 * detours[0].intersection(stained).area >= detours[0].area
    assert all(not box.intersection(stained).is_empty for box in detours)
    plain, _ = planned_looks(
        SEARCHED, [Box(600, 400, 200, 200)], 10, overview=0 * overview, detours=1, rng=np.random.default_rng(0)
    )
    assert all(look.kind != "detour" for look in plain)


# -- the chats --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lines(cohort: Cohort, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    out = tmp_path_factory.mktemp("chats") / "out"
    done = write_chats(cohort, out, per_query=6, detours=0.5, seed=3)
    written = read_lines(out / "chats.jsonl")
    assert (done.path, done.episodes, done.images) == (out / "chats.jsonl", 30, 0)
    assert len(written) == 30
    assert done.detours == sum(line["detours"] for line in written) > 5
    assert done.looks == sum(name == "extract_roi" for line in written for name, _ in calls(line))
    assert [path.name for path in out.iterdir()] == ["chats.jsonl"]
    return written


def test_they_are_what_the_agent_sees_and_sends(lines: list[dict[str, Any]], cohort: Cohort, tmp_path: Path) -> None:
    """Beside the transcript of a run of the same agent: the same fields, tools, prompt and forms of messages."""
    with ScriptedServer() as server:
        run(
            "evipath/localization",
            policies=["agent:localizer"],
            endpoints=[Endpoint(name="e", base_url=server.base_url, model="scripted")],
            cohort=cohort.root,
            split="train",
            out=tmp_path / "run",
        )
    export_transcripts(tmp_path / "run", tmp_path / "run.jsonl")
    of_run = {line["episode"]["item"]: line for line in read_lines(tmp_path / "run.jsonl")}
    for line in lines:
        other = of_run[line["episode"]["item"]]
        assert line.keys() == other.keys() | {"path", "detours"}
        assert line["episode"].keys() == other["episode"].keys()
        assert line["tools"] == other["tools"] == list(TOOLS)
        mine, its = line["messages"], other["messages"]
        # System, user, the first call, its answer, the overview: nothing depends on the model up to there.
        first = [{key: value for key, value in message.items() if "call" not in key} for message in mine[:5]]
        assert first == [{key: value for key, value in message.items() if "call" not in key} for message in its[:5]]
        assert {forms(message) for message in mine} <= {forms(message) for message in its}
        ids = [call["id"] for message in mine for call in message.get("tool_calls", ())]
        assert len(set(ids)) == len(ids)
        assert [message["tool_call_id"] for message in mine if message["role"] == "tool"] == ids[:-1]


def forms(message: dict[str, Any]) -> Any:
    content = message["content"]
    parts = tuple(tuple(part) for part in content) if isinstance(content, list) else type(content)
    return message["role"], frozenset(message), parts


def test_every_episode_ends_with_a_right_answer(lines: list[dict[str, Any]], cohort: Cohort) -> None:
    asked = {each.query.query_id: each for each in tree_queries(cohort, "train")}
    for line in lines:
        query = asked[line["episode"]["item"]]
        assert (line["outcome"], line["score"], line["split"]) == ("scored", 1.0, "train")
        assert tuple(line["path"]) == query.path
        said = calls(line)
        assert [name for name, _ in said[:1] + said[-1:]] == ["get_image_info", "finish_and_report"]
        report = said[-1][1]
        assert Box.of(report["bbox"]) in query.reference.boxes
        assert report["confidence"] == CONFIDENCE
        assert report["conclusion"] == f"This box shows the target: {query.query.target}"


def test_reasons_are_true(lines: list[dict[str, Any]], cohort: Cohort) -> None:
    asked = {each.query.query_id: each for each in tree_queries(cohort, "train")}
    seen: set[str] = set()
    for line in lines:
        query = asked[line["episode"]["item"]]
        looks = [arguments for name, arguments in calls(line) if name == "extract_roi"]
        rois = [Box(look["x"], look["y"], look["w"], look["h"]) for look in looks]
        shown = [Box.of(image["box"]) for image in images_of(line)]
        assert shown == [query.query.search_box, *rois]
        detours = 0
        for place, (look, roi) in enumerate(zip(looks, rois, strict=True)):
            words = look["reason"]
            assert words.endswith(f": {query.query.target}")
            touches = any(not roi.intersection(box).is_empty for box in query.reference.boxes)
            back = "The last look does not show the target: elsewhere. "
            if words.startswith(back):
                assert all(rois[place - 1].intersection(box).is_empty for box in query.reference.boxes)
            why = words.removeprefix(back).removesuffix(f": {query.query.target}")
            seen.add(why)
            if why == "More nuclear stain here than in the overview as a whole; is it the target":
                detours += 1
                assert not touches
            else:
                assert touches
            if "of the last look" in why:
                assert rois[place - 1].contains(roi)
            if "of an earlier look" in why:
                assert any(before.contains(roi) for before in rois[: place - 1])
        assert detours == line["detours"]
    assert seen == {
        "More nuclear stain here than in the overview as a whole; is it the target",
        "A part of the overview that may hold the target, as a wide look first",
        "A part of the last look that may show the target, closer",
        "A part of an earlier look that may show the target, closer",
        "A part of the overview that may show the target, closer",
    }


def test_images_as_files(cohort: Cohort, tmp_path: Path) -> None:
    done = write_chats(cohort, tmp_path / "out", images="files", view_px=64, detours=0)
    parts = [part for line in read_lines(done.path) for part in images_of(line)]
    files = {part["image"] for part in parts}
    assert done.images == len(files) == len(list((tmp_path / "out/chats_images").iterdir()))
    for part in parts:
        pixels = np.asarray(Image.open(tmp_path / "out" / part["image"]))
        assert list(pixels.shape[1::-1]) == part["size"]
        assert max(part["size"]) <= 64
        assert (pixels == cohort.open(part["slide_id"]).read(Box.of(part["box"]), tuple(part["size"]))).all()


def test_the_same_twice_and_other_seeds_differ(lines: list[dict[str, Any]], cohort: Cohort, tmp_path: Path) -> None:
    again = write_chats(cohort, tmp_path / "again", per_query=6, detours=0.5, seed=3)
    other = write_chats(cohort, tmp_path / "other", per_query=6, detours=0.5, seed=4)
    assert read_lines(again.path) == lines
    assert [line["messages"] for line in read_lines(other.path)] != [line["messages"] for line in lines]


@pytest.mark.parametrize("coordinates", ["unit", "permille", "view_px"])
def test_coordinates(cohort: Cohort, tmp_path: Path, coordinates: str) -> None:
    done = write_chats(cohort, tmp_path / "out", coordinates=coordinates, budget="tight", detours=1, split="val")
    assert done.mean_score > 0.9
    for line in read_lines(done.path):
        assert line["split"] == "val"
        facts = json.loads(next(m["content"] for m in line["messages"] if m["role"] == "tool"))
        assert facts["coordinates"]["convention"] == coordinates


@pytest.mark.parametrize("budget", ["0", "1", "2"])
def test_hardly_any_budget(cohort: Cohort, tmp_path: Path, budget: str) -> None:
    done = write_chats(cohort, tmp_path / "out", budget=budget, detours=1)
    for line in read_lines(done.path):
        names = [name for name, _ in calls(line)]
        assert names.count("extract_roi") <= int(budget)
        assert (names[0] == "get_image_info") == (budget != "0")
        assert line["score"] == 1


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"split": "test"}, UnknownNameError, "test is there to test with"),
        ({"split": None}, UnknownNameError, "Known: train, val"),
        ({"detours": 2}, InvalidArgumentError, r"rate of detours is 2; allowed is 0"),
        ({"view_px": 35}, InvalidArgumentError, "view_px is 35"),
        ({"images": "raw"}, UnknownNameError, "Known: refs, files"),
        ({"coordinates": "pixels"}, UnknownNameError, "Known: level0, unit, permille, view_px"),
        ({"budget": "big"}, UnknownNameError, "unknown budget"),
    ],
)
def test_bad_arguments(cohort: Cohort, tmp_path: Path, arguments: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        write_chats(cohort, tmp_path / "out", **arguments)
    assert not list(tmp_path.iterdir())


def test_faults_and_folders(cohort: Cohort, tmp_path: Path) -> None:
    built = Cohort.load(build_cohort(tmp_path / "c", slides=[{"slide_id": "s", "split": "train"}]))
    (tmp_path / "c/s.svs").unlink()
    with pytest.raises(CohortError):
        write_chats(built, tmp_path / "out")
    (tmp_path / "there").mkdir()
    write_lines(tmp_path / "there/mine", [{}])
    with pytest.raises(InvalidArgumentError, match="exists and is not an empty folder"):
        write_chats(cohort, tmp_path / "there")

    def fail(done: int, asked: int, /, note: str = "") -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_chats(cohort, tmp_path / "out", progress=fail)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "there"]


def test_without_langgraph(cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "wsigym.agents.localizer", raising=False)
    monkeypatch.setitem(sys.modules, "langgraph.graph", None)
    with pytest.raises(InvalidArgumentError, match=r"needs langgraph.*pip install 'wsigym\[agents\]'"):
        write_chats(cohort, tmp_path / "out")
    assert not list(tmp_path.iterdir())
