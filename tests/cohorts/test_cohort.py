"""Loading cohorts: each kind of fault is one line that says where it is, what was found and what is allowed."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cohort_builder import NODES, PATHS, build_cohort, read_lines, write_lines
from evidence_builder import build_evidence, item, reference

from wsigym.cohorts import Cohort
from wsigym.errors import CohortError, Fault, InvalidArgumentError, SlideOpenError, UnknownNameError

Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sound cohort of two slides, text only."""
    return build_cohort(tmp_path / "cohort", pixels=False)


def faults_of(folder: Path, **options: bool) -> list[Fault]:
    with pytest.raises(CohortError) as caught:
        Cohort.load(folder, **options)
    assert str(caught.value) == "\n".join(str(fault) for fault in caught.value.faults)
    return list(caught.value.faults)


def only_fault(folder: Path, **options: bool) -> Fault:
    faults = faults_of(folder, **options)
    assert len(faults) == 1, faults
    assert "\n" not in str(faults[0])
    return faults[0]


def change_line(folder: Path, name: str, number: int, changes: dict[str, Any]) -> None:
    lines = read_lines(folder / name)
    lines[number - 1] |= changes
    write_lines(folder / name, lines)


def change_slide(folder: Path, index: int, changes: dict[str, Any]) -> None:
    manifest = json.loads((folder / "cohort.json").read_text())
    manifest["slides"][index] |= changes
    (folder / "cohort.json").write_text(json.dumps(manifest, indent=1))


# -- sound cohorts ------------------------------------------------------------------------------------------------


def test_loads(folder: Path) -> None:
    cohort = Cohort.load(folder)
    assert [entry.slide_id for entry in cohort.slides] == ["s1", "s2"]
    assert (len(cohort.nodes), len(cohort.paths)) == (2 * len(NODES), 2 * len(PATHS))
    assert [node.node_id for node in cohort.nodes_of("s2")] == [node["node_id"] for node in NODES]
    assert cohort.nodes_of("s1")[0].box.to_list() == NODES[0]["box"]
    assert cohort.slide("s2").path == "s2.svs"
    assert cohort.regions("s1") == []


def test_the_file_itself_names_the_cohort_too(folder: Path) -> None:
    assert Cohort.load(folder / "cohort.json").root == folder


def test_only_id_and_path_are_required_and_annotations_are_optional(folder: Path) -> None:
    (folder / "nodes.jsonl").unlink()
    (folder / "paths.jsonl").unlink()
    cohort = Cohort.load(str(folder))
    assert cohort.nodes == cohort.paths == ()
    assert cohort.slides[0].split is cohort.slides[0].mpp is None


def test_text_as_editors_on_other_systems_write_it(folder: Path) -> None:
    for name in ("cohort.json", "nodes.jsonl", "paths.jsonl"):
        text = (folder / name).read_text()
        (folder / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() + b"\r\n \r\n\r\n")
    assert len(Cohort.load(folder).nodes) == 2 * len(NODES)


def test_slides_and_nodes_may_have_any_names(tmp_path: Path) -> None:
    slide_id = "Ünïcode (1) 玻片.v2"
    nodes = [{**NODES[0], "node_id": "\u2028 'a\"\t"}]
    folder = build_cohort(tmp_path, slides=[{"slide_id": slide_id}], nodes=nodes, paths=[], pixels=False)
    assert Cohort.load(folder).nodes_of(slide_id)[0].node_id == nodes[0]["node_id"]


def test_pickled_cohort_opens_its_slides_anew(tiny_cohort: Path) -> None:
    cohort = Cohort.load(tiny_cohort)
    cohort.open("s1")
    copy = pickle.loads(pickle.dumps(cohort))
    assert copy.nodes == cohort.nodes
    assert copy.open("s1").dimensions == cohort.open("s1").dimensions


def test_a_slide_is_opened_once(tiny_cohort: Path) -> None:
    cohort = Cohort.load(tiny_cohort)
    assert cohort.open("s1") is cohort.open("s1")


def test_the_cohorts_mpp_wins_over_the_files(tmp_path: Path, tiny_cohort: Path) -> None:
    entries = [{"slide_id": "s", "path": str(tiny_cohort / "s1.svs"), "mpp": 0.5}]
    folder = build_cohort(tmp_path, slides=entries, nodes=[], paths=[], pixels=False)
    assert Cohort.load(folder, allow_outside=True).open("s").mpp == 0.5


# -- sha256 -------------------------------------------------------------------------------------------------------


def test_equal_files_have_equal_digests_wherever_they_lie(folder: Path, tmp_path: Path) -> None:
    assert Cohort.load(folder).sha256 == Cohort.load(build_cohort(tmp_path / "copy", pixels=False)).sha256


@pytest.mark.parametrize("name", ["cohort.json", "nodes.jsonl", "paths.jsonl", "regions/s1.geojson"])
def test_any_byte_changes_the_digest(folder: Path, name: str) -> None:
    (folder / "regions").mkdir()
    (folder / "regions/s1.geojson").write_text('{"type": "FeatureCollection", "features": []}')
    before = Cohort.load(folder).sha256
    (folder / name).write_bytes((folder / name).read_bytes() + b"\n")
    assert Cohort.load(folder).sha256 != before


def test_moving_a_line_between_files_changes_the_digest(folder: Path) -> None:
    (folder / "paths.jsonl").write_text("")
    before = Cohort.load(folder).sha256
    (folder / "paths.jsonl").unlink()
    assert Cohort.load(folder).sha256 != before


# -- cohort.json --------------------------------------------------------------------------------------------------


def test_no_folder_or_no_manifest(tmp_path: Path) -> None:
    for missing in (tmp_path, tmp_path / "nowhere"):
        fault = only_fault(missing)
        assert fault.file == str(missing / "cohort.json")
        assert "no such file" in fault.message


@pytest.mark.parametrize(
    ("changes", "field", "found", "allowed"),
    [
        ({"slide_id": ""}, "slides.1.slide_id", "''", "names files"),
        ({"slide_id": "a/b"}, "slides.1.slide_id", "'a/b'", "no slash"),
        ({"slide_id": ".."}, "slides.1.slide_id", "'..'", "not only dots"),
        ({"slide_id": "a\u0000"}, "slides.1.slide_id", "'a\\x00'", "no control character"),
        ({"slide_id": 7}, "slides.1.slide_id", "7", "string"),
        ({"slide_id": "x" * 201}, "slides.1.slide_id", "xxx", "200"),
        ({"path": "../x"}, "slides.1.path", "'../x'", "inside it"),
        ({"path": " "}, "slides.1.path", "' '", "visible"),
        ({"path": "a\nb"}, "slides.1.path", "'a\\nb'", "no control character"),
        ({"path": None}, "slides.1.path", "None", "string"),
        ({"split": "dev"}, "slides.1.split", "'dev'", "'train', 'val' or 'test'"),
        ({"mpp": 0}, "slides.1.mpp", "0", "0.05"),
        ({"mpp": 353}, "slides.1.mpp", "353", "20"),
        ({"mpp": "0.25"}, "slides.1.mpp", "'0.25'", "number"),
        ({"mpp": True}, "slides.1.mpp", "True", "number"),
        ({"mpp": float("nan")}, "slides.1.mpp", "nan", "number"),
        ({"organ": 3}, "slides.1.organ", "3", "string"),
        ({"colour": "red"}, "slides.1.colour", "'red'", "no such field"),
    ],
)
def test_faulty_slide_entry(folder: Path, changes: dict[str, Any], field: str, found: str, allowed: str) -> None:
    change_slide(folder, 1, changes)
    fault = only_fault(folder)
    assert (fault.file, fault.field) == ("cohort.json", field)
    assert found in fault.message
    assert allowed in fault.message
    opening = [
        number for number, text in enumerate((folder / "cohort.json").read_text().split("\n"), 1) if text == "  {"
    ]
    assert fault.line == opening[1]


def test_slide_id_that_stands_twice(tmp_path: Path) -> None:
    slides = [{"slide_id": "s1"}, {"slide_id": "s2"}, {"slide_id": "s1"}]
    fault = only_fault(build_cohort(tmp_path, slides=slides, nodes=[], pixels=False, paths=[]))
    assert (fault.line, fault.field) == (13, "slides.2.slide_id")
    assert "'s1' stands on line 5 already (slides.0); ids are unique" in fault.message


@pytest.mark.parametrize("key", ["slide_id", "path"])
def test_missing_field_of_a_slide(folder: Path, key: str) -> None:
    manifest = json.loads((folder / "cohort.json").read_text())
    del manifest["slides"][0][key]
    (folder / "cohort.json").write_text(json.dumps(manifest))
    fault = only_fault(folder)
    assert (fault.line, fault.field, fault.message) == (1, f"slides.0.{key}", "is missing; it is required")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "not JSON"),
        ('{\n"format": 1\n"name"}', 3, "not JSON"),
        ('{"name": "a",\n"name": "b"}', None, "'name' stands more than once"),
        ("[" * 100_000, None, "nested too deeply"),
        ('{"slides": ' + "1" * 5000 + "}", None, "digits"),
    ],
)
def test_manifest_that_is_not_json(folder: Path, text: str, line: int | None, words: str) -> None:
    (folder / "cohort.json").write_text(text)
    fault = only_fault(folder)
    assert (fault.file, fault.line) == ("cohort.json", line)
    assert words in fault.message


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"format": "wsigym-cohort/2"}, "format"),
        ({"name": ""}, "name"),
        ({"slides": []}, "slides"),
        ({"slides": {}}, "slides"),
        ({"slides": ["s1"]}, "slides.0"),
        ({"extra": 1}, "extra"),
    ],
)
def test_faulty_manifest(folder: Path, changes: dict[str, Any], field: str) -> None:
    manifest = json.loads((folder / "cohort.json").read_text()) | changes
    (folder / "cohort.json").write_text(json.dumps(manifest))
    assert only_fault(folder).field == field


@pytest.mark.parametrize("content", ["[]", "null", "3", '"text"'])
def test_manifest_that_is_no_object(folder: Path, content: str) -> None:
    (folder / "cohort.json").write_text(content)
    assert "dictionary" in only_fault(folder).message


@pytest.mark.parametrize(
    "path",
    [
        "../x.svs",
        "a/../../x.svs",
        "/x.svs",
        "C:\\x.svs",
        "C:x.svs",
        "\\\\host\\share\\x.svs",
        "..\\x.svs",
        "file:///x.svs",
        "FILE:///x.svs",
        "simplecache::file:///x.svs",
        "local://x.svs",
    ],
)
def test_path_that_leaves_the_folder(folder: Path, path: str) -> None:
    change_slide(folder, 1, {"path": path})
    fault = only_fault(folder)
    assert (fault.file, fault.field) == ("cohort.json", "slides.1.path")
    assert repr(path) in fault.message
    assert "--allow-outside" in fault.message
    assert Cohort.load(folder, allow_outside=True).slides[1].path == path


@pytest.mark.parametrize(
    "path", ["a/b.svs", "a/../b.svs", "./b.svs", "..b.svs", "https://host/x.svs", "s3://bucket/x.svs"]
)
def test_path_that_stays(folder: Path, path: str) -> None:
    change_slide(folder, 1, {"path": path})
    assert Cohort.load(folder).slides[1].path == path


# -- symbolic links -----------------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder beside the cohort's, whose name the cohort's begins."""
    (tmp_path / "cohort-more").mkdir()
    (tmp_path / "cohort-more" / "s2.svs").write_bytes(b"")
    return tmp_path / "cohort-more"


@pytest.mark.parametrize("linked", ["file", "folder", "chain", "relative"])
def test_a_link_that_leaves_the_folder(folder: Path, elsewhere: Path, linked: str) -> None:
    path = "slides/s2.svs"
    if linked == "folder":
        (folder / "slides").symlink_to(elsewhere)
    else:
        (folder / "slides").mkdir()
        if linked == "chain":
            (folder / "other").symlink_to(elsewhere / "s2.svs")
        to = {"file": elsewhere / "s2.svs", "chain": folder / "other", "relative": "../../cohort-more/s2.svs"}[linked]
        (folder / path).symlink_to(to)
    change_slide(folder, 1, {"path": path})
    fault = only_fault(folder)
    assert (fault.file, fault.line, fault.field) == ("cohort.json", 9, "slides.1.path")
    for words in ("'slides/s2.svs' leaves the cohort's folder by a link", repr(str(elsewhere / "s2.svs"))):
        assert words in fault.message
    assert "allow it with allow_outside=True (--allow-outside)" in fault.message
    assert Cohort.load(folder, allow_outside=True).slides[1].path == path


def test_links_that_stay_inside_and_a_folder_reached_by_one(folder: Path, tmp_path: Path) -> None:
    (folder / "disk").mkdir()
    (folder / "disk" / "s2.svs").write_bytes(b"")
    (folder / "slides").symlink_to("disk")
    (folder / "s1.svs").symlink_to("slides/s2.svs")
    change_slide(folder, 1, {"path": "slides/s2.svs"})
    (tmp_path / "by-link").symlink_to(folder)
    (tmp_path / "again").symlink_to(tmp_path / "by-link")
    for root in (folder, tmp_path / "by-link", tmp_path / "again"):
        assert len(Cohort.load(root).slides) == 2


def test_links_that_lead_nowhere_are_told_when_the_slide_is_opened(folder: Path) -> None:
    (folder / "s1.svs").symlink_to("s1.svs")
    (folder / "s2.svs").symlink_to("nowhere.svs")
    assert [fault.field for fault in Cohort.load(folder).check_slides()] == ["slides.0.path", "slides.1.path"]


def test_a_slide_outside_is_not_opened_and_its_fault_is_told_once(tmp_path: Path, tiny_cohort: Path) -> None:
    of_s1 = [{"slide_id": "s1", "box": [0, 0, 90, 9], "magnification": 10}]
    unknown = [{"slide_id": "s9", "box": [0, 0, 90, 9], "magnification": 10}]
    folder = build_evidence(
        tmp_path,
        [item(0, images=of_s1), item(1, images=unknown)],
        [reference(0), reference(1)],
        slides=[{"slide_id": "s1"}],
        pixels=False,
    )
    (folder / "s1.svs").symlink_to(tiny_cohort / "s1.svs")
    first, second = Cohort.faults_of(folder)
    assert (first.file, first.field) == ("cohort.json", "slides.0.path")
    assert (second.line, second.field) == (2, "images.0.box")
    assert "unknown slide 's9'" in second.message
    assert [fault.line for fault in Cohort.faults_of(folder, allow_outside=True)] == [2]


def test_links_are_followed_anew_by_a_copy_elsewhere(folder: Path, tmp_path: Path) -> None:
    """As on another machine, where the folder may be reached by another way."""
    (tmp_path / "way").symlink_to(folder)
    (folder / "s1.svs").write_bytes(b"")
    cohort = Cohort.load(tmp_path / "way")
    assert cohort.outside("s1.svs") == ""
    copy = pickle.dumps(cohort)
    folder.rename(tmp_path / "moved")
    (tmp_path / "way").unlink()
    (tmp_path / "way").symlink_to(tmp_path / "moved")
    assert pickle.loads(copy).outside("s1.svs") == ""


# -- nodes.jsonl and paths.jsonl ----------------------------------------------------------------------------------
# Lines of nodes.jsonl: 1 a, 2 a-1, 3 a-2, 4 a-1-1, 5 b, 6 b-1 of s1; 7 to 12 the same of s2.


@pytest.mark.parametrize(
    ("line", "changes", "field", "words"),
    [
        (2, {"slide_id": "s3"}, "slide_id", ["'s3'", "cohort.json"]),
        (3, {"node_id": "a-1"}, "node_id", ["'a-1'", "line 2", "unique"]),
        (2, {"node_id": ""}, "node_id", ["''", "visible"]),
        (2, {"parent_id": "zz"}, "parent_id", ["'zz'", "'s1'", "null"]),
        (4, {"parent_id": "a-1-1"}, "parent_id", ["a-1-1 < a-1-1", "ancestor"]),
        (1, {"parent_id": "a-1"}, "parent_id", ["a < a-1 < a", "ancestor"]),
        (1, {"parent_id": "a-1-1"}, "parent_id", ["a < a-1-1 < a-1 < a", "ancestor"]),
        (4, {"box": [299, 333, 97, 83]}, "box", ["[299, 333, 97, 83]", "'a-1'", "[300, 200, 401, 300]"]),
        (4, {"box": [310, 333, 392, 83]}, "box", ["leaves"]),
        (4, {"magnification": 10}, "magnification", ["10", "'a-1'", "rises"]),
        (4, {"magnification": 2.5}, "magnification", ["2.5", "10"]),
        (4, {"magnification": 0}, "magnification", ["0", "greater than 0"]),
        (4, {"magnification": -40}, "magnification", ["-40"]),
        (4, {"magnification": 201}, "magnification", ["201", "200"]),
        (4, {"magnification": float("nan")}, "magnification", ["nan"]),
        (4, {"magnification": float("inf")}, "magnification", ["inf"]),
        (4, {"magnification": "40"}, "magnification", ["'40'", "number"]),
        (4, {"magnification": True}, "magnification", ["True", "number"]),
        (4, {"magnification": 10**400}, "magnification", ["number"]),
        (4, {"box": [310, 333, 0, 83]}, "box", ["[310, 333, 0, 83]", "at least 1 pixel"]),
        (4, {"box": [310, 333, -1, 83]}, "box", ["0 or more"]),
        (4, {"box": [310.5, 333, 97, 83]}, "box", ["310.5", "whole"]),
        (4, {"box": [310, 333, 97]}, "box", ["[310, 333, 97]", "3 numbers"]),
        (4, {"box": [310, 333, 97, "83"]}, "box", ["four numbers"]),
        (4, {"box": [310, 333, 97, True]}, "box", ["four numbers"]),
        (4, {"box": [310, 333, 97, float("nan")]}, "box", ["nan"]),
        (4, {"box": [310, 333, 97, float("inf")]}, "box", ["inf"]),
        (4, {"box": [310, 333, 97, 10**4000]}, "box", ["2,147,483,648"]),
        (4, {"box": None}, "box", ["None", "four numbers"]),
        (4, {"box": "310,333,97,83"}, "box", ["four numbers"]),
        (4, {"finding": " \t"}, "finding", ["visible"]),
        (4, {"finding": None}, "finding", ["None"]),
        (4, {"finding": "x" * 4097}, "finding", ["4096"]),
        (4, {"comment": "?"}, "comment", ["no such field", "'?'"]),
    ],
)
def test_faulty_node(folder: Path, line: int, changes: dict[str, Any], field: str, words: list[str]) -> None:
    change_line(folder, "nodes.jsonl", line, changes)
    fault = only_fault(folder)
    assert (fault.file, fault.line, fault.field) == ("nodes.jsonl", line, field)
    for word in words:
        assert word in fault.message


@pytest.mark.parametrize("key", ["slide_id", "node_id", "magnification", "box", "finding"])
def test_missing_field_of_a_node(folder: Path, key: str) -> None:
    lines = read_lines(folder / "nodes.jsonl")
    del lines[1][key]
    write_lines(folder / "nodes.jsonl", lines)
    fault = only_fault(folder)
    assert (fault.line, fault.field, fault.message) == (2, key, "is missing; it is required")


@pytest.mark.parametrize(
    ("line", "changes", "field", "words"),
    [
        (1, {"slide_id": "s3"}, "slide_id", ["'s3'", "cohort.json"]),
        (2, {"path_id": "p"}, "path_id", ["'p'", "line 1", "unique"]),
        (1, {"node_ids": []}, "node_ids", ["at least one"]),
        (1, {"node_ids": ["a", "zz"]}, "node_ids", ["'zz'", "'s1'"]),
        (1, {"node_ids": ["a-1", "a-1-1"]}, "node_ids", ["'a-1' stands first", "'a'"]),
        (1, {"node_ids": ["a", "a-1-1"]}, "node_ids", ["'a-1-1' stands after 'a'", "'a-1'"]),
        (1, {"node_ids": ["a", "b"]}, "node_ids", ["'b' stands after 'a'", "no parent"]),
        (1, {"node_ids": ["a", "a"]}, "node_ids", ["'a' stands after 'a'"]),
        (1, {"diagnosis": ""}, "diagnosis", ["visible"]),
        (1, {"details": {"size": "big"}}, "details.size", ["no such field"]),
        (1, {"details": {"grade": 3}}, "details.grade", ["3"]),
    ],
)
def test_faulty_path(folder: Path, line: int, changes: dict[str, Any], field: str, words: list[str]) -> None:
    change_line(folder, "paths.jsonl", line, changes)
    fault = only_fault(folder)
    assert (fault.file, fault.line, fault.field) == ("paths.jsonl", line, field)
    for word in words:
        assert word in fault.message


@pytest.mark.parametrize("name", ["nodes.jsonl", "paths.jsonl"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[1, 2]", "dictionary"),
        ("null", "dictionary"),
        ("[" * 100_000, "nested too deeply"),
        ('{"box": [' + "9" * 5000 + ", 0, 1, 1]}", "digits"),
        ('{"slide_id": "s1", "slide_id": "s2"}', "'slide_id' stands more than once"),
    ],
)
def test_line_that_is_no_object(folder: Path, name: str, text: str, words: str) -> None:
    before = (folder / name).read_text().splitlines()
    (folder / name).write_text("\n".join(["", *before[:1], text, *before[1:]]))
    fault = only_fault(folder)
    assert (fault.file, fault.line) == (name, 3)
    assert words in fault.message


@pytest.mark.parametrize("name", ["cohort.json", "nodes.jsonl", "paths.jsonl", "regions/s1.geojson"])
@pytest.mark.parametrize("kind", ["bytes", "folder", "loop", "dangling"])
def test_file_that_cannot_be_read(folder: Path, name: str, kind: str) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "bytes":
        path.write_bytes(b'{"name":\n "\xff"}')
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path if kind == "loop" else path.with_name("nowhere"))
    fault = only_fault(folder)
    assert fault.file in (name, str(path))
    if kind == "bytes":
        assert fault.line == 2
        assert "0xff" in fault.message


def test_what_follows_from_a_fault_is_not_reported_too(folder: Path) -> None:
    """Line 2 is the parent of line 4 and on a path."""
    text = (folder / "nodes.jsonl").read_text().split("\n")
    for broken in ("{", text[1].replace("[300,", "[300.5,"), text[1].replace('"s1"', '"s9"')):
        (folder / "nodes.jsonl").write_text("\n".join([text[0], broken, *text[2:]]))
        assert only_fault(folder).line == 2


def test_all_faults_are_listed_in_the_order_of_files_and_lines(folder: Path) -> None:
    change_slide(folder, 1, {"path": "../x.svs"})
    change_line(folder, "nodes.jsonl", 12, {"parent_id": "zz"})
    change_line(folder, "nodes.jsonl", 11, {"slide_id": "s9"})
    change_line(folder, "nodes.jsonl", 4, {"magnification": 10, "box": [0, 0, 9, 9]})
    change_line(folder, "nodes.jsonl", 3, {"node_id": "a-1"})
    change_line(folder, "paths.jsonl", 1, {"node_ids": ["zz"]})
    (folder / "regions").mkdir()
    (folder / "regions/s9.geojson").write_text("{}")
    assert [(fault.file, fault.line, fault.field) for fault in faults_of(folder)] == [
        ("cohort.json", 9, "slides.1.path"),
        ("nodes.jsonl", 3, "node_id"),
        ("nodes.jsonl", 4, "box"),
        ("nodes.jsonl", 4, "magnification"),
        ("nodes.jsonl", 11, "slide_id"),
        ("nodes.jsonl", 12, "parent_id"),
        ("paths.jsonl", 1, "node_ids"),
        ("regions/s9.geojson", None, ""),
        ("regions/s9.geojson", None, "features"),
    ]


def test_faults_of_lines_are_listed_although_the_manifest_is_broken(folder: Path) -> None:
    (folder / "cohort.json").write_text("{")
    change_line(folder, "nodes.jsonl", 4, {"magnification": 0})
    assert [fault.file for fault in faults_of(folder)] == ["cohort.json", "nodes.jsonl"]


def test_error_pickles_with_its_faults(folder: Path) -> None:
    change_line(folder, "nodes.jsonl", 4, {"magnification": 0})
    with pytest.raises(CohortError) as caught:
        Cohort.load(folder)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.faults == caught.value.faults
    assert str(copy) == str(caught.value)


# -- slides -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"box": [1000, 0, 1049, 10]}, "box", ["[1000, 0, 1049, 10]", "2048 x 2048 px"]),
        ({"box": [-1, 0, 10, 10]}, "box", ["2048 x 2048 px"]),
        ({"magnification": 45}, "magnification", ["45", "40x", "0.25 um/px"]),
    ],
)
def test_node_that_its_slide_does_not_bear(
    tiny_cohort: Path, tmp_path: Path, changes: dict[str, Any], field: str, words: list[str]
) -> None:
    slides = [{"slide_id": "s1", "path": str(tiny_cohort / "s1.svs")}]
    nodes = [{**NODES[4], "magnification": 44}, {**NODES[0], **changes}]
    folder = build_cohort(tmp_path, slides=slides, nodes=nodes, paths=[], pixels=False)
    (fault,) = Cohort.load(folder, allow_outside=True).check_slides()
    assert (fault.file, fault.line, fault.field) == ("nodes.jsonl", 2, field)
    for word in words:
        assert word in fault.message


def test_slides_that_are_missing_or_of_unknown_scale(tmp_path: Path, shared_cases: Path) -> None:
    nodes = [{**NODES[0], "box": [0, 0, 9, 9]}, {**NODES[4], "box": [0, 0, 9, 9]}]
    slides = [
        {"slide_id": "gone"},
        {"slide_id": "unknown", "path": str(shared_cases / "res_absent.tif")},
        {"slide_id": "told", "path": str(shared_cases / "res_absent.tif"), "mpp": 0.25},
    ]
    folder = build_cohort(tmp_path, slides=slides, nodes=nodes, paths=[], pixels=False)
    cohort = Cohort.load(folder, allow_outside=True)
    missing, unknown = cohort.check_slides()
    assert (missing.file, missing.line, missing.field) == ("cohort.json", 5, "slides.0.path")
    assert "no such file" in missing.message
    assert (unknown.file, unknown.line, unknown.field) == ("cohort.json", 9, "slides.1.mpp")
    assert "give mpp" in unknown.message
    with pytest.raises(SlideOpenError, match="no such file"):
        cohort.open("gone")


def test_faults_of_text_and_of_slides_together(tmp_path: Path) -> None:
    """Slides and nodes whose own lines are faulty are not held against each other."""
    folder = build_cohort(tmp_path, slides=[{"slide_id": "s1"}, {"slide_id": "s2"}, {"slide_id": "s3"}])
    assert Cohort.faults_of(folder) == []
    (folder / "s2.svs").unlink()
    change_slide(folder, 2, {"path": "/nowhere/s3.svs"})
    change_line(folder, "nodes.jsonl", 2, {"box": [300, 200, 4000, 300]})
    change_line(folder, "nodes.jsonl", 5, {"box": [64, 1200, 4000, 700]})
    assert [(fault.file, fault.line, fault.field) for fault in Cohort.faults_of(folder)] == [
        ("cohort.json", 13, "slides.2.path"),
        ("nodes.jsonl", 2, "box"),
        ("nodes.jsonl", 5, "box"),
        ("cohort.json", 9, "slides.1.path"),
    ]


def test_a_faulty_entry_hides_no_other_fault(tmp_path: Path) -> None:
    """Slides are opened, and nodes held against each other, as far as `cohort.json` can be read."""
    folder = build_cohort(tmp_path, slides=[{"slide_id": "s1"}, {"slide_id": "s2"}, {"slide_id": "s3"}], paths=[])
    change_slide(folder, 0, {"mpp": "0.25", "colour": "red"})  # opens all the same: its nodes lie on the slide
    (folder / "s2.svs").unlink()
    change_slide(folder, 2, {"split": "dev", "path": "../s3.svs"})  # is not opened, as its path leaves the folder
    change_line(folder, "nodes.jsonl", 1, {"box": [0, 0, 9000, 9000]})
    change_line(folder, "nodes.jsonl", 4, {"magnification": 80})  # may be right with the mpp that was meant
    change_line(folder, "nodes.jsonl", 12, {"slide_id": "s9"})
    assert [(fault.file, fault.line, fault.field) for fault in Cohort.faults_of(folder)] == [
        ("cohort.json", 5, "slides.0.mpp"),
        ("cohort.json", 5, "slides.0.colour"),
        ("cohort.json", 15, "slides.2.split"),
        ("cohort.json", 15, "slides.2.path"),
        ("nodes.jsonl", 12, "slide_id"),
        ("nodes.jsonl", 1, "box"),
        ("cohort.json", 11, "slides.1.path"),
    ]
    # Where an entry does not even tell its id, a node's slide may be that one.
    change_slide(folder, 2, {"slide_id": "a/b"})
    found = [(fault.file, fault.line, fault.field) for fault in Cohort.faults_of(folder)]
    assert ("nodes.jsonl", 12, "slide_id") not in found
    assert found[-2:] == [("nodes.jsonl", 1, "box"), ("cohort.json", 11, "slides.1.path")]


def test_unknown_slide(folder: Path) -> None:
    cohort = Cohort.load(folder)
    for ask in (cohort.slide, cohort.open, cohort.check_slide, cohort.regions):
        with pytest.raises(UnknownNameError, match=r"unknown slide 'ss1'. Did you mean 's1'\? Known: s1, s2"):
            ask("ss1")


def test_splits(tmp_path: Path) -> None:
    slides = [{"slide_id": "s1", "split": "train"}, {"slide_id": "s2", "split": "test"}, {"slide_id": "s3"}]
    cohort = Cohort.load(build_cohort(tmp_path, slides=slides, pixels=False))
    assert [entry.slide_id for entry in cohort.in_split("test")] == ["s2"]
    assert [entry.slide_id for entry in cohort.in_split(None)] == ["s1", "s2", "s3"]
    with pytest.raises(UnknownNameError, match=r"unknown split 'tests'\. Did you mean 'test'"):
        cohort.in_split("tests")
    with pytest.raises(UnknownNameError, match=r"unknown split '3'\. Known: train"):
        cohort.in_split(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="no slide in split 'val'; it has 1 in none, 1 in test, 1 in train"):
        cohort.in_split("val")


# -- size ---------------------------------------------------------------------------------------------------------


def chain_and_fan(slide_id: str, count: int) -> list[dict[str, Any]]:
    """A root, a chain of half the nodes and a fan of the other half under it."""
    node = {"slide_id": slide_id, "box": [0, 0, 9, 9], "finding": "f"}
    chain = [
        {**node, "node_id": f"c{n}", "parent_id": f"c{n - 1}" if n else None, "magnification": 1 + n / count}
        for n in range(count // 2)
    ]
    fan = [{**node, "node_id": f"f{n}", "parent_id": "c0", "magnification": 40} for n in range(count - len(chain))]
    return chain + fan


@pytest.mark.slow
@pytest.mark.parametrize(("slides", "each", "sound"), [(1000, 100, True), (1, 100_000, True), (1000, 100, False)])
def test_large_cohorts_load_in_seconds(tmp_path: Path, slides: int, each: int, sound: bool) -> None:
    """100,000 nodes, on many slides or in one chain; the unsound one has a fault on every line."""
    entries = [{"slide_id": f"s{n}"} for n in range(slides)]
    lines = [line for entry in entries for line in chain_and_fan(entry["slide_id"], each)]
    if not sound:
        lines = [{**line, "parent_id": f"no {number}"} for number, line in enumerate(lines)]
    folder = build_cohort(tmp_path, slides=entries, nodes=[], paths=[], pixels=False)
    write_lines(folder / "nodes.jsonl", lines)
    start = time.process_time()
    if sound:
        cohort = Cohort.load(folder)
        assert sum(len(cohort.nodes_of(entry["slide_id"])) for entry in entries) == 100_000
    else:
        assert len(faults_of(folder)) == 100_000
    assert time.process_time() - start < 20
