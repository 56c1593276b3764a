"""Agreement against scikit-learn, by hand, and where it is undefined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.agreement import agreement, kappa_estimate, quadratic_weighted_kappa

PAIRS = st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), min_size=1, max_size=40)


def arrays(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])


def test_by_hand() -> None:
    # O: sum of squares 0 + 1 + 0 + 4 = 5; E: pairs of {0,1,2,0} and {0,0,2,2}: (4+4+1+1+1+1+4+4+... ) / 4.
    first, second = np.array([0, 1, 2, 0]), np.array([0, 0, 2, 2])
    apart = sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
    expected = sum((a - b) ** 2 for a in first for b in second) / 4
    result = agreement(first, second)
    assert result.kappa == pytest.approx(1 - apart / expected)
    assert (result.exact, result.n, result.coverage) == (0.5, 4, 1)
    assert (result.mean_first, result.mean_second) == (0.75, 1)


@given(PAIRS)
def test_kappa_and_its_estimate_are_one_number(pairs: list[tuple[int, int]]) -> None:
    first, second = arrays(pairs)
    kappa = quadratic_weighted_kappa(first, second)
    estimate = kappa_estimate(first, second, list(range(len(pairs))))
    if kappa is None:
        assert estimate.value is None
    else:
        assert estimate.value == pytest.approx(kappa)
        present = [(a, b) for a, b in pairs if a >= 0 and b >= 0]
        known = cohen_kappa_score(*zip(*present, strict=True), weights="quadratic", labels=[0, 1, 2, 3])
        assert kappa == pytest.approx(known)
        assert -1 <= kappa <= 1


def test_missing_levels_are_left_out_and_counted() -> None:
    result = agreement(np.array([0, 1, -1, 2]), np.array([0, 1, 2, -1]))
    assert (result.kappa, result.exact, result.n, result.coverage) == (1, 1, 2, 0.5)


def test_who_gives_everything_one_level_has_kappa_zero() -> None:
    assert quadratic_weighted_kappa(np.array([0, 1, 2]), np.array([1, 1, 1])) == pytest.approx(0)


def test_undefined() -> None:
    assert quadratic_weighted_kappa(np.array([1, 1]), np.array([1, 1])) is None
    result = agreement(np.array([-1]), np.array([0]))
    assert (result.exact, result.kappa, result.n, result.coverage) == (None, None, 0, 0)
    assert agreement(np.zeros(0, int), np.zeros(0, int)).coverage is None
    with pytest.raises(InvalidArgumentError, match="2 and 1"):
        agreement(np.zeros(2, int), np.zeros(1, int))


def test_the_interval_encloses_kappa_and_resamples_units() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(4, size=200)
    second = np.clip(first + rng.integers(-1, 2, size=200), 0, 3)
    alone = kappa_estimate(first, second, list(range(200)))
    together = kappa_estimate(first, second, [place // 20 for place in range(200)])
    assert alone.low is not None
    assert alone.high is not None
    assert alone.value is not None
    assert alone.low < alone.value < alone.high
    assert together.units == 10
