"""Playing one episode: the runner's side of `env.step`, and what is kept of it.

A `Player` plays the episodes of a run one after the other in one process. Whatever a policy or an environment raises
ends the episode, not the run: its outcome is then `infrastructure_error`, without a score.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gymnasium as gym

from wsigym.cohorts import Cohort
from wsigym.envs.blind import BLINDS
from wsigym.envs.policy import Policy
from wsigym.errors import InvalidArgumentError, UnknownNameError

from .actions import encoded
from .records import EpisodeKey, EpisodeRecord, StepRecord
from .task import Item, Task

__all__ = [
    "Player",
    "Setup",
    "episode_seed",
    "failed_record",
    "policy_label",
    "utc_now",
]

BLIND_MARK = "+blind-"


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


def episode_seed(key: EpisodeKey) -> int:
    """The seed of an episode's random numbers, in 0..2**63-1: from sha256 of the run's seed and the whole key."""
    digest = hashlib.sha256(json.dumps([key.seed, *key]).encode()).digest()
    return int.from_bytes(digest[:8], "big") % 2**63


class Player:
    """Environments and policies of one process, each made once, and the loop over steps."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._envs: dict[tuple[str, str | None], gym.Env[Any, Any]] = {}
        self._policies: dict[str, Policy] = {}
        self._loop = asyncio.Runner()

    def prepare(self, key: EpisodeKey) -> tuple[gym.Env[Any, Any], Policy]:
        """The environment and the policy of an episode; made when they are first asked for."""
        name, mark, blind = key.policy.partition(BLIND_MARK)
        if key.policy not in self._policies:
            self._policies[key.policy] = self.setup.make_policy(name)
        which = (key.budget, blind if mark else None)
        if which not in self._envs:
            setup = self.setup
            env = setup.task.make_env(setup.cohort, setup.split, key.budget, setup.env_arguments)
            self._envs[which] = BLINDS[blind](env) if mark else env
        return self._envs[which], self._policies[key.policy]

    def play(self, key: EpisodeKey) -> EpisodeRecord:
        """One whole episode."""
        return self._loop.run(self._play(key))

    def close(self) -> None:
        for env in self._envs.values():
            env.close()
        self._loop.close()

    async def _play(self, key: EpisodeKey) -> EpisodeRecord:
        item = self.setup.items[key.item, key.rotation]
        started, clock = utc_now(), time.perf_counter()
        steps: list[StepRecord] = []
        options = self.setup.task.reset_options(item)
        try:
            env, policy = self.prepare(key)
            options |= self.setup.task.allowance(item, env, policy, episode_seed(key))
            clock = time.perf_counter()
            info = await self._steps(key, item, env, policy, options, steps)
            outcome = info["outcome"]
            score = self.setup.task.score(item, outcome, steps, info)
            result = {
                "outcome": outcome,
                "score": score.score,
                "metrics": dict(score.metrics),
                "confidence": score.confidence,
            }
        except Exception as error:
            result = {"outcome": "infrastructure_error", "score": None, "metrics": {}, "error": _told(error)}
        return EpisodeRecord(
            **key._asdict(),
            **result,
            groups=dict(item.groups),
            options=options,
            steps=tuple(steps),
            seed_used=episode_seed(key),
            started=started,
            seconds=time.perf_counter() - clock,
            version=self.setup.version,
            commit=self.setup.commit,
        )

    async def _steps(
        self,
        key: EpisodeKey,
        item: Item,
        env: gym.Env[Any, Any],
        policy: Policy,
        options: dict[str, Any],
        steps: list[StepRecord],
    ) -> Mapping[str, Any]:
        """Play to the end; `steps` fills as it goes, so that a failure leaves what came before. The last info."""
        task, seed = self.setup.task, episode_seed(key)
        observation, info = env.reset(seed=seed, options=options)
        if hasattr(policy, "seed"):
            policy.seed(seed)
        policy.reset(observation, info)
        if getattr(policy, "reads_reference", False):
            policy.see_reference(item.reference)  # type: ignore[attr-defined]  # the oracle's door, for it alone
        limit = task.step_limit(item, key.budget)
        over = False
        while not over:
            assert len(steps) < limit, "the environment ends every episode"
            asked = time.perf_counter()
            action = policy.act(observation, info)
            if inspect.isawaitable(action):
                action = await action
            acted = time.perf_counter()
            observation, _, terminated, truncated, info = env.step(action)
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
        return info


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
    return datetime.now(UTC).isoformat(timespec="seconds")


def _told(error: Exception) -> str:
    """An exception in one line: what, and where it was raised."""
    text = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name})" if frames else ""
    return str(_plain(text + where))


def _plain(text: str | None) -> str | None:
    """Text that UTF-8 can hold: models and file names may contain half of a surrogate pair."""
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8")
