"""From annotations to tables of PathView on the command line; items for people to review and for models to learn."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pathview_builder import boxes, build_sources, source
from PIL import Image
from typer.testing import CliRunner

from wsigym.benchmarks.review import RIGHT
from wsigym.cli import app
from wsigym.errors import CohortError, InvalidArgumentError, UnknownNameError

IMAGES = 12
SPLITS = {"train", "val", "test"}


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "c"
    names = [f"i{number:02d}" for number in range(IMAGES)]
    rows = [(name, label, 10 + 30 * k, 10, 30 + 30 * k, 30) for name in names for k, label in enumerate("TTL")]
    return build_sources(folder, source(), {"boxes.csv": boxes(*rows, ("i00", "T", 5, 5, 5, 9))}, images=names)


@pytest.fixture
def call() -> Callable[..., str]:
    def run(*arguments: Any) -> str:
        result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


@pytest.fixture
def built(cohort: Path, call: Callable[..., str]) -> Path:
    if not (cohort / "items").exists():
        call("items", "build", "pathview", cohort)
    return cohort


def test_build_says_what_was_built_and_dropped(cohort: Path, call: Callable[..., str]) -> None:
    said = call("items", "build", "pathview", cohort)
    assert "12 images (9 train, 1 val, 2 test), 36 annotations" in said
    assert "  1 left out: its box has no area" in said
    assert "pathview/region-description: 12 items" in said
    with (cohort / "references/pathview/dropped.csv").open() as file:
        first = next(csv.DictReader(file))
    assert first == {
        "task": "", "source": "s", "image": "i00", "label": "T", "annotation": "pathview/boxes.csv:38",
        "reason": "its box has no area",
    }  # fmt: skip
    told = json.loads(call("items", "build", "pathview/object-counting", cohort, "--json"))
    assert told["items"] == {"object-counting": 12}
    with pytest.raises(InvalidArgumentError, match="--encoder"):
        call("items", "build", "pathview", cohort, "--encoder", "minilm")


def test_every_dropped_annotation_is_listed_with_its_file_and_row(tmp_path: Path, call: Callable[..., str]) -> None:
    """Whether it is found while files are read, among an image's annotations, or on no image of the source."""
    rows = [("a", "T", 10, 10, 30, 30), ("a", "L", 50, 10, 50, 30), ("a", "glass", 60, 60, 90, 90),
            ("aa", "L", 10, 10, 30, 30), ("a", "T", 190, 10, 230, 30)]  # fmt: skip
    more = boxes((" a ", "T", 60, 60, 80, 80), ("A", "T", 1, 1, 9, 9), ("A", "L", 3, 3, 3, 9))
    build_sources(tmp_path, source(annotations="pathview/*.csv"), {"boxes.csv": boxes(*rows), "more.csv": more})
    said = call("items", "build", "pathview", tmp_path)
    with (tmp_path / "references/pathview/dropped.csv").open() as file:
        found = [
            (row["annotation"], row["image"], row["label"], row["reason"])
            for row in csv.DictReader(file)
            if not row["task"]
        ]
    strange = "no image of the source has this name"
    assert sorted(found) == [
        ("pathview/boxes.csv:3", "a", "L", "its box has no area"),
        ("pathview/boxes.csv:4", "a", "glass", "background"),
        ("pathview/boxes.csv:5", "aa", "L", strange),
        ("pathview/boxes.csv:6", "a", "T", "its box is out of bounds"),
        ("pathview/more.csv:3", "A", "T", strange),
        ("pathview/more.csv:4", "A", "L", "its box has no area"),
    ]
    assert f"  2 left out: {strange}" in said
    assert "  2 left out: its box has no area" in said


def test_run_and_tables(built: Path, call: Callable[..., str], tmp_path: Path) -> None:
    for task in ("object-counting", "region-classification"):
        call("run", f"pathview/{task}", "--cohort", built, "--policy", "oracle", "--out", tmp_path / task)
    assert "MAE" in call("table", tmp_path / "object-counting", "--published")
    told = json.loads(
        call("table", tmp_path / "object-counting", tmp_path / "region-classification", "--refusals", "--json")
    )
    assert told["tables"][0]["rows"][0]["over"] == 0
    with pytest.raises(InvalidArgumentError, match="--refusals shows one table"):
        call("table", tmp_path / "object-counting", "--refusals", "--published")


def test_matched_slides_need_slides(built: Path, call: Callable[..., str], tmp_path: Path) -> None:
    call("run", "pathview/object-counting", "--cohort", built, "--policy", "oracle", "--out", tmp_path / "run")
    (tmp_path / "external.jsonl").write_text('{"policy": "oracle", "slide": "w", "correct": true}\n')
    with pytest.raises(InvalidArgumentError, match="no task of pathview on slides"):
        call("analyse", "matched", tmp_path / "run", "--external", tmp_path / "external.jsonl")
    with pytest.raises(CohortError, match="cannot be read"):
        call("analyse", "matched", tmp_path / "run", "--external", tmp_path / "none.jsonl")


def test_review_writes_a_sheet(built: Path, call: Callable[..., str], tmp_path: Path) -> None:
    assert call("review", "pathview", "--cohort", built, "--n", 8, "--out", tmp_path / "a.png").startswith("8 items")
    with Image.open(tmp_path / "a.png") as image:
        assert image.width == 5 * 372 + 12
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3)
    assert (pixels == RIGHT).all(axis=1).any()  # an answer's box
    call("review", "pathview/object-counting", "--cohort", built, "--n", 8, "--out", tmp_path / "b.png")
    with pytest.raises(UnknownNameError, match="pathview/object-counting"):
        call("review", "pathview/counting", "--cohort", built, "--out", tmp_path / "c.png")
    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        call("review", "pathview", "--cohort", built, "--out", tmp_path / "none" / "c.png")


def test_export_writes_train_items_alone(built: Path, call: Callable[..., str], tmp_path: Path) -> None:
    out = tmp_path / "chats" / "train.jsonl"
    call("export", "pathview", "--cohort", built, "--split", "train", "--format", "chat", "--out", out)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert {line["split"] for line in lines} == {"train"}
    assert len([line for line in lines if line["task"] == "object-counting"]) == 9
    counting = next(line for line in lines if line["task"] == "object-counting")
    user, assistant = counting["messages"]
    assert [part["type"] for part in user["content"]] == ["text", "image", "text"]
    assert user["content"][1]["file"].startswith("pathview/i")
    assert assistant["role"] == "assistant"
    assert assistant["content"] in ("2", "1")
    call("export", "pathview/object-counting", "--cohort", built, "--images", "files", "--out", out)
    first = json.loads(out.read_text().splitlines()[0])
    with Image.open(out.parent / first["messages"][0]["content"][1]["image"]) as image:
        assert image.size == (200, 200)


@pytest.mark.parametrize("split", sorted(SPLITS - {"train"}))
def test_export_refuses_what_is_there_to_test(
    built: Path, call: Callable[..., str], tmp_path: Path, split: str
) -> None:
    with pytest.raises(InvalidArgumentError, match="only train is exported"):
        call("export", "pathview", "--cohort", built, "--split", split, "--out", tmp_path / "x.jsonl")
    assert not (tmp_path / "x.jsonl").exists()


def test_export_refuses_a_patient_of_two_splits(tmp_path: Path, call: Callable[..., str]) -> None:
    table = "image,file,patient\n" + "".join(f"i{n},pathview/i{n}.png,p{n}\n" for n in range(4))
    rows = [(f"i{n}", "T", 10, 10, 30, 30) for n in range(4)]
    build_sources(
        tmp_path,
        source(images="pathview/images.csv"),
        {"boxes.csv": boxes(*rows), "images.csv": table},
        images=[f"i{n}" for n in range(4)],
    )
    call("items", "build", "pathview", tmp_path)
    file = tmp_path / "items/pathview/object-counting.jsonl"
    file.write_text("".join(line.replace('"p1"', '"p0"').replace('"p2"', '"p0"').replace('"p3"', '"p0"') + "\n"
                            for line in file.read_text().splitlines()))  # fmt: skip
    with pytest.raises(InvalidArgumentError, match="'p0' of train items is in split"):
        call("export", "pathview", "--cohort", tmp_path, "--out", tmp_path / "x.jsonl")
