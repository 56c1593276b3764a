"""`wsigym bench`: tables for people, JSON for machines."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from wsigym.cli import app


def test_reader(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "reader", "--quick", "--folder", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "usual way" in done.output
    assert "navigation, 224 px" in done.output
    assert "two threads do" in done.output


def test_env_as_json() -> None:
    done = CliRunner().invoke(app, ["bench", "env", "--quick", "--json"])
    assert done.exit_code == 0, done.output
    measured = json.loads(done.stdout)
    assert measured["rows"][0]["view_px"] == 96
    assert measured["second_env_mib"] < 5


def test_scoring() -> None:
    done = CliRunner().invoke(app, ["bench", "scoring", "--quick"])
    assert done.exit_code == 0, done.output
    assert "replies parsed and scored" in done.output
    assert "times as long" in done.output


def test_scoring_as_json() -> None:
    done = CliRunner().invoke(app, ["bench", "scoring", "--quick", "--json"])
    assert done.exit_code == 0, done.output
    measured = json.loads(done.stdout)
    assert measured["replies"] == 3000
    # 300,000 replies in a minute are 5,000 a second.
    assert measured["score_s"] < 3
