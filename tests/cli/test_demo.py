"""`wsigym demo` on a tiny cohort, and `wsigym cohort synth | check`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cohort_builder import build_cohort
from PIL import Image
from typer.testing import CliRunner

from wsigym.benchmarks import demo as demo_module
from wsigym.benchmarks.run_folder import load_run
from wsigym.cli import app, main


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_demo_plays_every_policy_at_every_budget_and_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cohort = build_cohort(tmp_path / "cohort")
    monkeypatch.setattr(demo_module, "cached_cohort", lambda **_: cohort)
    out = tmp_path / "out"
    printed = invoke("demo", "--out", str(out), "--jobs", "1")
    records = load_run(out / "run").records
    assert len(records) == 10 * 6 * 3
    assert {record.score for record in records if record.policy == "oracle"} == {1.0}
    for name in ("budget-curve.png", "trajectory.png"):
        with Image.open(out / name) as picture:
            assert len(picture.convert("L").getcolors()) > 10
    assert "stain-density" in printed
    assert f"wsigym table {out / 'run'}" in printed

    again = invoke("demo", "--out", str(out), "--jobs", "1")
    assert len(load_run(out / "run").records) == len(records)
    assert again == printed


def test_cohort_synth_makes_what_cohort_check_accepts(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    assert str(folder) in invoke("cohort", "synth", str(folder), "--slides", "1", "--size-px", "2048", "--jobs", "1")
    assert "synthetic-seed0: 1 slide," in invoke("cohort", "check", str(folder))


def test_a_stopped_cohort_synth_leaves_nothing(tmp_path: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        asked = ["cohort", "synth", str(tmp_path / "made"), "--slides", "500", "--size-px", "2048", "--jobs", "2"]
        made = subprocess.Popen([sys.executable, "-m", "wsigym", *asked], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(".made.building/made/slides/*")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        made.send_signal(number)
        assert made.wait(60) == (1 if number == signal.SIGINT else 128 + signal.SIGTERM)
        assert list(tmp_path.iterdir()) == []


def test_cohort_check_lists_every_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = build_cohort(tmp_path / "bad", slides=[{"slide_id": "s1"}, {"slide_id": "s2", "path": "no.svs"}])
    (folder / "no.svs").unlink()
    monkeypatch.setattr("sys.argv", ["wsigym", "cohort", "check", str(folder)])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert "no such file" in capsys.readouterr().err

    nodes = [json.loads(line) for line in (folder / "nodes.jsonl").read_text().splitlines()]
    nodes[1]["box"] = [0, 0, 5000, 5000]
    nodes[3]["parent_id"] = "nowhere"
    (folder / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in nodes))
    monkeypatch.setattr("sys.argv", ["wsigym", "cohort", "check", str(folder), "--json"])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    faults = json.loads(capsys.readouterr().out)["faults"]
    assert [(fault["line"], fault["field"]) for fault in faults[:2]] == [(2, "box"), (4, "parent_id")]
    assert [fault["field"] for fault in faults[2:]] == ["slides.1.path"]
