"""Exploration: find the tumour on a slide by scoring its tiles, from the lowest magnification to the highest.

EviPathBench task 3, mode B. An episode is one slide. Each step shows a page of sibling tiles and takes a suspicion for
each; 0.5 and more means Yes. Tiles are those of `wsigym.cohorts.tiles`.

Schedules
    cascade   All tiles of the first magnification, in raster order, then the children of the tiles kept. When all
              tiles under a parent are scored, its K best with a Yes are kept (ties by row, then column); at the first
              magnification K is for the slide. Ends after the last magnification, or when none is kept at one.
    free      The policy also says which open node to look into next, under one budget of viewed tiles; see
              `wsigym.envs.tile_search.FreeSearch`. Ends when it is spent, nothing is left, or an empty slot is chosen.
              Kept are the 36 best-scored viewed tiles of the last magnification, whatever the budget.

Action
    cascade   Box 0..1 float32 (page_size,)    the suspicion of each tile of the page; the rest is not read
    free      Dict(scores=that Box, next=Discrete(64)), `next` a slot of `frontier`

Observation (Dict)
    tiles           uint8 (page_size, view_px, view_px, 3)   each tile, shrunk where view_px < tile_px, else padded
    tile_mask       int8 (page_size,)             1 where there is a tile; all 0 where there is none to show
    tile_boxes      float32 (page_size, 4)        x, y, width, height of its part on the slide, in 0..1 of the slide
    overview        uint8 (overview_px, overview_px, 3)      the slide, at most a quarter of the first magnification
    magnification   float32 (1,)   0..200         the page's; 0 where there is none
    progress        float32 (1,)   0..1           cascade: levels done and the share of this one; free: of the budget
    frontier        float32 (64, 5)   0..1        free: box (as tile_boxes) and score of each open node; the first
                                                  page_size slots are the page's own tiles, which have no score yet (0)
    frontier_mask   int8 (64,)                    free: 1 where the slot holds an open node; the last is always 0
Images keep their aspect; padding and what lies beyond the slide is the slide's background.

Info (what a model may know)
    slide_id, target (what is looked for), magnification, tiles (level-0 boxes (x, y, width, height) of the page's whole
    tiles), tile_size (width, height of each tile's image without padding), slide_size (width, height), mpp,
    overview_size, tiles_viewed (with the page), scored (a `ScoredTile` for each tile of the page before, empty after an
    invalid request), budget (its label), `error` about the last request; free: tiles_allowed, frontier (level-0 boxes
    by slot, None where empty). Once the episode is over: outcome, score, grid (the slide's `TileGrid`), tile_px,
    skip_empty, retained (for each magnification the level-0 boxes kept), viewed (a `ViewedTile` each), may_be_shown
    (for each magnification the number of tiles that the rules let be shown).

Reward
    cascade   at the end of each magnification: newly kept positive tiles / all its positive tiles, averaged over the
              magnifications that have any; the return is the slide's mean hit rate
    free      at the end: kept positive tiles / all positive tiles of the last magnification
    A tile is positive when more than 5 % of it lies inside the regions looked for. A slide without any returns 0.

Ends (`terminated`; never `truncated`)
    As the schedule says: outcome "scored". Where no tile may be shown, reset gives an empty page and any step ends
    the episode. Three invalid requests in a row (a suspicion that is not a number in 0..1): "invalid"; what was kept
    counts. An action of another form is the caller's mistake and raises `InvalidArgumentError`.

Registered: wsigym/Exploration-v0. Version history: v0, first release.
"""

from __future__ import annotations

import copy
import operator
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from wsigym.cohorts import Cohort
from wsigym.cohorts.exploration import TUMOUR, exploration_references, faults_of_regions
from wsigym.cohorts.synthetic import default_cohort
from wsigym.cohorts.tiles import Tile, TileGrid, check_tile_px, is_number, tile_ratios
from wsigym.errors import CohortError, EpisodeOverError, InvalidArgumentError, UnknownNameError, WsigymWarning
from wsigym.scoring.hit_rates import level_counts, slide_rate, unconditional_rate
from wsigym.slides import Slide, tissue_mask
from wsigym.slides.geometry import box_to_unit

from .localization import (
    CURRENT,
    MAX_INVALID_IN_A_ROW,
    MAX_MAGNIFICATION,
    MIN_IMAGE_PX,
    OVERVIEW_CAP,
    VISITED,
    image_px,
)
from .policy import NoAnswerOutcome, Policy
from .tile_budgets import KEPT_AT_THE_END, TileBudget
from .tile_search import FRONTIER_SLOTS, Cascade, FreeSearch, TileTree, most_viewed
from .views import View, check_image, draw_boxes, unpadded_view_of, view_of

__all__ = ["MAGNIFICATIONS", "ExplorationEnv", "ScoredTile", "ViewedTile", "tiles_as_arrays"]

MAGNIFICATIONS = (2.5, 10.0, 40.0)
SCHEDULES = ("cascade", "free")
MAX_PAGE = 256
MAX_FREE_PAGE = FRONTIER_SLOTS // 2
"""In the free schedule the page's own tiles take as many slots of the frontier."""


class ScoredTile(NamedTuple):
    """A tile that the last action scored: its magnification, level-0 box (x, y, width, height) and suspicion."""

    magnification: float
    box: tuple[int, ...]
    suspicion: float


class ViewedTile(NamedTuple):
    """A scored tile in the last info: its place in the grid, its suspicion in 0..1, and whether it was kept."""

    level: int
    row: int
    column: int
    suspicion: float
    kept: bool


class ExplorationEnv(gym.Env[dict[str, Any], Any]):
    """One slide an episode; the module's docstring is the card of actions, observations, reward and ends.

    Args:
        cohort: folder or loaded cohort; None makes a small synthetic one once in the user's cache.
        split: "train", "val", "test", or None for all slides.
        target: the class of the regions that are looked for.
        budget: "tight", "base", "loose", "K=6,3,2", "K=all", or the K themselves. In the free schedule also
            "tiles=N"; with K there, the budget is what a cascade with these K views on the slide: as many as the reset
            option `tiles` says, which `viewed_in_cascade` counts, else the most that it can view.
        schedule: "cascade" or "free".
        magnifications: rising by whole factors; (2.5, 10, 20) suits slides scanned at 20x.
        tile_px: side of a tile at each magnification; 1,024 is what the paper's figures imply.
        page_size: tiles a step, 1 to 256 (free: 1 to 32); 1 is the paper's one tile a call.
        view_px: side of a tile's image, 36 to 8,192; None is `tile_px`, or 36 if that is more.
        overview_px: side of the overview, 36 to 8,192.
        skip_empty: tiles without tissue are not shown (they stay positives where they overlap); False shows all, as
            the paper says.
        render_mode: "rgb_array" or None.

    `reset(options={"slide_id": ...})` picks a slide; otherwise the environment's seeded RNG does. In the free schedule
    the option `tiles` is how many tiles this episode may view, whatever the budget. Raises
    `CohortError` on reset where the slide does not bear its annotations, `SlideError` where it cannot be read, its
    scale is unknown or its scan is below the last magnification. Warns where a slide has no more tiles at the first
    magnification than are kept, so that there is nothing to choose.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 2}  # noqa: RUF012  # gymnasium's own form

    def __init__(
        self,
        cohort: str | Path | Cohort | None = None,
        split: str | None = None,
        target: str = TUMOUR,
        budget: str | Sequence[int] | TileBudget = "base",
        schedule: str = "cascade",
        magnifications: Sequence[float] = MAGNIFICATIONS,
        tile_px: int = 128,
        page_size: int = 16,
        view_px: int | None = None,
        overview_px: int = 256,
        skip_empty: bool = True,
        render_mode: str | None = None,
    ) -> None:
        if schedule not in SCHEDULES:
            raise UnknownNameError("schedule", schedule, SCHEDULES)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise UnknownNameError("render_mode", render_mode, self.metadata["render_modes"])
        self._ratios = tile_ratios(magnifications)
        self.magnifications = tuple(float(value) for value in magnifications)
        self.budget = _checked_budget(TileBudget.of(budget), schedule, len(self.magnifications))
        if self.magnifications[-1] > MAX_MAGNIFICATION:
            raise InvalidArgumentError(f"magnifications are {list(magnifications)}; allowed are those up to 200.")
        check_tile_px(tile_px)
        self.tile_px, self.overview_px = int(tile_px), image_px("overview_px", overview_px)
        self.view_px = max(self.tile_px, MIN_IMAGE_PX) if view_px is None else image_px("view_px", view_px)
        largest_page = MAX_FREE_PAGE if schedule == "free" else MAX_PAGE
        if not (is_number(page_size) and 1 <= page_size <= largest_page and page_size == int(page_size)):
            raise InvalidArgumentError(
                f"page_size is {page_size!r}; allowed are whole numbers from 1 to {largest_page} in schedule "
                f"{schedule!r}."
            )
        page_size = int(page_size)
        if not isinstance(skip_empty, bool):
            raise InvalidArgumentError(f"skip_empty is {skip_empty!r}; allowed are True and False.")
        if isinstance(cohort, Cohort):
            self.cohort = cohort
        else:
            self.cohort = Cohort.load(default_cohort() if cohort is None else cohort)
        self.schedule, self.target, self.page_size, self.skip_empty = schedule, target, page_size, skip_empty
        self.render_mode = render_mode
        self._shown_px = min(self.view_px, self.tile_px)
        self._references = exploration_references(self.cohort, split, target)
        self._prepared: dict[str, tuple[TileTree, tuple[npt.NDArray[np.bool_], ...]]] = {}
        self._over = True

        scores = spaces.Box(0, 1, (page_size,), np.float32)
        observation: dict[str, spaces.Space[Any]] = {
            "tiles": spaces.Box(0, 255, (page_size, self.view_px, self.view_px, 3), np.uint8),
            "tile_mask": spaces.MultiBinary(page_size),
            "tile_boxes": spaces.Box(0, 1, (page_size, 4), np.float32),
            "overview": spaces.Box(0, 255, (self.overview_px, self.overview_px, 3), np.uint8),
            "magnification": spaces.Box(0, MAX_MAGNIFICATION, (1,), np.float32),
            "progress": spaces.Box(0, 1, (1,), np.float32),
        }
        self.action_space: spaces.Space[Any] = scores
        if schedule == "free":
            observation["frontier"] = spaces.Box(0, 1, (FRONTIER_SLOTS, 5), np.float32)
            observation["frontier_mask"] = spaces.MultiBinary(FRONTIER_SLOTS)
            self.action_space = spaces.Dict({"scores": scores, "next": spaces.Discrete(FRONTIER_SLOTS)})
        self.observation_space = spaces.Dict(observation)

    @property
    def slide_ids(self) -> tuple[str, ...]:
        """Every slide that `reset(options={"slide_id": ...})` takes."""
        return tuple(self._references)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self._over = True  # until all of the next episode is there
        given = self._checked_options(options or {})
        self._slide_id = self._choose(given.get("slide_id"))
        self._tree, self._positives = self._prepare(self._slide_id)
        self._slide = self.cohort.open(self._slide_id)
        cap = OVERVIEW_CAP * self.magnifications[0]
        self._overview = view_of(self._slide, self._slide.box, self.overview_px, cap)
        self._search = self._new_search(given.get("tiles"))
        self._scored: tuple[ScoredTile, ...] = ()
        self._score = 0.0
        self._invalid_in_a_row = 0
        self._over = False
        self._read_page()
        return self._observation(), self._info()

    def viewed_in_cascade(self, policy: Policy, slide_id: str, seed: int) -> int:
        """How many tiles `policy` views on a slide in the cascade with the K of this environment's budget.

        The cascade is played on a copy, so that this environment's episode stays as it is; `policy` has to be ready
        (seeded, and shown the reference if it reads it) and is reset here. Raises `InvalidArgumentError` where the
        budget has no K.
        """
        if self.budget.keep is None:
            raise InvalidArgumentError(f"budget {self.budget.label} has no K, so that no cascade belongs to it.")
        cascade = copy.copy(self)  # shares the cohort and the slides that are prepared
        cascade.schedule, cascade.budget = "cascade", TileBudget.of(self.budget.keep)
        observation, info = cascade.reset(seed=seed, options={"slide_id": slide_id})
        policy.reset(observation, info)
        over = False
        while not over:
            observation, _, over, _, info = cascade.step(policy.act(observation, info))
        return len(info["viewed"])

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        if self._over:
            raise EpisodeOverError("step() was called on an episode that is over or never began; call reset() first.")
        self._scored = ()
        error = self._take(action) if self._search.page else None
        self._invalid_in_a_row = 0 if error is None else self._invalid_in_a_row + 1
        if error is None:
            self._read_page()
        invalid = self._invalid_in_a_row == MAX_INVALID_IN_A_ROW
        self._over = invalid or not self._search.page
        before, self._score = self._score, self._rate()
        info = self._info()
        if error is not None:
            info["error"] = error
        if self._over:
            info |= {"outcome": "invalid" if invalid else "scored", "score": self._score} | self._found()
        return self._observation(), self._score - before, self._over, False, info

    def give_up(self, outcome: NoAnswerOutcome) -> dict[str, Any]:
        """End the episode without an answer, for a policy that raised `NoAnswer`: score 0, nothing kept."""
        if self._over:
            raise EpisodeOverError("give_up() was called on an episode that is over or never began.")
        self._over = True
        found = self._found()
        found["retained"] = tuple(() for _ in found["retained"])
        found["viewed"] = tuple(tile._replace(kept=False) for tile in found["viewed"])
        return self._info() | {"outcome": outcome, "score": 0.0} | found

    def _take(self, action: Any) -> str | None:
        """Hand the scores of the page to the search; or say what is wrong with them."""
        given, slot = _parsed(action, self.page_size, free=self.schedule == "free")
        scores = given[: len(self._search.page)].tolist()
        wrong = [score for score in scores if not 0 <= score <= 1]  # written so that NaN is wrong too
        if wrong:
            return f"A suspicion is {wrong[0]}; it must be a number from 0 to 1."
        magnification = self._magnification()
        self._scored = tuple(
            ScoredTile(magnification, self._level0(tile), score)
            for tile, score in zip(self._search.page, scores, strict=True)
        )
        if isinstance(self._search, FreeSearch):
            self._search.take(scores, slot)
        else:
            self._search.take(scores)
        return None

    # -- what is shown -------------------------------------------------------------------------------------------

    def _read_page(self) -> None:
        """The images of the page: each tile is read here, once an episode."""
        self._tiles = np.empty((self.page_size, self.view_px, self.view_px, 3), np.uint8)
        self._tiles[:] = self._slide.background
        shown = self._shown_px
        for index, tile in enumerate(self._search.page):
            self._tiles[index, :shown, :shown] = self._slide.read(self._tree.grid.box(tile), (shown, shown))

    def image(self, name: str, side_px: int) -> View:
        """An image of the episode (see `wsigym.envs.views.ImageSource`): "overview" with its cap, and "tile-0" ..., the
        places of the page now shown, never above the page's magnification."""
        if not hasattr(self, "_overview"):
            raise EpisodeOverError("image() was called before reset(); call reset() first.")
        tiles = {f"tile-{place}": tile for place, tile in enumerate(self._search.page)}
        check_image(name, side_px, ("overview", *tiles))
        if name == "overview":
            return unpadded_view_of(self._slide, self._slide.box, side_px, OVERVIEW_CAP * self.magnifications[0])
        side, box = min(side_px, self.tile_px), self._tree.grid.box(tiles[name])
        magnification = self._magnification() * side / self.tile_px
        return View(self._slide.read(box, (side, side)), box, magnification, (side, side))

    def _observation(self) -> dict[str, Any]:
        page = self._search.page
        mask = np.zeros(self.page_size, np.int8)
        mask[: len(page)] = 1
        boxes = np.zeros((self.page_size, 4), np.float32)
        for index, tile in enumerate(page):
            boxes[index] = self._box_unit(tile)
        shown: dict[str, Any] = {
            "tiles": self._tiles.copy(),
            "tile_mask": mask,
            "tile_boxes": boxes,
            "overview": self._overview.image.copy(),
            "magnification": np.array([self._magnification()], np.float32),
            "progress": np.array([self._search.progress], np.float32),
        }
        if isinstance(self._search, FreeSearch):
            frontier = np.zeros((FRONTIER_SLOTS, 5), np.float32)
            occupied = np.zeros(FRONTIER_SLOTS, np.int8)
            for slot, node in enumerate(self._search.slots):
                if node is not None:
                    frontier[slot, :4], frontier[slot, 4] = self._box_unit(node), self._search.slot_score(node)
                    occupied[slot] = 1
            shown |= {"frontier": frontier, "frontier_mask": occupied}
        return shown

    def _info(self) -> dict[str, Any]:
        page = self._search.page
        info: dict[str, Any] = {
            "slide_id": self._slide_id,
            "target": self.target,
            "magnification": self._magnification(),
            "tiles": tuple(self._level0(tile) for tile in page),
            "slide_size": self._slide.dimensions,
            "mpp": self._slide.mpp,
            "overview_size": self._overview.size,
            "tile_size": (self._shown_px, self._shown_px),
            "tiles_viewed": len(self._search.scores) + len(page),
            "scored": self._scored,
            "budget": self.budget.label,
        }
        if isinstance(self._search, FreeSearch):
            info["tiles_allowed"] = self._search.tiles
            info["frontier"] = tuple(node and self._level0(node) for node in self._search.slots)
        return info

    def _found(self) -> dict[str, Any]:
        """What the policy itself brought about, once the episode is over."""
        kept = self._search.kept
        all_kept = {tile for level in kept for tile in level}
        return {
            "grid": self._tree.grid,
            "tile_px": self.tile_px,
            "skip_empty": self.skip_empty,
            "retained": tuple(tuple(self._level0(tile) for tile in level) for level in kept),
            "viewed": tuple(ViewedTile(*tile, score, tile in all_kept) for tile, score in self._search.scores.items()),
            "may_be_shown": tuple(int(level.sum()) for level in self._tree.shown),
        }

    def _magnification(self) -> float:
        return self.magnifications[self._search.page[0].level] if self._search.page else 0.0

    def _level0(self, tile: Tile) -> tuple[int, ...]:
        return tuple(self._tree.grid.box(tile).to_list())

    def _box_unit(self, tile: Tile) -> npt.NDArray[np.float32]:
        return box_to_unit(self._tree.grid.box(tile).intersection(self._slide.box), self._slide.box)

    # -- reward --------------------------------------------------------------------------------------------------

    def _rate(self) -> float:
        """The share of the positives that is kept so far: in the cascade of each level done, else of the last."""
        if isinstance(self._search, FreeSearch) and not self._over:
            return 0.0
        shape = [positive.shape for positive in self._positives]
        retained = tiles_as_arrays((tile for level in self._search.kept for tile in level), shape)
        counts = level_counts(self._positives, retained, self._ratios)
        rate = unconditional_rate(counts[-1:]) if isinstance(self._search, FreeSearch) else slide_rate(counts)
        return rate or 0.0

    # -- start and end -------------------------------------------------------------------------------------------

    def _new_search(self, tiles: int | None) -> Cascade | FreeSearch:
        if self.schedule == "cascade":
            return Cascade(self._tree, self.budget.keep, self.page_size)
        if tiles is None:
            tiles = self.budget.tiles or most_viewed(self._tree, self.budget.keep)
        return FreeSearch(self._tree, tiles, KEPT_AT_THE_END, self.page_size)

    def _checked_options(self, options: dict[str, Any]) -> dict[str, Any]:
        allowed = ["slide_id", "tiles"] if self.schedule == "free" else ["slide_id"]
        if unknown := sorted(set(options) - set(allowed)):
            raise UnknownNameError("reset option", str(unknown[0]), allowed)
        tiles = options.get("tiles")
        if tiles is not None and (isinstance(tiles, bool) or not isinstance(tiles, int) or tiles < 0):
            raise InvalidArgumentError(f"reset option tiles is {tiles!r}; it is a whole number of 0 or more.")
        return options

    def _choose(self, slide_id: Any) -> str:
        if slide_id is None:
            return self.slide_ids[int(self.np_random.integers(len(self.slide_ids)))]
        if slide_id not in self._references:
            raise UnknownNameError("slide", str(slide_id), self.slide_ids)
        return str(slide_id)

    def _prepare(self, slide_id: str) -> tuple[TileTree, tuple[npt.NDArray[np.bool_], ...]]:
        """The slide's tree and which of its tiles are positive; made when the slide is first asked."""
        if slide_id not in self._prepared:
            faults = self.cohort.check_slide(slide_id) or faults_of_regions(self.cohort, slide_id)
            if faults:
                raise CohortError(faults)
            slide = self.cohort.open(slide_id)
            grid = TileGrid.of(slide, self.magnifications, self.tile_px)
            self._warn_of_few(slide, grid)
            tree = TileTree.with_tissue(grid, tissue_mask(slide)) if self.skip_empty else TileTree.whole(grid)
            self._prepared[slide_id] = tree, self._references[slide_id].positives(grid)
        return self._prepared[slide_id]

    def _warn_of_few(self, slide: Slide, grid: TileGrid) -> None:
        rows, columns = grid.shape(0)
        if self.schedule == "cascade" and self.budget.keep and rows * columns <= self.budget.keep[0]:
            found = "1 tile" if rows * columns == 1 else f"{rows * columns} tiles"
            warnings.warn(
                f"{slide.path}: {found} at {self.magnifications[0]:g}x, of which {self.budget.keep[0]} may be kept, "
                f"so that there is nothing to choose; give a tile_px below {self.tile_px}.",
                WsigymWarning,
                stacklevel=3,
            )

    def render(self) -> npt.NDArray[np.uint8] | None:
        """uint8 (side, 2 * side, 3), side = overview_px: the overview with kept tiles and the page, then the page."""
        if self.render_mode is None:
            return None
        if not hasattr(self, "_overview"):
            raise EpisodeOverError("render() was called before reset(); call reset() first.")
        box_of = self._tree.grid.box
        kept = [box_of(tile).intersection(self._slide.box) for level in self._search.kept for tile in level]
        page = [box_of(tile).intersection(self._slide.box) for tile in self._search.page]
        drawn = View(draw_boxes(self._overview, kept, VISITED), self._overview.box, 0, self._overview.size)
        side = self.overview_px
        frame = np.full((side, 2 * side, 3), self._slide.background, np.uint8)
        frame[:, :side] = draw_boxes(drawn, page, CURRENT)
        columns = int(np.ceil(np.sqrt(self.page_size)))
        cell = max(1, side // columns)
        for index in range(len(page)):
            y, x = (place * cell for place in divmod(index, columns))
            small = cv2.resize(self._tiles[index], (cell, cell), interpolation=cv2.INTER_AREA)
            frame[y : y + cell, side + x : side + x + cell] = small[: side - y, : side - x]
        return frame


def tiles_as_arrays(tiles: Any, shapes: Sequence[tuple[int, ...]]) -> tuple[npt.NDArray[np.bool_], ...]:
    """Tiles (level, row, column, ...) as bool (rows, columns) for each level, True where there is one."""
    arrays = tuple(np.zeros(shape, np.bool_) for shape in shapes)
    for level, row, column, *_ in tiles:
        arrays[level][row, column] = True
    return arrays


def _parsed(action: Any, page_size: int, *, free: bool) -> tuple[npt.NDArray[np.float64], int]:
    """The suspicions and the slot (0 in the cascade) of an action. Raises `InvalidArgumentError` for other forms."""
    try:
        scores = np.asarray(action["scores"] if free else action, dtype=np.float64)
        slot = operator.index(action["next"]) if free else 0
    except (TypeError, ValueError, KeyError, IndexError, OverflowError):
        slot = -1
    if not 0 <= slot < FRONTIER_SLOTS or scores.shape != (page_size,):
        form = f"{page_size} suspicions in 0..1, one for each place of the page"
        if free:
            form = f"a dict of scores ({form}) and next (a slot of the frontier, 0 to {FRONTIER_SLOTS - 1})"
        raise InvalidArgumentError(f"the action is {action!r}; allowed is {form}.")
    return scores, slot


def _checked_budget(budget: TileBudget, schedule: str, levels: int) -> TileBudget:
    if budget.free and schedule == "cascade":
        raise InvalidArgumentError(
            f"budget {budget.label} is for schedule 'free'; the cascade takes K=6,3,2, K=all or a preset."
        )
    if budget.keep is not None and len(budget.keep) != levels:
        raise InvalidArgumentError(
            f"budget {budget.label} has {len(budget.keep)} numbers for {levels} magnifications; give one for each."
        )
    return budget
