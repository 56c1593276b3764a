"""What acts in an environment: the protocol that baselines, learned policies and agents share.

The runner owns `env.step`; a policy turns what it is shown into one action at a call. It sees the observation
and `info`, never the reward or the reference, and keeps nothing from one episode to the next.

A policy may also have any of these, which the runner looks for. Before the first episode:

    check_magnifications(magnifications)
                             raises where it cannot score tiles of one of an exploration's magnifications
    see_training(items)      where `reads_training` is True: the train split's items with their references

Before `reset`, in this order:

    seed(seed: int)          the only source of its randomness
    begin(key: str)          canonical JSON of the episode's key, by which requests to a model are logged
    see_images(source)       where the episode's images and features are (`wsigym.envs.views.FeatureSource`), for agents
                             that show images to a model and for policies that read features

and later:

    see_reference(reference) called after `reset` where `reads_reference` is True: the oracle's door
    remarks                  mapping with "reason" or "conclusion" after `act`: text for the step's record
    in_cascade               of a search in exploration: a policy that scores pages as it does, which counts its budget
    record()                 called once the episode is over, however it ended: what is kept of its requests, or None

A policy that comes to no action raises `NoAnswer`, which ends the episode with score 0.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

import numpy as np

from wsigym.errors import InvalidArgumentError

__all__ = ["Action", "Info", "NoAnswer", "NoAnswerOutcome", "Observation", "Policy", "SeededPolicy"]

Observation = Mapping[str, Any]
Info = Mapping[str, Any]
Action = Any


NoAnswerOutcome = Literal["unparsed", "refused", "budget_exhausted"]
"""What a policy may end an episode with: nothing that can be read, a refusal, more turns than the budget allows."""


class NoAnswer(Exception):  # noqa: N818  # how an episode ended, not a mistake of anybody's
    """Raised by `act` where there will be no action: the episode ends with `outcome` and score 0."""

    def __init__(self, outcome: NoAnswerOutcome, reason: str) -> None:
        if outcome not in get_args(NoAnswerOutcome):
            raise InvalidArgumentError(f"outcome is {outcome!r}; allowed are {', '.join(get_args(NoAnswerOutcome))}.")
        self.outcome: NoAnswerOutcome = outcome
        self.reason = reason
        super().__init__(outcome, reason)

    def __str__(self) -> str:
        return f"{self.outcome}: {self.reason}"


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
