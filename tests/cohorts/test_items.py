from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cohort_builder import build_cohort
from evidence_builder import EVIDENCE, SUITE, TASK, build_evidence, item, reference
from PIL import Image
from pydantic import ValidationError

from wsigym.cohorts import Cohort
from wsigym.cohorts.feature_files import load_features
from wsigym.cohorts.item_files import Asked, image_faults, load_items, write_items
from wsigym.cohorts.items import EvidenceItem, FeatureFiles, ImageSpec, in_base_order
from wsigym.cohorts.references import EvidenceReference
from wsigym.envs.item_images import item_image
from wsigym.errors import CohortError, InvalidArgumentError, SlideReadError, UnknownNameError

ITEMS, REFERENCES = f"items/{SUITE}/{TASK}.jsonl", f"references/{SUITE}/{TASK}.jsonl"


def test_the_text_is_made_of_evidence_specimen_findings_question() -> None:
    findings = [{"magnification": 2.5, "text": "a mass"}, {"magnification": 40, "text": "mitoses"}]
    made = EvidenceItem.model_validate(item(findings=findings))
    assert made.text.splitlines() == [
        "The 3 images show fields of one case.",
        "Specimen site: sigmoid colon.",
        "At 2.5x: a mass",
        "At 40x: mitoses",
        "Which of these is seen (0)?",
    ]


def test_the_text_of_features_alone_says_that_they_are_the_evidence() -> None:
    files = {"features": "f.npy", "coordinates": "c.npy"}
    alone = "No image is shown: the evidence is features of a slide, for models that read features."
    own = {**EVIDENCE, "none": "Features of one lymph node."}
    for evidence, said in ((None, alone), (EVIDENCE, alone), (own, "Features of one lymph node.")):
        made = EvidenceItem.model_validate(item(images=[], evidence=evidence, features=files, metadata={}))
        assert made.text.splitlines() == [said, "Which of these is seen (0)?"]
    both = EvidenceItem.model_validate(item(features=files, metadata={}))
    assert both.text == EvidenceItem.model_validate(item(metadata={})).text
    told = [{"magnification": 10, "text": "sheets"}]
    findings = EvidenceItem.model_validate(item(images=[], evidence=None, features=files, metadata={}, findings=told))
    assert findings.text.splitlines() == ["At 10x: sheets", "Which of these is seen (0)?"]
    without = EvidenceItem.model_validate(item(images=[], metadata={}))
    assert without.text.splitlines()[0] == "No image is shown: answer from the text."


def test_items_come_back_from_their_files(tmp_path: Path) -> None:
    build_evidence(tmp_path, [item(0), item(1, split="train")], [reference(1), reference(0)])
    cohort = Cohort.load(tmp_path)
    asked = load_items(cohort, SUITE, TASK)
    assert [(each.item.item_id, each.reference.item_id, each.line) for each in asked] == [
        ("i0", "i0", 1),
        ("i1", "i1", 2),
    ]
    assert [each.item.item_id for each in load_items(cohort, SUITE, TASK, "train")] == ["i1"]
    with pytest.raises(InvalidArgumentError, match="'val'"):
        load_items(cohort, SUITE, TASK, "val")
    with pytest.raises(UnknownNameError, match="test/choise"):
        load_items(cohort, SUITE, "choise")
    assert Cohort.faults_of(tmp_path) == []
    write_items(tmp_path, SUITE, TASK, asked)
    assert load_items(Cohort.load(tmp_path), SUITE, TASK) == asked


def test_the_sha256_of_a_cohort_covers_items_references_and_vocabulary(tmp_path: Path) -> None:
    shas = {Cohort.load(build_cohort(tmp_path, pixels=False)).sha256}
    build_evidence(tmp_path, [item()], [reference()])
    shas.add(Cohort.load(tmp_path).sha256)
    build_evidence(tmp_path, [item()], [reference(answer=1)])
    shas.add(Cohort.load(tmp_path).sha256)
    (tmp_path / "items" / SUITE / "vocabulary.json").write_text('{"gland": ["glands"]}')
    shas.add(Cohort.load(tmp_path).sha256)
    assert len(shas) == 4


FAULTY: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "duplicate options": (
        {"options": ["sheets", "glands", " Sheets "]},
        {},
        f"{ITEMS}:1: options:",
        "A and C are the same",
    ),
    "options that read alike": ({"options": ["e\u0301lan", "\u00e9lan\u200b"]}, {}, f"{ITEMS}:1: options", "the same"),
    "unseen option": ({"options": ["sheets", "\u200b\u00a0"]}, {}, f"{ITEMS}:1: options.1", "visible character"),
    "unseen group": ({"group": {"patient": "\u2060"}}, {}, f"{ITEMS}:1: group.patient", "visible character"),
    "folder as image": ({"images": [{"file": "images"}]}, {}, f"{ITEMS}:1: images.0.file", "Is a directory"),
    "empty group": ({"group": {}}, {}, f"{ITEMS}:1: group:", "is empty"),
    "unknown group": ({"group": {"hospital": "x"}}, {}, f"{ITEMS}:1: group.hospital", "'patient'"),
    "one option": ({"options": ["sheets"]}, {}, f"{ITEMS}:1: options:", "at least two options"),
    "eleven options": ({"options": [f"o{i}" for i in range(11)]}, {}, f"{ITEMS}:1: options", "at most 10"),
    "hidden field": ({"diagnosis": "x"}, {}, f"{ITEMS}:1: diagnosis", "no such field"),
    "hidden metadata": ({"metadata": {"grade": "3"}}, {}, f"{ITEMS}:1: metadata.grade", "no such field"),
    "no words": (
        {"evidence": None},
        {},
        f"{ITEMS}:1: evidence:",
        """is missing where there are images; say how they are introduced: {"one": "...", "many": "... {count} ..."}""",
    ),
    "findings of falling power": (
        {"findings": [{"magnification": power, "text": "a mass"} for power in (2.5, 40, 10)]},
        {},
        f"{ITEMS}:1: findings:",
        "findings go from low to high power, and 10x stands after 40x",
    ),
    "falling power": (
        {"images": [{"file": "images/field.png", "magnification": power} for power in (2.5, 40, 10)]},
        {},
        f"{ITEMS}:1: images:",
        "images go from low to high power, and 10x stands after 40x",
    ),
    "file outside": ({"images": [{"file": "../x.png"}]}, {}, f"{ITEMS}:1: images.0.file", "stays inside"),
    "half a region": ({"images": [{"slide_id": "s1"}]}, {}, f"{ITEMS}:1: images.0", "slide_id with its box"),
    "NaN region": (
        {"images": [{"slide_id": "s1", "box": [0, 0, float("nan"), 9], "magnification": 10}]},
        {},
        f"{ITEMS}:1: images.0.box",
        "nan",
    ),
    "missing image": ({"images": [{"file": "images/no.png"}]}, {}, f"{ITEMS}:1: images.0.file", "No such file"),
    "broken image": (
        {"images": [{"file": "cohort.json"}]},
        {},
        f"{ITEMS}:1: images.0.file",
        "cannot be read as an image",
    ),
    "unknown slide": (
        {"images": [{"slide_id": "s9", "box": [0, 0, 9, 9], "magnification": 10}]},
        {},
        f"{ITEMS}:1: images.0.box",
        "unknown slide 's9'",
    ),
    "beyond the slide": (
        {"images": [{"slide_id": "s1", "box": [2000, 0, 90, 9], "magnification": 10}]},
        {},
        f"{ITEMS}:1: images.0.box",
        "2048 x 2048",
    ),
    "beyond the scan": (
        {"images": [{"slide_id": "s1", "box": [0, 0, 90, 9], "magnification": 80}]},
        {},
        f"{ITEMS}:1: images.0.box",
        "beyond the scan",
    ),
    "other task": ({"task": "another"}, {}, f"{ITEMS}:1: task", "lies in the file of"),
    "not among the options": ({}, {"answer": 4}, f"{REFERENCES}:1: answer", "not among the 4 options"),
    "a letter": ({}, {"answer": "A"}, f"{REFERENCES}:1: answer", "allowed are the places 0 to 3"),
    "true is not 1": ({}, {"answer": True}, f"{REFERENCES}:1: answer", "found True"),
    "null is no answer": ({}, {"answer": None}, f"{REFERENCES}:1: answer", "found None"),
    "accepted": ({}, {"accepted": [1, 7]}, f"{REFERENCES}:1: accepted.1", "not among the 4 options"),
    "unknown item": ({}, {"item_id": "i9"}, f"{REFERENCES}:1: item_id", "no item 'i9'"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_names_file_line_and_field(tmp_path: Path, tiny_cohort: Path, name: str) -> None:
    item_changes, reference_changes, where, said = FAULTY[name]
    build_evidence(tmp_path, [item(0, **item_changes), item(1)], [reference(0, **reference_changes), reference(1)])
    faults = [str(fault) for fault in Cohort.faults_of(tmp_path)]
    assert any(fault.startswith(where) and said in fault for fault in faults), faults
    assert len(faults) == (2 if name == "unknown item" else 1), faults


def answer_of_kind(kind: str, answer: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return item(answer={"kind": kind, "words": "Answer."}), reference(answer=answer)


@pytest.mark.parametrize(
    ("kind", "answer", "said"),
    [
        ("boxes", [[0, 0, 500, float("nan")]], "four finite numbers"),
        ("boxes", [[500, 0, 400, 9]], "0 <= x1 < x2 <= 1000"),
        ("boxes", [], "at least one box"),
        ("number", float("inf"), "finite number"),
        ("number", "3", "finite number"),
        ("terms", [], "at least one term"),
        ("terms", ["gland", "fibre"], "'fibre' outside the vocabulary"),
        ("json", {}, "at least one field"),
        ("ranking", [0, 1, 2, 2], "once"),
        ("text", "  ", "visible"),
    ],
)
def test_a_reference_fits_its_kind_of_answer(tmp_path: Path, kind: str, answer: Any, said: str) -> None:
    build_evidence(tmp_path, *([each] for each in answer_of_kind(kind, answer)))
    (tmp_path / "items" / SUITE / "vocabulary.json").write_text('{"gland": [], "nerve": []}')
    (fault,) = Cohort.faults_of(tmp_path)
    assert (fault.file, fault.line, fault.field) == (REFERENCES, 1, "answer")
    assert said in fault.message


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("boxes", [[0, 0, 500, 1000]]),
        ("number", 0),
        ("terms", ["gland"]),
        ("json", {"answers": [True]}),
        ("ranking", [3, 1, 2, 0]),
        ("text", "a"),
    ],
)
def test_every_kind_of_answer_has_references(tmp_path: Path, kind: str, answer: Any) -> None:
    build_evidence(tmp_path, *([each] for each in answer_of_kind(kind, answer)))
    (tmp_path / "items" / SUITE / "vocabulary.json").write_text('{"gland": ["glands"]}')
    assert Cohort.faults_of(tmp_path) == []


def test_all_faults_are_listed_and_a_broken_line_is_reported_once(tmp_path: Path) -> None:
    items = [item(0, options=[]), item(1), item(1), item(2), item(3)]
    references = [reference(0), reference(1, answer=9), reference(3), reference(3)]
    build_evidence(tmp_path, items, references)
    with pytest.raises(CohortError) as caught:
        load_items(Cohort.load(tmp_path), SUITE, TASK)
    found = {(fault.file.split("/")[0], fault.line, fault.field) for fault in caught.value.faults}
    assert found == {
        ("items", 1, "options"),
        ("items", 3, "item_id"),
        ("items", 4, "item_id"),
        ("references", 2, "answer"),
        ("references", 4, "item_id"),
    }


@pytest.mark.parametrize("line", ["[1]", "3", '"i2"', '{"item_id": [1]}'])
def test_a_broken_line_hides_no_fault_of_other_lines(tmp_path: Path, line: str) -> None:
    build_evidence(tmp_path, [item(0), item(1)], [reference(0)])
    with (tmp_path / ITEMS).open("a") as file:
        file.write(line + "\n")
    faults = Cohort.faults_of(tmp_path)
    assert (ITEMS, 2, "item_id") in {(fault.file, fault.line, fault.field) for fault in faults}
    assert 3 in {fault.line for fault in faults}


def test_a_faulty_slide_hides_no_fault_of_items(tmp_path: Path) -> None:
    of_s2 = [{"slide_id": "s2", "box": [0, 0, 90, 9], "magnification": 10}]
    missing = [{"file": "images/no.png"}]
    slides = [{"slide_id": "s1"}, {"slide_id": "s2", "mpp": -1}]
    build_evidence(
        tmp_path,
        [item(0), item(1, images=missing), item(2, images=of_s2)],
        [reference(0, answer=9), reference(1), reference(2)],
        slides=slides,
        nodes=[],
        paths=[],
    )
    assert {(fault.file, fault.field) for fault in Cohort.faults_of(tmp_path)} == {
        ("cohort.json", "slides.1.mpp"),
        (REFERENCES, "answer"),
        (ITEMS, "images.0.file"),
    }


def test_terms_need_a_vocabulary(tmp_path: Path) -> None:
    build_evidence(tmp_path, *([each] for each in answer_of_kind("terms", ["gland"])))
    faults = Cohort.faults_of(tmp_path)
    assert [fault.file for fault in faults] == [f"items/{SUITE}/vocabulary.json", REFERENCES]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"gland": ["tubule"], "nerve": ["Tubule"]}, "nerve.0: 'Tubule' means 'gland' already"),
        ({"gland": ["nerve"], "nerve": []}, "gland.0: 'nerve' means 'nerve' already"),
    ],
)
def test_a_spelling_means_one_term(tmp_path: Path, content: dict[str, list[str]], said: str) -> None:
    build_evidence(tmp_path, *([each] for each in answer_of_kind("terms", ["gland"])))
    (tmp_path / "items" / SUITE / "vocabulary.json").write_text(json.dumps(content))
    (fault,) = Cohort.faults_of(tmp_path)
    assert said in str(fault)


def wide_grey(path: Path) -> None:
    Image.fromarray(np.zeros((9, 9), np.uint16)).save(path)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_bytes(b""), "of no known format"),
        (lambda path: path.write_bytes(b"<html>404</html>"), "of no known format"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to(path), "symbolic links"),
        (wide_grey, "which is not 8 bits a channel"),
    ],
    ids=["empty", "html", "pipe", "loop", "16 bits"],
)
def test_what_cannot_be_shown_as_an_image(tmp_path: Path, make: Callable[[Path], object], said: str) -> None:
    build_evidence(tmp_path, [item()], [reference()])
    path = tmp_path / "images" / "field.png"
    path.unlink()
    make(path)
    (fault,) = Cohort.faults_of(tmp_path)
    assert (fault.line, fault.field) == (1, "images.2.file")
    assert said in fault.message
    assert str(tmp_path) not in fault.message


def test_an_image_cut_short_is_found_by_decoding(tmp_path: Path) -> None:
    build_evidence(tmp_path, [item()], [reference()])
    path = tmp_path / "images" / "field.png"
    path.write_bytes(path.read_bytes()[:4000])
    cohort = Cohort.load(tmp_path)
    asked = load_items(cohort, SUITE, TASK)
    assert list(image_faults(cohort, asked)) == []
    (fault,) = Cohort.faults_of(tmp_path)
    assert fault.field == "images.2.file"


def test_a_link_to_a_file_elsewhere_is_not_read(tmp_path: Path) -> None:
    cohort, elsewhere = tmp_path / "cohort", tmp_path / "elsewhere"
    files = {"features": "f.npy", "coordinates": "c.npy"}
    tiles = [{"tiles": [{"file": "images/field.png"}, {"file": "images/field.png"}]}]
    build_evidence(
        cohort,
        [item(0, images=[{"file": "images/field.png"}], features=files), item(1, images=tiles)],
        [reference(0), reference(1)],
        slides=(),
        pixels=False,
    )
    elsewhere.mkdir()
    np.save(elsewhere / "c.npy", np.ones((3, 2)))
    np.save(cohort / "f.npy", np.ones((3, 4)))
    (cohort / "c.npy").symlink_to(elsewhere / "c.npy")
    (cohort / "images").rename(elsewhere / "images")
    (cohort / "images").symlink_to(elsewhere / "images")
    found = {(fault.line, fault.field): fault.message for fault in Cohort.faults_of(cohort)}
    assert set(found) == {
        (1, "images.0.file"),
        (1, "features.coordinates"),
        (2, "images.0.tiles.0.file"),
        (2, "images.0.tiles.1.file"),
    }
    for field, name in (("images.0.file", "images/field.png"), ("features.coordinates", "c.npy")):
        assert f"{name!r} leaves the cohort's folder by a link" in found[1, field]
        assert repr(str(elsewhere / name)) in found[1, field]
        assert "--allow-outside" in found[1, field]
    assert Cohort.faults_of(cohort, allow_outside=True) == []
    loaded = Cohort.load(cohort)
    with pytest.raises(InvalidArgumentError, match=r"'c\.npy' leaves the cohort's folder by a link"):
        load_features(loaded, FeatureFiles.model_validate(files))
    with pytest.raises(SlideReadError, match=r"'images/field\.png' leaves the cohort's folder by a link"):
        item_image(loaded, ImageSpec(file="images/field.png"), 64)
    allowed = Cohort.load(cohort, allow_outside=True)
    assert item_image(allowed, ImageSpec(file="images/field.png"), 64).size == (64, 43)
    assert load_features(allowed, FeatureFiles.model_validate(files))[1].shape == (3, 2)


def test_the_base_order_is_a_permutation_that_depends_on_seed_and_item_alone() -> None:
    options = ["a", "b", "c", "d"]
    orders = [tuple(in_base_order(options, f"item-{number}", 0)) for number in range(2400)]
    assert all(sorted(order) == options for order in orders)
    assert orders == [tuple(in_base_order(options, f"item-{number}", 0)) for number in range(2400)]
    assert in_base_order(options, "item-3", 0) != in_base_order(options, "item-3", 1)
    counts = Counter(orders)
    assert len(counts) == 24
    assert max(counts.values()) < 2 * min(counts.values())


def test_images_of_equal_or_unknown_power_or_that_are_the_options_stand_in_any_order() -> None:
    def field(power: float | None) -> dict[str, Any]:
        return {"file": "images/field.png", "magnification": power}

    for powers in ((10, 10, 40), (40, None, 10), (None, None)):
        EvidenceItem.model_validate(item(images=[field(power) for power in powers]))
    options = ["Image 2", "Image 1"]
    EvidenceItem.model_validate(item(images=[field(40), field(10)], options=options))
    with pytest.raises(ValidationError, match="10x stands after 40x"):
        EvidenceItem.model_validate(item(images=[field(40), field(10)], options=["Image 1", "Image 3"]))


def test_tiles_of_tiles_and_mixed_images_are_refused() -> None:
    tile = {"file": "a.png"}
    for images in ([{"tiles": [{"tiles": [tile]}]}], [{"tiles": [tile], "file": "b.png"}], [{}]):
        with pytest.raises(ValidationError, match=r"images\.0"):
            EvidenceItem.model_validate(item(images=images))


def test_lines_leave_out_what_is_default(tmp_path: Path) -> None:
    made = EvidenceItem.model_validate(item(images=[], evidence=None, metadata={}))
    write_items(tmp_path, SUITE, TASK, [Asked(made, EvidenceReference(item_id="i0", answer=2))])
    text = (tmp_path / ITEMS).read_text()
    assert "images" not in text
    assert '"answer": 2' in (tmp_path / REFERENCES).read_text()


def test_what_items_have_in_common_is_held_once_and_they_are_what_their_lines_say(tmp_path: Path) -> None:
    written = [item(number, **({"metadata": {"organ": "liver"}} if number == 2 else {})) for number in range(4)]
    build_evidence(tmp_path, written, [reference(number) for number in range(4)], pixels=False)
    found = load_items(Cohort.load(tmp_path), SUITE, TASK)
    for asked, line, number in zip(found, written, range(4), strict=True):
        alone = EvidenceItem.model_validate(line)
        assert asked.item == alone
        assert asked.item.model_dump_json(exclude_unset=True) == alone.model_dump_json(exclude_unset=True)
        assert asked.reference == EvidenceReference.model_validate(reference(number))
    first, second, third, _ = (asked.item for asked in found)
    assert first.options is second.options is third.options
    assert first.metadata is second.metadata
    assert third.metadata != first.metadata
    assert first.model_copy(update={"split": "val"}).model_fields_set != first.model_fields_set


def test_a_byte_that_is_no_text_far_into_a_file_is_found_on_its_line(tmp_path: Path) -> None:
    count = 200
    build_evidence(tmp_path, [item(n) for n in range(count)], [reference(n) for n in range(count)], pixels=False)
    path = tmp_path / "items" / SUITE / f"{TASK}.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[150] = lines[150].replace(b"sheets", b"sh\xffets")
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(CohortError) as caught:
        load_items(Cohort.load(tmp_path), SUITE, TASK)
    assert [(fault.file, fault.line) for fault in caught.value.faults] == [(f"items/{SUITE}/{TASK}.jsonl", 151)]


def test_a_line_cut_short_is_told_with_its_column(tmp_path: Path) -> None:
    build_evidence(tmp_path, [item()], [reference()], pixels=False)
    path = tmp_path / "items" / SUITE / f"{TASK}.jsonl"
    path.write_text('{"item_id": "i1"\n' + path.read_text())
    with pytest.raises(CohortError, match=r"choice.jsonl:1: not JSON: Expecting ',' delimiter, column 17"):
        load_items(Cohort.load(tmp_path), SUITE, TASK)
