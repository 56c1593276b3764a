"""Retrieval by hand, over every order of ties, and against scikit-learn."""

from __future__ import annotations

from itertools import permutations
from math import comb

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from wsigym.errors import InvalidArgumentError
from wsigym.scoring import retrieval as module
from wsigym.scoring.retrieval import Retrieval, chance_recall, leave_one_out, retrieval

CANDIDATES = st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6)


def of_one_order(relevant: np.ndarray, cutoff: int) -> list[float]:
    """R@1 to R@K, MRR@K, nDCG@K and the first rank of candidates in this order, from the definitions."""
    first = int(np.argmax(relevant)) + 1
    discounts = 1 / np.log2(1 + np.arange(1, len(relevant) + 1))
    dcg, ideal = ((np.asarray(order) * discounts)[:cutoff].sum() for order in (relevant, sorted(relevant)[::-1]))
    return [*(float(first <= k) for k in range(1, cutoff + 1)), (first <= cutoff) / first, dcg / ideal, first]


def numbers(result: Retrieval) -> list[float]:
    return [*result.recall[0], result.reciprocal_rank[0], result.ndcg[0], result.rank[0]]


def test_by_hand() -> None:
    scores = np.array([[0.9, 0.5, 0.7, 0.1], [0.1, 0.2, 0.3, 0.4]])
    relevant = np.array([[False, True, False, True], [True, False, False, False]])
    result = retrieval(scores, relevant, cutoff=3)
    assert result.recall.tolist() == [[0, 0, 1], [0, 0, 0]]
    assert result.reciprocal_rank.tolist() == pytest.approx([1 / 3, 0])
    assert result.ndcg.tolist() == pytest.approx([0.5 / (1 + 1 / np.log2(3)), 0])
    assert result.rank.tolist() == [3, 4]
    assert result.mean_recall.tolist() == pytest.approx([1 / 3, 0])


@given(CANDIDATES, st.integers(1, 8))
def test_ties_are_the_mean_over_all_orders(candidates: list[tuple[int, bool]], cutoff: int) -> None:
    scores, relevant = (np.array(column) for column in zip(*candidates, strict=True))
    assume(relevant.any())
    orders = [list(order) for order in permutations(range(len(scores))) if (np.diff(scores[list(order)]) <= 0).all()]
    expected = np.mean([of_one_order(relevant[order], cutoff) for order in orders], axis=0)
    assert numbers(retrieval(scores[None].astype(float), relevant[None], cutoff=cutoff)) == pytest.approx(expected)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from([2, 5, 1000]))
def test_against_scikit_learn(seed: int, cutoff: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    scores, relevant = rng.integers(levels, size=(5, 8)).astype(float), rng.random((5, 8)) < 0.4
    some = relevant.any(axis=1)
    assume(some.any())
    result = retrieval(scores, relevant, cutoff=cutoff)
    assert np.nanmean(result.ndcg) == pytest.approx(ndcg_score(relevant[some], scores[some], k=cutoff))
    assert (np.isnan(result.rank) == ~some).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_what_one_ranking_allows(seed: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    relevant = rng.random((4, 9)) < 0.3
    relevant[:, 0] = True
    result = retrieval(rng.integers(levels, size=(4, 9)).astype(float), relevant)
    first, fifth = result.recall[:, 0], result.recall[:, 4]
    assert (np.diff(result.recall, axis=1) >= -1e-12).all()
    assert (result.reciprocal_rank >= first + (fifth - first) / 5 - 1e-12).all()
    assert result.recall[:, 8:].tolist() == [[1, 1]] * 4
    assert (result.ndcg <= 1 + 1e-12).all()


@pytest.mark.parametrize(("candidates", "wanted"), [(20, 1), (20, 3), (4, 1), (4, 4)])
def test_equal_scores_are_at_chance(candidates: int, wanted: int) -> None:
    relevant = np.arange(candidates)[None] < wanted
    result = retrieval(np.zeros((1, candidates)), relevant)
    assert result.recall[0].tolist() == pytest.approx(chance_recall(candidates, relevant=wanted).tolist())
    subsets = [comb(candidates - wanted, k) / comb(candidates, k) if k <= candidates else 0 for k in range(1, 11)]
    assert result.recall[0].tolist() == pytest.approx([1 - missed for missed in subsets])
    assert result.rank.tolist() == pytest.approx([(candidates + 1) / (wanted + 1)])


def test_random_orders_of_untied_scores_are_at_chance() -> None:
    rng = np.random.default_rng(0)
    relevant = np.tile(np.arange(12) < 2, (20_000, 1))
    found = retrieval(rng.random(relevant.shape), relevant).recall.mean(axis=0)
    assert np.abs(found - chance_recall(12, relevant=2)).max() < 0.015


def test_a_slide_is_not_its_own_neighbour() -> None:
    similarities = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.2], [0.1, 0.2, 1.0]])
    scores, relevant = leave_one_out(similarities, np.array([0, 1, 1]))
    assert relevant.tolist() == [[False, False, False], [False, False, True], [False, True, False]]
    result = retrieval(scores, relevant, cutoff=2)
    assert result.recall[1:].tolist() == [[0, 1], [1, 1]]
    # The only slide of its class has nothing to find.
    assert np.isnan(numbers(result)).all()
    assert similarities[0, 0] == 1
    [nothing] = retrieval(np.array([[0.5, -np.inf]]), np.array([[True, False]]), cutoff=2).ndcg
    assert nothing == 1


def test_many_queries_are_taken_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    scores, relevant = rng.random((7, 5)), rng.random((7, 5)) < 0.5
    whole = retrieval(scores, relevant)
    monkeypatch.setattr(module, "_ENTRIES_AT_ONCE", 11)
    for name in ("recall", "reciprocal_rank", "ndcg", "rank"):
        np.testing.assert_array_equal(getattr(retrieval(scores, relevant), name), getattr(whole, name))
    assert retrieval(scores[:0], relevant[:0]).recall.shape == (0, 10)


@pytest.mark.parametrize(
    ("scores", "relevant", "cutoff", "match"),
    [
        (np.zeros((1, 2)), np.zeros((2, 2), bool), 1, "of both"),
        (np.zeros(2), np.zeros(2, bool), 1, "of both"),
        (np.zeros((1, 0)), np.zeros((1, 0), bool), 1, "a candidate at least"),
        (np.zeros((1, 2)), np.zeros((1, 2), int), 1, "needed are bool"),
        (np.zeros((1, 2)), np.zeros((1, 2), bool), 0, "cutoff 0"),
        (np.array([[0, np.nan]]), np.zeros((1, 2), bool), 1, "NaN or inf"),
        (np.array([[0, np.inf]]), np.zeros((1, 2), bool), 1, "NaN or inf"),
        (np.array([[0, -np.inf]]), np.ones((1, 2), bool), 1, "left out"),
    ],
)
def test_what_cannot_be_ranked(scores: np.ndarray, relevant: np.ndarray, cutoff: int, match: str) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        retrieval(scores, relevant, cutoff=cutoff)


def test_other_bad_arguments() -> None:
    with pytest.raises(InvalidArgumentError, match="slides"):
        leave_one_out(np.zeros((2, 3)), np.zeros(2, int))
    for candidates, wanted, cutoff in ((3, 0, 1), (3, 4, 1), (3, 1, 0)):
        with pytest.raises(InvalidArgumentError, match=f"{wanted} relevant of 3"):
            chance_recall(candidates, relevant=wanted, cutoff=cutoff)
