"""Runs on a local Ray of two workers, beside the same in this process. Skipped where Ray is not installed."""

from __future__ import annotations

import importlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from cohort_builder import build_cohort, read_lines
from stub_policies import KillsItsWorker, Makes, TellsWhere

import wsigym
from wsigym.benchmarks.records import EpisodeKey
from wsigym.benchmarks.resources import Resources
from wsigym.benchmarks.run_folder import load_run
from wsigym.benchmarks.runner import RunSummary
from wsigym.cli import main
from wsigym.cohorts import Cohort
from wsigym.errors import InvalidArgumentError, RunError
from wsigym.slides import cache_info, set_cache_size

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
cloudpickle = ray.cloudpickle
engine: Any = importlib.import_module("wsigym.benchmarks.ray_engine")
_Worker = engine._Worker

Play = Callable[..., RunSummary]
Timeless = Callable[..., dict[Any, dict[str, Any]]]

ITEMS = 10
TESTS = Path(__file__).resolve().parents[1]
ON_RAY: dict[str, Any] = {"engine": "ray", "jobs": 2}


TOO_SLOW = "timed out during startup"
BUSY = "this machine is too busy for Ray, which allows its processes 30 s to start; run these tests when it is free"

HEAD = """
import sys, ray
store = 80 * 2**20
ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=store, logging_level="ERROR")
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
ray.shutdown()
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A Ray of two CPUs in which the tests' own modules can be imported, and this process connected to it; its address.

    It is started in a process of its own, so that what a failed start leaves behind ends with that.
    """
    env = {**os.environ, "PYTHONPATH": str(TESTS), "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", HEAD], env=env, text=True, **pipes) as head:
        address = head.stdout.readline().strip()  # type: ignore[union-attr]
        if not address:
            _, told = head.communicate()
            assert TOO_SLOW in told, told
            pytest.skip(BUSY)
        sigterm = signal.getsignal(signal.SIGTERM)
        ray.init(address, log_to_driver=False, logging_level="ERROR")
        yield address
        ray.shutdown()
        signal.signal(signal.SIGTERM, sigterm)  # Ray sets one of its own, which later tests would fork.
        head.communicate("", timeout=60)


def table_of(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What `wsigym table` prints of the run, called beside it so that the run's path is not part of it."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["wsigym", "table", ".", "--causes", "--confidence", "--budgets"])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    return capsys.readouterr().out


@pytest.mark.usefixtures("cluster")
def test_a_killed_worker_costs_nothing(
    play: Play,
    tmp_path: Path,
    timeless: Timeless,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bodies = tmp_path / "bodies"
    bodies.mkdir()
    policies = {"policies": ["looker", "second"], "seeds": range(3)}
    summary = play(out="killed", make_policy=Makes(KillsItsWorker, bodies, 1), **policies, **ON_RAY)
    assert len(list(bodies.iterdir())) == 1
    assert (summary.played, summary.failed) == (6 * ITEMS, 0)
    play(out="calm", **policies)
    assert timeless("killed") == timeless("calm")
    assert len((tmp_path / "killed" / "episodes.jsonl").read_text().splitlines()) == 6 * ITEMS
    killed, calm = (table_of(tmp_path / out, monkeypatch, capsys) for out in ("killed", "calm"))
    # Ray itself tells of the death on stdout, in a process that it was started in by others.
    assert "".join(line for line in killed.splitlines(keepends=True) if "(raylet)" not in line) == calm
    assert "second" in calm


@pytest.mark.usefixtures("cluster")
def test_an_episode_that_kills_two_workers_is_given_up(play: Play, tmp_path: Path) -> None:
    bodies = tmp_path / "bodies"
    bodies.mkdir()
    summary = play(make_policy=Makes(KillsItsWorker, bodies, 2), **ON_RAY)
    assert (summary.played, summary.failed) == (ITEMS, 1)
    assert str(summary.first_error).startswith("its worker process died 2 times (The actor died unexpectedly")
    (failed,) = [record for record in load_run(tmp_path / "run").records if record.score is None]
    assert failed.item.startswith("s1/40x")
    # Any engine goes on with the run.
    assert play(make_policy=Makes(KillsItsWorker, bodies, 2)).played == 1


@pytest.mark.usefixtures("cluster")
def test_workers_have_the_resources_of_their_policy(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = cache_info().max_bytes
    set_cache_size(2**20)
    play("looker", "second", make_policy=Makes(TellsWhere), engine="ray", resources={"second": {"num_cpus": 2}})
    set_cache_size(before)
    told: dict[str, list[dict[str, Any]]] = {"looker": [], "second": []}
    for record in load_run(tmp_path / "run").records:
        told[record.policy].append(json.loads(record.steps[0].reason or ""))
    # Ray tells a process its share of the CPUs in this variable. Two CPUs have room for one such worker.
    assert {where["threads"] for where in told["looker"]} == {"1"}
    assert {where["threads"] for where in told["second"]} == {"2"}
    assert len({where["process"] for where in told["second"]}) == 1
    everywhere = [*told["looker"], *told["second"]]
    assert {(where["folder"], where["cache_bytes"]) for where in everywhere} == {(str(tmp_path), 2**20)}
    assert os.getpid() not in {where["process"] for where in everywhere}


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (
            {"num_gpus": 0.5},
            r"policy 'looker' asks for num_cpus 1 and num_gpus 0.5 a worker, which no machine .* 0 GPUs",
        ),
        ({"num_cpus": 3}, r"asks for num_cpus 3 .* has 2 CPUs"),
    ],
)
def test_what_no_machine_has_is_told_and_not_waited_for(play: Play, wanted: dict[str, float], told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        play("second", "looker", resources={"looker": wanted}, engine="ray", blind=["text"])


@pytest.mark.usefixtures("cluster")
def test_another_version_on_a_worker_is_told(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wsigym, "__version__", "0.0.0")
    with pytest.raises(RunError, match=r"has wsigym \d\S+, and the run is played with 0\.0\.0"):
        play(**ON_RAY)


@pytest.mark.parametrize("lost", ["", "far"])
def test_a_path_that_a_worker_does_not_see_is_told(tmp_path: Path, lost: str) -> None:
    cohort = tmp_path / "cohort"
    (cohort / "far").mkdir(parents=True)
    build_cohort(cohort, slides=[{"slide_id": "s1"}, {"slide_id": "s2", "path": "far/s2.svs"}])
    setup = cloudpickle.dumps(SimpleNamespace(cohort=Cohort.load(cohort)))
    (cohort / lost).rename(tmp_path / "elsewhere")
    told = _Worker().begin(wsigym.__version__, str(Path.cwd()), 0, setup)
    assert str(told).startswith(f"{platform.node()} does not see {cohort / lost}")
    assert str(told).endswith(" slides may be URLs (docs/clusters.md).")


def test_a_folder_that_a_worker_does_not_see_is_told(tmp_path: Path) -> None:
    told = _Worker().begin(wsigym.__version__, str(tmp_path / "mine"), 0, b"")
    assert str(told).startswith(f"{platform.node()} does not see {tmp_path / 'mine'}. The cohort, and the folder")


def test_a_run_that_a_worker_cannot_load_is_told() -> None:
    told = _Worker().begin(wsigym.__version__, str(Path.cwd()), 0, cloudpickle.dumps(NotUnpicklable()))
    assert str(told).startswith(f"{platform.node()} cannot load the run (ValueError: invalid literal")


class NotUnpicklable:
    def __reduce__(self) -> Any:
        return int, ("not a number",)


@pytest.mark.usefixtures("cluster")
def test_a_process_is_connected_to_one_ray(play: Play) -> None:
    with pytest.raises(InvalidArgumentError, match="connected to a Ray already"):
        play(address="127.0.0.1:1", **ON_RAY)


KEY = EpisodeKey("evipath", "localization", "q", 0, "looker", None, "base", 0)


class NoRayError(Exception):
    """Instead of a Ray."""


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A machine of two CPUs without a Ray, on which none begins: with what it would have."""
    asked: list[dict[str, Any]] = []

    def begin(address: str, own: dict[str, Any]) -> None:
        asked.append({"address": address, **own})
        raise NoRayError

    monkeypatch.setattr(engine, "ray", SimpleNamespace(is_initialized=lambda: False, shutdown=lambda: None))
    monkeypatch.setattr(engine, "_begin", begin)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    return asked


@pytest.mark.parametrize(
    ("jobs", "cpus", "claimed"), [(None, 1, 2), (2, 1, 2), (5, 1, 5), (5, 2, 10), (5, 0.5, 3), (None, 0.5, 2)]
)
def test_a_ray_of_its_own_has_this_machines_cpus_and_room_for_the_jobs(
    begun: list[dict[str, Any]], jobs: int | None, cpus: float, claimed: int
) -> None:
    play = engine.play_on_ray(None, [KEY], jobs, "local", {"looker": Resources(num_cpus=cpus)})
    with pytest.raises(NoRayError):
        next(play)
    assert [(own["address"], own["num_cpus"]) for own in begun] == [("local", claimed)]


@pytest.mark.parametrize("jobs", [None, 1, 5])
def test_what_this_machine_has_not_is_told_before_a_ray_begins(begun: list[dict[str, Any]], jobs: int | None) -> None:
    play = engine.play_on_ray(None, [KEY], jobs, "local", {"looker": Resources(num_cpus=3)})
    told = r"policy 'looker' asks for num_cpus 3 and num_gpus 0 a worker, .* has 2 CPUs\. Ask for less"
    with pytest.raises(InvalidArgumentError, match=told):
        next(play)
    assert not begun


def test_a_handler_of_sigterm_that_python_did_not_set_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    signals = SimpleNamespace(SIGTERM=signal.SIGTERM, getsignal=lambda _: None, signal=signal.signal)
    monkeypatch.setattr(engine, "signal", signals)
    monkeypatch.setattr(engine, "ray", SimpleNamespace(init=lambda **_: None))
    engine._begin("local", {})


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_leaves_nothing_behind_and_goes_on(
    stop: signal.Signals, cluster: str, tiny_cohort: Path, tmp_path: Path, play: Play, timeless: Timeless
) -> None:
    """Ctrl-C on a run with a Ray of its own, one of whose workers was killed; SIGTERM on one that joins the cluster."""
    episodes = tmp_path / "run" / "episodes.jsonl"
    asked = ["sweep", "evipath/localization", "--cohort", str(tiny_cohort), "--out", str(episodes.parent)]
    asked += ["--policy", "stain-density", "--seeds", "15", "--engine", "ray", "--jobs", "2"]
    asked += ["--address", "local" if stop == signal.SIGINT else cluster]
    command = [sys.executable, "-m", "wsigym", *asked]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes) as run:
        wait_for_lines(episodes, 10, run)
        if stop == signal.SIGINT:
            (victim, *_) = workers_of(run.pid)
            os.kill(victim, signal.SIGKILL)
            wait_for_lines(episodes, 50, run)
        os.killpg(run.pid, stop)  # As a terminal does: everything of the group is told.
        printed, told = run.communicate(timeout=60)
    assert printed == ""
    if stop == signal.SIGINT:
        assert run.returncode == 1
        assert told.splitlines()[-1].startswith("stopped; finished episodes are kept in ")
    else:
        assert (run.returncode, told) == (128 + signal.SIGTERM, "")
    assert not [process for process in processes() if process.group == run.pid]

    kept = load_run(episodes.parent).records
    assert 10 <= len(kept) < 15 * ITEMS
    rest: dict[str, Any] = {"policies": ["stain-density"], "seeds": range(15), "make_policy": None}
    assert play(**rest).played == 15 * ITEMS - len(kept)
    play(out="calm", **rest)
    assert timeless("run") == timeless("calm")
    assert len(read_lines(episodes)) == 15 * ITEMS


class Process(NamedTuple):
    pid: int
    parent: int
    group: int
    name: str


def processes() -> list[Process]:
    """Those that live, from what `ps` says of them."""
    columns = "pid=,ppid=,pgid=,stat=,args="
    listed = subprocess.run(["ps", "-ww", "-eo", columns], capture_output=True, text=True, check=True).stdout
    rows = [line.split(maxsplit=4) for line in listed.splitlines()]
    return [Process(int(pid), int(ppid), int(group), name) for pid, ppid, group, stat, name in rows if stat[0] != "Z"]


def workers_of(run: int) -> list[int]:
    """The workers of a run with a Ray of its own, which are children of that Ray's `raylet`."""
    there = processes()
    raylets = {process.pid for process in there if process.parent == run and "raylet" in process.name}
    return [process.pid for process in there if process.parent in raylets and process.name.startswith("ray::_Worker")]


def wait_for_lines(path: Path, number: int, run: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 100
    while not path.exists() or path.read_bytes().count(b"\n") < number:
        if run.poll() is not None:
            _, told = run.communicate()
            assert TOO_SLOW in told, told
            pytest.skip(BUSY)
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("address", "environment", "told"),
    [
        ("127.0.0.1:9", {}, "no Ray can be used at '127.0.0.1:9': nothing answered within 3 s. `ray start"),
        ("head", {}, "no Ray can be used at 'head': Invalid address format: head. `ray start"),
        ("local", {"RAY_TMPDIR": "/tmp/" + 90 * "x"}, "Ray did not start: validate_socket_filename failed"),
    ],
)
def test_a_ray_that_does_not_answer_or_start_is_told(
    tiny_cohort: Path, tmp_path: Path, address: str, environment: dict[str, str], told: str
) -> None:
    script = "import wsigym.benchmarks.ray_engine as engine, wsigym.cli; engine.ANSWER_SECONDS = 3; wsigym.cli.main()"
    asked = ["run", "evipath/localization", "--cohort", str(tiny_cohort), "--out", str(tmp_path / "run")]
    asked += ["--policy", "oracle", "--engine", "ray", "--address", address]
    command = [sys.executable, "-c", script, *asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment})
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert told in done.stderr
