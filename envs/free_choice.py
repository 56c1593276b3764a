"""Exploration's free schedule by one discrete action: which open tile to look into next.

A scorer, the wrapper's argument, scores the pages; the learner chooses among the open tiles, by numbers of fixed size.

Action (Discrete(64))
    The slot of the open tile to look into, as `next` of `wsigym.envs.exploration`. `action_masks()` and
    `info["action_mask"]` say which slots hold one; as below, an empty slot ends the search. Only where there is none
    left is the last slot possible. A search by the masks views as many tiles as its budget has: where no choice is left
    after a page, the wrapper hands in its scores, and the episode is over.

Observation (Dict)
    candidates   float32 (64, 28 + magnifications)   -1..1   each open tile, zeros where the slot is empty:
        which magnification it is of        one 1 among all but the last; zeros for the slide itself
        its description                     suspicion (of the slide itself 1), then mean and standard deviation of
                                            red, green and blue
        the same, less the mean of all viewed tiles of its magnification
        the description of its parent, zeros at the first magnification
        of the nearest tile of its magnification that was opened: the mean description of what was found in it, and
        1 / (1 + its distance in tiles); zeros where none was
    state        float32 (5,)   0..1      share of the budget viewed; tiles that may still be viewed, in 360; tiles
        of the last magnification viewed, in 36 (both 1 where they are more); the mean and the lowest suspicion of those
        that would be kept now

Info, reward and ends are the environment's, whose pixels the observation no longer has. All that the numbers say comes
from tiles that this episode has viewed.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from wsigym.errors import EpisodeOverError, InvalidArgumentError

from .exploration import ExplorationEnv
from .policy import Info, Observation
from .tile_budgets import KEPT_AT_THE_END
from .tile_search import FRONTIER_SLOTS, STOP

__all__ = ["FreeChoice", "OpenTiles", "PageScorer", "choice_space", "is_choice", "page_images", "slots_mask"]

DESCRIPTION = 7
"""Numbers that describe a tile: its suspicion, and the mean and standard deviation of three colours."""

STATE = 5
MANY_LEFT = 10 * KEPT_AT_THE_END
"""Tiles that may still be viewed from which on more are all the same to a learner."""

Numbers = npt.NDArray[np.float32]
LevelBox = tuple[int, ...]


class PageScorer(Protocol):
    """What scores a page for the learner. It draws no random numbers: a tile gets the same score each time."""

    def suspicions(self, tiles: npt.NDArray[np.uint8], info: Info) -> npt.NDArray[np.float64]:
        """(n,) in 0..1 for uint8 (n, height, width, 3), the tiles of a page."""
        ...


class _Viewed(NamedTuple):
    level: int
    description: Numbers
    parent: LevelBox | None


class OpenTiles:
    """What one episode of the free schedule has shown, and the numbers that the learner sees of it."""

    def __init__(self, magnifications: Sequence[float]) -> None:
        self._magnifications = tuple(float(value) for value in magnifications)
        self.reset()

    def reset(self) -> None:
        """Forget the last episode."""
        self._viewed: dict[LevelBox, _Viewed] = {}
        self._inside: dict[LevelBox, list[Numbers]] = {}  # of each tile that was opened, what was found in it
        self._at_level: list[list[Numbers]] = [[] for _ in self._magnifications]
        self._opened: LevelBox | None = None

    def open(self, box: LevelBox | None) -> None:
        """The next page's tiles lie in the tile with this level-0 box; the slide's own, or None, is no tile."""
        self._opened = box if box in self._viewed else None

    def add(self, descriptions: Numbers, info: Info) -> None:
        """The page that `info` tells of, with its tiles' `descriptions` (n, 7)."""
        if not info["tiles"]:
            return
        level = self._magnifications.index(info["magnification"])
        for box, description in zip(info["tiles"], descriptions, strict=True):
            self._viewed[box] = _Viewed(level, description, self._opened)
            self._at_level[level].append(description)
            if self._opened is not None:
                self._inside.setdefault(self._opened, []).append(description)

    def numbers(self, info: Info) -> dict[str, Numbers]:
        """The observation of a `FreeChoice`, once the page of `info` was added."""
        deeper = len(self._magnifications) - 1
        candidates = np.zeros((FRONTIER_SLOTS, candidate_size(len(self._magnifications))), np.float32)
        candidates[[box is not None and box not in self._viewed for box in info["frontier"]], deeper] = 1
        for level in range(deeper):
            slots = [slot for slot, box in enumerate(info["frontier"]) if self._level(box) == level]
            if not slots:
                continue
            boxes = [info["frontier"][slot] for slot in slots]
            own = np.stack([self._viewed[box].description for box in boxes])
            parents = [self._viewed[box].parent for box in boxes]
            none = np.zeros(DESCRIPTION, np.float32)
            candidates[slots, level] = 1
            candidates[slots, deeper:] = np.concatenate(
                [
                    own,
                    own - np.mean(self._at_level[level], axis=0),
                    np.stack([none if parent is None else self._viewed[parent].description for parent in parents]),
                    self._nearest(boxes, level),
                ],
                axis=1,
            )
        return {"candidates": candidates, "state": self._state(info)}

    def _level(self, box: LevelBox | None) -> int | None:
        return self._viewed[box].level if box in self._viewed else None

    def _nearest(self, boxes: Sequence[LevelBox], level: int) -> Numbers:
        """(n, 8): what was found in the nearest opened tile of the same magnification, and how near it is."""
        found = np.zeros((len(boxes), DESCRIPTION + 1), np.float32)
        opened = [box for box in self._inside if self._level(box) == level]
        if opened:
            inside = np.stack([np.mean(self._inside[box], axis=0) for box in opened])
            here, there = np.array(boxes)[:, None, :], np.array(opened)[None, :, :]
            distances = np.hypot(*np.moveaxis((here - there)[..., :2] / there[..., 2:], -1, 0))
            nearest = distances.argmin(axis=1)
            found[:, :DESCRIPTION] = inside[nearest]
            found[:, DESCRIPTION] = 1 / (1 + distances.min(axis=1))
        return found

    def _state(self, info: Info) -> Numbers:
        viewed, allowed = info["tiles_viewed"], info["tiles_allowed"]
        leaves = self._at_level[-1]
        kept = sorted((float(leaf[0]) for leaf in leaves), reverse=True)[:KEPT_AT_THE_END] or [0.0]
        numbers = [
            viewed / allowed if allowed else 1.0,
            min(1.0, (allowed - viewed) / MANY_LEFT),
            min(1.0, len(leaves) / KEPT_AT_THE_END),
            float(np.mean(kept)),
            kept[-1],
        ]
        return np.array(numbers, np.float32)


class FreeChoice(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An `ExplorationEnv` with `schedule="free"` by one discrete action; the module's docstring is the card.

    `scorer` scores the tiles. What it says of a tile is kept for later episodes, as the same slides come again in
    training. Raises `InvalidArgumentError` for other environments, and for an action that is no slot; `step` and
    `action_masks` raise `EpisodeOverError` before the first `reset`.
    """

    def __init__(self, env: gym.Env[Any, Any], scorer: PageScorer) -> None:
        RecordConstructorArgs.__init__(self, scorer=scorer, _disable_deepcopy=True)
        gym.Wrapper.__init__(self, env)
        base = env.unwrapped
        if not isinstance(base, ExplorationEnv) or base.schedule != "free" or env.action_space != base.action_space:
            raise InvalidArgumentError(
                f"FreeChoice was put on {env}; it needs an ExplorationEnv with schedule='free' that still takes its "
                "own action (scores, next). Put no other wrapper of actions below it."
            )
        self._scorer = scorer
        self._page_size = base.page_size
        self._tiles = OpenTiles(base.magnifications)
        self._known: dict[tuple[str, LevelBox], Numbers] = {}
        self._seen_frontier: tuple[LevelBox | None, ...] | None = None
        self.observation_space = choice_space(len(base.magnifications))
        self.action_space = spaces.Discrete(FRONTIER_SLOTS)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Numbers], dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._tiles.reset()
        return self._seen(observation, info)

    def step(self, action: Any) -> tuple[dict[str, Numbers], Any, bool, bool, dict[str, Any]]:
        slot = _checked(action)
        self._tiles.open(self._frontier[slot])
        observation, reward, terminated, truncated, info = self.env.step({"scores": self._scores, "next": slot})
        numbers, seen = self._seen(observation, info)
        if not (terminated or truncated or is_choice(info)):
            observation, more, terminated, truncated, info = self.env.step({"scores": self._scores, "next": STOP})
            reward += more  # type: ignore[operator]  # both are numbers
            numbers, seen = self._seen(observation, info)
        return numbers, reward, terminated, truncated, seen

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """bool (64,): which slots may be chosen. What sb3-contrib's MaskablePPO asks for."""
        return slots_mask(self._frontier)

    @property
    def _frontier(self) -> tuple[LevelBox | None, ...]:
        if self._seen_frontier is None:
            raise EpisodeOverError("FreeChoice has no open tiles before reset(); call reset() first.")
        return self._seen_frontier

    def _seen(self, observation: Observation, info: dict[str, Any]) -> tuple[dict[str, Numbers], dict[str, Any]]:
        """Take in the page that is shown now."""
        descriptions = self._descriptions(observation, info)
        self._tiles.add(descriptions, info)
        self._scores = np.zeros(self._page_size, np.float32)
        self._scores[: len(descriptions)] = descriptions[:, 0]
        self._seen_frontier = info["frontier"]
        return self._tiles.numbers(info), info | {"action_mask": self.action_masks().astype(np.int8)}

    def _descriptions(self, observation: Observation, info: Info) -> Numbers:
        keys = [(info["slide_id"], box) for box in info["tiles"]]
        if not all(key in self._known for key in keys):
            images = page_images(observation, info)
            self._known.update(zip(keys, described(images, self._scorer.suspicions(images, info)), strict=True))
        return np.array([self._known[key] for key in keys], np.float32).reshape(len(keys), DESCRIPTION)


def choice_space(magnifications: int) -> spaces.Dict:
    """The observation space of a `FreeChoice` over so many magnifications."""
    size = candidate_size(magnifications)
    candidates = spaces.Box(-1, 1, (FRONTIER_SLOTS, size), np.float32)
    return spaces.Dict({"candidates": candidates, "state": spaces.Box(0, 1, (STATE,), np.float32)})


def candidate_size(magnifications: int) -> int:
    """How many numbers tell of one candidate."""
    return magnifications - 1 + 4 * DESCRIPTION + 1


def is_choice(info: Info) -> bool:
    """Whether something can be opened after the page of `info`: tiles may still be viewed, and one is open."""
    return info["tiles_viewed"] < info["tiles_allowed"] and any(box is not None for box in info["frontier"])


def slots_mask(frontier: Sequence[LevelBox | None]) -> npt.NDArray[np.bool_]:
    """bool (64,): which slots hold an open tile; the last alone where none does."""
    mask = np.array([box is not None for box in frontier])
    mask[STOP] = not mask.any()
    return mask


def page_images(observation: Observation, info: Info) -> npt.NDArray[np.uint8]:
    """uint8 (n, height, width, 3): the tiles of the page without padding."""
    width, height = info["tile_size"]
    return np.ascontiguousarray(observation["tiles"][: len(info["tiles"]), :height, :width])


def described(images: npt.NDArray[np.uint8], suspicions: npt.NDArray[Any]) -> Numbers:
    """float32 (n, 7) in 0..1 of tiles (n, height, width, 3) and their suspicions (n,)."""
    shares = images.reshape(len(images), -1, 3) / np.float32(255)
    return np.concatenate(
        [np.asarray(suspicions, np.float32)[:, None], shares.mean(axis=1), shares.std(axis=1)], axis=1, dtype=np.float32
    )


def _checked(action: Any) -> int:
    try:
        slot = operator.index(action)
    except TypeError:
        slot = -1
    if not 0 <= slot < FRONTIER_SLOTS:
        raise InvalidArgumentError(f"the action is {action!r}; allowed are the slots 0 to {FRONTIER_SLOTS - 1}.")
    return slot
