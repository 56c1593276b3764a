"""`evipath/exploration`: EviPathBench task 3, mode B. Score a slide's tiles from 2.5x to 40x, keep the best.

An item is a slide. Budgets are those of `wsigym.envs.tile_budgets`: K for policies that score tiles, viewed tiles for
those that choose what to open next. Asked for K=6,3,2 the latter get `tiles=6,3,2`: on each slide as many tiles as the
cascade with these K views there with the same scorer and seed. To count them the cascade is played before the episode,
which takes no time of it. Controls (`--blind`) get the budget of the policy that they are controls of. The subset
`efficiency` is five slides, stratified by organ, as the paper takes for seconds and USD a slide.

Metrics, M being each magnification, such as 2.5x (see `wsigym.scoring.hit_rates`):

    positives_M, reached_M, retained_M      tiles, for the hit rates
    viewed_M                                tiles that were shown and scored
    said_no_M, outranked_M, not_shown_M     positives lost at M under a kept parent
    pruned_A_M                              positives lost at M because their ancestor at A was
    auroc_M                                 of the scores of viewed tiles; None where they are of one kind
    best_k_M, best_k_of_M                   positives among the K best-scored of each parent's viewed tiles, whatever
                                            was said of them, and all positives there; K is the paper's (6, 3, 2)
    may_be_shown_M                          tiles that may be shown: those with tissue, or all (skip_empty)
    best_viewed                             positives at the last magnification among its 36 best-scored viewed tiles:
                                            what the cascade would have kept by the rule of searches
    tiles_viewed, invalid_requests          in all
    tiles_allowed                           of a search: its budget in tiles on this slide
    tile_px, skip_empty                     as the environment had them
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from wsigym.baselines.registry import EXPLORATION, chooses_next
from wsigym.cohorts import Cohort
from wsigym.cohorts.exploration import TUMOUR, ExplorationReference, exploration_references, faults_of_regions
from wsigym.cohorts.tiles import WHOLE_SLIDE, TileGrid
from wsigym.envs.exploration import MAGNIFICATIONS, ExplorationEnv, ViewedTile, tiles_as_arrays
from wsigym.envs.policy import Policy
from wsigym.envs.tile_budgets import KEPT_AT_THE_END, PAPER_KEEP, TileBudget
from wsigym.envs.verdicts import YES, verdict_of
from wsigym.errors import CohortError, Fault, InvalidArgumentError, SlideError
from wsigym.scoring.hit_rates import level_counts, losses, recall_at_k, tile_auroc

from ..records import StepRecord, TileRecord
from ..task import Item, Score
from .localization import EFFICIENCY_SLIDES, stratified

__all__ = ["BENCHMARK_TILE_PX", "SMALL_TILE_PX", "Exploration", "tile_metrics"]

BENCHMARK_TILE_PX, SMALL_TILE_PX = 1024, 128
"""The side that the paper's figures imply; and that for cohorts whose slides are too small for it."""

STEPS_LIMIT = 10_000_000
"""Every answered step shows tiles that were never shown, so that slides end every episode long before."""


class Exploration:
    """The task; see the module's docstring."""

    name = "evipath/exploration"
    environment = EXPLORATION
    asks_slides = True
    summary = "score a slide's tiles from 2.5x to 40x and keep the best (EviPathBench task 3, mode B)"
    subsets = ("efficiency",)
    default_budget = TileBudget.of("base").label
    env_arguments: Mapping[str, Any] = {
        "target": TUMOUR,
        "magnifications": list(MAGNIFICATIONS),
        "tile_px": None,
        "page_size": 16,
        "view_px": None,
        "overview_px": 256,
        "skip_empty": True,
    }

    def settled(self, arguments: Mapping[str, Any], cohort: Cohort, split: str | None) -> dict[str, Any]:
        """`tile_px` None becomes 1,024, or 128 where a slide would have no more than the paper's six such tiles.

        Raises `CohortError` with every slide that has no such tiles, and every region that lies outside its slide.
        """
        settled = dict(arguments)
        faults: list[Fault] = []
        fewest = None
        for entry in cohort.in_split(split):
            faults += faults_of_regions(cohort, entry.slide_id)
            try:
                tile_px = BENCHMARK_TILE_PX if settled["tile_px"] is None else settled["tile_px"]
                grid = TileGrid.of(cohort.open(entry.slide_id), settled["magnifications"], tile_px)
            except SlideError as error:
                faults.append(Fault("cohort.json", None, f"slide {entry.slide_id}", str(error)))
                continue
            tiles = len(grid.children(WHOLE_SLIDE))
            fewest = tiles if fewest is None else min(fewest, tiles)
        if faults:
            raise CohortError(faults)
        if settled["tile_px"] is None:
            few = fewest is not None and fewest <= PAPER_KEEP[0]
            settled["tile_px"] = SMALL_TILE_PX if few else BENCHMARK_TILE_PX
        return settled

    def budget_label(self, budget: str, policy: str) -> str:
        asked = TileBudget.of(budget)
        if chooses_next(policy):
            return asked.freed.label
        if asked.free:
            raise InvalidArgumentError(
                f"budget {budget}: policy {policy} keeps the best K of each parent, so that its budget is a preset or "
                "K=6,3,2; tiles=N is for policies that choose what to open next, such as best-first:SCORER."
            )
        return asked.label

    def items(self, cohort: Cohort, split: str | None, arguments: Mapping[str, Any] | None = None) -> list[Item]:
        target = (arguments or self.env_arguments)["target"]
        return [
            Item(
                slide_id,
                {
                    "slide": slide_id,
                    "patient": cohort.slide(slide_id).patient_id,
                    "organ": cohort.slide(slide_id).organ,
                    "split": cohort.slide(slide_id).split,
                },
                question=slide_id,
                reference=reference,
            )
            for slide_id, reference in exploration_references(cohort, split, target).items()
        ]

    def subset(self, name: str, items: Sequence[Item], cohort: Cohort, seed: int) -> list[Item]:
        assert name == "efficiency"
        slides = stratified({item.item_id: str(item.groups["organ"] or "") for item in items}, EFFICIENCY_SLIDES, seed)
        return [item for item in items if item.item_id in slides]

    def make_env(
        self, cohort: Cohort, split: str | None, budget: str, arguments: Mapping[str, Any]
    ) -> gym.Env[Any, Any]:
        schedule = "free" if TileBudget.of(budget).free else "cascade"
        return ExplorationEnv(cohort, split, budget=budget, schedule=schedule, **arguments)

    def reset_options(self, item: Item) -> dict[str, Any]:
        return {"slide_id": item.item_id}

    def allowance(self, item: Item, env: gym.Env[Any, Any], policy: Policy, seed: int) -> dict[str, Any]:
        inner = env.unwrapped
        assert isinstance(inner, ExplorationEnv)
        if inner.schedule == "cascade" or inner.budget.keep is None:
            return {}
        cascade = getattr(policy, "in_cascade", None)
        if cascade is None:
            raise InvalidArgumentError(
                f"budget {inner.budget.label} is what the policy's scorer views in the cascade, and this policy has no "
                "`in_cascade`, a policy that scores pages as it does; give it one, or a budget such as tiles=300."
            )
        cascade.seed(seed)
        if cascade.reads_reference:
            cascade.see_reference(item.reference)
        return {"tiles": inner.viewed_in_cascade(cascade, item.item_id, seed)}

    def step_limit(self, item: Item, budget: str) -> int:
        return STEPS_LIMIT

    def step_fields(
        self, item: Item, action: Any, observation: Mapping[str, Any], info: Mapping[str, Any]
    ) -> dict[str, Any]:
        tiles = tuple(TileRecord(box=box, **verdict_of(score)._asdict()) for _, box, score in info["scored"])
        fields: dict[str, Any] = {"tiles": tiles}
        if tiles:
            fields["view_magnification"] = info["scored"][0].magnification
        if "retained" in info:
            fields["kept"] = tuple(box for level in info["retained"] for box in level)
        return fields

    def score(self, item: Item, outcome: str, steps: Sequence[StepRecord], info: Mapping[str, Any]) -> Score:
        metrics = tile_metrics(item.reference, info["grid"], info["viewed"])
        for magnification, tiles in zip(info["grid"].magnifications, info["may_be_shown"], strict=True):
            metrics[f"may_be_shown_{magnification:g}x"] = tiles
        if "tiles_allowed" in info:
            metrics["tiles_allowed"] = info["tiles_allowed"]
        metrics |= {"tile_px": info["tile_px"], "skip_empty": info["skip_empty"], "tiles_viewed": len(info["viewed"])}
        metrics["invalid_requests"] = sum(step.error is not None for step in steps)
        return Score(info["score"], metrics)


def tile_metrics(
    reference: ExplorationReference, grid: TileGrid, viewed: Sequence[ViewedTile]
) -> dict[str, float | int | None]:
    """The metrics of one slide by magnification, from the tiles that were scored; see the module's docstring."""
    positives = reference.positives(grid)
    shapes = [array.shape for array in positives]
    scored = tiles_as_arrays(viewed, shapes)
    retained = tiles_as_arrays((tile for tile in viewed if tile.kept), shapes)
    said_yes = tiles_as_arrays((tile for tile in viewed if tile.suspicion >= YES), shapes)
    scores = tuple(np.zeros(shape) for shape in shapes)
    for level, row, column, value, _ in viewed:
        scores[level][row, column] = value
    counts = level_counts(positives, retained, grid.ratios)
    lost = losses(positives, retained, scored, said_yes, grid.ratios)
    keep = PAPER_KEEP if grid.levels == len(PAPER_KEEP) else (PAPER_KEEP[-1],) * grid.levels
    metrics: dict[str, float | int | None] = {}
    for level, name in enumerate(f"{magnification:g}x" for magnification in grid.magnifications):
        best, of = recall_at_k(_siblings(grid, level, scored, scores, positives), keep[level])
        metrics |= {
            f"positives_{name}": counts[level].positives,
            f"reached_{name}": counts[level].reached,
            f"retained_{name}": counts[level].retained,
            f"viewed_{name}": int(scored[level].sum()),
            f"said_no_{name}": lost[level].said_no,
            f"outranked_{name}": lost[level].outranked,
            f"not_shown_{name}": lost[level].not_shown,
            f"auroc_{name}": tile_auroc(scores[level][scored[level]], positives[level][scored[level]]),
            f"best_k_{name}": best,
            f"best_k_of_{name}": of,
        }
        for above, count in enumerate(lost[level].pruned):
            metrics[f"pruned_{grid.magnifications[above]:g}x_{name}"] = count
    shown = scored[-1]
    metrics["best_viewed"], _ = recall_at_k([(scores[-1][shown], positives[-1][shown])], KEPT_AT_THE_END)
    return metrics


def _siblings(
    grid: TileGrid,
    level: int,
    scored: Sequence[npt.NDArray[np.bool_]],
    scores: Sequence[npt.NDArray[np.float64]],
    positives: Sequence[npt.NDArray[np.bool_]],
) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]]:
    """Scores and labels of each parent's viewed tiles, in raster order."""
    rows, columns = np.nonzero(scored[level])
    ratio = grid.ratios[level - 1] if level else max(grid.shape(0))
    groups: dict[tuple[int, int], list[int]] = {}
    for index, parent in enumerate(zip((rows // ratio).tolist(), (columns // ratio).tolist(), strict=True)):
        groups.setdefault(parent, []).append(index)
    return [
        (scores[level][rows[group], columns[group]], positives[level][rows[group], columns[group]])
        for group in groups.values()
    ]
