"""Macro-F1 by hand, against scikit-learn, and at the chance levels that the papers' control rows show."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.macro_f1 import MacroF1, macro_f1, macro_f1_estimate

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 4)), min_size=1, max_size=40)


def test_by_hand() -> None:
    # Class 0: TP 1, FN 1; class 1: TP 1, FP 1; class 2: only answered. F1: 2/3, 2/3, 0.
    result = macro_f1(np.array([0, 0, 1]), np.array([0, 2, 1]))
    assert result == MacroF1(pytest.approx((2 / 2 / 1.5 + 1) / 3), pytest.approx((2 / 3 + 1) / 2), 1)


def test_an_unparsed_reply_is_a_miss_and_no_class() -> None:
    result = macro_f1(np.array([0, 0, 1]), np.array([0, -1, 1]))
    assert result == MacroF1(pytest.approx((2 / 3 + 1) / 2), pytest.approx((2 / 3 + 1) / 2), pytest.approx(2 / 3))
    assert macro_f1(np.array([0]), np.array([-1])) == MacroF1(0, 0, 0)


@given(PAIRS)
def test_against_scikit_learn_and_the_estimate(pairs: list[tuple[int, int]]) -> None:
    truths, answers = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    result = macro_f1(truths, answers)
    assert result.union == pytest.approx(macro_f1_estimate(truths, answers, list(range(len(pairs)))).value)
    if (answers >= 0).all():
        assert result.union == pytest.approx(f1_score(truths, answers, average="macro"))
    assert result.union is not None
    assert result.truth_only is not None
    assert 0 <= result.union <= result.truth_only + 1e-12 <= 1 + 1e-12


@given(PAIRS)
def test_over_all_classes_against_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    truths, answers = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    known = f1_score(truths, answers, labels=np.arange(7), average="macro", zero_division=0)
    assert macro_f1_estimate(truths, answers, list(range(len(pairs))), classes=7).value == pytest.approx(known)


def test_over_all_classes_of_a_constant_answer() -> None:
    estimate = macro_f1_estimate(np.repeat([0, 1, 2], [2, 3, 5]), np.full(10, 1), list(range(10)), classes=4)
    assert estimate.value == pytest.approx(2 * 0.3 / 1.3 / 4)
    # A draw without a right answer is 0 over all four, not undefined.
    assert estimate.low == 0
    assert estimate.high is not None
    assert estimate.high < 1 / 4


@pytest.mark.parametrize(("options", "union", "truth_only"), [(5, 8 / 45, 2 / 9), (4, 1 / 4, 1 / 4)])
def test_a_uniform_guesser_on_four_balanced_classes(options: int, union: float, truth_only: float) -> None:
    truths, answers = (grid.ravel() for grid in np.meshgrid(np.arange(4), np.arange(options)))
    assert macro_f1(truths, answers) == MacroF1(pytest.approx(union), pytest.approx(truth_only), 1)


def test_a_constant_answer_on_four_balanced_classes() -> None:
    assert macro_f1(np.arange(4), np.full(4, 2)) == MacroF1(pytest.approx(0.1), pytest.approx(0.1), 1)


def test_the_papers_control_rows_agree_with_the_union_of_five_options_alone() -> None:
    # Published: random 0.179, 0.181, 0.179; frequent 0.103, 0.102, 0.105; the figures here are simulated as well.
    rng = np.random.default_rng(0)
    truths = np.repeat(np.arange(4), 250)
    draws = {
        options: np.mean([macro_f1(truths, rng.integers(options, size=1000)).union or 0 for _ in range(100)])
        for options in (4, 5)
    }
    assert draws[5] == pytest.approx(0.1789, abs=0.003)
    assert draws[4] == pytest.approx(0.247, abs=0.006)
    truth_only = np.mean([macro_f1(truths, rng.integers(5, size=1000)).truth_only or 0 for _ in range(100)])
    assert truth_only == pytest.approx(0.224, abs=0.004)


def test_nothing_and_bad_truths() -> None:
    none = np.zeros(0, int)
    assert macro_f1(none, none) == MacroF1(None, None, None)
    assert macro_f1_estimate(none, none, []).value is None
    with pytest.raises(InvalidArgumentError, match="negative"):
        macro_f1(np.array([-1]), np.array([0]))
    with pytest.raises(InvalidArgumentError, match="2 truths"):
        macro_f1(np.array([0, 1]), np.array([0]))
    for classes in (0, 2):
        with pytest.raises(InvalidArgumentError, match=f"{classes} classes"):
            macro_f1_estimate(np.array([0]), np.array([2]), ["a"], classes=classes)
