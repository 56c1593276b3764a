from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from wsigym.cohorts.builders import mining
from wsigym.cohorts.builders.mining import THRESHOLD, mine_sets, unlike


def at_cosine(cosine: float) -> npt.NDArray[np.float32]:
    """Four unit vectors, of which the first two have this cosine and every other pair is orthogonal."""
    rows = np.eye(4, dtype=np.float32)
    rows[1] = [cosine, np.sqrt(1 - cosine**2), 0, 0]
    rows[2:, :] = 0
    rows[2, 2] = rows[3, 3] = 1
    return rows


def names(count: int) -> list[str]:
    return [f"n{row:03d}" for row in range(count)]


@pytest.mark.parametrize(("cosine", "sets"), [(0.6, 1), (0.6001, 0), (0.59, 1)])
def test_a_pair_at_the_threshold_is_accepted_and_one_above_rejects_the_set(cosine: float, sets: int) -> None:
    assert len(mine_sets(at_cosine(cosine), [0] * 4, names(4), seed=0)) == sets


def test_the_candidate_with_the_smallest_largest_cosine_is_chosen() -> None:
    start = np.array([1, 0, 0], np.float32)
    rows = np.array(
        [[0.5, np.sqrt(0.75), 0], [0.1, 0, np.sqrt(0.99)], [0.2, 0, np.sqrt(0.96)], [0.3, -0.95, 0]], np.float32
    )
    free = np.ones(4, bool)
    assert unlike(rows, start, free, 1) == [1]
    assert unlike(rows, start, free, 2) == [1, 3]  # row 2 is like row 1
    assert unlike(rows, start, free & (np.arange(4) != 3), 2) == [1, 0]
    assert unlike(rows, start, np.zeros(4, bool), 1) is None
    assert unlike(rows[:0], start, free[:0], 1) is None


def test_of_equal_candidates_the_first_by_name_counts() -> None:
    rows = np.eye(6, dtype=np.float32)
    order = ["d", "a", "f", "b", "e", "c"]
    (found,) = mine_sets(rows, [0] * 6, order, seed=3)
    start, *others = (order[row] for row in found)
    assert others == sorted(set("abcdef") - {start})[:3]


def vectors(count: int, seed: int, dimensions: int = 5) -> npt.NDArray[np.float32]:
    rows = np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)
    unit: npt.NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


@given(seed=st.integers(0, 10_000), count=st.integers(4, 60), cells=st.integers(1, 3))
def test_sets_are_disjoint_within_a_cell_and_unlike(seed: int, count: int, cells: int) -> None:
    rows, cell = vectors(count, seed), [row % cells for row in range(count)]
    sets = mine_sets(rows, cell, names(count), seed=seed)
    used = Counter(itertools.chain.from_iterable(sets))
    assert all(times == 1 for times in used.values())
    for members in sets:
        assert len(set(members)) == 4
        assert len({cell[row] for row in members}) == 1
        for one, other in itertools.combinations(members, 2):
            assert round(float(rows[one] @ rows[other]), 5) <= THRESHOLD + 1e-5


@given(seed=st.integers(0, 1000))
def test_the_order_of_rows_does_not_matter_and_sparse_is_like_dense(seed: int) -> None:
    rows, named = vectors(40, seed), names(40)
    found = {tuple(named[row] for row in members) for members in mine_sets(rows, [0] * 40, named, seed=1)}
    order = np.random.default_rng(seed).permutation(40)
    shuffled = [named[row] for row in order]
    again = mine_sets(rows[order], [0] * 40, shuffled, seed=1)
    assert {tuple(shuffled[row] for row in members) for members in again} == found
    sparse = mine_sets(csr_matrix(rows), [0] * 40, named, seed=1)
    assert {tuple(named[row] for row in members) for members in sparse} == found


def test_another_seed_gives_other_sets() -> None:
    rows = vectors(60, 0)
    assert mine_sets(rows, [0] * 60, names(60), seed=0) != mine_sets(rows, [0] * 60, names(60), seed=1)


def test_no_matrix_of_all_similarities_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[Any] = []
    rows = vectors(400, 0)

    class Watched(np.ndarray):
        def __matmul__(self, other: Any) -> Any:
            product = np.asarray(self) @ np.asarray(other)
            shapes.append(product.shape)
            return product

    mine_sets(rows.view(Watched), [0] * 400, names(400), seed=0)
    assert shapes
    assert all(len(shape) == 1 for shape in shapes)


def greedily(
    rows: npt.NDArray[np.float32], start: npt.NDArray[np.float32], free: npt.NDArray[np.bool_], count: int, limit: float
) -> list[int] | None:
    """The rule as it is stated, candidate by candidate."""
    members, chosen = [start], list[int]()
    while len(chosen) < count:
        best: tuple[float, int] = (np.inf, -1)
        for row in np.flatnonzero(free).tolist():
            if row not in chosen:
                best = min(best, (max(round(float(rows[row] @ member), 6) for member in members), row))
        if best[0] > limit:
            return None
        chosen.append(best[1])
        members.append(rows[best[1]])
    return chosen


@given(
    seed=st.integers(0, 10_000),
    size=st.integers(0, 40),
    few=st.sampled_from([1, 2, 4, 8, 1000]),
    grid=st.booleans(),
    limit=st.sampled_from([-0.2, 0.3, THRESHOLD]),
)
def test_a_look_at_few_chooses_what_a_look_at_all_does(
    seed: int, size: int, few: int, grid: bool, limit: float
) -> None:
    """Also where many cosines are equal: vectors of halves."""
    rng = np.random.default_rng(seed)
    rows = (rng.integers(-1, 2, size=(size, 3)) / 2).astype(np.float32) if grid else vectors(size, seed)
    start = rows[0] if size else np.ones(3, np.float32)
    free = rng.random(size) < 0.8
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mining, "FEW", few)
        assert unlike(rows, start, free, 3, limit) == greedily(rows, start, free, 3, limit)
        assert unlike(csr_matrix(rows), csr_matrix(start), free, 3, limit) == greedily(rows, start, free, 3, limit)


def test_of_equal_candidates_the_first_counts_also_where_it_was_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.array([[0.5, 0.5], [0, 1], [0.25, 0.5]], np.float32)
    monkeypatch.setattr(mining, "FEW", 2)  # rows 1 and 2
    assert unlike(rows, np.array([1, 0], np.float32), np.ones(3, bool), 2) == [1, 0]
