"""A small environment that keeps every rule, and one for each way to break one.

Faults show late in the episode where they can, as gymnasium's own check looks at the first two steps only. A module of
its own, registered by string, as other processes import it.
"""

from __future__ import annotations

import logging
import multiprocessing
import time
import warnings
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces

TEXT, NUMBER = "marker-7f3a", 7919
"""What must not be seen."""

LENGTH, LATE = 6, 4


class Sound(gym.Env[dict[str, Any], Any]):
    """A point is pushed about for six steps; it pays where it ends."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 2}

    def __init__(self, render_mode: str | None = None, thing: object = None) -> None:
        self.render_mode = render_mode
        self.observation_space = spaces.Dict(
            {"pixels": spaces.Box(0, 255, (4, 4, 3), np.uint8), "place": spaces.Box(0, 1e4, (2,), np.float32)}
        )
        self.action_space = spaces.Discrete(4)
        self.count = LENGTH

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.count = 0
        self.place = self.np_random.random(2, dtype=np.float32)
        return self.observe(), self.inform()

    def step(self, action: Any) -> Any:
        if self.count == LENGTH:
            raise RuntimeError("the episode is over")
        self.count += 1
        self.place = np.clip(self.place + 0.1 * action + 0.01 * self.np_random.random(2, np.float32), 0, 1)
        over = self.count == LENGTH
        return self.observe(), float(self.place.sum()) if over else 0.0, over, False, self.inform()

    def observe(self) -> dict[str, Any]:
        return {"pixels": self.frame(), "place": self.place.astype(np.float32)}

    def frame(self) -> Any:
        return np.full((4, 4, 3), round(255 * float(self.place[0])), np.uint8)

    def inform(self) -> dict[str, Any]:
        return {"target": "corner", "count": self.count, "path": [self.count]}

    def render(self) -> Any:
        return self.frame()

    @property
    def late(self) -> bool:
        return self.count >= LATE


class ReusedBuffer(Sound):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.buffer = np.zeros((4, 4, 3), np.uint8)

    def frame(self) -> Any:
        if not self.late:
            return super().frame()
        self.buffer[...] = super().frame()
        return self.buffer


class ReusedView(ReusedBuffer):
    def frame(self) -> Any:
        return super().frame()[:]


class ReusedList(Sound):
    def reset(self, **kwargs: Any) -> Any:
        self.visited: list[int] = []
        return super().reset(**kwargs)

    def inform(self) -> dict[str, Any]:
        return super().inform() | ({"path": self.visited} if self.late else {})


class OwnState(Sound):
    """What is returned is what the next step starts from."""

    def observe(self) -> dict[str, Any]:
        self.place = self.place.astype(np.float32)
        return {"pixels": self.frame(), "place": self.place}


class Clock(Sound):
    def inform(self) -> dict[str, Any]:
        return super().inform() | ({"seconds": time.perf_counter()} if self.late else {})


class GlobalNumbers(Sound):
    def observe(self) -> dict[str, Any]:
        if self.late:
            self.place = np.random.random(2).astype(np.float32)  # noqa: NPY002
        return super().observe()


class HashOrder(Sound):
    """The same in one process, another in the next."""

    def inform(self) -> dict[str, Any]:
        return super().inform() | ({"key": hash("text")} if self.late else {})


class RememberedEpisode(Sound):
    """What happened in an earlier episode is seen in the next, but for the first of its kind."""

    episodes = 0

    def reset(self, **kwargs: Any) -> Any:
        self.episodes += 1
        return super().reset(**kwargs)

    def inform(self) -> dict[str, Any]:
        return super().inform() | ({"episodes": self.episodes} if self.late else {})


class NotANumber(Sound):
    def observe(self) -> dict[str, Any]:
        return super().observe() | ({"place": np.full(2, np.nan, np.float32)} if self.late else {})


class InfiniteInfo(Sound):
    def inform(self) -> dict[str, Any]:
        return super().inform() | ({"distance": float("inf")} if self.late else {})


class OutOfSpace(Sound):
    def observe(self) -> dict[str, Any]:
        return super().observe() | ({"place": np.full(2, -0.5, np.float32)} if self.late else {})


class OtherDtype(Sound):
    def observe(self) -> dict[str, Any]:
        return super().observe() | ({"place": self.place.astype(np.float16)} if self.late else {})


class NumpyBool(Sound):
    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, np.bool_(terminated) if self.late else terminated, truncated, info


class ArrayReward(Sound):
    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, np.array(reward) if self.late else reward, terminated, truncated, info


class SameStart(Sound):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.place = np.full(2, 0.5, np.float32)
        return self.observe(), self.inform()


class NothingChanges(Sound):
    def reset(self, **kwargs: Any) -> Any:
        super().reset(**kwargs)
        self.first = super().observe()
        return self.observe(), self.inform()

    def observe(self) -> dict[str, Any]:
        return {key: value.copy() for key, value in self.first.items()} if hasattr(self, "first") else super().observe()


class Unpicklable(Sound):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hook = lambda: None


class Forgetful(Sound):
    """A copy forgets where it was."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"count": LENGTH - 1 if 0 < self.count < LENGTH else self.count}


class WorkerName(Sound):
    """The same in every main process."""

    def inform(self) -> dict[str, Any]:
        return super().inform() | {"process": multiprocessing.current_process().name.split(":")[0]}


class StaleText(Sound):
    """Text under shared memory: each step overwrites what the steps before returned."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.observation_space = spaces.Dict({**self.observation_space, "text": spaces.Text(8)})

    def observe(self) -> dict[str, Any]:
        return super().observe() | {"text": "abcdefgh"[: self.count + 1]}


class ClosesOnce(Sound):
    """The second close after an episode raises."""

    closed = False

    def close(self) -> None:
        if self.closed and self.count == LENGTH and hasattr(self, "place"):
            raise RuntimeError("closed already")
        self.closed = True


class GrowingFrame(Sound):
    def render(self) -> Any:
        return np.zeros((4 + self.late, 4, 3), np.uint8)


class LateFloatFrame(Sound):
    def render(self) -> Any:
        return super().render().astype(np.float32 if self.late else np.uint8)


class RenderMoves(Sound):
    def render(self) -> Any:
        self.place = self.np_random.random(2, dtype=np.float32)
        return super().render()


class StepsOn(Sound):
    def step(self, action: Any) -> Any:
        self.count = min(self.count, LENGTH - 1)
        return super().step(action)


class NeverEnds(Sound):
    def step(self, action: Any) -> Any:
        self.count = min(self.count, LENGTH - 2)
        return super().step(action)


class Prints(Sound):
    def step(self, action: Any) -> Any:
        if self.late:
            print("step")  # noqa: T201
        return super().step(action)


class Warns(Sound):
    def step(self, action: Any) -> Any:
        if self.late:
            warnings.warn("a step", UserWarning, stacklevel=2)
        return super().step(action)


class LeaksText(Sound):
    def inform(self) -> dict[str, Any]:
        return super().inform() | ({"debug": {"nodes": [f"n-{TEXT}-1"]}} if self.late else {})


class LeaksKeyedBox(Sound):
    def inform(self) -> dict[str, Any]:
        return super().inform() | ({"debug": (3, np.int64(NUMBER))} if self.late else {})


class LeaksInNote(Sound):
    def inform(self) -> dict[str, Any]:
        return super().inform() | ({"note": f"not there: it is at [{NUMBER}, 12]."} if self.late else {})


class LeaksInObservation(Sound):
    def observe(self) -> dict[str, Any]:
        shown = super().observe()
        shown["place"][1] = NUMBER
        return shown


class LeaksInRepr(Sound):
    def __repr__(self) -> str:
        return f"<Env with {TEXT}>"


class LeaksInSpace(Sound):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.observation_space = spaces.Dict(
            {**self.observation_space, "place": spaces.Box(0, NUMBER, (2,), np.float32)}
        )


class LeaksInMetadata(Sound):
    metadata: ClassVar[dict[str, Any]] = {**Sound.metadata, "answer": TEXT}


class LeaksInLog(Sound):
    def step(self, action: Any) -> Any:
        logging.getLogger("faulty").debug("the answer is %s", TEXT)
        return super().step(action)


class InfiniteSpace(Sound):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.observation_space = spaces.Dict(
            {**self.observation_space, "place": spaces.Box(0, np.inf, (2,), np.float32)}
        )


ALL = [Sound, *Sound.__subclasses__(), ReusedView]

for _kind in ALL:
    if f"faulty/{_kind.__name__}-v0" not in gym.registry:
        gym.register(f"faulty/{_kind.__name__}-v0", entry_point=f"{__name__}:{_kind.__name__}")
