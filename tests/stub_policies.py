"""Policies that behave, and that do not, for tests of the runner; in a module that spawned processes can import."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from wsigym.agents.records import AgentRecord
from wsigym.envs.localization import extract_roi, finish_and_report
from wsigym.envs.policy import Info, NoAnswer, Observation, Policy, SeededPolicy
from wsigym.envs.views import FeatureSource
from wsigym.slides import cache_info


class Looker(SeededPolicy):
    """Looks once at random, says why, and answers at random."""

    def reset(self, observation: Observation, info: Info) -> None:
        self.remarks: dict[str, str] = {}

    def act(self, observation: Observation, info: Info) -> Any:
        corner, confidence = self.rng.uniform(0, 0.6, 2), float(self.rng.uniform())
        if info["roi"] is None:
            self.remarks = {"reason": "half a pair \ud83d"}
            return extract_roi([*corner, 0.4, 0.4])
        self.remarks = {"conclusion": "there"}
        return finish_and_report([*corner, 0.3, 0.3], confidence)


class AsyncLooker(Looker):
    async def act(self, observation: Observation, info: Info) -> Any:
        await asyncio.sleep(0)
        return super().act(observation, info)


class Raises(Looker):
    def act(self, observation: Observation, info: Info) -> Any:
        raise RuntimeError("a bug of the policy's")


class RaisesWhile(Looker):
    """Raises on its second act of one item while a file is there."""

    def __init__(self, flag: Path) -> None:
        self.flag = flag

    def act(self, observation: Observation, info: Info) -> Any:
        if info["roi"] is not None and "s1/40x" in info["query_id"] and self.flag.exists():
            raise RuntimeError("the flag is up")
        return super().act(observation, info)


class KillsItsWorker(Looker):
    """On one item, as long as fewer than `times` bodies lie in `folder`."""

    def __init__(self, folder: Path, times: int) -> None:
        self.folder, self.times = folder, times

    def act(self, observation: Observation, info: Info) -> Any:
        bodies = len(list(self.folder.iterdir()))
        if "s1/40x" in info["query_id"] and bodies < self.times:
            (self.folder / str(bodies)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().act(observation, info)


class Sleeper(Looker):
    """Says which process it is in, and does not come back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def act(self, observation: Observation, info: Info) -> Any:
        (self.folder / str(os.getpid())).touch()
        time.sleep(1000)


class TellsWhere(Looker):
    """Says in what process it plays, and with what."""

    def act(self, observation: Observation, info: Info) -> Any:
        action = super().act(observation, info)
        where = {
            "process": os.getpid(),
            "threads": os.environ.get("OMP_NUM_THREADS"),
            "folder": str(Path.cwd()),
            "cache_bytes": cache_info().max_bytes,
        }
        self.remarks = {"reason": json.dumps(where)}
        return action


class Peeker(Looker):
    """Has the method, but not the mark: the door stays shut."""

    reads_reference = False

    def see_reference(self, reference: object) -> None:
        raise AssertionError("the door was opened")


class Cheat(Looker):
    reads_reference = True

    def see_reference(self, reference: Any) -> None:
        self.boxes = reference.boxes

    def act(self, observation: Observation, info: Info) -> Any:
        return finish_and_report([0.5, 0.5, 0.1, 0.1], len(self.boxes) / 10)


class NeverValid(Looker):
    """One answered look, then three requests that are none."""

    def act(self, observation: Observation, info: Info) -> Any:
        if info["roi"] is None:
            return extract_roi([0.1, 0.1, 0.2, 0.2])
        return {"tool": 0, "box": np.array([np.nan, np.inf, -np.inf, 0.1]), "confidence": 2.0}


class NeverFinishes(Looker):
    def act(self, observation: Observation, info: Info) -> Any:
        return extract_roi([0.5, 0.5, 0.7, 0.7])


class Untyped(Looker):
    def act(self, observation: Observation, info: Info) -> Any:
        return finish_and_report([0.5, 0.5, 0.1, 0.1]) | {"why": object()}


PLAIN: dict[str, type[Looker]] = {
    "looker": Looker,
    "second": Looker,
    "raises": Raises,
    "peeker": Peeker,
    "cheat": Cheat,
    "never-valid": NeverValid,
    "never-finishes": NeverFinishes,
    "untyped": Untyped,
}


def make_policy(name: str) -> Policy:
    return PLAIN[name]()


def make_async_policy(name: str) -> Policy:
    return AsyncLooker()


class Makes:
    """A factory with arguments that pickles."""

    def __init__(self, kind: type[Looker], *arguments: Any) -> None:
        self.kind, self.arguments = kind, arguments

    def __call__(self, name: str) -> Policy:
        return self.kind(*self.arguments)


class GivesUp(AsyncLooker):
    """Looks `looks` times, and then has no answer."""

    def __init__(self, outcome: str, looks: int) -> None:
        self.outcome, self.looks = outcome, looks

    def reset(self, observation: Observation, info: Info) -> None:
        super().reset(observation, info)
        self.left = self.looks

    async def act(self, observation: Observation, info: Info) -> Any:
        if self.left == 0:
            raise NoAnswer(self.outcome, "half a pair \ud83d")  # type: ignore[arg-type]
        self.left -= 1
        return extract_roi([0.1, 0.1, 0.2, 0.2])


class ScoresThenGivesUp(Looker):
    """Says Yes to every tile of `pages` pages, and then refuses."""

    def __init__(self, pages: int) -> None:
        self.pages = pages

    def reset(self, observation: Observation, info: Info) -> None:
        self.left = self.pages

    async def act(self, observation: Observation, info: Info) -> Any:
        if self.left == 0:
            raise NoAnswer("refused", "no")
        self.left -= 1
        return observation["tile_mask"].astype(np.float32)


class ScoresTiles(Looker):
    """Scores tiles by their darkness and a little chance, waiting between pages so that others come in between."""

    async def act(self, observation: Observation, info: Info) -> Any:
        await asyncio.sleep(0.002)
        dark = 1 - observation["tiles"].mean(axis=(1, 2, 3)) / 255
        return np.clip(dark + self.rng.uniform(0, 0.1, len(dark)), 0, 1).astype(np.float32)


class Hooked(AsyncLooker):
    """Notes the order in which it is called, looks at the images that it may see, and tells of it in its record."""

    def seed(self, seed: int) -> None:
        super().seed(seed)
        self.calls = ["seed"]

    def begin(self, key: str) -> None:
        self.calls.append(key)

    def see_images(self, source: FeatureSource) -> None:
        self.calls.append("see_images")
        self.source = source

    def reset(self, observation: Observation, info: Info) -> None:
        super().reset(observation, info)
        self.calls.append("reset")

    async def act(self, observation: Observation, info: Info) -> Any:
        assert self.source.features() is None  # as of any environment without features, blind or not
        image = (await asyncio.to_thread(self.source.image, "overview", 64)).image
        self.calls.append(f"{info['target']}: {image.min()} to {image.max()}")
        return await super().act(observation, info)

    def record(self) -> AgentRecord:
        return AgentRecord(checkpoints=({"calls": self.calls},))


class Waits(AsyncLooker):
    """Takes its time before each action, and counts in `table` how many do so at once."""

    def __init__(self, table: dict[str, int], seconds: float) -> None:
        self.table, self.seconds = table, seconds

    async def act(self, observation: Observation, info: Info) -> Any:
        self.table["now"] = self.table.get("now", 0) + 1
        self.table["most"] = max(self.table["now"], self.table.get("most", 0))
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.table["now"] -= 1
        return await super().act(observation, info)


class Stops(AsyncLooker):
    """Raises `error` on one item while a file is there; on others it is slower than that."""

    def __init__(self, flag: Path, error: Exception) -> None:
        self.flag, self.error = flag, error

    async def act(self, observation: Observation, info: Info) -> Any:
        if "s1/40x" in info["query_id"] and self.flag.exists():
            raise self.error
        await asyncio.sleep(0.01)
        return await super().act(observation, info)
