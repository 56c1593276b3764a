"""Exploration from the command line: a scorer's calibration, a run that looks for another class, its tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from shapely import box
from tumour_builder import TUMOUR_BOXES, build_tumour_cohort, write_regions

from wsigym.cli import main

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """`wsigym ARGUMENTS`: the exit code, and what was printed on stdout and stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["wsigym", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


def test_another_class_from_calibration_to_picture(call: Call, tmp_path: Path) -> None:
    cohort = build_tumour_cohort(tmp_path / "cohort")
    write_regions(cohort, "positive", [box(*corners) for corners in TUMOUR_BOXES], name="necrosis")
    manifest = json.loads((cohort / "cohort.json").read_text())
    for slide in manifest["slides"]:
        slide["split"] = "val"
    (cohort / "cohort.json").write_text(json.dumps(manifest))
    calibration = ("tiles", "calibrate", "--cohort", cohort, "--out", tmp_path / "calibration.json")
    scorer = ("--scorer", "stain-density", "--tile-px", "32")
    code, _, err = call(*calibration, *scorer)
    assert (code, "'tumour'" in err, "Known: necrosis" in err) == (2, True, True)
    code, out, _ = call(*calibration, *scorer, "--target", "necrosis", "--json")
    assert (code, json.loads(out)["scorer"]) == (0, "stain-density")

    policies = ("--policy", "stain-density", "--policy", f"adaptive:{tmp_path / 'calibration.json'}")
    run = ("run", "evipath/exploration", "--cohort", cohort, *policies, "--env", "tile_px=32", "--env", "view_px=36")
    assert call(*run, "--out", tmp_path / "run")[0] == 2
    assert call(*run, "--target", "necrosis", "--out", tmp_path / "run")[0] == 0
    assert json.loads((tmp_path / "run/run.json").read_text())["env"]["target"] == "necrosis"
    code, out, _ = call("table", tmp_path / "run", "--causes", "--plot", tmp_path / "curve.png", "--json")
    assert code == 0
    main_table, searches, causes = json.loads(out)["tables"]
    assert [row["budget"] for row in main_table["rows"]] == ["K=6,3,2", "tiles=6,3,2"]
    assert [row["against"] for row in searches["rows"]] == ["stain-density at K=6,3,2"]
    assert [row["auroc"] is not None for row in causes["rows"] if row["policy"] == "stain-density"] == [
        True,
        False,
        False,
    ]
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
