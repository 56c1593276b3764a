"""Localization: find the described evidence at one magnification inside a search box.

EviPathBench task 3, mode A. An episode is one query. The policy looks at regions of interest (ROIs) under a
budget and finishes with a box.

Action (Dict)
    tool          Discrete(2)       0 extract_roi: look at `box`;  1 finish_and_report: answer with `box`
    box           float32 (4,)      x, y, width, height in 0..1 of the search box
    confidence    float32 (1,)      0..1 that the answer is right, NaN for "not stated"; recorded, scores nothing
A box may be any four numbers: what cannot be done with them is answered in the info. An action without these three
keys, or with other shapes, is the caller's mistake and raises `InvalidArgumentError`.

Observation (Dict)
    overview              uint8 (overview_px, overview_px, 3)   the search box, at a quarter of the target's
                                                                magnification or less
    view                  uint8 (view_px, view_px, 3)           the last ROI, at the target's magnification or less
    context               uint8 (n, view_px, view_px, 3)        if asked for: what surrounds the ROI's centre, inside
                                                                the search box, at further magnifications
    view_box              float32 (4,)   0..1                   the last ROI in the search box
    view_magnification    float32 (1,)   0..200                 what the view resulted in
    target_magnification  float32 (1,)   0..200                 what the query asks for
    overview_extent       float32 (2,)   0..1                   width and height of the overview without its padding:
                                                                what turns boxes in 0..1 into its pixels
    budget_left           float32 (1,)   0..1                   share of the ROIs left
    rois_left             float32 (1,)   0..10,000              how many that are
Images keep their aspect (to the nearest whole pixel); padding on the right and below is the slide's background. Before
the first look view and context are background, and view_box and view_magnification are 0. `observe` leaves parts out:
what is not observed is not read.

Info (what a model may know)
    query_id, target, magnification, search_box and roi (level-0 pixels, (x, y, width, height); roi None before
    the first look), slide_size (width, height), mpp, rois_left, overview_size and view_size ((width, height) of
    the images without padding; None like roi), `error` or `note` about the last request. Once the episode is over:
    outcome, iou (the score, 0 without an answer), hit.

Reward
    iou      the final box's score when finishing, else 0: its centre counts, with each valid box's size
    hit      1 when that score is at least 0.3
    shaped   iou, plus gamma * Phi(s') - Phi(s) each step, Phi the score that the last ROI would get as the answer (0
             before the first look and at the end); for training only

Ends (`terminated`; never `truncated`)
    finish_and_report with a finite centre inside the search box: outcome "scored". Three invalid requests in a row:
    score 0, outcome "budget_exhausted" if the last was a look over budget, else "invalid". Invalid are: a look over
    budget, not finite, wholly outside the search box, or under one level-0 pixel a side after clipping; a final box
    without a finite centre inside. Only a look that is answered spends budget.

Registered: wsigym/Localization-v0. Version history: v0, first release.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from wsigym.cohorts import Cohort, LocalizationQuery, LocalizationReference, localization_queries
from wsigym.cohorts.synthetic import default_cohort
from wsigym.errors import CohortError, EpisodeOverError, InvalidArgumentError, UnknownNameError
from wsigym.scoring.localization import HIT_IOU, best_placed_iou
from wsigym.slides import Box, Slide
from wsigym.slides.geometry import box_from_unit, box_to_unit

from .budgets import MAX_ROIS, RoiBudget
from .curriculum import QueryFilter
from .policy import NoAnswerOutcome
from .views import Frame, Image, View, blank, check_image, context_view, draw_boxes, frame_of, padded

__all__ = ["EXTRACT_ROI", "FINISH_AND_REPORT", "LocalizationEnv", "extract_roi", "finish_and_report"]

EXTRACT_ROI, FINISH_AND_REPORT = 0, 1
REWARDS = ("iou", "hit", "shaped")

OVERVIEW_CAP = 0.25
"""The overview's share of the target magnification: it is the parent's scale, so that looking matters."""

MAX_INVALID_IN_A_ROW = 3
MAX_MAGNIFICATION = 200.0
MIN_IMAGE_PX, MAX_IMAGE_PX = 36, 8192
"""Below 36 px the usual convolutional encoders fail; above 8,192 px an observation takes 200 MB."""

VISITED, CURRENT = (30, 90, 220), (220, 40, 40)
"""Colours of render(): ROIs looked at, and the last one."""


class _Answer(NamedTuple):
    """What comes of a request: an "error" or a "note" for the info, and the final box where it is one."""

    words: dict[str, str]
    final: Box | None = None
    over_budget: bool = False


class LocalizationEnv(gym.Env[dict[str, Any], dict[str, Any]]):
    """One query an episode; the module's docstring is the card of actions, observations, reward and ends.

    Args:
        cohort: folder or loaded cohort; None makes a small synthetic one once in the user's cache.
        split: "train", "val", "test", or None for all slides.
        budget: "tight", "base", "loose", a number of ROIs, or a mapping from magnification to ROIs.
        view_px, overview_px: sides of the square images, 36 to 8,192.
        context: further magnifications around the last ROI's centre, each at most the target's.
        observe: the parts of the observation that are made, in any order; None makes all of them.
        queries: which queries `reset` draws from, for a curriculum: a `QueryFilter`, its fields as a mapping, or None
            for all. For training only: filters look at references.
        reward: "iou", "hit" or "shaped".
        gamma: discount of the shaping, 0 to 1; give the learner's. Read by "shaped" only.
        render_mode: "rgb_array" or None.

    `reset(options={"query_id": ...})` picks any query; otherwise the environment's seeded RNG draws one. Raises
    `CohortError` on reset where the slide does not bear its annotations, `SlideError` where it cannot be read.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 2}  # noqa: RUF012  # gymnasium's own form

    def __init__(
        self,
        cohort: str | Path | Cohort | None = None,
        split: str | None = None,
        budget: str | int | Mapping[float, int] | RoiBudget = "base",
        view_px: int = 224,
        overview_px: int = 256,
        context: Sequence[float] = (),
        observe: Iterable[str] | None = None,
        queries: QueryFilter | Mapping[str, Any] | None = None,
        reward: str = "iou",
        gamma: float = 0.99,
        render_mode: str | None = None,
    ) -> None:
        _check_choice("reward", reward, REWARDS)
        if render_mode is not None:
            _check_choice("render_mode", render_mode, self.metadata["render_modes"])
        if not (_is_number(gamma) and 0 <= gamma <= 1):
            raise InvalidArgumentError(f"gamma is {gamma!r}; allowed is a number from 0 to 1.")
        self.budget = RoiBudget.of(budget)
        self.view_px, self.overview_px = image_px("view_px", view_px), image_px("overview_px", overview_px)
        self.context = _magnifications(context)
        self.reward, self.gamma, self.render_mode = reward, gamma, render_mode
        if isinstance(cohort, Cohort):
            self.cohort = cohort
        else:
            self.cohort = Cohort.load(default_cohort() if cohort is None else cohort)
        self._queries = {asked.query_id: (asked, hidden) for asked, hidden in localization_queries(self.cohort, split)}
        for query, _ in self._queries.values():
            self.budget.rois(query.magnification)
        self.set_queries(queries)
        self._checked_slides: set[str] = set()
        self._over = True

        image = {"view": self.view_px, "overview": self.overview_px}
        observation: dict[str, spaces.Space[Any]] = {
            name: spaces.Box(0, 255, (px, px, 3), np.uint8) for name, px in image.items()
        }
        if self.context:
            shape = (len(self.context), self.view_px, self.view_px, 3)
            observation["context"] = spaces.Box(0, 255, shape, np.uint8)
        observation["view_box"] = spaces.Box(0, 1, (4,), np.float32)
        observation["view_magnification"] = spaces.Box(0, MAX_MAGNIFICATION, (1,), np.float32)
        observation["target_magnification"] = spaces.Box(0, MAX_MAGNIFICATION, (1,), np.float32)
        observation["overview_extent"] = spaces.Box(0, 1, (2,), np.float32)
        observation["budget_left"] = spaces.Box(0, 1, (1,), np.float32)
        observation["rois_left"] = spaces.Box(0, MAX_ROIS, (1,), np.float32)
        observed = _observed(observation, observe)
        self._parts = tuple(observed)
        self.observation_space = spaces.Dict(observed)
        self.action_space = spaces.Dict(
            {
                "tool": spaces.Discrete(2),
                "box": spaces.Box(0, 1, (4,), np.float32),
                "confidence": spaces.Box(0, 1, (1,), np.float32),
            }
        )

    @property
    def query_ids(self) -> tuple[str, ...]:
        """Every query that `reset(options={"query_id": ...})` takes."""
        return tuple(self._queries)

    @property
    def drawn_query_ids(self) -> tuple[str, ...]:
        """The queries that `reset` draws from."""
        return self._drawn_from

    def set_queries(self, queries: QueryFilter | Mapping[str, Any] | None) -> None:
        """Draw from these queries from the next `reset` on, as the argument `queries` says: the next stage of a
        curriculum. Raises `InvalidArgumentError` where none is left."""
        self._drawn_from = QueryFilter.of(queries).ids(self._queries.values())

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self._over = True  # until all of the next episode is there
        self._query, self._reference = self._choose(options or {})
        self._slide = self._open_checked(self._query.slide_id)
        self._overview = self._frame(self._query.search_box, self.overview_px, OVERVIEW_CAP)
        self._overview_pixels = self._read(self._overview) if "overview" in self._parts else None
        self._view: Frame | None = None
        self._view_pixels: Image | None = None
        self._context: Image | None = None
        self._visited: list[Box] = []
        self._budget = self._rois_left = self.budget.rois(self._query.magnification)
        self._invalid_in_a_row = 0
        self._over = False
        return self._observation(), self._info()

    def step(self, action: dict[str, Any]) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        if self._over:
            raise EpisodeOverError("step() was called on an episode that is over or never began; call reset() first.")
        tool, box_unit = _parsed(action)
        potential = self._potential()
        answer = self._finish(box_unit) if tool == FINISH_AND_REPORT else self._look(box_unit)
        self._invalid_in_a_row = self._invalid_in_a_row + 1 if "error" in answer.words else 0
        outcome, score = self._ending(answer)
        self._over = outcome is not None
        info: dict[str, Any] = self._info() | answer.words
        if self._over:
            info |= {"outcome": outcome, "iou": score, "hit": score >= HIT_IOU}
        return self._observation(), self._reward(score, potential), self._over, False, info

    def _ending(self, answer: _Answer) -> tuple[str | None, float]:
        """The episode's outcome, None while it goes on, and its score."""
        if answer.final is not None:
            return "scored", best_placed_iou(answer.final, self._reference.boxes, self._query.search_box)
        if self._invalid_in_a_row == MAX_INVALID_IN_A_ROW:
            return ("budget_exhausted" if answer.over_budget else "invalid"), 0.0
        return None, 0.0

    def give_up(self, outcome: NoAnswerOutcome) -> dict[str, Any]:
        """End the episode without an answer, for a policy that raised `NoAnswer`: score 0. The last info."""
        if self._over:
            raise EpisodeOverError("give_up() was called on an episode that is over or never began.")
        self._over = True
        return self._info() | {"outcome": outcome, "iou": 0.0, "hit": False}

    # -- the two tools -------------------------------------------------------------------------------------------

    def _look(self, box_unit: npt.NDArray[np.float32]) -> _Answer:
        if self._rois_left == 0:
            return _Answer({"error": "The budget of ROIs is spent: finish and report."}, over_budget=True)
        if not np.isfinite(box_unit).all():
            return _Answer({"error": _not_finite(box_unit)})
        box = box_from_unit(box_unit, self._query.search_box)
        clipped = box.intersection(self._query.search_box)
        if clipped.is_empty:
            place = "is under one level-0 pixel a side" if box.is_empty else "lies outside the search box"
            return _Answer({"error": f"The ROI {box.to_list()} {place}; the search box is {self._search_box_text()}."})
        view = self._frame(clipped, self.view_px)
        pixels = self._read(view) if "view" in self._parts else None
        if "context" in self._parts:
            self._context = np.stack([self._around(clipped, each, self.view_px) for each in self.context])
        self._view, self._view_pixels = view, pixels
        self._visited.append(clipped)
        self._rois_left -= 1
        if clipped == box:
            return _Answer({})
        note = f"The ROI {box.to_list()} was clipped to {clipped.to_list()}, its part inside the search box."
        return _Answer({"note": note})

    def _finish(self, box_unit: npt.NDArray[np.float32]) -> _Answer:
        if not np.isfinite(box_unit).all():
            return _Answer({"error": _not_finite(box_unit)})
        box = box_from_unit(box_unit, self._query.search_box)
        if not self._query.search_box.contains_point(*box.centre):
            error = f"The centre of {box.to_list()} lies outside the search box {self._search_box_text()}."
            return _Answer({"error": error})
        return _Answer({}, final=box)

    # -- what is shown -------------------------------------------------------------------------------------------

    def _observation(self) -> dict[str, Any]:
        return {name: self._part(name) for name in self._parts}

    def _part(self, name: str) -> np.ndarray[Any, Any]:
        """One part of the observation, in memory of its own."""
        view = self._view
        match name:
            case "overview":
                return self._overview_image()
            case "view":
                return self._view_image()
            case "context":
                blanks = [blank(self._slide, self.view_px)] * len(self.context)
                return np.stack(blanks) if self._context is None else self._context.copy()
            case "view_box":
                return box_to_unit(view.box, self._query.search_box) if view else np.zeros(4, np.float32)
            case "view_magnification":
                return np.array([view.magnification if view else 0], np.float32)
            case "target_magnification":
                return np.array([self._query.magnification], np.float32)
            case "overview_extent":
                return np.array(self._overview.size, np.float32) / np.float32(self.overview_px)
            case "rois_left":
                return np.array([self._rois_left], np.float32)
            case _:
                return np.array([self._rois_left / self._budget if self._budget else 0], np.float32)

    def _info(self) -> dict[str, Any]:
        query, view = self._query, self._view
        return {
            "query_id": query.query_id,
            "target": query.target,
            "magnification": query.magnification,
            "search_box": tuple(query.search_box.to_list()),
            "slide_size": self._slide.dimensions,
            "mpp": self._slide.mpp,
            "rois_left": self._rois_left,
            "roi": tuple(view.box.to_list()) if view else None,
            "overview_size": self._overview.size,
            "view_size": view.size if view else None,
        }

    def image(self, name: str, side_px: int) -> View:
        """An image of the episode (see `wsigym.envs.views.ImageSource`): "overview", and "roi-1", "roi-2" ..., the
        answered looks in order. The overview keeps its cap, a look the query's magnification."""
        if not hasattr(self, "_overview"):
            raise EpisodeOverError("image() was called before reset(); call reset() first.")
        looks = {f"roi-{number}": box for number, box in enumerate(self._visited, start=1)}
        check_image(name, side_px, ("overview", *looks))
        if name == "overview":
            frame = self._frame(self._query.search_box, side_px, OVERVIEW_CAP)
        else:
            frame = self._frame(looks[name], side_px)
        return View(self._read(frame), frame.box, frame.magnification, frame.size)

    def surroundings(self, share: float, px: int) -> Image:
        """uint8 (px, px, 3): what surrounds the last ROI's centre at `share` of the query's magnification, 1 or less.

        Background outside the search box, and before the first look. Spends nothing: it belongs to the look.
        """
        if self._view is None:
            return blank(self._slide, px)
        return self._around(self._view.box, share * self._query.magnification, px)

    def _frame(self, box: Box, px: int, share: float = 1.0) -> Frame:
        """`box` in `px` pixels a side, at no more than `share` of the query's magnification."""
        return frame_of(self._slide, box, px, share * self._query.magnification)

    def _read(self, frame: Frame) -> Image:
        return self._slide.read(frame.box, frame.size)

    def _around(self, roi: Box, magnification: float, px: int) -> Image:
        capped = min(magnification, self._query.magnification)
        return context_view(self._slide, roi.centre, px, capped, self._query.search_box)

    def _overview_image(self) -> Image:
        if self._overview_pixels is None:  # not observed, but drawn
            self._overview_pixels = self._read(self._overview)
        return padded(self._overview_pixels, self.overview_px, self._slide.background)

    def _view_image(self) -> Image:
        """The last view, padded anew: the observation owns it, and no pixel is copied twice."""
        if self._view is None:
            return blank(self._slide, self.view_px)
        pixels = self._read(self._view) if self._view_pixels is None else self._view_pixels
        return padded(pixels, self.view_px, self._slide.background)

    def _search_box_text(self) -> str:
        return f"{self._query.search_box.to_list()} (x, y, width, height in level-0 pixels)"

    # -- reward --------------------------------------------------------------------------------------------------

    def _potential(self) -> float:
        """Phi: the score that the last ROI would get as the answer."""
        if self._view is None or self._over:
            return 0.0
        return best_placed_iou(self._view.box, self._reference.boxes, self._query.search_box)

    def _reward(self, score: float, potential_before: float) -> float:
        if self.reward == "hit":
            return float(score >= HIT_IOU)
        if self.reward == "iou":
            return score
        return score + self.gamma * self._potential() - potential_before

    # -- start and end -------------------------------------------------------------------------------------------

    def _choose(self, options: dict[str, Any]) -> tuple[LocalizationQuery, LocalizationReference]:
        unknown = set(options) - {"query_id"}
        if unknown:
            raise UnknownNameError("reset option", str(sorted(unknown)[0]), ["query_id"])
        query_id = options.get("query_id")
        if query_id is None:
            query_id = self._drawn_from[int(self.np_random.integers(len(self._drawn_from)))]
        if not isinstance(query_id, str) or query_id not in self._queries:
            raise UnknownNameError("query", str(query_id), self._queries)
        return self._queries[query_id]

    def _open_checked(self, slide_id: str) -> Slide:
        if slide_id not in self._checked_slides:
            faults = self.cohort.check_slide(slide_id)
            if faults:
                raise CohortError(faults)
            self._checked_slides.add(slide_id)
        return self.cohort.open(slide_id)

    def render(self) -> np.ndarray[Any, Any] | None:
        """uint8 (side, 2 * side, 3), side the larger of the two images: overview with ROIs, then the last view."""
        if self.render_mode is None:
            return None
        if not hasattr(self, "_overview"):
            raise EpisodeOverError("render() was called before reset(); call reset() first.")
        overview = self._overview
        drawn = View(self._overview_image(), overview.box, overview.magnification, overview.size)
        drawn = replace(drawn, image=draw_boxes(drawn, self._visited[:-1], VISITED))
        side = max(self.view_px, self.overview_px)
        frame = np.full((side, 2 * side, 3), self._slide.background, np.uint8)
        frame[: self.overview_px, : self.overview_px] = draw_boxes(drawn, self._visited[-1:], CURRENT)
        frame[: self.view_px, side : side + self.view_px] = self._view_image()
        return frame


def extract_roi(box_unit: Sequence[float]) -> dict[str, Any]:
    """The action that looks at `box_unit` (x, y, width, height in 0..1 of the search box)."""
    return {"tool": EXTRACT_ROI, "box": np.array(box_unit, np.float32), "confidence": np.array([np.nan], np.float32)}


def finish_and_report(box_unit: Sequence[float], confidence: float | None = None) -> dict[str, Any]:
    """The action that answers with `box_unit`; `confidence` is 0..1, or None for "not stated"."""
    stated = np.nan if confidence is None else confidence
    return {
        "tool": FINISH_AND_REPORT,
        "box": np.array(box_unit, np.float32),
        "confidence": np.array([stated], np.float32),
    }


def _parsed(action: Any) -> tuple[int, npt.NDArray[np.float32]]:
    """The tool and the box of an action. Raises `InvalidArgumentError` where it has not the form of the action space.

    Numbers too large for float32 become infinite, and are then answered as any box that is not finite.
    """
    try:
        tool = operator.index(action["tool"])
        with np.errstate(over="ignore"):
            box_unit, confidence = (np.asarray(action[key], dtype=np.float32) for key in ("box", "confidence"))
    except (TypeError, ValueError, KeyError, IndexError, OverflowError):
        tool = -1
    if tool not in (EXTRACT_ROI, FINISH_AND_REPORT) or box_unit.shape != (4,) or confidence.size != 1:
        raise InvalidArgumentError(
            f"the action is {action!r}; allowed is a dict of tool (0 extract_roi, 1 finish_and_report), box (four "
            "numbers x, y, width, height in 0..1 of the search box) and confidence (one number, NaN for not stated). "
            "extract_roi() and finish_and_report() of wsigym.envs.localization make one."
        )
    return tool, box_unit


def _not_finite(box_unit: npt.NDArray[np.float32]) -> str:
    return f"The box {box_unit.tolist()} is not four finite numbers x, y, width, height."


def image_px(name: str, value: object) -> int:
    if not (_is_number(value) and MIN_IMAGE_PX <= value <= MAX_IMAGE_PX and value == int(value)):
        raise InvalidArgumentError(
            f"{name} is {value!r}; allowed are whole numbers from {MIN_IMAGE_PX} to {MAX_IMAGE_PX} pixels."
        )
    return int(value)


def _magnifications(values: Any) -> tuple[float, ...]:
    listed = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [None]
    found = [float(value) for value in listed if _is_number(value) and 0 < value <= MAX_MAGNIFICATION]
    if len(found) < len(listed):
        raise InvalidArgumentError(
            f"context is {values!r}; allowed is a sequence of magnifications above 0, up to {MAX_MAGNIFICATION:g}."
        )
    return tuple(found)


def _observed(every: dict[str, spaces.Space[Any]], names: Any) -> dict[str, spaces.Space[Any]]:
    """The parts of an observation that `names` says, in their usual order."""
    if names is None:
        return every
    listed = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else []
    if not listed:
        raise InvalidArgumentError(f"observe is {names!r}; allowed is a sequence of one or more of {', '.join(every)}.")
    for name in listed:
        _check_choice("part of the observation", name, list(every))
    return {name: space for name, space in every.items() if name in listed}


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise UnknownNameError(name, str(value), allowed)
