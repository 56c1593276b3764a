"""From patches and texts to classes, by hand, and where there is nothing to go by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.zero_shot import (
    AGGREGATIONS,
    alignment_scores,
    best_aggregation,
    predicted_classes,
    similarity_gaps,
    slide_scores,
    unit_vectors,
)

NUMBERS = st.floats(-9, 9).map(lambda number: round(number, 2))


def patches_with_cosines(cosines: list[float]) -> np.ndarray:
    """Unit vectors in the plane with these cosines to (1, 0)."""
    return np.array([[cosine, np.sqrt(1 - cosine**2)] for cosine in cosines])


def test_by_hand() -> None:
    cosines = [0.8, -0.6, 0.0, 0.6, *[-0.8] * 21]
    scores = slide_scores(patches_with_cosines(cosines), np.array([[3.0, 0.0]]))
    # Of 25 patches 1 % and 5 % are one and two, 10 % three, 50 % thirteen: (0.8 + 0.6 + 0 - 0.6 - 9 * 0.8) / 13.
    assert scores[:4, 0].tolist() == pytest.approx([0.8, 0.7, 1.4 / 3, (0.8 - 9 * 0.8) / 13])
    mean = patches_with_cosines(cosines).mean(axis=0)
    assert scores[4, 0] == pytest.approx(mean[0] / np.hypot(*mean))
    assert len(scores) == len(AGGREGATIONS)


@pytest.mark.parametrize(("patches", "counts"), [(1, (1, 1, 1, 1)), (100, (1, 5, 10, 50)), (701, (8, 36, 71, 351))])
def test_rounds_the_number_of_patches_up(patches: int, counts: tuple[int, ...]) -> None:
    cosines = np.linspace(0.9, -0.9, patches)
    scores = slide_scores(patches_with_cosines(list(cosines)), np.array([[1.0, 0.0]]))[:4, 0]
    assert scores.tolist() == pytest.approx([cosines[:count].mean() for count in counts])


@given(
    arrays.arrays(np.float64, (7, 3), elements=NUMBERS),
    st.permutations(range(7)),
    arrays.arrays(np.float64, (7, 1), elements=st.floats(0.1, 50)),
)
def test_order_and_length_of_patches_do_not_count(patches: np.ndarray, order: list[int], factors: np.ndarray) -> None:
    texts = np.eye(3)
    if (np.linalg.norm(patches, axis=1) == 0).any() or np.linalg.norm(unit_vectors(patches).mean(axis=0)) < 1e-6:
        return
    scores = slide_scores(patches, texts)
    assert slide_scores(factors * patches[order], 2 * texts) == pytest.approx(scores, abs=1e-9)
    assert (np.diff(scores[:4], axis=0) <= 1e-12).all()
    assert np.abs(scores).max() <= 1 + 1e-12


def test_half_precision_is_enough_and_single_is_kept() -> None:
    rng = np.random.default_rng(0)
    patches, texts = rng.normal(size=(300, 64)), rng.normal(size=(4, 64))
    exact = slide_scores(patches, texts)
    assert slide_scores(patches.astype(np.float16), texts.astype(np.float16)) == pytest.approx(exact, abs=2e-3)
    assert slide_scores(patches.astype(np.float32), texts.astype(np.float32)) == pytest.approx(exact, abs=1e-6)
    assert unit_vectors(patches.astype(np.float16)).dtype == np.float32


def test_any_finite_length_has_a_direction() -> None:
    given = np.array([[3, 4], [3e30, 4e30], [3e-30, 4e-30]], np.float32)
    assert unit_vectors(given) == pytest.approx(np.tile([0.6, 0.8], (3, 1)))
    assert unit_vectors(np.array([[3, 4]])).dtype == np.float32


def test_of_equal_scores_the_lowest_class() -> None:
    assert predicted_classes(np.array([[0.1, 0.3, 0.3], [0.2, 0.2, 0.2], [0, 0.1, 0.2]])).tolist() == [1, 0, 2]
    assert predicted_classes(np.zeros((5, 7, 2))).shape == (5, 7)


def test_best_aggregation_is_the_first_of_the_highest_accuracy() -> None:
    labels = np.array([0, 1, 1])
    right = np.eye(2)[labels]
    scores = np.stack([1 - right, right, right, 1 - right, right])
    assert best_aggregation(scores, labels) == "top5"
    assert best_aggregation(scores[::-1], labels) == "top1"
    scores[1, 0] = scores[1, 0, ::-1]
    assert best_aggregation(scores, labels) == "top10"
    assert best_aggregation(np.zeros((5, 3, 2)), labels) == "top1"


def test_alignment_and_gap() -> None:
    scores, labels = np.array([[0.4, 0.1, 0.3], [0.2, 0.0, 0.6]]), np.array([0, 1])
    assert alignment_scores(scores, labels).tolist() == [0.4, 0.0]
    assert similarity_gaps(scores, labels).tolist() == pytest.approx([0.2, -0.4])
    assert similarity_gaps(scores[:, ::2], np.array([0, 1])).tolist() == pytest.approx([0.1, 0.4])


@pytest.mark.parametrize(
    ("patches", "texts", "match"),
    [
        (np.zeros((0, 2)), np.eye(2), "a patch at least"),
        (np.ones((3, 4)), np.eye(2), r"\(3, 4\) and texts of shape \(2, 2\)"),
        (np.ones(2), np.eye(2), r"shape \(2,\)"),
        (np.ones((3, 2)), np.zeros((0, 2)), "no text"),
        (np.array([[1, np.nan]]), np.eye(2), "not finite"),
        (np.eye(2), np.array([[1, np.inf]]), "not finite"),
        (np.eye(2), np.array([[0.0, 0.0]]), "embedding is 0"),
        (np.array([[1.0, 0.0], [-1.0, 0.0]]), np.eye(2), "embedding is 0"),
    ],
)
def test_embeddings_that_say_nothing(patches: np.ndarray, texts: np.ndarray, match: str) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        slide_scores(patches, texts)


@pytest.mark.parametrize(
    ("scores", "labels", "match"),
    [
        (np.zeros((2, 3)), np.array([0]), "2 slides"),
        (np.zeros((2, 3)), np.array([0, 3]), "outside 0 to 2"),
        (np.zeros((2, 3)), np.array([0, -1]), "outside 0 to 2"),
        (np.zeros((0, 3)), np.zeros(0, int), "0 slides"),
        (np.array([[0, np.nan]]), np.array([0]), "NaN"),
        (np.zeros((5, 1, 2)), np.array([0]), "shape"),
        (np.zeros((1, 1)), np.array([0]), "one class"),
    ],
)
def test_scores_and_labels_that_do_not_fit(scores: np.ndarray, labels: np.ndarray, match: str) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        similarity_gaps(scores, labels)


def test_scores_without_classes_or_aggregations() -> None:
    for scores in (np.float64(1), np.zeros((2, 0)), np.array([0.1, np.nan])):
        with pytest.raises(InvalidArgumentError, match="each class needs one"):
            predicted_classes(scores)
    with pytest.raises(InvalidArgumentError, match="5, slides, classes"):
        best_aggregation(np.zeros((4, 2, 2)), np.zeros(2, int))
    with pytest.raises(InvalidArgumentError, match="outside"):
        best_aggregation(np.zeros((5, 2, 2)), np.full(2, 2))
