"""Verdict and score as one suspicion, and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsigym.envs.verdicts import YES, Verdict, suspicion, verdict_of


def test_known_values() -> None:
    assert suspicion(yes=True, score=0) == 0.5
    assert suspicion(yes=True, score=1) == 1
    assert suspicion(yes=True, score=0.5) == 0.75
    assert suspicion(yes=False, score=0) == 0
    assert 0.49 < suspicion(yes=False, score=1) < 0.5
    assert np.float32(suspicion(yes=False, score=1)) < 0.5
    assert suspicion(yes=False, score=0.5) == pytest.approx(0.25)
    assert suspicion(yes=False, score=0.5) < 0.25
    assert verdict_of(0.9) == Verdict(True, 0.8)
    assert verdict_of(0.5) == Verdict(True, 0)
    assert verdict_of(0.0) == Verdict(False, 0)
    assert verdict_of(0.1) == Verdict(False, 0.2)


@given(st.booleans(), st.integers(0, 10**6))
def test_there_and_back_through_either_kind_of_float(yes: bool, millionths: int) -> None:
    said = Verdict(yes, millionths / 10**6)
    number = suspicion(yes=said.yes, score=said.score)
    assert (number >= YES) == (float(np.float32(number)) >= YES) == yes
    assert verdict_of(number) == verdict_of(float(np.float32(number))) == said


@given(st.floats(0, 1), st.floats(0, 1))
def test_every_yes_is_above_every_no_and_the_score_ranks_within_a_verdict(one: float, other: float) -> None:
    assert suspicion(yes=True, score=one) > suspicion(yes=False, score=other)
    low, high = sorted((one, other))
    for yes in (True, False):
        assert suspicion(yes=yes, score=low) <= suspicion(yes=yes, score=high)


@given(st.floats(0, 1))
def test_what_no_verdict_was_stated_for_is_read_in_the_same_way(number: float) -> None:
    verdict = verdict_of(number)
    assert verdict.yes == (number >= YES)
    assert 0 <= verdict.score <= 1
    assert suspicion(yes=verdict.yes, score=verdict.score) == pytest.approx(number, abs=1e-6)
