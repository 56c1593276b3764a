"""Agreement of wordings by hand, against a published example of Fleiss' kappa, and at its bounds; ensembles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.intervals import DRAWS, Estimate, unit_weights
from wsigym.scoring.paraphrases import (
    ensemble_draws,
    ensemble_texts,
    prediction_consistency,
    prompt_stability,
    relative_changes,
)

PREDICTIONS = arrays.arrays(np.int64, st.tuples(st.integers(1, 8), st.integers(2, 5)), elements=st.integers(0, 3))

FLEISS_EXAMPLE = """
0 0 0 0 14
0 2 6 4 2
0 0 3 5 6
0 3 9 2 0
2 2 8 1 1
7 7 0 0 0
3 2 6 3 0
2 5 3 2 2
6 5 2 1 0
0 2 2 3 7
"""
"""Ten subjects, fourteen raters, five categories, kappa 0.210: the worked example of Wikipedia's article on it."""


def kappa_by_definition(predictions: np.ndarray) -> float | None:
    variants = predictions.shape[1]
    pairs = [(a, b) for a in range(variants) for b in range(variants) if a != b]
    agreed = np.mean([[row[a] == row[b] for a, b in pairs] for row in predictions])
    expected = sum(np.mean(predictions == one) ** 2 for one in range(4))
    return None if expected == 1 else float((agreed - expected) / (1 - expected))


def test_a_known_kappa() -> None:
    counts = [[int(count) for count in line.split()] for line in FLEISS_EXAMPLE.strip().splitlines()]
    predictions = np.array([np.repeat(np.arange(5), row) for row in counts])
    assert predictions.shape == (10, 14)
    assert prompt_stability(predictions, range(10)).estimate.value == pytest.approx(0.210, abs=0.0005)


@given(PREDICTIONS, st.permutations(range(4)))
def test_kappa_is_what_it_is_defined_as(predictions: np.ndarray, names: list[int]) -> None:
    slides, variants = predictions.shape
    result = prompt_stability(predictions, range(slides))
    known = kappa_by_definition(predictions)
    assert result.one_class == (known is None)
    assert result.estimate.value == pytest.approx(1 if known is None else known, abs=1e-9)
    assert -1 / (variants - 1) - 1e-9 <= (result.estimate.value or 0) <= 1 + 1e-9
    renamed = prompt_stability(np.array(names)[predictions], range(slides))
    assert renamed.estimate.value == pytest.approx(result.estimate.value, abs=1e-9)


@pytest.mark.parametrize("variants", [2, 4, 5])
def test_constant_wordings_that_differ_have_the_lowest_kappa(variants: int) -> None:
    predictions = np.tile([*[0] * (variants - 1), 1], (50, 1))
    estimate = prompt_stability(predictions, range(50)).estimate
    assert [estimate.value, estimate.low, estimate.high] == pytest.approx([-1 / (variants - 1)] * 3)
    assert prediction_consistency(predictions, range(50)) == Estimate(0, 0, 0, 50, 50)


def test_one_class_everywhere_is_stable_by_definition() -> None:
    result = prompt_stability(np.full((30, 5), 2), range(30))
    assert result.one_class
    assert result.estimate == Estimate(1, 1, 1, 30, 30)
    nothing = prompt_stability(np.zeros((0, 5), int), [])
    assert (nothing.one_class, nothing.estimate.value) == (False, None)


def test_consistency_is_unanimity_and_can_be_high_where_kappa_is_not() -> None:
    predictions = np.zeros((100, 5), int)
    predictions[np.arange(20), np.arange(20) % 5] = 1
    consistency = prediction_consistency(predictions, range(100))
    assert consistency.value == pytest.approx(0.8)
    kappa = prompt_stability(predictions, range(100)).estimate
    assert kappa.value is not None
    assert -0.1 < kappa.value < 0


def test_independent_guesses_are_at_chance() -> None:
    rng = np.random.default_rng(0)
    guesses = rng.integers(3, size=(20_000, 4))
    assert prediction_consistency(guesses, range(20_000)).value == pytest.approx(3**-3, abs=0.004)
    assert prompt_stability(guesses, range(20_000)).estimate.value == pytest.approx(0, abs=0.01)


def test_the_interval_is_the_bootstrap_of_kappa() -> None:
    rng = np.random.default_rng(1)
    predictions = rng.integers(3, size=(12, 1)) + (rng.random((12, 4)) < 0.3)
    units = "abcdefghijkl"
    estimate = prompt_stability(predictions, units, seed=5).estimate
    weights = np.concatenate(list(unit_weights(12, 5)))
    assert len(weights) == DRAWS
    drawn = [kappa_by_definition(np.repeat(predictions, draw.astype(int), axis=0)) for draw in weights]
    expected = np.quantile([1 if kappa is None else kappa for kappa in drawn], [0.025, 0.975])
    assert [estimate.low, estimate.high] == pytest.approx(expected.tolist())
    assert estimate != prompt_stability(predictions, units, seed=6).estimate


def test_draws_are_seeded_subsets_and_all_of_them_one() -> None:
    drawn = ensemble_draws(9, 4)
    assert drawn.shape == (100, 4)
    assert (np.diff(drawn, axis=1) > 0).all()
    assert (drawn.min(), drawn.max()) == (0, 8)
    np.testing.assert_array_equal(drawn, ensemble_draws(9, 4))
    first = np.random.default_rng([42, 4]).permuted(np.tile(np.arange(9), (100, 1)), axis=1)[0, :4]
    assert sorted(first) == drawn[0].tolist()
    assert len(np.unique(drawn, axis=0)) > 50
    assert ensemble_draws(9, 9).tolist() == [list(range(9))]
    counts = np.bincount(ensemble_draws(9, 1, draws=9000)[:, 0])
    assert counts.tolist() == pytest.approx([1000] * 9, abs=150)


def test_an_ensemble_is_the_direction_of_the_mean_of_directions() -> None:
    texts = np.array([[[2.0, 0.0], [0.0, 1.0]], [[0.0, 5.0], [0.0, 3.0]], [[-1.0, 0.0], [1.0, 0.0]]])
    together = ensemble_texts(texts, np.array([[0, 1], [1, 2]]))
    half = np.sqrt(0.5)
    assert together.tolist() == [
        [pytest.approx([half, half]), pytest.approx([0, 1])],
        [pytest.approx([-half, half]), pytest.approx([half, half])],
    ]
    one = ensemble_texts(texts, ensemble_draws(3, 1))
    assert one.shape == (100, 2, 2)
    assert np.linalg.norm(one, axis=-1) == pytest.approx(np.ones((100, 2)))
    with pytest.raises(InvalidArgumentError, match="embedding is 0"):
        ensemble_texts(texts, np.array([[0, 2]]))


def test_relative_changes() -> None:
    assert relative_changes(np.array([0.4, 0.5, 0.1])).tolist() == pytest.approx([0, 25, -75])
    many = relative_changes(np.array([[0.5, 0.75], [0.0, 0.2]]))
    assert many[0].tolist() == [0, 50]
    assert np.isnan(many[1]).all()


@pytest.mark.parametrize("bad", [np.zeros(3, int), np.zeros((3, 1), int), np.array([[0, -1]])])
def test_bad_predictions(bad: np.ndarray) -> None:
    for score in (prediction_consistency, prompt_stability):
        with pytest.raises(InvalidArgumentError, match="prediction"):
            score(bad, range(len(bad)))


def test_other_bad_arguments() -> None:
    for variants, size, draws in ((9, 0, 1), (9, 10, 1), (9, 3, 0)):
        with pytest.raises(InvalidArgumentError, match=f"{draws} draws of {size} of 9"):
            ensemble_draws(variants, size, draws=draws)
    for texts, drawn in ((np.ones((3, 2)), [[0]]), (np.ones((3, 2, 2)), [0]), (np.ones((3, 2, 2)), [[3]])):
        with pytest.raises(InvalidArgumentError, match="texts of shape"):
            ensemble_texts(texts, np.array(drawn))
    for accuracies in (np.zeros(0), np.array([0.1, np.nan]), np.array(0.5)):
        with pytest.raises(InvalidArgumentError, match="accuracies"):
            relative_changes(accuracies)
