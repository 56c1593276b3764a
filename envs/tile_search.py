"""Which tiles are shown next, and which are kept: the two schedules of exploration, without pixels or rewards.

    Cascade      the paper's: all tiles of a magnification, the best K of each parent, then their children
    FreeSearch   one budget of viewed tiles: the policy says which open node to look into next, or stops

Both show one page of tiles at a time (`page`, empty when the search is over), take its scores, and remember every
scored tile (`scores`) and what was kept at each magnification (`kept`). Scores are suspicions in 0..1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsigym.cohorts.tiles import WHOLE_SLIDE, Tile, TileGrid
from wsigym.slides.maps import SlideMap

from .verdicts import YES

__all__ = ["FRONTIER_SLOTS", "STOP", "Cascade", "FreeSearch", "TileTree", "most_viewed", "ranked"]

FRONTIER_SLOTS = 64
"""Places of the frontier. The last is always empty, so that a policy can always stop."""

STOP = FRONTIER_SLOTS - 1
"""The slot that is always empty: choosing it ends a search."""


@dataclass(frozen=True, eq=False)
class TileTree:
    """A slide's grid, and for each magnification bool (rows, columns): which tiles may be shown."""

    grid: TileGrid
    shown: tuple[npt.NDArray[np.bool_], ...]

    @classmethod
    def whole(cls, grid: TileGrid) -> TileTree:
        """All tiles may be shown."""
        return cls(grid, tuple(np.ones(grid.shape(level), np.bool_) for level in range(grid.levels)))

    @classmethod
    def with_tissue(cls, grid: TileGrid, tissue: SlideMap) -> TileTree:
        """Tiles that touch a cell of tissue may be shown; `tissue` is a bool map of the whole slide."""
        height, width = tissue.values.shape
        counts = np.zeros((height + 1, width + 1), np.int64)
        counts[1:, 1:] = tissue.values.cumsum(axis=0, dtype=np.int64).cumsum(axis=1)
        step_x, step_y = tissue.step
        shown = []
        for level in range(grid.levels):
            rows, columns = grid.shape(level)
            top, bottom = _cells(rows, grid.sides[level] / step_y, height)
            left, right = _cells(columns, grid.sides[level] / step_x, width)
            inside = counts[bottom][:, right] - counts[bottom][:, left] - counts[top][:, right] + counts[top][:, left]
            shown.append(inside > 0)
        return cls(grid, tuple(shown))

    def children(self, tile: Tile) -> tuple[Tile, ...]:
        """The children that may be shown, in raster order."""
        return tuple(child for child in self.grid.children(tile) if self.shown[child.level][child[1:]])


def _cells(tiles: int, cells_a_tile: float, cells: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """First and past-the-last cell that each of a row of tiles touches."""
    edges = np.arange(tiles + 1) * cells_a_tile
    first = np.minimum(np.floor(edges[:-1]), cells - 1).astype(np.int64)
    return first, np.clip(np.ceil(edges[1:]).astype(np.int64), first + 1, cells)


def ranked(tiles: Iterable[Tile], scores: Mapping[Tile, float]) -> list[Tile]:
    """From the highest score to the lowest, ties by magnification, row, then column."""
    return sorted(tiles, key=lambda tile: (-scores[tile], tile))


class Cascade:
    """Level by level: score all tiles under a parent, keep its best K of those that got a Yes, then go on below.

    `keep` is K for each magnification, for the slide at the first and for each parent below; None keeps every tile,
    Yes or No. Kept parents are opened in raster order. The search is over after the last magnification, or when a
    magnification has no tile to show or none is kept.
    """

    def __init__(self, tree: TileTree, keep: Sequence[int] | None, page_size: int) -> None:
        self.scores: dict[Tile, float] = {}
        self.kept: list[tuple[Tile, ...]] = [()] * tree.grid.levels
        self._level = self._group = self._first = 0  # the level; of its groups of siblings the one; its next tile
        self._groups: list[tuple[Tile, ...]] = []
        self._tree, self._keep, self._page_size = tree, keep, page_size
        self._open([WHOLE_SLIDE])

    @property
    def page(self) -> tuple[Tile, ...]:
        """The siblings to score now."""
        if not self._groups:
            return ()
        return self._groups[self._group][self._first : self._first + self._page_size]

    @property
    def progress(self) -> float:
        """0..1: levels done, and the share of this one's tiles that are scored."""
        if not self._groups:
            return 1.0
        done = sum(map(len, self._groups[: self._group])) + self._first
        return (self._level + done / sum(map(len, self._groups))) / self._tree.grid.levels

    def take(self, scores: Sequence[float]) -> None:
        """The scores of the page, in its order; then the next page stands."""
        page = self.page
        self.scores.update(zip(page, map(float, scores), strict=True))
        self._first += len(page)
        if self._first < len(self._groups[self._group]):
            return
        self._group, self._first = self._group + 1, 0
        if self._group < len(self._groups):
            return
        kept = sorted(tile for group in self._groups for tile in self._best(group))
        self.kept[self._level] = tuple(kept)
        self._level += 1
        self._open(kept)

    def _open(self, parents: Iterable[Tile]) -> None:
        children = (self._tree.children(parent) for parent in parents)
        self._groups = [group for group in children if group]
        self._group = self._first = 0

    def _best(self, group: Sequence[Tile]) -> Sequence[Tile]:
        if self._keep is None:
            return group
        yes = [tile for tile in group if self.scores[tile] >= YES]
        return ranked(yes, self.scores)[: self._keep[self._level]]


class FreeSearch:
    """The policy opens any node, at any time, until `tiles` are viewed, nothing is left, or it stops.

    A node is open while it has children that were not shown yet: the slide itself at first, then every scored tile
    above the last magnification. Opening a node shows its next page of children. `slots` are the open nodes to choose
    from: slot i below `page_size` is tile i of the page, then follow the others, best first, as far as there is room;
    a node crowded out stands there again once better ones are used up.

    Kept are the `keep` best-scored tiles at the last magnification, and above it the tiles that were opened.
    """

    def __init__(self, tree: TileTree, tiles: int, keep: int, page_size: int) -> None:
        self.scores: dict[Tile, float] = {}
        self.tiles = tiles
        self._tree, self._keep, self._page_size = tree, keep, page_size
        self._shown: dict[Tile, int] = {}  # of each node that was opened, how many of its children were shown
        self._open: dict[Tile, float] = {}  # score of each open node; of the slide itself, 1
        self.page: tuple[Tile, ...] = ()
        """The siblings to score now."""
        if tree.children(WHOLE_SLIDE):
            self._open[WHOLE_SLIDE] = 1.0
            self._look_into(WHOLE_SLIDE)

    @property
    def kept(self) -> list[tuple[Tile, ...]]:
        last = self._tree.grid.levels - 1
        leaves = ranked((tile for tile in self.scores if tile.level == last), self.scores)[: self._keep]
        opened = [tuple(sorted(tile for tile in self._shown if tile.level == level)) for level in range(last)]
        return [*opened, tuple(sorted(leaves))]

    @property
    def progress(self) -> float:
        """0..1: the share of the tiles allowed that were scored."""
        return len(self.scores) / self.tiles if self.page else 1.0

    @property
    def slots(self) -> tuple[Tile | None, ...]:
        """64 nodes to open next, None where a slot is empty. All are empty when the search is over."""
        here = [tile if self._tree.children(tile) else None for tile in self.page]
        here += [None] * (self._page_size - len(here))
        others = ranked(self._open, self._open) if self.page else []
        room = FRONTIER_SLOTS - 1 - self._page_size
        slots = [*here, *others[:room]]
        return (*slots, *[None] * (FRONTIER_SLOTS - len(slots)))

    def slot_score(self, node: Tile) -> float:
        """What an open node was scored; of the slide itself 1, of the page's own tiles 0 as they have no score yet."""
        return self._open.get(node, 0.0)

    def take(self, scores: Sequence[float], slot: int) -> None:
        """The scores of the page and the slot to open next; an empty slot stops the search."""
        node = self.slots[slot]
        page, self.page = self.page, ()
        self.scores.update(zip(page, map(float, scores), strict=True))
        self._open |= {tile: self.scores[tile] for tile in page if self._tree.children(tile)}
        if node is not None and len(self.scores) < self.tiles:
            self._look_into(node)

    def _look_into(self, node: Tile) -> None:
        children = self._tree.children(node)
        first = self._shown.get(node, 0)
        allowed = min(self._page_size, self.tiles - len(self.scores))
        self.page = children[first : first + allowed]
        self._shown[node] = first + len(self.page)
        if self._shown[node] == len(children):
            del self._open[node]


def most_viewed(tree: TileTree, keep: Sequence[int] | None) -> int:
    """The most tiles that a cascade with these K can view on this slide; all that may be shown with None."""
    if keep is None:
        return int(sum(level.sum() for level in tree.shown))

    def below(tile: Tile) -> int:
        children = tree.children(tile)
        if not children:
            return 0
        return len(children) + sum(sorted(map(below, children), reverse=True)[: keep[tile.level + 1]])

    return below(WHOLE_SLIDE)
