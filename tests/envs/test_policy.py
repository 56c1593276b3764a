"""The base of policies with random numbers."""

from __future__ import annotations

import pytest

from wsigym.envs.policy import NoAnswer, SeededPolicy
from wsigym.errors import InvalidArgumentError


def test_a_seed_starts_the_same_numbers_again() -> None:
    policy, other = SeededPolicy(), SeededPolicy()
    policy.seed(7)
    first = policy.rng.random(5).tolist()
    policy.seed(7)
    other.seed(7)
    assert policy.rng.random(5).tolist() == other.rng.random(5).tolist() == first
    other.seed(8)
    assert other.rng.random(5).tolist() != first


def test_policies_share_no_generator() -> None:
    policy, other = SeededPolicy(), SeededPolicy()
    assert policy.rng is policy.rng
    assert policy.rng is not other.rng
    assert policy.rng.random(5).tolist() != other.rng.random(5).tolist()


def test_no_answer_has_an_outcome_that_scores_zero() -> None:
    assert str(NoAnswer("refused", "I cannot")) == "refused: I cannot"
    with pytest.raises(InvalidArgumentError, match="allowed are unparsed, refused, budget_exhausted"):
        NoAnswer("scored", "it did not")  # type: ignore[arg-type]
