"""Cases of ordered steps: by hand, the survival curve, both intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.case_steps import case_scores
from wsigym.scoring.intervals import mean_estimate


def test_by_hand() -> None:
    passes = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 1], [1, 1, 0]], dtype=bool)
    scores = case_scores(passes, ["p", "q", "r", "s"])
    assert scores.step_pass.value == pytest.approx(9 / 12)
    assert scores.case_success.value == pytest.approx(1 / 4)
    # The second case fails at its second step, and its third counts no more.
    assert scores.survival.tolist() == [3, 2, 1]
    assert (scores.step_pass.units, scores.step_pass_by_unit.units, scores.case_success.n) == (12, 4, 4)


@settings(max_examples=40)
@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=12))
def test_survival_never_rises_and_ends_at_case_success(table: list[list[bool]]) -> None:
    passes = np.array(table, dtype=bool)
    scores = case_scores(passes, range(len(table)))
    assert (np.diff(scores.survival) <= 0).all()
    assert scores.survival[0] == passes[:, 0].sum()
    assert scores.survival[-1] / len(table) == pytest.approx(scores.case_success.value)
    assert (scores.case_success.value or 0) <= (scores.step_pass.value or 0)
    assert scores.step_pass.value == scores.step_pass_by_unit.value == pytest.approx(passes.mean())


def test_intervals_over_answers_and_over_cases() -> None:
    # Each case passes all its steps or none: six answers say no more than one.
    wins = np.arange(40) % 4 == 0
    scores = case_scores(np.repeat(wins[:, None], 6, axis=1), range(40))
    answers, cases = scores.step_pass, scores.step_pass_by_unit
    assert None not in (answers.low, answers.high, cases.low, cases.high)
    assert cases.high - cases.low > 2 * (answers.high - answers.low)  # type: ignore[operator]
    success = mean_estimate(wins.astype(float), range(40))
    assert (cases.low, cases.high) == (pytest.approx(success.low), pytest.approx(success.high))
    assert scores.case_success == success
    # Two cases of one patient are one unit.
    assert case_scores(np.ones((10, 6), dtype=bool), [case // 2 for case in range(10)]).step_pass_by_unit.units == 5


def test_without_cases() -> None:
    scores = case_scores(np.zeros((0, 6), dtype=bool), [])
    assert scores.step_pass.value is scores.case_success.value is None
    assert scores.survival.tolist() == [0] * 6


@pytest.mark.parametrize("passes", [np.ones(6, bool), np.ones((2, 0), bool), np.ones((2, 6))])
def test_what_is_no_table_of_steps(passes: np.ndarray) -> None:
    with pytest.raises(InvalidArgumentError, match="bool"):
        case_scores(passes, ["p", "q"])


def test_a_case_without_its_unit() -> None:
    with pytest.raises(InvalidArgumentError, match="each"):
        case_scores(np.ones((2, 6), dtype=bool), ["p"])
