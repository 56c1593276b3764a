"""What a tile's pixels say of it: scorers for exploration, which policies turn into actions.

    random           a uniform number
    tissue-density   the share of the tile that is tissue
    stain-density    the mean haematoxylin of the tile
    oracle           the share of the tile that the tumour covers; reads the reference

But for the oracle they know no tumour, so they say Yes to every tile and only rank (a suspicion of 0.5 and more is a
Yes). EviPathBench gives a random reference and an oracle for mode B; the two densities are this project's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from wsigym.cohorts.exploration import ExplorationReference
from wsigym.cohorts.tiles import POSITIVE_OVERLAP
from wsigym.envs.policy import Info
from wsigym.envs.verdicts import suspicion
from wsigym.slides import Box, haematoxylin_of, tissue_mask_of

__all__ = ["OracleScores", "RandomScores", "StainDensity", "TileScorer", "TissueDensity"]

Tiles = npt.NDArray[np.uint8]
Scores = npt.NDArray[np.float64]

DENSE = 1.0
"""Haematoxylin (mean optical density of a tile) that is as dense as it gets; crowded nuclei have about half."""


class TileScorer:
    """Base of scorers. A scorer keeps nothing from one tile to the next."""

    reads_reference = False

    def seed(self, seed: int) -> None:
        """The only source of a scorer's randomness; called before each episode."""

    def check_magnifications(self, magnifications: Sequence[float]) -> None:
        """Raises `InvalidArgumentError` where it cannot score tiles of one of a run's magnifications."""

    def see_reference(self, reference: ExplorationReference) -> None:
        """Called at the start of an episode where `reads_reference` is True."""

    def suspicions(self, tiles: Tiles, info: Info) -> Scores:
        """float64 (n,) in 0..1 for uint8 (n, height, width, 3), the tiles of a page; 0.5 and more is a Yes."""
        raise NotImplementedError


class RandomScores(TileScorer):
    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def seed(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def suspicions(self, tiles: Tiles, info: Info) -> Scores:
        return 0.5 + self._rng.random(len(tiles)) / 2


class TissueDensity(TileScorer):
    def suspicions(self, tiles: Tiles, info: Info) -> Scores:
        return 0.5 + np.array([tissue_mask_of(tile).mean() for tile in tiles]) / 2


class StainDensity(TileScorer):
    def suspicions(self, tiles: Tiles, info: Info) -> Scores:
        densities = np.array([haematoxylin_of(tile).mean() for tile in tiles], np.float64)
        return 0.5 + np.clip(densities / DENSE, 0, 1) / 2


class OracleScores(TileScorer):
    """Yes where the tile is positive; ranked by the share that is tumour (the paper's oracle)."""

    reads_reference = True

    def see_reference(self, reference: ExplorationReference) -> None:
        self._reference = reference

    def suspicions(self, tiles: Tiles, info: Info) -> Scores:
        shares = [self._reference.share(Box.of(tile)) for tile in info["tiles"]]
        return np.array([suspicion(yes=share > POSITIVE_OVERLAP, score=share) for share in shares])
