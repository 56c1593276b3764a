"""Statements told true or false: the mechanics that the protocol states, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.findings import item_accuracy, right_statements, statement_accuracy

TRUTHS = [(True, False, True, False), (False, False, True, True), (True, True, False, False)]


def accuracies(answers: list[tuple[bool, ...] | None]) -> tuple[float, float]:
    right = right_statements(answers, TRUTHS)
    return float(statement_accuracy(right).mean()), float(item_accuracy(right).mean())


def test_perfect_all_true_and_unanswered() -> None:
    assert accuracies(list(TRUTHS)) == (1, 1)
    assert accuracies([(True,) * 4] * 3) == (0.5, 0)
    assert accuracies([None] * 3) == (0, 0)
    assert accuracies([TRUTHS[0], None, (True, True, False, True)]) == (pytest.approx(7 / 12), pytest.approx(1 / 3))


def test_a_coin_is_right_on_half_of_the_statements_and_a_sixteenth_of_the_items() -> None:
    answers = [tuple(bool(number >> bit & 1) for bit in range(4)) for number in range(16)]
    right = right_statements(answers, [TRUTHS[0]] * 16)
    assert statement_accuracy(right).mean() == 0.5
    assert item_accuracy(right).mean() == 1 / 16


def test_no_items() -> None:
    assert right_statements([], []).shape[0] == 0


def test_items_that_do_not_fit() -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[3, 4\]"):
        right_statements([(True, True, True)], TRUTHS[:1])
    with pytest.raises(InvalidArgumentError, match="1 answers and 3"):
        right_statements([None], TRUTHS)
    assert right_statements([None], TRUTHS[:1]).dtype == np.bool_
