"""`wsigym cohort import` and `wsigym cohort export`: what they print, write and exit with."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from annotation_writer import HOLE, SQUARE, asap, asap_shapes
from cohort_builder import build_cohort
from tumour_builder import build_tumour_cohort

from wsigym.cli import main
from wsigym.cohorts import Cohort
from wsigym.envs.verdicts import verdict_of
from wsigym.slides import Box


class Wsigym:
    """The command, in this process: exit code, stdout and stderr."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str | Path) -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["wsigym", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        said = self._capsys.readouterr()
        return int(left.value.code or 0), said.out, said.err


@pytest.fixture
def wsigym(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Wsigym:
    return Wsigym(monkeypatch, capsys)


def test_import_lists_what_it_did_and_what_it_could_not_match(tmp_path: Path, wsigym: Wsigym) -> None:
    root = build_cohort(tmp_path / "c")
    good, other = tmp_path / "s1.xml", tmp_path / "s9.xml"
    good.write_text(asap_shapes([("Polygon", "Tumor", SQUARE), ("Polygon", "Tumor", HOLE[:2]), ("Dot", "x", HOLE[:1])]))
    other.write_text(asap([]))
    code, out, err = wsigym("cohort", "import", "asap", good, other, "--cohort", root, "--class", "Tumor=tumour")
    assert code == 0
    assert f"s1: 1 region from {good}, left out 1 Dot" in out
    assert out.splitlines()[-1] == "1 region on 1 slide"
    assert f"no slide for {other}" in err
    assert "no file for slide s2" in err
    assert f"warning: {good}: Annotation[1]: skipped" in err
    assert [region.name for region in Cohort.load(root).regions("s1")] == ["tumour"]


def test_import_as_json(tmp_path: Path, wsigym: Wsigym) -> None:
    root = build_cohort(tmp_path / "c")
    (tmp_path / "s1.xml").write_text(asap([(SQUARE, [])]))
    _, out, _ = wsigym("cohort", "import", "asap", tmp_path / "s1.xml", "--cohort", root, "--json")
    report = json.loads(out)
    assert report["imports"][0]["count"] == 1
    assert report["without_file"] == ["s2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hal"], "unknown annotation dialect 'hal'"),
        (["geojson"], "not JSON"),
        (["asap", "--class", "Tumor"], "written FILE_NAME=NAME"),
        (["asap", "--class", "Tumour=x"], "unknown class 'Tumour'"),
        (["asap", "--as", "boxes"], "allowed are regions and nodes"),
        (["asap", "--as", "nodes"], "--as nodes reads geojson"),
    ],
)
def test_bad_input_exits_with_2(tmp_path: Path, wsigym: Wsigym, arguments: list[str], message: str) -> None:
    root = build_cohort(tmp_path / "c", pixels=False)
    (tmp_path / "s1.xml").write_text(asap([(SQUARE, [])]))
    code, _, err = wsigym("cohort", "import", *arguments, tmp_path / "s1.xml", "--cohort", root)
    assert code == 2
    assert message in err
    assert not (root / "regions").exists()


def test_nodes_there_and_back(tmp_path: Path, wsigym: Wsigym) -> None:
    root = build_cohort(tmp_path / "c", paths=())
    nodes = Cohort.load(root).nodes
    code, out, _ = wsigym("cohort", "export", "--qupath", root, "--out", tmp_path / "q")
    assert (code, len(out.splitlines())) == (0, 2)
    (root / "nodes.jsonl").unlink()
    files = sorted((tmp_path / "q/nodes").iterdir())
    code, out, _ = wsigym("cohort", "import", "geojson", *files, "--cohort", root, "--as", "nodes")
    assert code == 0
    assert out.splitlines()[-1] == "12 nodes on 2 slides"
    assert Cohort.load(root).nodes == nodes


def test_a_run_in_qupath(tmp_path: Path, wsigym: Wsigym) -> None:
    """Each ROI that the run's record holds is a rectangle, and each answer."""
    from wsigym.benchmarks.run_folder import load_run

    root = build_cohort(tmp_path / "c")
    run = (
        "run",
        "evipath/localization",
        "--policy",
        "random",
        "--cohort",
        root,
        "--subset",
        "3",
        "--out",
        tmp_path / "r",
    )
    assert wsigym(*run)[0] == 0
    code, _, _ = wsigym("cohort", "export", root, "--qupath", "--out", tmp_path / "q", "--run", tmp_path / "r")
    assert code == 0
    features = [
        feature for path in (tmp_path / "q/rois").iterdir() for feature in json.loads(path.read_text())["features"]
    ]
    rois = [step.roi for record in load_run(tmp_path / "r").records for step in record.steps if step.roi is not None]
    kinds = [feature["properties"]["classification"]["name"] for feature in features]
    assert (kinds.count("ROI"), kinds.count("answer")) == (len(rois), 3)
    corners = [feature["geometry"]["coordinates"][0] for feature in features]
    shown = [ring[0] + [ring[2][0] - ring[0][0], ring[2][1] - ring[0][1]] for ring in corners]
    assert all(list(roi) in shown for roi in rois)


def test_the_tiles_of_an_exploration_in_qupath_and_back(tmp_path: Path, wsigym: Wsigym) -> None:
    """Every tile that was scored is a rectangle of class viewed or kept at its magnification, with its suspicion."""
    from wsigym.benchmarks.run_folder import load_run

    root = build_tumour_cohort(tmp_path / "c")
    run = ("run", "evipath/exploration", "--policy", "stain-density", "--policy", "best-first:oracle", "--cohort", root)
    sizes = ("--env", "tile_px=32", "--env", "view_px=36", "--budget", "tight")
    assert wsigym(*run, *sizes, "--out", tmp_path / "r")[0] == 0
    code, _, _ = wsigym("cohort", "export", root, "--qupath", "--out", tmp_path / "q", "--run", tmp_path / "r")
    assert code == 0
    for slide_id in ("positive", "negative"):
        found = json.loads((tmp_path / f"q/rois/{slide_id}.geojson").read_text())["features"]
        records = [record for record in load_run(tmp_path / "r").records if record.item == slide_id]
        expected = [
            (record.policy, step.view_magnification, tile, tile.box in (record.steps[-1].kept or ()))
            for record in records
            for step in record.steps
            for tile in step.tiles or ()
        ]
        assert len(found) == len(expected) == sum(int(record.metrics["tiles_viewed"] or 0) for record in records)
        for feature, (policy, magnification, tile, kept) in zip(found, expected, strict=True):
            left_top, _, right_bottom = feature["geometry"]["coordinates"][0][:3]
            assert [*left_top, right_bottom[0] - left_top[0], right_bottom[1] - left_top[1]] == list(tile.box)
            said = feature["properties"]
            assert said["classification"]["name"] == f"{'kept' if kept else 'viewed'} {magnification:g}x"
            assert verdict_of(said["measurements"]["suspicion"]) == (tile.yes, tile.score)
            assert (said["metadata"]["policy"], said["metadata"]["verdict"]) == (policy, "Yes" if tile.yes else "No")
    # And back as regions, by class: what the cascade kept at 40x.
    (root / "regions/positive.geojson").unlink()
    assert wsigym("cohort", "import", "geojson", tmp_path / "q/rois/positive.geojson", "--cohort", root)[0] == 0
    kept = {
        Box.of(box)
        for record in load_run(tmp_path / "r").records
        if record.item == "positive"
        for box in record.steps[-1].kept or ()
        if box[2] == 32
    }
    regions = [region.area.bounds for region in Cohort.load(root).regions("positive") if region.name == "kept 40x"]
    assert {Box(round(x), round(y), round(r - x), round(b - y)) for x, y, r, b in regions} == kept


def test_a_run_with_nothing_to_export_is_said(tmp_path: Path, wsigym: Wsigym) -> None:
    root = build_tumour_cohort(tmp_path / "c")
    run = ("run", "evipath/exploration", "--policy", "random", "--cohort", root, "--env", "tile_px=32")
    assert wsigym(*run, "--env", "view_px=36", "--budget", "tight", "--out", tmp_path / "r")[0] == 0
    records = tmp_path / "r/episodes.jsonl"
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    for line in lines:
        for step in line["steps"]:
            del step["tiles"], step["kept"]  # as an earlier version wrote them
    records.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    code, _, err = wsigym("cohort", "export", root, "--qupath", "--out", tmp_path / "q", "--run", tmp_path / "r")
    assert (code, "no ROI, answer or tile to export" in err) == (2, True)
    assert not (tmp_path / "q").exists()


def test_export_names_its_format(tmp_path: Path, wsigym: Wsigym) -> None:
    code, _, err = wsigym("cohort", "export", tmp_path, "--out", tmp_path / "q")
    assert code == 2
    assert "--qupath" in err
