"""Tasks whose items lie in a cohort's files: one class for all, so that a task of a suite is one small file.

    TASK = EvidenceTask("evipath/interpretation", "choose the finding that an image shows", measures=(...))

An episode is one item in one order of its options; a circular task asks each item once an order. What a run's budget is
elsewhere is here how much of the evidence is shown: "all", "highest-power", "2.5x+10x" ... (`item_transforms`).

Metrics of an episode (those of an option are None where there was no answer):

    right        the score is 1
    letter       the place of the chosen option as it was shown
    chosen       the same option's place in rotation 0
    options      how many there were
    and what the task adds with `details`
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, SupportsIndex

import gymnasium as gym

from wsigym.baselines.registry import EVIDENCE
from wsigym.cohorts import Cohort, EvidenceItem, EvidenceReference, load_items
from wsigym.cohorts.item_files import image_faults
from wsigym.envs.evidence import EvidenceEnv
from wsigym.envs.item_transforms import Evidence, rotated, rotated_reference
from wsigym.envs.policy import Policy
from wsigym.errors import CohortError, InvalidArgumentError

from .evidence_measures import ACCURACY, ACCURACY_BY_ITEM, ByItem, Measure
from .records import EpisodeRecord, StepRecord
from .tables import Table
from .task import Item, Score, some_by_lot

__all__ = ["EvidenceTask", "no_details"]

EFFICIENCY_ITEMS = 20
"""Questions of a task on which EviPathBench measures seconds and USD a question."""

Metric = float | bool | int | str | None
Details = Callable[[EvidenceItem, EvidenceReference, Any], Mapping[str, Metric]]
"""From an item and its reference, as they were shown, and the answer as it was understood (None: there is none)."""


def no_details(item: EvidenceItem, reference: EvidenceReference, answer: Any) -> Mapping[str, Metric]:
    """Nothing beside the metrics of every evidence task."""
    return {}


@dataclass(frozen=True)
class EvidenceTask:
    """A task over item files.

    Args:
        name: `SUITE/TASK`; its items are those of `items/SUITE/TASK.jsonl`.
        summary: one line on what is asked.
        circular: ask each item once for each rotation of its options.
        measures: the columns of its table, beside chance, counts and outcomes.
        details: further metrics of an episode, for measures to read.
        split_by: the field of records by whose values measures with `split` are shown too.
        compared: what amounts of evidence are compared by, the first also to find the best single one.
        parts: parts of the items, by name, for which amounts of evidence are compared too.
        published: the table of the paper's figures beside these, where there is one.
    """

    name: str
    summary: str
    circular: bool = False
    measures: tuple[Measure, ...] = (ACCURACY,)
    details: Details = no_details
    split_by: str = "magnification"
    compared: tuple[ByItem, ...] = (ACCURACY_BY_ITEM,)
    parts: tuple[tuple[str, Callable[[EpisodeRecord], bool]], ...] = ()
    published: Callable[[Sequence[EpisodeRecord]], Table] | None = None

    environment = EVIDENCE
    asks_slides = False
    subsets: ClassVar[Sequence[str]] = ("efficiency",)
    default_budget = "all"

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """A task of the project pickles as its name, as its measures are functions, which do not all pickle."""
        from .suites import TASKS, find_task  # which hold this class' instances

        return (find_task, (self.name,)) if TASKS.get(self.name) is self else super().__reduce_ex__(protocol)

    @property
    def env_arguments(self) -> Mapping[str, Any]:
        return {"answer": "text", "max_images": 8, "image_px": 224}

    @property
    def _place(self) -> tuple[str, str]:
        suite, _, task = self.name.partition("/")
        return suite, task

    def settled(self, arguments: Mapping[str, Any], cohort: Cohort, split: str | None) -> dict[str, Any]:
        faults = list(image_faults(cohort, load_items(cohort, *self._place, split)))
        if faults:
            raise CohortError(faults)
        return dict(arguments)

    def budget_label(self, budget: str, policy: str) -> str:
        try:
            return Evidence.of(budget).label
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"the budget of {self.name} is how much of an item's evidence is shown: {error}"
            ) from None

    def items(self, cohort: Cohort, split: str | None, arguments: Mapping[str, Any] | None = None) -> list[Item]:
        found = []
        for asked in load_items(cohort, *self._place, split):
            item, reference = asked.item, asked.reference
            groups: dict[str, str | float | None] = {
                **{str(kind): name for kind, name in item.group.items()},
                "organ": item.metadata.organ,
                "magnification": item.metadata.magnification,
                "split": item.split,
                "set": item.set_id or item.group.get("set"),
                **reference.strata,
            }
            rotations = len(item.options) if self.circular else 1
            found += [
                Item(
                    item.item_id,
                    groups,
                    question=rotated(item, rotation),
                    reference=rotated_reference(reference, item, rotation),
                    rotation=rotation,
                )
                for rotation in range(rotations)
            ]
        return found

    def subset(self, name: str, items: Sequence[Item], cohort: Cohort, seed: int) -> list[Item]:
        assert name == "efficiency"
        return some_by_lot(items, EFFICIENCY_ITEMS, seed)

    def make_env(
        self, cohort: Cohort, split: str | None, budget: str, arguments: Mapping[str, Any]
    ) -> gym.Env[Any, Any]:
        suite, task = self._place
        return EvidenceEnv(cohort, suite, task, split=split, evidence=budget, **arguments)

    def subsets_of_evidence(self, cohort: Cohort, split: str | None) -> list[str]:
        """Every subset of the magnifications that its items show, the smallest first; that of all is "all".

        Raises `InvalidArgumentError` where there are fewer than two of them.
        """
        shown: set[float] = set()
        for asked in load_items(cohort, *self._place, split):
            shown |= {image.magnification for image in asked.item.images if image.magnification is not None}
            shown |= {finding.magnification for finding in asked.item.findings}
        if len(shown) < 2:
            raise InvalidArgumentError(
                f"{self.name} shows evidence at {len(shown)} magnification(s): no subsets to sweep."
            )
        sizes = range(1, len(shown))
        subsets = [chosen for size in sizes for chosen in combinations(sorted(shown), size)]
        return ["+".join(f"{value:g}x" for value in chosen) for chosen in subsets] + ["all"]

    def reset_options(self, item: Item) -> dict[str, Any]:
        return {"item_id": item.item_id, "rotation": item.rotation}

    def allowance(self, item: Item, env: gym.Env[Any, Any], policy: Policy, seed: int) -> dict[str, Any]:
        return {}

    def step_limit(self, item: Item, budget: str) -> int:
        return 1

    def step_fields(
        self, item: Item, action: Any, observation: Mapping[str, Any], info: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {}

    def score(self, item: Item, outcome: str, steps: Sequence[StepRecord], info: Mapping[str, Any]) -> Score:
        question: EvidenceItem = item.question
        answer = json.loads(info["answer"])
        count = len(question.options)
        metrics: dict[str, Metric] = {"right": info["score"] == 1, "options": count}
        if question.answer.kind == "option":
            metrics |= {"letter": answer, "chosen": None if answer is None else (answer + item.rotation) % count}
        metrics |= self.details(question, item.reference, answer)
        return Score(info["score"], metrics, _confidence(answer))


def _confidence(answer: Any) -> float | None:
    """What an answer states in its field "confidence", in per cent (CaseScope's form); None where it states none."""
    stated = answer.get("confidence") if isinstance(answer, dict) else None
    if not isinstance(stated, int | float) or isinstance(stated, bool) or not math.isfinite(stated):
        return None
    return stated / 100 if 0 <= stated <= 100 else None
