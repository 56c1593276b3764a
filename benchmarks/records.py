"""What is kept of an episode: one line of `episodes.jsonl`.

A record holds all that tables need, so that a table never opens a slide, and every action, so that a replay gives
the same score. It never holds the reference; its scores and metrics tell answers of items all the same.
"""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from wsigym.agents.records import AgentRecord

__all__ = ["SCORED_OUTCOMES", "EpisodeKey", "EpisodeRecord", "EpisodeRecordWithoutSteps", "StepRecord", "TileRecord"]

Outcome = Literal["scored", "unparsed", "invalid", "refused", "budget_exhausted", "infrastructure_error"]

SCORED_OUTCOMES = ("scored", "unparsed", "invalid", "refused", "budget_exhausted")
"""Outcomes that have a score and stay in the denominator. An infrastructure error has none and is run again."""


class EpisodeKey(NamedTuple):
    """What makes an episode this one. Two lines of one run with equal keys are the same episode, the last counts."""

    suite: str
    task: str
    item: str
    rotation: int
    policy: str
    endpoint: str | None
    budget: str
    seed: int

    @property
    def text(self) -> str:
        """Canonical JSON: the name of the episode in the request log."""
        return json.dumps(self._asdict(), sort_keys=True, separators=(",", ":"))


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TileRecord(_Record):
    """A tile that an action scored: its level-0 box, the verdict, and the score in 0..1 that stood beside it."""

    box: tuple[int, int, int, int]
    yes: bool
    score: float


class StepRecord(_Record):
    """One action and what came of it. `box` is the level-0 box asked for, `roi` the one shown after clipping.

    Where the task is to score tiles, `tiles` are those that the action scored, `view_magnification` is theirs, and the
    last step's `kept` are the boxes of all that the episode kept.
    `action` is JSON from which `wsigym.benchmarks.actions.decoded` makes exactly the action that was taken.
    """

    action: Any
    box: tuple[int, int, int, int] | None = None
    roi: tuple[int, int, int, int] | None = None
    view_magnification: float | None = None
    error: str | None = None
    note: str | None = None
    tiles: tuple[TileRecord, ...] | None = None
    kept: tuple[tuple[int, int, int, int], ...] | None = None
    reason: str | None = None
    conclusion: str | None = None
    act_seconds: float
    step_seconds: float


class EpisodeRecord(_Record):
    """One episode. `groups` are what tables can split by; `metrics` are the task's own numbers, `options` what the
    environment's reset was given.

    `confidence` is the policy's in 0..1, None where it stated none. `seed_used` is the episode's RNG seed, from
    sha256 of the run's seed and the key. `error` is the exception's text of an infrastructure error, or why a policy
    gave no answer. `agent` is what an agent tells of its requests to models.
    """

    suite: str
    task: str
    item: str
    rotation: int = 0
    policy: str
    endpoint: str | None = None
    budget: str
    seed: int
    outcome: Outcome
    score: float | None = Field(ge=0, le=1)
    groups: dict[str, str | float | None]
    metrics: dict[str, float | bool | int | str | None]
    options: dict[str, str | int] = {}
    confidence: float | None = Field(default=None, ge=0, le=1)
    steps: tuple[StepRecord, ...]
    agent: AgentRecord | None = None
    seed_used: int
    started: str
    seconds: float
    version: str
    commit: str | None
    error: str | None = None

    @property
    def key(self) -> EpisodeKey:
        return EpisodeKey(
            self.suite, self.task, self.item, self.rotation, self.policy, self.endpoint, self.budget, self.seed
        )


class EpisodeRecordWithoutSteps(EpisodeRecord):
    """A record read without its steps, of which `steps` stays empty: no name in a file is that of the alias."""

    model_config = ConfigDict(extra="ignore")

    steps: tuple[StepRecord, ...] = Field(default=(), validation_alias="")
