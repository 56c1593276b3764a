"""The two schedules without pixels: by hand, and the cascade against a second implementation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsigym.cohorts.tiles import WHOLE_SLIDE, Tile, TileGrid
from wsigym.envs.tile_budgets import TileBudget
from wsigym.envs.tile_search import FRONTIER_SLOTS, Cascade, FreeSearch, TileTree, most_viewed
from wsigym.errors import InvalidArgumentError, UnknownNameError
from wsigym.slides import Box
from wsigym.slides.maps import SlideMap

SMALL = TileGrid((64, 64), (10.0, 20.0, 40.0), (2, 2), (32, 16, 8))
"""2 x 2, 4 x 4 and 8 x 8 tiles."""


def play(search: Cascade, score: dict[Tile, float]) -> list[tuple[Tile, ...]]:
    """Give each tile its score (0 where it has none); the pages, in order."""
    pages = []
    while search.page:
        pages.append(search.page)
        search.take([score.get(tile, 0.0) for tile in search.page])
    return pages


def test_cascade_by_hand() -> None:
    score = {
        Tile(0, 0, 1): 0.6,
        Tile(0, 1, 0): 0.5,
        Tile(0, 1, 1): 0.6,
        Tile(1, 0, 2): 0.9,
        Tile(1, 0, 3): 0.9,
        Tile(1, 1, 2): 0.9,
        Tile(1, 3, 2): 0.49,
    }
    search = Cascade(TileTree.whole(SMALL), (2, 2, 1), page_size=16)
    pages = play(search, score)
    # The best two of three Yes at the first level; below (0, 0, 1) three are equal, so row then column decide; below
    # (0, 1, 1) none is a Yes; at the last level none is, which ends the episode with nothing kept there.
    assert search.kept == [(Tile(0, 0, 1), Tile(0, 1, 1)), (Tile(1, 0, 2), Tile(1, 0, 3)), ()]
    assert [len(page) for page in pages] == [4, 4, 4, 4, 4]
    assert pages[1] == (Tile(1, 0, 2), Tile(1, 0, 3), Tile(1, 1, 2), Tile(1, 1, 3))
    assert pages[3] == (Tile(2, 0, 4), Tile(2, 0, 5), Tile(2, 1, 4), Tile(2, 1, 5))
    assert search.progress == 1


def test_no_yes_at_a_level_ends_the_search() -> None:
    search = Cascade(TileTree.whole(SMALL), (6, 3, 2), page_size=16)
    assert len(play(search, {})) == 1
    assert search.kept == [(), (), ()]


def test_pages_of_siblings_and_progress() -> None:
    search = Cascade(TileTree.whole(SMALL), (1, 1, 1), page_size=3)
    assert len(search.page) == 3
    assert search.progress == 0
    search.take([1, 0, 0])
    assert search.page == (Tile(0, 1, 1),)
    assert search.progress == pytest.approx(3 / 4 / 3)
    search.take([0])
    assert search.page == (Tile(1, 0, 0), Tile(1, 0, 1), Tile(1, 1, 0))
    assert search.progress == pytest.approx(1 / 3)


def test_tiles_that_may_not_be_shown_are_skipped() -> None:
    shown = TileTree.whole(SMALL).shown
    shown[1][0:2, 0:2] = False
    search = Cascade(TileTree(SMALL, shown), (1, 1, 1), page_size=16)
    search.take([1, 0, 0, 0])
    assert search.page == ()
    assert search.kept == [(Tile(0, 0, 0),), (), ()]


def test_keeping_all_keeps_a_no_too() -> None:
    search = Cascade(TileTree.whole(SMALL), None, page_size=16)
    play(search, {})
    assert [len(level) for level in search.kept] == [4, 16, 64]


def second_cascade(
    grid: TileGrid, shown: list[np.ndarray], scores: list[np.ndarray], keep: tuple[int, ...]
) -> list[set[tuple[int, int]]]:
    """The protocol again, on whole arrays, with nothing of the code under test."""
    kept: list[set[tuple[int, int]]] = []
    for level, k in enumerate(keep):
        rows, columns = shown[level].shape
        groups: dict[tuple[int, int], list[tuple[float, int, int]]] = {}
        for row in range(rows):
            for column in range(columns):
                ratio = grid.ratios[level - 1] if level else 1
                parent = (row // ratio, column // ratio) if level else (0, 0)
                reached = level == 0 or parent in kept[level - 1]
                if shown[level][row, column] and scores[level][row, column] >= 0.5 and reached:
                    groups.setdefault(parent, []).append((-scores[level][row, column], row, column))
        kept.append({(row, column) for group in groups.values() for _, row, column in sorted(group)[:k]})
    return kept


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([(64, 64), (50, 30), (7, 90)]),
    st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5)),
    st.integers(1, 9),
)
def test_cascade_equals_the_second_implementation(
    seed: int, size: tuple[int, int], keep: tuple[int, int, int], page_size: int
) -> None:
    grid = TileGrid(size, SMALL.magnifications, SMALL.ratios, SMALL.sides)
    rng = np.random.default_rng(seed)
    shapes = [grid.shape(level) for level in range(3)]
    scores = [rng.integers(0, 5, shape) / 4 for shape in shapes]
    shown = [rng.random(shape) < 0.8 for shape in shapes]
    search = Cascade(TileTree(grid, tuple(shown)), keep, page_size)
    pages = play(
        search, {Tile(level, r, c): scores[level][r, c] for level in range(3) for r, c in np.ndindex(shapes[level])}
    )
    expected = second_cascade(grid, shown, scores, keep)
    assert [{tile[1:] for tile in level} for level in search.kept] == expected
    tiles = [tile for page in pages for tile in page]
    assert len(tiles) == len(set(tiles)) == len(search.scores)
    assert all(len(page) <= page_size for page in pages)
    assert len(tiles) <= most_viewed(TileTree(grid, tuple(shown)), keep)


def test_most_viewed_by_hand() -> None:
    tree = TileTree.whole(SMALL)
    assert most_viewed(tree, (2, 3, 1)) == 4 + 2 * 4 + 2 * 3 * 4
    assert most_viewed(tree, (9, 9, 9)) == most_viewed(tree, None) == 4 + 16 + 64


def test_tissue_decides_what_may_be_shown() -> None:
    tissue = np.zeros((8, 8), bool)  # a cell is 8 px, a tile of the last level
    tissue[0, 0] = tissue[5, 6] = True
    tree = TileTree.with_tissue(SMALL, SlideMap(tissue, Box(0, 0, 64, 64)))
    assert tree.children(WHOLE_SLIDE) == (Tile(0, 0, 0), Tile(0, 1, 1))
    assert tree.children(Tile(0, 1, 1)) == (Tile(1, 2, 3),)
    assert tree.children(Tile(1, 2, 3)) == (Tile(2, 5, 6),)


def test_a_cell_larger_than_a_tile_shows_every_tile_that_it_touches() -> None:
    tree = TileTree.with_tissue(SMALL, SlideMap(np.array([[True, False, False]]), Box(0, 0, 64, 64)))
    assert [int(level.sum()) for level in tree.shown] == [2, 8, 24]  # columns that begin before x = 21.3


# -- free ------------------------------------------------------------------------------------------------------------


def test_free_search_by_hand() -> None:
    search = FreeSearch(TileTree.whole(SMALL), tiles=14, keep=3, page_size=4)
    assert search.page == (Tile(0, 0, 0), Tile(0, 0, 1), Tile(0, 1, 0), Tile(0, 1, 1))
    assert search.slots[:5] == (*search.page, None)
    search.take([0.2, 0.9, 0.4, 0.4], 1)
    assert [tile.level for tile in search.page] == [1] * 4
    assert search.slots[4:8] == (Tile(0, 1, 0), Tile(0, 1, 1), Tile(0, 0, 0), None)
    assert [search.slot_score(node) for node in search.slots[3:7] if node] == [0.0, 0.4, 0.4, 0.2]
    search.take([0.1, 0.2, 0.3, 0.8], 3)
    assert search.page == (Tile(2, 2, 6), Tile(2, 2, 7), Tile(2, 3, 6), Tile(2, 3, 7))
    assert search.slots[:4] == (None,) * 4
    search.take([0.5, 0.6, 0.5, 0.5], 4)  # turns back to the tile that it left
    assert search.page == (Tile(1, 2, 0), Tile(1, 2, 1))  # the budget of 14 cuts the page
    search.take([0, 0], 0)
    assert search.page == ()
    assert set(search.slots) == {None}
    assert search.kept == [
        (Tile(0, 0, 1), Tile(0, 1, 0)),
        (Tile(1, 1, 3),),
        (Tile(2, 2, 6), Tile(2, 2, 7), Tile(2, 3, 6)),
    ]
    assert len(search.scores) == 14


def test_a_node_with_more_children_than_a_page_stays_open() -> None:
    search = FreeSearch(TileTree.whole(SMALL), tiles=99, keep=3, page_size=3)
    assert search.slots[3] == WHOLE_SLIDE
    assert search.slot_score(WHOLE_SLIDE) == 1
    search.take([0, 0, 0], 3)
    assert search.page == (Tile(0, 1, 1),)
    assert WHOLE_SLIDE not in search.slots


def test_an_empty_slot_stops_and_the_last_is_always_empty() -> None:
    grid = TileGrid((1600, 1600), (10.0, 20.0), (2,), (32, 16))
    search = FreeSearch(TileTree.whole(grid), tiles=9999, keep=3, page_size=32)
    while WHOLE_SLIDE in search.slots:
        search.take([0.5] * len(search.page), search.slots.index(WHOLE_SLIDE))
        assert len(search.slots) == FRONTIER_SLOTS
        assert search.slots[-1] is None
    search.take([0.5] * len(search.page), FRONTIER_SLOTS - 1)
    assert search.page == ()
    assert search.progress == 1


def test_nothing_to_show() -> None:
    tree = TileTree(SMALL, tuple(np.zeros(SMALL.shape(level), bool) for level in range(3)))
    assert Cascade(tree, (6, 3, 2), 16).page == FreeSearch(tree, 5, 36, 16).page == ()


# -- budgets ---------------------------------------------------------------------------------------------------------


def test_budgets_have_one_spelling() -> None:
    assert TileBudget.of("base") == TileBudget.of("K=6,3,2") == TileBudget.of((6, 3, 2))
    assert TileBudget.of("base").label == "K=6,3,2"
    assert TileBudget.of("tight").keep == (3, 2, 1)
    assert TileBudget.of("loose").keep == (10, 5, 3)
    assert TileBudget.of("tiles=200") == TileBudget("tiles=200", tiles=200, free=True)
    assert (
        TileBudget.of("tiles=6,3,2") == TileBudget.of("base").freed == TileBudget("tiles=6,3,2", (6, 3, 2), free=True)
    )
    assert TileBudget.of("tiles=200").freed == TileBudget.of("tiles=200")
    assert TileBudget.of("K=all") == TileBudget("K=all")


@pytest.mark.parametrize("wrong", ["K=", "K=6,x", "K=0,1,1", "tiles=0", "tiles=1.5", "rois=3", (), (1.5,), 7])
def test_what_is_no_budget_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidArgumentError, match="budget"):
        TileBudget.of(wrong)  # type: ignore[arg-type]


def test_a_near_miss_is_offered() -> None:
    with pytest.raises(UnknownNameError, match=r"'loose'.*K=6,3,2, K=all, tiles=N"):
        TileBudget.of("lose")
