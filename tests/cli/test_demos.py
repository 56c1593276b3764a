"""`wsigym demos`: both formats, its numbers, what it refuses, and that a killed one leaves nothing half made."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cohort_builder import build_cohort, read_lines
from typer.testing import CliRunner

from wsigym.baselines.demonstrations import read_demonstrations
from wsigym.cli import app
from wsigym.errors import InvalidArgumentError, UnknownNameError, WsigymError


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    slides = [{"slide_id": "s1", "split": "train"}, {"slide_id": "s2", "split": "test"}]
    return build_cohort(tmp_path_factory.mktemp("cohort") / "c", slides=slides)


def call(*words: str | Path) -> str:
    result = CliRunner().invoke(app, ["demos", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_episodes_of_pan_and_zoom(cohort: Path, tmp_path: Path) -> None:
    out = tmp_path / "demos"
    said = call("--cohort", cohort, "--out", out, "--view-px", "36", "--per-query", "2", "--detours", "0.5")
    read = list(read_demonstrations(out))
    looks, detours = sum(len(each) - 1 for each in read), sum(int(each.detours.sum()) for each in read)
    assert said.startswith(f"10 episodes of split train written to {out}: {looks} looks, {detours} of them detours;")
    assert read[0].observations["view"].shape[1:] == (36, 36, 3)
    out = tmp_path / "plain"
    told = json.loads(call("--cohort", cohort, "--out", out, "--view-px", "36", "--detours", "0", "--json"))
    assert told["path"] == str(out)
    assert (told["episodes"], told["detours"]) == (5, 0)


def test_chats(cohort: Path, tmp_path: Path) -> None:
    out = tmp_path / "demos"
    arguments = ("--cohort", cohort, "--out", out, "--format", "chat", "--images", "files", "--view-px", "64")
    told = json.loads(call(*arguments, "--coordinates", "unit", "--json"))
    lines = read_lines(out / "chats.jsonl")
    assert (told["path"], told["episodes"], len(lines)) == (str(out / "chats.jsonl"), 5, 5)
    assert told["images"] == len(list((out / "chats_images").iterdir()))


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (("--format", "csv"), UnknownNameError, "Known: minari, chat"),
        (("--coordinates", "unit"), InvalidArgumentError, "--coordinates is for --format chat"),
        (("--images", "refs"), UnknownNameError, "Known: raw, jpeg"),
        (("--images", "raw", "--format", "chat"), UnknownNameError, "Known: refs, files"),
        (("--split", "test"), UnknownNameError, "test is there to test with"),
        (("--split", "val"), InvalidArgumentError, "no slide in split 'val'"),
        (("--detours", "1.5"), InvalidArgumentError, "rate of detours is 1.5"),
        (("--view-px", "20"), InvalidArgumentError, "view_px is 20"),
        (("--per-query", "0"), InvalidArgumentError, "per_query is 0"),
    ],
)
def test_bad_arguments(
    cohort: Path, tmp_path: Path, words: tuple[str, ...], error: type[WsigymError], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        call("--cohort", cohort, "--out", tmp_path / "out", *words)
    assert caught.value.bad_input
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("form", "number"), [("minari", signal.SIGTERM), ("chat", signal.SIGKILL)])
def test_killed_on_the_way(cohort: Path, tmp_path: Path, form: str, number: signal.Signals) -> None:
    """Nothing but a hidden folder is left, by SIGKILL alone; the same command makes all of it."""
    arguments = ["demos", "--cohort", str(cohort), "--out", str(tmp_path / "out"), "--format", form, "--view-px", "36"]
    with subprocess.Popen([sys.executable, "-m", "wsigym", *arguments, "--per-query", "2000"]) as child:
        deadline = time.monotonic() + 60
        hidden = tmp_path / ".out.building"
        while sum(path.stat().st_size for path in hidden.glob("out/**/*") if path.is_file()) < 10_000:
            assert time.monotonic() < deadline
            assert child.poll() is None
            time.sleep(0.02)
        child.send_signal(number)
    assert list(tmp_path.iterdir()) == ([hidden] if number == signal.SIGKILL else [])
    call(*arguments[1:])
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
