"""Errors of counts by hand."""

from __future__ import annotations

import pytest

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.counts import count_errors


def test_by_hand() -> None:
    result = count_errors([10, None, 7], [12, 30, 7])
    assert result.errors.tolist() == [2, 30, 0]
    assert result.mae == pytest.approx(32 / 3)
    assert result.mae_parsed == 1
    assert result.coverage == pytest.approx(2 / 3)


def test_no_counts_and_no_items() -> None:
    result = count_errors([None], [5])
    assert (result.mae, result.mae_parsed, result.coverage) == (5, None, 0)
    result = count_errors([], [])
    assert (result.mae, result.mae_parsed, result.coverage) == (None, None, None)


def test_bad_counts() -> None:
    with pytest.raises(InvalidArgumentError, match="not finite"):
        count_errors([float("nan")], [1])
    with pytest.raises(InvalidArgumentError, match="1 counts and 2"):
        count_errors([1], [1, 2])
