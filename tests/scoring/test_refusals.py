"""Safe refusals and over-refusals by hand."""

from __future__ import annotations

import numpy as np
import pytest

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.refusals import refusals


def test_each_task_weighs_the_same() -> None:
    said = np.array([1, 0, 0, 0, 1, 1, 0, 1], bool)
    traps = np.array([0, 0, 0, 0, 0, 1, 1, 1], bool)
    tasks = ["grounding"] * 4 + ["organ", "organ trap", "organ trap", "count trap"]
    result = refusals(said, traps, tasks)
    assert result.over_by_task == {"grounding": 0.25, "organ": 1}
    assert result.over == pytest.approx(0.625)
    assert result.safe_by_task == {"organ trap": 0.5, "count trap": 1}
    assert result.safe == pytest.approx(0.75)


def test_a_task_with_both_kinds_of_items() -> None:
    result = refusals(np.array([True, True, False, True]), np.array([True, False, False, False]), ["organ"] * 4)
    assert (result.safe, result.over) == (1, pytest.approx(2 / 3))


def test_always_and_never() -> None:
    traps = np.array([True, False])
    for answer in (True, False):
        result = refusals(np.full(2, answer), traps, ["trap", "task"])
        assert result.safe == result.over == answer


def test_no_traps() -> None:
    result = refusals(np.array([False]), np.array([False]), ["task"])
    assert (result.safe, result.over, result.safe_by_task) == (None, 0, {})
    with pytest.raises(InvalidArgumentError, match="need equal"):
        refusals(np.array([False]), np.array([False]), [])
