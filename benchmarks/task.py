"""What the runner needs to know of a task. A new task is one small file beside its suite and one line in `suites.py`.

A task says which items there are, makes the environment, and turns a finished episode into numbers. The runner does
the rest: budgets, seeds, policies, steps, records, resume.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium as gym

from wsigym.cohorts import Cohort
from wsigym.envs.policy import Policy
from wsigym.errors import InvalidArgumentError, UnknownNameError

from .records import StepRecord

__all__ = ["SUBSET_SEED", "Item", "Score", "Task", "by_lot", "choose_items", "some_by_lot"]

SUBSET_SEED = 0
"""Subsets are drawn with this seed, whatever the run's, so that runs with other seeds ask the same items."""


@dataclass(frozen=True)
class Item:
    """One thing to ask. `question` may be shown to a model, `reference` never; `groups` are what tables split by."""

    item_id: str
    groups: Mapping[str, str | float | None]
    question: Any
    reference: Any
    rotation: int = 0


@dataclass(frozen=True)
class Score:
    """A finished episode in numbers: its score in 0..1, the task's metrics, the confidence that the policy stated."""

    score: float
    metrics: Mapping[str, float | bool | int | str | None]
    confidence: float | None = None


class Task(Protocol):
    """A test of a suite. Instances pickle, and hold no state of a run."""

    @property
    def name(self) -> str:
        """`SUITE/TASK`."""

    @property
    def environment(self) -> str:
        """The id of the environment that asks it; policies are named by environment."""

    @property
    def summary(self) -> str:
        """One line on what is asked."""

    @property
    def asks_slides(self) -> bool:
        """Whether it asks the slides of a split, so that each has to open with its annotations before a run."""

    @property
    def subsets(self) -> Sequence[str]:
        """Names of its own subsets, beside `all` and a number."""

    @property
    def env_arguments(self) -> Mapping[str, Any]:
        """The environment's arguments that a run may set, with their defaults; JSON values."""

    @property
    def default_budget(self) -> str:
        """The budget of a run that names none."""

    def settled(self, arguments: Mapping[str, Any], cohort: Cohort, split: str | None) -> dict[str, Any]:
        """The environment's arguments once the cohort is known: what depends on the slides is filled in and checked.

        Raises `CohortError` with every slide of the split on which the task cannot be asked with them.
        """

    def budget_label(self, budget: str, policy: str) -> str:
        """The one spelling of a budget, as `policy` spends it. Raises `UnknownNameError` or `InvalidArgumentError`."""

    def items(self, cohort: Cohort, split: str | None, arguments: Mapping[str, Any] | None = None) -> list[Item]:
        """Every item of a split, in the cohort's order, as the environment's arguments (None: the defaults) ask it."""

    def subset(self, name: str, items: Sequence[Item], cohort: Cohort, seed: int) -> list[Item]:
        """The items of one of `subsets`, in the order of `items`."""

    def make_env(
        self, cohort: Cohort, split: str | None, budget: str, arguments: Mapping[str, Any]
    ) -> gym.Env[Any, Any]:
        """The environment that asks these items."""

    def reset_options(self, item: Item) -> dict[str, Any]:
        """What `env.reset(options=...)` takes to ask `item`."""

    def allowance(self, item: Item, env: gym.Env[Any, Any], policy: Policy, seed: int) -> dict[str, Any]:
        """Further reset options that depend on who plays, such as a budget that is what another search spends.

        Mostly none. May play `policy` on a copy of `env`, which the episode does not count.
        """

    def step_limit(self, item: Item, budget: str) -> int:
        """No episode of the environment can take more steps than this."""

    def step_fields(
        self, item: Item, action: Any, observation: Mapping[str, Any], info: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The fields `box`, `roi` and `view_magnification` of a step's record, from what the step returned."""

    def score(self, item: Item, outcome: str, steps: Sequence[StepRecord], info: Mapping[str, Any]) -> Score:
        """The numbers of a finished episode; `info` is the last step's."""


def choose_items(
    task: Task, cohort: Cohort, split: str | None, subset: str, arguments: Mapping[str, Any] | None = None
) -> list[Item]:
    """The items of `subset`: "all", a number, or one of the task's own names; in the cohort's order."""
    items = task.items(cohort, split, arguments)
    if subset == "all":
        return items
    if subset in task.subsets:
        return task.subset(subset, items, cohort, SUBSET_SEED)
    try:
        count = int(subset)
    except ValueError:
        raise UnknownNameError("subset", subset, ("all", *task.subsets, "a number of items")) from None
    ids = {item.item_id for item in items}  # of an item in several rotations, all are asked
    if not 1 <= count <= len(ids):
        raise InvalidArgumentError(
            f"subset {count}: allowed are 1 to {len(ids)}, the items of split {split or 'any'}, or 'all'."
        )
    return some_by_lot(items, count, SUBSET_SEED)


def some_by_lot(items: Sequence[Item], count: int, seed: int) -> list[Item]:
    """`count` items by lot in every rotation that is asked, in the order of `items`; all where there are no more."""
    ids = {item.item_id for item in items}
    drawn = set(sorted(ids, key=lambda item_id: by_lot(seed, item_id))[:count])
    return [item for item in items if item.item_id in drawn]


def by_lot(seed: int, name: str) -> bytes:
    """A sort key that orders names at random, yet each name the same whatever others there are."""
    return hashlib.sha256(f"{seed}\0{name}".encode()).digest()
