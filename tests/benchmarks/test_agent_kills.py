"""Agents' runs that are killed, and long ones: nothing that was paid for is paid again, and memory stays flat."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cohort_builder import NODES, build_cohort, read_lines

from wsigym.agents.scripted_server import ScriptedServer
from wsigym.benchmarks.replay import replay
from wsigym.benchmarks.run_folder import load_run

pytestmark = [pytest.mark.network, pytest.mark.slow]

CONCURRENCY = 8
KILLS = 5
ITEMS = 10
MIB = 2**20


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    """Two slides whose every finding is a word of its own, so that no two episodes of a seed make the same request."""
    nodes = [
        node | {"slide_id": slide_id, "finding": f"zebra {slide_id} {node['node_id']}"}
        for slide_id in ("s1", "s2")
        for node in NODES[:5]
    ]
    return build_cohort(tmp_path / "cohort", nodes=nodes, paths=[])


def command(cohort: Path, out: Path, url: str, *further: str) -> list[str]:
    asked = ["sweep", "evipath/localization", "--cohort", str(cohort), "--out", str(out), "--agent", "localizer"]
    return [sys.executable, "-m", "wsigym", *asked, "--base-url", url, "--model", "scripted", *further]


def logged(folder: Path) -> list[tuple[str, int, str]]:
    """(episode, turn, sha256) of each whole line of the request log."""
    path = folder / "requests.jsonl"
    if not path.exists():
        return []
    whole = path.read_bytes().rpartition(b"\n")[0]
    (copy := folder.with_name("log.jsonl")).write_bytes(whole + b"\n" if whole else b"")
    return [(line["episode"], line["turn"], line["sha256"]) for line in read_lines(copy)]


def test_a_run_killed_five_times_repeats_no_answered_request(marked: Path, tmp_path: Path) -> None:
    chance, out = random.Random(1), tmp_path / "run"
    deadline = time.monotonic() + 200
    phases: list[tuple[set[str], int]] = []
    with ScriptedServer(latency_s=0.02) as server:
        call = command(marked, out, server.base_url, "--concurrency", str(CONCURRENCY))
        call += ["--budget", "base"]
        for _ in range(KILLS):
            goal = len(logged(out)) + chance.randrange(1, 16)
            process = subprocess.Popen(call, stdout=subprocess.DEVNULL)
            while len(logged(out)) < goal:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.kill()
            process.wait()
            phases.append(({sha256 for *_, sha256 in logged(out)}, len(server.answered)))
        finished = subprocess.run(call, capture_output=True, text=True, timeout=200)
    assert finished.returncode == 0, finished.stderr
    for kept, begun in phases:
        assert not kept & set(server.answered[begun:])

    lines, records = logged(out), load_run(out).records
    assert len(records) == len(read_lines(out / "episodes.jsonl")) == ITEMS
    assert len(lines) == len(set(lines))
    told = [
        (record.key.text, request.turn, request.sha256)
        for record in records
        if record.agent is not None
        for request in record.agent.requests
    ]
    assert sorted(told) == sorted(lines)
    # What the server answered and a kill kept from being received is all that was asked twice.
    assert 0 <= len(server.answered) - len(lines) <= KILLS * CONCURRENCY
    assert all(replay(out, number).agrees for number in range(len(records)))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory in /proc, as Linux has it")
def test_a_thousand_episodes_at_64_in_flight_keep_memory_flat(marked: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    episodes = out / "episodes.jsonl"
    with ScriptedServer() as server:
        call = command(marked, out, server.base_url, "--concurrency", "64", "--budget", "1", "--seeds", "100")
        process = subprocess.Popen(call, stdout=subprocess.DEVNULL)
        early = peak = 0
        while process.poll() is None:
            peak = memory(process.pid) or peak
            if not early and episodes.exists() and episodes.read_bytes().count(b"\n") >= 200:
                early = peak
            time.sleep(0.2)
    assert process.returncode == 0
    assert len(load_run(out, steps=False).records) == 100 * ITEMS
    assert 0 < early <= peak < 600 * MIB
    assert peak - early < 40 * MIB, (early, peak)


def memory(pid: int) -> int:
    """The most that the process has held so far, in bytes; 0 once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)
