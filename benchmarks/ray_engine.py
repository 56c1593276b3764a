"""Episodes on the workers of a Ray cluster, or of a Ray on this machine that lasts as long as the run.

A worker is a Ray actor: a process with one tile cache that gets its `Setup` once and then chunks of keys, as the
processes of `wsigym.benchmarks.workers` do. Policies that ask for other resources have workers of their own. The driver
alone writes records. A worker that dies, with its machine or without, is replaced, and its unfinished episodes are
given out again.
"""

from __future__ import annotations

import math
import os
import pickle
import platform
import signal
import subprocess
import sys
import threading
import warnings
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import ray
from ray import cloudpickle
from ray.exceptions import RayError, RayTaskError

import wsigym
from wsigym.cohorts.invariants import is_url
from wsigym.errors import InvalidArgumentError, RunError, WsigymWarning
from wsigym.slides.cache import cache_info, set_cache_size

from .engines import ADDRESS_VARIABLE
from .episodes import Player, Setup, base_policy
from .handout import DEATHS_ALLOWED, Handout
from .provenance import git_commit
from .records import EpisodeKey, EpisodeRecord
from .resources import Resources

__all__ = ["play_on_ray"]

FILES_VARIABLE = "RAY_TMPDIR"

ANSWER_SECONDS = 30.0
"""How long a Ray may take to answer at its address; asked by itself, Ray goes on for minutes."""

QUIET_SECONDS = 60.0
"""How long no worker may start before it is told that the cluster seems to be busy."""

OBJECT_STORE_BYTES = 80 * 2**20
"""Of a Ray that a run starts for itself, about the least that Ray takes: records are the only objects."""


def play_on_ray(
    setup: Setup, keys: Sequence[EpisodeKey], jobs: int | None, address: str | None, resources: Mapping[str, Resources]
) -> Generator[EpisodeRecord, None, None]:
    """Play every episode on `jobs` workers, None: as many as the cluster has room for; records come as they finish.

    `address` is HOST:PORT, "auto" for a Ray on this machine, or "local" for one of the run's own; None takes the one
    that this process is connected to, else that of the variable RAY_ADDRESS, else one of its own. `resources` are
    those of a worker by the name of its policy.

    A Ray of the run's own has the CPUs of this machine, and more of them where `jobs` workers need it; they share them.

    Closing the iterator ends the workers. Raises `RunError` if no Ray answers or workers cannot play, and
    `InvalidArgumentError` if no machine has what a policy asks for.
    """
    if not keys:
        return
    by_need: dict[Resources, list[EpisodeKey]] = {}
    for key in keys:
        by_need.setdefault(resources.get(base_policy(key.policy), Resources()), []).append(key)
    with _connected(address, by_need, jobs or 1):
        pool = _Pool(setup, by_need, jobs)
        try:
            yield from pool.records()
        finally:
            pool.stop()


@contextmanager
def _connected(address: str | None, by_need: Mapping[Resources, Sequence[EpisodeKey]], jobs: int) -> Iterator[None]:
    """This process as a driver. A Ray of its own has room for `jobs` workers, each of which fits the machine."""
    if ray.is_initialized():
        if address is not None:
            raise InvalidArgumentError(
                f"address {address!r}: this process is connected to a Ray already; leave it out."
            )
        yield
        return
    address = address or os.environ.get(ADDRESS_VARIABLE) or "local"
    own: dict[str, Any] = {}
    if address == "local":
        machine = os.cpu_count() or 1
        for need, keys in by_need.items():
            if need.num_cpus > machine:
                raise _unmet(need, keys, f"{platform.node()} has {machine} CPUs")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report each start to its makers.
        cpus = max(machine, math.ceil(max(need.num_cpus for need in by_need) * jobs))
        own = {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    else:
        _check_answer(address)
    with redirect_stdout(sys.stderr):  # Ray prints there that a worker died; stdout is for results.
        try:
            _begin(address, own)
            yield
        finally:
            ray.shutdown()


def _begin(address: str, own: Mapping[str, Any]) -> None:
    sigterm = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **own)
    except Exception as error:  # Ray raises that very class where a busy machine was too slow for it.
        raise RunError(
            f"Ray did not start: {str(error).rstrip('.')}. Try again when the machine is less busy. Ray's "
            f"files are in the temporary folder; {FILES_VARIABLE} names another, on a local disk and with a short path."
        ) from None
    finally:  # Ray's own handler ends the process on the spot; ours ends the work as an error does.
        # None is a handler that Python did not set, and cannot set again.
        if sigterm is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, sigterm)


_CONNECT = """
import ray, sys
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
except Exception as error:
    sys.exit(str(error.__cause__ or error).strip().splitlines()[-1])
"""
"""What went wrong stands in the cause's last line: another version, a token that is missing."""


def _check_answer(address: str) -> None:
    """Connect and leave again in a process that can be ended, since `ray.init` has no limit of time."""
    command = [sys.executable, "-P", "-c", _CONNECT, address]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS)
    except subprocess.TimeoutExpired:
        why = f"nothing answered within {ANSWER_SECONDS:.0f} s"
    else:
        if done.returncode == 0:
            return
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1].rstrip(".")
    raise RunError(
        f"no Ray can be used at {address!r}: {why}. `ray start --head` prints HOST:PORT of a cluster; `auto` is the "
        f"one on this machine. Without --address (and {ADDRESS_VARIABLE}) the run starts a Ray of its own."
    )


@dataclass(eq=False)
class _Driven:
    """A worker as the driver knows it. `calls` are the calls under way, in order, with the episode of each.

    The first is that of `begin`, without an episode: the worker is ready when it is answered.
    """

    need: Resources
    actor: Any
    ready: bool = False
    calls: deque[tuple[Any, EpisodeKey | None]] = field(default_factory=deque)


class _Pool:
    def __init__(self, setup: Setup, by_need: Mapping[Resources, Sequence[EpisodeKey]], jobs: int | None) -> None:
        numbers = {
            need: min(jobs or max(1, room), len(keys)) for need, keys in by_need.items() for room in [_room(need, keys)]
        }
        self._handouts = {need: Handout(setup, keys, numbers[need]) for need, keys in by_need.items()}
        self._actor = ray.remote(_Worker)
        self._setup = ray.put(cloudpickle.dumps(setup))
        self._stillborn = 0
        self._told = False
        self._workers: list[_Driven] = []
        for need, number in numbers.items():
            for _ in range(number):
                self._start(need)

    def records(self) -> Iterator[EpisodeRecord]:
        while any(handout.left for handout in self._handouts.values()):
            calls = {worker.calls[0][0]: worker for worker in self._workers}
            done, _ = ray.wait(list(calls), timeout=QUIET_SECONDS)
            for call in done:
                yield from self._hear(calls[call])
            if not done:
                self._tell_of_quiet()

    def stop(self) -> None:
        for worker in self._workers:
            _end(worker)

    def _start(self, need: Resources) -> None:
        # Ray would start it again by itself, and play its calls in another order than they were given out.
        options = {"num_cpus": need.num_cpus, "num_gpus": need.num_gpus, "max_restarts": 0, "max_task_retries": 0}
        worker = _Driven(need, self._actor.options(**options).remote())
        begun = worker.actor.begin.remote(wsigym.__version__, str(Path.cwd()), cache_info().max_bytes, self._setup)
        worker.calls.append((begun, None))
        self._workers.append(worker)

    def _hear(self, worker: _Driven) -> Iterator[EpisodeRecord]:
        """Take the answer to a worker's first call, and give it more to do."""
        call, key = worker.calls[0]
        try:
            answer = ray.get(call)
        except RayTaskError:
            raise
        except RayError as error:
            yield from self._bury(worker, error)
            return
        worker.calls.popleft()
        handout = self._handouts[worker.need]
        if key is not None:
            handout.left -= 1
            yield EpisodeRecord.model_validate_json(answer)
        elif answer is not None:
            raise RunError(answer)
        else:
            worker.ready, self._stillborn = True, 0
        if not worker.calls:
            for key in handout.chunk():
                worker.calls.append((worker.actor.play.remote(key), key))
        if not worker.calls:  # What it holds may be what another policy's workers wait for.
            self._workers.remove(worker)
            _end(worker)

    def _bury(self, worker: _Driven, error: RayError) -> Iterator[EpisodeRecord]:
        """Replace a worker that died, and see to its unfinished episodes."""
        self._workers.remove(worker)
        _end(worker)
        how = " ".join(str(error).split())
        if not worker.ready:
            self._stillborn += 1
            if self._stillborn > DEATHS_ALLOWED:
                raise RunError(
                    f"Ray's workers die while starting: {how}\nEvery machine needs wsigym {wsigym.__version__} in the "
                    "Python that its Ray runs in."
                )
        handout = self._handouts[worker.need]
        if (given_up := handout.lost([key for _, key in worker.calls if key is not None], how)) is not None:
            yield given_up
        if handout.waiting:
            self._start(worker.need)

    def _tell_of_quiet(self) -> None:
        if self._told or any(worker.ready for worker in self._workers):
            return
        self._told = True
        free = ray.available_resources()
        warnings.warn(
            f"no worker has started in {QUIET_SECONDS:.0f} s: {free.get('CPU', 0):g} of the CPUs are free, and "
            f"{free.get('GPU', 0):g} of the GPUs. The run waits for its turn.",
            WsigymWarning,
            stacklevel=2,
        )


def _room(need: Resources, keys: Sequence[EpisodeKey]) -> int:
    """How many workers with these resources the machines of the cluster have room for."""
    machines = [(node["NodeManagerHostname"], node["Resources"]) for node in ray.nodes() if node["Alive"]]
    room = 0
    for _, has in machines:
        fits = [has.get("CPU", 0) / need.num_cpus]
        if need.num_gpus:
            fits.append(has.get("GPU", 0) / need.num_gpus)
        room += math.floor(min(fits) + 1e-9)
    if not room:
        there = "; ".join(
            f"{name} has {has.get('CPU', 0):g} CPUs and {has.get('GPU', 0):g} GPUs" for name, has in machines
        )
        raise _unmet(need, keys, there)
    return room


def _unmet(need: Resources, keys: Sequence[EpisodeKey], there: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"policy {base_policy(keys[0].policy)!r} asks for {need} a worker, which no machine of this Ray has: {there}. "
        "Ask for less, or play on a Ray that has such a machine."
    )


def _end(worker: _Driven) -> None:
    with suppress(RayError):  # It is dead already.
        ray.kill(worker.actor)


class _Worker:
    """A worker's side, in a process of Ray's."""

    def begin(self, version: str, folder: str, cache_bytes: int, setup: bytes) -> str | None:
        """Get ready to play. Returns what keeps this machine from it, None where nothing does."""
        host = platform.node()
        if wsigym.__version__ != version:
            return (
                f"{host} has wsigym {wsigym.__version__}, and the run is played with {version}. Install one version on "
                "every machine."
            )
        try:
            os.chdir(folder)  # What the command names by a relative path is meant from here.
        except OSError:
            return _unseen(host, folder)
        try:
            loaded: Setup = pickle.loads(setup)
        except Exception as error:
            return f"{host} cannot load the run ({type(error).__name__}: {error}). Its Python needs the same modules."
        if (path := _missing(loaded)) is not None:
            return _unseen(host, str(path))
        warnings.simplefilter("ignore", WsigymWarning)  # The driver has opened the same slides, and warned.
        set_cache_size(cache_bytes)
        self._player = Player(replace(loaded, commit=git_commit()))
        return None

    def play(self, key: EpisodeKey) -> bytes:
        return self._player.play(key).model_dump_json().encode()


def _missing(setup: Setup) -> Path | None:
    """A path of the cohort that this machine does not see: its folder, or the first slide of one of their folders."""
    root = setup.cohort.root.absolute()
    slides = [root / entry.path for entry in setup.cohort.slides if not is_url(entry.path)]
    of_each_folder = {slide.parent: slide for slide in reversed(slides)}
    return next((path for path in (root, *of_each_folder.values()) if not path.exists()), None)


def _unseen(host: str, path: str) -> str:
    return (
        f"{host} does not see {path}. The cohort, and the folder in which the command is called, lie on storage that "
        "every machine sees at the same path; slides may be URLs (docs/clusters.md)."
    )
