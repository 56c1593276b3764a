"""Playing one episode: the runner's side of `env.step`, and what is kept of it.

A `Player` plays the episodes of a run one after the other in one process; `wsigym.benchmarks.together` plays many at
once. Whatever a policy or an environment raises ends the episode, not the run: its outcome is then
`infrastructure_error`, without a score.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import inspect
import json
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gymnasium as gym

from wsigym.cohorts import Cohort
from wsigym.cohorts.feature_files import Numbers
from wsigym.envs.blind import BLINDS
from wsigym.envs.policy import NoAnswer, Policy
from wsigym.envs.views import Image, View
from wsigym.errors import CostLimitError, EndpointError, InvalidArgumentError, RunWriteError, UnknownNameError

from .actions import encoded
from .records import EpisodeKey, EpisodeRecord, StepRecord
from .task import Item, Task

__all__ = [
    "Call",
    "Environments",
    "MakePolicy",
    "Player",
    "Seat",
    "Setup",
    "base_policy",
    "episode_seed",
    "failed_record",
    "policy_label",
    "utc_now",
]

BLIND_MARK = "+blind-"

TRAINING_SPLIT = "train"
"""Whose items, with their references, a policy with `reads_training` learns from."""

MakePolicy = Callable[[str, str | None], Policy]
"""Makes the policy of a name for an endpoint, None where it needs none."""

Call = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class Setup:
    """All that is needed to play the episodes of a run, in any process."""

    task: Task
    cohort: Cohort
    split: str | None
    env_arguments: Mapping[str, Any]
    items: Mapping[tuple[str, int], Item]
    make_policy: Callable[[str], Policy]
    version: str
    commit: str | None


def policy_label(policy: str, blind: str | None = None) -> str:
    """How records name a policy: by its name, or `NAME+blind-WHAT` as a control that does not see `WHAT`."""
    if BLIND_MARK in policy:
        raise InvalidArgumentError(f"policy {policy!r}: a control is asked for with --blind, not in the name.")
    if blind is None:
        return policy
    if blind not in BLINDS:
        raise UnknownNameError("blind", blind, BLINDS)
    return f"{policy}{BLIND_MARK}{blind}"


def base_policy(label: str) -> str:
    """The policy's own name, of a policy or a control as records name it."""
    return label.partition(BLIND_MARK)[0]


def episode_seed(key: EpisodeKey) -> int:
    """The seed of an episode's random numbers, in 0..2**63-1: from sha256 of the run's seed and the whole key."""
    digest = hashlib.sha256(json.dumps([key.seed, *key]).encode()).digest()
    return int.from_bytes(digest[:8], "big") % 2**63


class Environments:
    """The environments of a run, one for each budget and control; each seat plays on a copy of its own.

    A copy of an environment that was never reset shares with it what is only read, such as the queries of a cohort.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._made: dict[str, gym.Env[Any, Any]] = {}

    def copy_for(self, key: EpisodeKey) -> gym.Env[Any, Any]:
        """A new environment that can play the episode. Raises as making one does."""
        if key.budget not in self._made:
            setup = self._setup
            self._made[key.budget] = setup.task.make_env(setup.cohort, setup.split, key.budget, setup.env_arguments)
        env = copy.copy(self._made[key.budget])
        blind = _blind_of(key)
        return env if blind is None else BLINDS[blind](env)


class Seat:
    """Plays one episode at a time, with environments and policies of its own.

    `call(function, ...)` awaits what a function returns: `asyncio.to_thread` where the event loop has other seats to
    serve meanwhile.
    """

    def __init__(self, setup: Setup, environments: Environments, make_policy: MakePolicy, call: Call) -> None:
        self._setup, self._environments, self._make_policy, self._call = setup, environments, make_policy, call
        self._envs: dict[tuple[str, str | None], gym.Env[Any, Any]] = {}
        self._policies: dict[tuple[str, str | None], Policy] = {}

    def prepare(self, key: EpisodeKey) -> tuple[gym.Env[Any, Any], Policy]:
        """The environment and the policy of an episode; made when they are first asked for.

        Raises `InvalidArgumentError` where a policy with the door `check_magnifications` cannot play the environment's.
        """
        who, where = (key.policy, key.endpoint), (key.budget, _blind_of(key))
        if where not in self._envs:
            self._envs[where] = self._environments.copy_for(key)
        env = self._envs[where]
        if who not in self._policies:
            policy = self._make_policy(base_policy(key.policy), key.endpoint)
            if hasattr(policy, "check_magnifications") and env.has_wrapper_attr("magnifications"):
                policy.check_magnifications(env.get_wrapper_attr("magnifications"))
            if getattr(policy, "reads_training", False):
                setup = self._setup
                training = setup.task.items(setup.cohort, TRAINING_SPLIT, setup.env_arguments)
                policy.see_training(training)  # type: ignore[attr-defined]  # the door of those that learn
            self._policies[who] = policy
        return env, self._policies[who]

    def close(self) -> None:
        for env in self._envs.values():
            env.close()

    async def play(self, key: EpisodeKey) -> EpisodeRecord:
        """One whole episode. Raises what ends the run, and no other exception: `CostLimitError`, `RunWriteError`, and
        an `EndpointError` that would meet every episode."""
        task, item, seed = self._setup.task, self._setup.items[key.item, key.rotation], episode_seed(key)
        started, clock = utc_now(), time.perf_counter()
        steps: list[StepRecord] = []
        options = task.reset_options(item)
        playing: Policy | None = None
        try:
            env, policy = self.prepare(key)
            options |= await self._call(task.allowance, item, env, policy, seed)
            clock = time.perf_counter()
            first = await self._call(env.reset, seed=seed, options=options)
            playing = policy
            info, reason = await self._steps(key, item, env, policy, first, steps)
            score = await self._call(task.score, item, info["outcome"], steps, info)
            result = {
                "outcome": info["outcome"],
                "score": score.score,
                "metrics": dict(score.metrics),
                "confidence": score.confidence,
                "error": reason,
            }
        except (CostLimitError, RunWriteError):
            raise
        except EndpointError as error:
            if error.lasting:
                raise
            result = _failure(error)
        except Exception as error:
            result = _failure(error)
        seconds = time.perf_counter() - clock
        try:
            agent = playing.record() if playing is not None and hasattr(playing, "record") else None
        except Exception as error:
            agent, result = None, _failure(error)
        return EpisodeRecord(
            **key._asdict(),
            **result,
            groups=dict(item.groups),
            options=options,
            steps=tuple(steps),
            agent=agent,
            seed_used=seed,
            started=started,
            seconds=seconds,
            version=self._setup.version,
            commit=self._setup.commit,
        )

    async def _steps(
        self,
        key: EpisodeKey,
        item: Item,
        env: gym.Env[Any, Any],
        policy: Policy,
        first: tuple[Any, dict[str, Any]],
        steps: list[StepRecord],
    ) -> tuple[Mapping[str, Any], str | None]:
        """Play on from what reset returned; `steps` fills as it goes, so that a failure leaves what came before.

        Returns the last info, and why there was no answer where the policy gave none.
        """
        task = self._setup.task
        observation, info = first
        if hasattr(policy, "seed"):
            policy.seed(episode_seed(key))
        if hasattr(policy, "begin"):
            policy.begin(key.text)
        if hasattr(policy, "see_images"):
            policy.see_images(_Images(env))
        policy.reset(observation, info)
        if getattr(policy, "reads_reference", False):
            policy.see_reference(item.reference)  # type: ignore[attr-defined]  # the oracle's door, for it alone
        limit = task.step_limit(item, key.budget)
        over = False
        while not over:
            assert len(steps) < limit, "the environment ends every episode"
            asked = time.perf_counter()
            try:
                action = policy.act(observation, info)
                if inspect.isawaitable(action):
                    action = await action
            except NoAnswer as error:
                return env.get_wrapper_attr("give_up")(error.outcome), _plain(error.reason)
            acted = time.perf_counter()
            observation, _, terminated, truncated, info = await self._call(env.step, action)
            stepped = time.perf_counter()
            over = terminated or truncated
            remarks = {name: _plain(text) for name, text in getattr(policy, "remarks", {}).items()}
            steps.append(
                StepRecord(
                    action=encoded(action),
                    **task.step_fields(item, action, observation, info),
                    error=info.get("error"),
                    note=info.get("note"),
                    reason=remarks.get("reason"),
                    conclusion=remarks.get("conclusion"),
                    act_seconds=acted - asked,
                    step_seconds=stepped - acted,
                )
            )
        return info, None


class _Images:
    """The episode's images and features as the policy may see them: through a control where there is one."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self._env = env

    def image(self, name: str, side_px: int) -> View:
        found: View = self._env.get_wrapper_attr("image")(name, side_px)
        return found

    def surroundings(self, share: float, px: int) -> Image:
        found: Image = self._env.get_wrapper_attr("surroundings")(share, px)
        return found

    def features(self) -> tuple[Numbers, Numbers] | None:
        if not self._env.has_wrapper_attr("features"):
            return None
        found: tuple[Numbers, Numbers] | None = self._env.get_wrapper_attr("features")()
        return found


class Player:
    """The loop over episodes, one after the other, in one process."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.environments = setup, Environments(setup)
        self._seat = Seat(setup, self.environments, lambda name, _: setup.make_policy(name), _directly)
        self.prepare = self._seat.prepare
        self._loop = asyncio.Runner()

    def play(self, key: EpisodeKey) -> EpisodeRecord:
        """One whole episode."""
        return self._loop.run(self._seat.play(key))

    def close(self) -> None:
        self._seat.close()
        self._loop.close()


async def _directly(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
    return function(*arguments, **named)


def _blind_of(key: EpisodeKey) -> str | None:
    """What a control does not see; None where it is no control."""
    _, mark, blind = key.policy.partition(BLIND_MARK)
    return blind if mark else None


def _failure(error: Exception) -> dict[str, Any]:
    return {"outcome": "infrastructure_error", "score": None, "metrics": {}, "error": _told(error)}


def failed_record(setup: Setup, key: EpisodeKey, error: str) -> EpisodeRecord:
    """The record of an episode that no process lived to finish."""
    return EpisodeRecord(
        **key._asdict(),
        outcome="infrastructure_error",
        score=None,
        groups=dict(setup.items[key.item, key.rotation].groups),
        metrics={},
        steps=(),
        seed_used=episode_seed(key),
        started=utc_now(),
        seconds=0.0,
        version=setup.version,
        commit=setup.commit,
        error=error,
    )


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _told(error: Exception) -> str:
    """An exception in one line: what, and where it was raised."""
    text = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name})" if frames else ""
    return str(_plain(text + where))


def _plain(text: str | None) -> str | None:
    """Text that UTF-8 can hold: models and file names may contain half of a surrogate pair."""
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8")
