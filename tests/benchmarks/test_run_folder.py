"""Locking, resuming, and what a kill leaves."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from cohort_builder import read_lines, write_lines

import wsigym
from wsigym.baselines import make_policy
from wsigym.benchmarks.run_folder import RunFolder, load_run
from wsigym.benchmarks.runner import RunSummary
from wsigym.errors import RunError, WsigymWarning

Play = Callable[..., RunSummary]
Timeless = Callable[..., dict[Any, dict[str, Any]]]


# -- the lock --------------------------------------------------------------------------------------------------------


def test_a_second_run_into_a_folder_is_told_so(play: Play, tmp_path: Path) -> None:
    play(subset="2")
    folder = tmp_path / "run"
    with RunFolder(folder, load_run(folder).config), pytest.raises(RunError, match=f"{folder} is in use"):
        play(subset="2")
    assert play(subset="2").finished_before == 2


def test_a_folder_with_other_things_is_left_alone(play: Play, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").touch()
    with pytest.raises(RunError, match=r"not empty \(thesis.tex\)"):
        play()


def test_a_folder_that_cannot_be_made(play: Play, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot be written"):
        play(out="file")


def test_what_is_no_run_folder(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"has no run\.json"):
        load_run(tmp_path / "nothing")
    (tmp_path / "run.json").write_text('{"format": "wsigym-run/2"}')
    with pytest.raises(RunError, match=r"run.json is broken: format"):
        load_run(tmp_path)


# -- resuming --------------------------------------------------------------------------------------------------------


def test_finished_episodes_are_not_run_again_and_what_is_added_is(play: Play, tmp_path: Path) -> None:
    play("looker", seeds=[0])
    lines = (tmp_path / "run" / "episodes.jsonl").read_bytes()
    created = load_run(tmp_path / "run").config.created
    again = play("looker", seeds=[0])
    assert (again.finished_before, again.played) == (10, 0)
    assert (tmp_path / "run" / "episodes.jsonl").read_bytes() == lines
    more = play("second", budgets=["base", "loose"], seeds=[0, 1])
    assert (more.finished_before, more.played) == (0, 40)
    run = load_run(tmp_path / "run")
    assert (run.config.policies, run.config.budgets, run.config.seeds) == (
        ("looker", "second"),
        ("base", "loose"),
        (0, 1),
    )
    assert run.config.created == created
    assert (tmp_path / "run" / "episodes.jsonl").read_bytes().startswith(lines)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"subset": "3"}, 'subset is "2", asked for is "3"'),
        ({"split": "train"}, 'split is null, asked for is "train"'),
        ({"env_arguments": {"view_px": 99}}, "env is "),
        ({"cohort": "other"}, "cohort.sha256"),
    ],
)
def test_what_must_match(play: Play, tmp_path: Path, tiny_cohort: Path, changed: dict[str, Any], field: str) -> None:
    cohort, other = (shutil.copytree(tiny_cohort, tmp_path / name) for name in ("cohort", "other"))
    for folder in (cohort, other):
        manifest = json.loads((folder / "cohort.json").read_text())
        for entry in manifest["slides"]:
            entry["split"] = "train"
        (folder / "cohort.json").write_text(json.dumps(manifest))
    lines = read_lines(other / "nodes.jsonl")
    write_lines(other / "nodes.jsonl", [*lines[:-1], lines[-1] | {"finding": "another"}])
    play(cohort=cohort, subset="2")
    if "cohort" in changed:
        changed["cohort"] = other
    with pytest.raises(RunError) as caught:
        play(**{"cohort": cohort, "subset": "2"} | changed)
    assert field in str(caught.value)
    assert "choose another --out" in str(caught.value)


def test_a_cut_line_is_cut_off_and_its_episode_run_again(play: Play, tmp_path: Path, timeless: Timeless) -> None:
    play()
    before = timeless()
    path = tmp_path / "run" / "episodes.jsonl"
    content = path.read_bytes()
    path.write_bytes(content[:-100])
    assert len(load_run(tmp_path / "run").records) == 9
    assert path.read_bytes() == content[:-100]  # Reading changes nothing.
    assert play().played == 1
    assert timeless() == before
    assert len(path.read_bytes().splitlines()) == 10


@pytest.mark.parametrize("broken", [b"{}", b"", b"\0\0\0\0", b'{"suite": "evi', b"[]"])
def test_a_broken_line_in_the_middle_is_never_dropped(play: Play, tmp_path: Path, broken: bytes) -> None:
    play(subset="3")
    path = tmp_path / "run" / "episodes.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    content = lines[0] + broken + b"\n" + lines[2][:-5]
    path.write_bytes(content)
    for attempt in (lambda: load_run(tmp_path / "run"), lambda: play(subset="3")):
        with pytest.raises(RunError, match=r"episodes.jsonl:2: not an episode"):
            attempt()
    assert path.read_bytes() == content


@pytest.mark.parametrize("score", [-0.1, 1.1, math.nan])
def test_a_score_outside_0_to_1_is_no_score(play: Play, tmp_path: Path, score: float) -> None:
    play(subset="1")
    path = tmp_path / "run" / "episodes.jsonl"
    write_lines(path, [read_lines(path)[0] | {"score": score}])
    with pytest.raises(RunError, match=r"episodes.jsonl:1: not an episode: score: "):
        load_run(tmp_path / "run", steps=False)


def test_a_folder_in_place_of_the_episodes(play: Play, tmp_path: Path) -> None:
    play(subset="1")
    (tmp_path / "run" / "episodes.jsonl").unlink()
    (tmp_path / "run" / "episodes.jsonl").mkdir()
    for attempt in (lambda: load_run(tmp_path / "run"), lambda: play(subset="1")):
        with pytest.raises(RunError, match=r"episodes.jsonl cannot be read \(Is a directory\)"):
            attempt()


class NearlyFull(io.RawIOBase):
    """A file on a disk with room for `room` bytes: what fits of a line is written, the rest is refused."""

    def __init__(self, file: BinaryIO, room: int) -> None:
        self.file, self.room = file, room

    def write(self, data: Any) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = self.file.write(data[: min(self.room, 1000)])
        self.room -= taken
        return taken

    def fileno(self) -> int:
        return self.file.fileno()

    def close(self) -> None:
        self.file.close()


def test_a_full_disk_keeps_what_is_finished(play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter = RunFolder.__enter__

    def enter_with_little_room(self: RunFolder) -> RunFolder:
        enter(self)
        assert self._file is not None
        self._file = NearlyFull(self._file, 4500)  # type: ignore[assignment]
        return self

    with monkeypatch.context() as full:
        full.setattr(RunFolder, "__enter__", enter_with_little_room)
        with pytest.raises(RunError, match=r"No space left on device.*the same command goes on") as caught:
            play()
    assert not caught.value.bad_input
    kept = len(load_run(tmp_path / "run").records)
    assert 0 < kept < 10
    assert play().played == 10 - kept
    assert len(load_run(tmp_path / "run").records) == 10


def test_a_disk_that_fails_at_the_end_leaves_the_folder_free(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    play(subset="2")
    with monkeypatch.context() as broken:
        broken.setattr("wsigym.benchmarks.run_folder._write_whole", lambda *_: None)
        broken.setattr("wsigym.benchmarks.run_folder.os.fsync", failing)
        with pytest.raises(OSError, match="Input/output error"):
            play(subset="2")
    assert play(subset="2").finished_before == 2


def test_of_several_lines_with_one_key_the_last_counts(play: Play, tmp_path: Path) -> None:
    play(subset="2")
    path = tmp_path / "run" / "episodes.jsonl"
    first, second = (json.loads(line) for line in path.read_bytes().splitlines())
    write_lines(path, [first | {"score": 0.125}, second, first])
    records = load_run(tmp_path / "run").records
    assert [record.score for record in records] == [first["score"], second["score"]]


def test_another_version_warns_and_is_noted(play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play("looker", subset="1")
    monkeypatch.setattr(wsigym, "__version__", "99.0")
    with pytest.warns(WsigymWarning, match=r"begun with wsigym .* goes on with 99\.0"):
        play("looker", "second", subset="1")
    run = load_run(tmp_path / "run")
    assert [record.version for record in run.records] == [run.config.version, "99.0"]


# -- kill -9 ---------------------------------------------------------------------------------------------------------

SWEEP = ["--policy", "random", "--policy", "stain-density", "--budget", "tight", "--budget", "base", "--seeds", "3"]
EPISODES = 10 * 2 * 2 * 3


def sweep(cohort: Path, out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "wsigym", "sweep", "evipath/localization", "--cohort", str(cohort), *SWEEP]
    return subprocess.Popen([*command, "--out", str(out), "--jobs", "2"], text=True, stdout=subprocess.PIPE)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


IN_PROC = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for orphans in /proc, as Linux has it")


@IN_PROC
def test_workers_in_the_middle_of_an_episode_die_with_their_parent(tiny_cohort: Path, tmp_path: Path) -> None:
    bodies = tmp_path / "workers"
    bodies.mkdir()
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from pathlib import Path
from stub_policies import Makes, Sleeper
from wsigym.benchmarks.runner import run
make_policy = Makes(Sleeper, Path({str(bodies)!r}))
run("evipath/localization", policies=["sleeper"], cohort={str(tiny_cohort)!r}, out={str(tmp_path / "run")!r}, jobs=2,
    make_policy=make_policy)
"""
    parent = subprocess.Popen([sys.executable, "-c", script])
    deadline = time.monotonic() + 60
    while len(list(bodies.iterdir())) < 2:
        assert parent.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    workers = [int(body.name) for body in bodies.iterdir()]
    parent.kill()
    parent.wait()
    while any(map(alive, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_a_run_killed_again_and_again_loses_and_repeats_nothing(
    tiny_cohort: Path, tmp_path: Path, play: Play, timeless: Timeless
) -> None:
    chance = random.Random(0)
    out, episodes = tmp_path / "killed", tmp_path / "killed" / "episodes.jsonl"
    kept, kills = b"", 0
    deadline = time.monotonic() + 200
    while True:
        process = sweep(tiny_cohort, out)
        goal = len(kept) + chance.randrange(1, 200_000)
        while process.poll() is None and (not episodes.exists() or episodes.stat().st_size < goal):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        if process.poll() is not None:
            break
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        kills += 1
        now = episodes.read_bytes()
        assert now.startswith(kept)
        kept = now[: now.rfind(b"\n") + 1]
    printed, _ = process.communicate()
    assert process.returncode == 0
    assert f"wsigym table {out}" in printed
    assert kills >= 2
    assert episodes.read_bytes().startswith(kept)

    lines = episodes.read_bytes().splitlines()
    assert len(lines) == EPISODES
    assert len(timeless("killed")) == EPISODES
    arguments: dict[str, Any] = {"budgets": ["tight", "base"], "seeds": range(3), "make_policy": make_policy}
    play("random", "stain-density", out="calm", **arguments)
    assert timeless("killed") == timeless("calm")
