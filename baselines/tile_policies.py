"""Policies for exploration over any tile scorer.

    SCORER               scores every tile that the cascade shows (EviPathBench's protocol)
    best-first:SCORER    always looks into the most suspicious open node, however long ago it was seen
    beam:SCORER          goes down with the best few nodes of each magnification, then starts again at the top with
                         the best that it left behind
    adaptive:FILE        always looks into the open node that is most likely positive by a calibration of the scorer,
                         and stops when none is likely enough; FILE is from `wsigym tiles calibrate`

The last three choose what to open next, in `schedule="free"`, under a budget of viewed tiles; they are this project's.
A fourth of their kind is learned: `wsigym.baselines.tile_chooser`.
The paper's cascade never returns to a tile that it left, so that an early mistake cannot be mended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wsigym.cohorts.exploration import ExplorationReference
from wsigym.envs.free_choice import page_images
from wsigym.envs.policy import Info, Observation
from wsigym.envs.tile_search import STOP

from .tile_scorers import TileScorer

if TYPE_CHECKING:
    from .tile_calibration import Calibration

__all__ = ["Adaptive", "BeamSearch", "BestFirst", "ScoreTiles", "TilePolicy"]

BEAM_WIDTH = 6
"""Nodes of each magnification that a beam opens before it goes on to the next: the paper's K at the first."""


class TilePolicy:
    """What they share: the scorer's doors, and the suspicions of a page."""

    def __init__(self, scorer: TileScorer) -> None:
        self.scorer = scorer

    @property
    def reads_reference(self) -> bool:
        return self.scorer.reads_reference

    def check_magnifications(self, magnifications: Sequence[float]) -> None:
        """Called before a run. Raises `InvalidArgumentError` where it cannot play one of them."""
        self.scorer.check_magnifications(magnifications)

    def seed(self, seed: int) -> None:
        self.scorer.seed(seed)

    def see_reference(self, reference: ExplorationReference) -> None:
        self.scorer.see_reference(reference)

    def reset(self, observation: Observation, info: Info) -> None:
        pass

    def _page(self, observation: Observation, info: Info) -> npt.NDArray[np.float32]:
        """float32 (page_size,): the scorer's suspicions, 0 where the page has no tile."""
        scores = np.zeros(len(observation["tile_mask"]), np.float32)
        tiles = len(info["tiles"])
        if tiles:
            scores[:tiles] = self.scorer.suspicions(page_images(observation, info), info)
        return scores


class ScoreTiles(TilePolicy):
    """The scorer in the cascade, which decides by itself what is kept."""

    def act(self, observation: Observation, info: Info) -> npt.NDArray[np.float32]:
        return self._page(observation, info)


class FreeTilePolicy(TilePolicy):
    """A search: scores the page, then `_choose`s among the open nodes."""

    @property
    def in_cascade(self) -> ScoreTiles:
        """The same scorer in the cascade, whose views are this search's budget where that is given by K."""
        return ScoreTiles(self.scorer)

    def act(self, observation: Observation, info: Info) -> dict[str, Any]:
        scores = self._page(observation, info)
        worth = observation["frontier"][:, 4].astype(np.float64)
        worth[: len(scores)] = scores
        is_open = observation["frontier_mask"].astype(bool)
        slot = self._choose(np.where(is_open, worth, -np.inf), info) if is_open.any() else STOP
        return {"scores": scores, "next": slot}

    def _choose(self, worth: npt.NDArray[np.float64], info: Info) -> int:
        """The slot to open: `worth` (64,) are the scores of open nodes, -inf in empty slots; not all are empty.

        The page's own tiles, just scored, are in the first slots. The slide itself has a score of 1.
        """
        raise NotImplementedError


class BestFirst(FreeTilePolicy):
    """The highest score of all open nodes, at any magnification; of equals the first slot."""

    def _choose(self, worth: npt.NDArray[np.float64], info: Info) -> int:
        return int(worth.argmax())


class BeamSearch(FreeTilePolicy):
    """Opens the best six open nodes of a magnification, then six of the next, and at the bottom begins again on top.

    Each round takes the best nodes that earlier rounds left, so that it returns to what it passed over.
    """

    def reset(self, observation: Observation, info: Info) -> None:
        self._width, self._opened = -1, 0  # of the nodes now being opened: their width in level-0 px, how many were

    def _choose(self, worth: npt.NDArray[np.float64], info: Info) -> int:
        widths = np.array([box[2] if box else 0 for box in info["frontier"]])
        whole = (0, 0, *info["slide_size"])
        if whole in info["frontier"][len(info["tiles"]) :]:
            return int(info["frontier"].index(whole))  # All of the first magnification comes before any choice.
        if self._opened == BEAM_WIDTH or self._width not in widths:
            below = widths[(widths > 0) & (widths < self._width)]
            self._width, self._opened = int(below.max() if below.size else widths.max()), 0
        self._opened += 1
        return int(np.where(widths == self._width, worth, -np.inf).argmax())


class Adaptive(FreeTilePolicy):
    """The most probable of all open nodes, by a calibration that makes magnifications comparable; or stops.

    It turns back where a tile's children are less likely than what it left, and stops where the best open node is
    below the calibration's threshold.
    """

    def __init__(self, scorer: TileScorer, calibration: Calibration) -> None:
        super().__init__(scorer)
        self._calibration = calibration

    def check_magnifications(self, magnifications: Sequence[float]) -> None:
        super().check_magnifications(magnifications)
        for magnification in magnifications[:-1]:  # those of the last are not opened
            self._calibration.probability(np.zeros(0), magnification)

    def reset(self, observation: Observation, info: Info) -> None:
        self._magnification_of: dict[int, float] = {}  # by a tile's width in level-0 px

    def _choose(self, worth: npt.NDArray[np.float64], info: Info) -> int:
        whole = (0, 0, *info["slide_size"])
        if whole in info["frontier"][len(info["tiles"]) :]:
            return int(info["frontier"].index(whole))
        self._magnification_of[info["tiles"][0][2]] = info["magnification"]
        chances = np.full(len(worth), -np.inf)
        widths = np.array([box[2] if box else 0 for box in info["frontier"]])
        for width, magnification in self._magnification_of.items():
            chances[widths == width] = self._calibration.probability(worth[widths == width], magnification)
        best = int(chances.argmax())
        return best if chances[best] >= self._calibration.threshold else STOP
