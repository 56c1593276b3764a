"""`evipath/localization`: EviPathBench task 3, mode A. Find the described evidence inside a search box.

The paper asks 50 slides, stratified by organ, three queries each; which three is not said. The subset `paper` takes
one path a slide by lot, and asks its nodes. The subset `efficiency` does so on five slides, on which the paper measures
time and cost a slide. Metrics are those of `wsigym.scoring.navigation`, and:

    rois_used           answered looks
    invalid_requests    requests that were answered with an error
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import gymnasium as gym
import numpy as np

from wsigym.baselines.registry import LOCALIZATION
from wsigym.cohorts import Cohort, DiagnosticPath, localization_queries
from wsigym.envs.budgets import RoiBudget
from wsigym.envs.localization import MAX_INVALID_IN_A_ROW, LocalizationEnv
from wsigym.envs.policy import Policy
from wsigym.errors import InvalidArgumentError
from wsigym.scoring.navigation import Look, navigation
from wsigym.slides import Box
from wsigym.slides.geometry import box_from_unit

from ..actions import decoded
from ..records import StepRecord
from ..task import Item, Score, by_lot

__all__ = ["EFFICIENCY_SLIDES", "PAPER_SLIDES", "Localization"]

PAPER_SLIDES = 50

EFFICIENCY_SLIDES = 5
"""Slides on which the paper measures seconds and USD a slide."""


class Localization:
    """The task; see the module's docstring."""

    name = "evipath/localization"
    environment = LOCALIZATION
    asks_slides = True
    summary = "find the described evidence at one magnification inside a search box (EviPathBench task 3, mode A)"
    subsets = ("paper", "efficiency")
    default_budget = "base"
    env_arguments: Mapping[str, Any] = {"view_px": 224, "overview_px": 256}

    def settled(self, arguments: Mapping[str, Any], cohort: Cohort, split: str | None) -> dict[str, Any]:
        return dict(arguments)

    def budget_label(self, budget: str, policy: str) -> str:
        return RoiBudget.of(budget).label

    def items(self, cohort: Cohort, split: str | None, arguments: Mapping[str, Any] | None = None) -> list[Item]:
        items = []
        for query, reference in localization_queries(cohort, split):
            entry = cohort.slide(query.slide_id)
            groups: dict[str, str | float | None] = {
                "slide": entry.slide_id,
                "patient": entry.patient_id,
                "organ": entry.organ,
                "split": entry.split,
                "magnification": query.magnification,
            }
            items.append(Item(query.query_id, groups, query, reference))
        return items

    def subset(self, name: str, items: Sequence[Item], cohort: Cohort, seed: int) -> list[Item]:
        count = {"paper": PAPER_SLIDES, "efficiency": EFFICIENCY_SLIDES}[name]
        asked_slides = {item.question.slide_id for item in items}
        paths: dict[str, list[DiagnosticPath]] = {}
        for path in cohort.paths:
            if path.slide_id in asked_slides:
                paths.setdefault(path.slide_id, []).append(path)
        if not paths:
            raise InvalidArgumentError(
                f"subset {name!r} asks one diagnostic path a slide, and cohort {cohort.name!r} has none for these "
                "slides; add paths.jsonl, or choose subset 'all' or a number."
            )
        organs = {slide_id: cohort.slide(slide_id).organ or "" for slide_id in paths}
        nodes = set()
        for slide_id in stratified(organs, count, seed):
            path = min(paths[slide_id], key=lambda path: by_lot(seed, f"{path.slide_id}\0{path.path_id}"))
            nodes |= {(slide_id, node_id) for node_id in path.node_ids}
        return [
            item
            for item in items
            if any((item.question.slide_id, node_id) in nodes for node_id in item.reference.node_ids)
        ]

    def make_env(
        self, cohort: Cohort, split: str | None, budget: str, arguments: Mapping[str, Any]
    ) -> gym.Env[Any, Any]:
        return LocalizationEnv(cohort=cohort, split=split, budget=budget, **arguments)

    def reset_options(self, item: Item) -> dict[str, Any]:
        return {"query_id": item.item_id}

    def allowance(self, item: Item, env: gym.Env[Any, Any], policy: Policy, seed: int) -> dict[str, Any]:
        return {}

    def step_limit(self, item: Item, budget: str) -> int:
        """Before each answered request come at most two invalid ones; the last request is answered, or the third."""
        return MAX_INVALID_IN_A_ROW * (RoiBudget.of(budget).rois(item.question.magnification) + 1)

    def step_fields(
        self, item: Item, action: Any, observation: Mapping[str, Any], info: Mapping[str, Any]
    ) -> dict[str, Any]:
        numbers = np.asarray(action["box"], dtype=np.float64)
        finite = numbers.shape == (4,) and np.isfinite(numbers).all()
        box = box_from_unit(numbers, item.question.search_box).to_list() if finite else None
        if "error" in info or "outcome" in info:
            return {"box": box}
        return {"box": box, "roi": info["roi"], "view_magnification": float(observation["view_magnification"][0])}

    def score(self, item: Item, outcome: str, steps: Sequence[StepRecord], info: Mapping[str, Any]) -> Score:
        looks = [
            Look(Box.of(step.roi), step.view_magnification)
            for step in steps
            if step.roi is not None and step.view_magnification is not None
        ]
        final = steps[-1] if outcome == "scored" else None
        result = navigation(
            outcome,
            Box.of(final.box) if final and final.box else None,
            looks,
            item.reference.boxes,
            item.question.search_box,
            item.question.magnification,
        )
        assert result.iou == info["iou"], "records and environment score alike"
        counts = {"rois_used": len(looks), "invalid_requests": sum(step.error is not None for step in steps)}
        return Score(result.iou, asdict(result) | counts, _confidence(final.action) if final else None)


def _confidence(action: Any) -> float | None:
    """What the policy stated in its final action; a number outside 0..1, NaN among them, states nothing."""
    stated = np.ravel(decoded(action).get("confidence", math.nan)).astype(np.float64)
    return float(stated[0]) if stated.size == 1 and 0 <= stated[0] <= 1 else None


def stratified(strata: Mapping[str, str], count: int, seed: int) -> list[str]:
    """`count` names by lot, each stratum in proportion to its size (largest remainders); all if there are fewer.

    `strata` says each name's stratum.
    """
    members: dict[str, list[str]] = {}
    for name in sorted(strata, key=lambda name: by_lot(seed, name)):
        members.setdefault(strata[name], []).append(name)
    if len(strata) <= count:
        return sorted(strata)
    quota = {stratum: count * len(names) / len(strata) for stratum, names in members.items()}
    places = {stratum: math.floor(share) for stratum, share in quota.items()}
    by_remainder = sorted(quota, key=lambda stratum: (places[stratum] - quota[stratum], stratum))
    for stratum in by_remainder[: count - sum(places.values())]:
        places[stratum] += 1
    return sorted(name for stratum, names in members.items() for name in names[: places[stratum]])
