"""What acts in an environment: the protocol that baselines, learned policies and agents share.

The runner owns `env.step`; a policy turns what it is shown into one action at a call. It sees the observation
and `info`, never the reward or the reference, and keeps nothing from one episode to the next.

A policy may also have any of these, which the runner looks for:

    seed(seed: int)          called before `reset`; the only source of its randomness
    remarks                  mapping with "reason" or "conclusion" after `act`: text for the step's record
    see_reference(reference) called after `reset` where `reads_reference` is True: the oracle's door
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np

__all__ = ["Action", "Info", "Observation", "Policy", "SeededPolicy"]

Observation = Mapping[str, Any]
Info = Mapping[str, Any]
Action = Any


class Policy(Protocol):
    """Two calls: `reset` at the start of an episode, then `act` until the episode ends."""

    def reset(self, observation: Observation, info: Info) -> None:
        """Forget the last episode. Gets the first observation, as `act` does."""

    def act(self, observation: Observation, info: Info) -> Action | Awaitable[Action]:
        """The next action, a member of the environment's action space; or an awaitable of one."""


class SeededPolicy:
    """Base of policies that draw random numbers. The runner seeds `rng` anew for each episode."""

    @cached_property
    def rng(self) -> np.random.Generator:
        """Of no seed until `seed` is called, and never shared between policies."""
        return np.random.default_rng()

    def seed(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
