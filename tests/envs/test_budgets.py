"""Budgets of regions of interest: the presets' numbers, and every way to say one."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from wsigym.envs import RoiBudget
from wsigym.errors import InvalidArgumentError, UnknownNameError


@pytest.mark.parametrize(("preset", "rois"), [("tight", (5, 4, 3)), ("base", (10, 7, 5)), ("loose", (20, 14, 10))])
def test_presets(preset: str, rois: tuple[int, int, int]) -> None:
    budget = RoiBudget.of(preset)
    assert tuple(budget.rois(magnification) for magnification in (2.5, 10, 40)) == rois
    assert tuple(budget.rois(magnification) for magnification in (4.99, 5, 19.99)) == (rois[0], rois[1], rois[1])
    assert budget.rois(20) == rois[2]
    assert budget.label == preset


@pytest.mark.parametrize(
    ("value", "label", "at_10x"),
    [
        (3, "3", 3),
        (0, "0", 0),
        ("3", "3", 3),
        (10_000, "10000", 10_000),
        (" base ", "base", 7),
        (np.int64(4), "4", 4),
        ({10: 7, 2.5: 10}, "2.5=10,10=7", 7),
        ({"10": 7}, "10=7", 7),  # as JSON has it
        ("10=7,2.5=10", "2.5=10,10=7", 7),
        ("10.05=6", "10.05=6", 6),  # a scan's 10x is within 1 %
    ],
)
def test_every_way_to_say_a_budget(value: Any, label: str, at_10x: int) -> None:
    budget = RoiBudget.of(value)
    assert (budget.label, budget.rois(10)) == (label, at_10x)
    assert RoiBudget.of(budget) is budget
    assert RoiBudget.of(budget.label) == budget
    assert pickle.loads(pickle.dumps(budget)) == budget


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (-1, "-1"),
        (10_001, "0 to 10,000"),
        ("100000000000000000000", "0 to 10,000"),
        ("10=100000", "0 to 10,000"),
        (2.5, "2.5"),
        (True, "True"),
        (None, "None"),
        ([5], "[5]"),
        ("-1", "-1"),
        ({}, "{}"),
        ({0: 3}, "above 0"),
        ({-10: 3}, "above 0"),
        ({float("nan"): 3}, "nan"),
        ({float("inf"): 3}, "inf"),
        ({10: -1}, "-1"),
        ({10: 2.5}, "2.5"),
        ({10: None}, "None"),
        ({"x": 3}, "'x'"),
        ({10: 3, "10": 4}, "once"),
        ("10=3,10=4", "twice"),
        ("10=", "cannot be read"),
        ("10=3=4", "cannot be read"),
        ("10=3,", "cannot be read"),
        ("x=3", "cannot be read"),
        ("10=2.5", "cannot be read"),
    ],
)
def test_what_is_no_budget(value: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        RoiBudget.of(value)
    assert words in str(caught.value)


@pytest.mark.parametrize(("value", "near"), [("thight", "tight"), ("Base", "base"), ("2.5", None), ("", None)])
def test_unknown_names(value: str, near: str | None) -> None:
    with pytest.raises(UnknownNameError) as caught:
        RoiBudget.of(value)
    assert f"unknown budget {value!r}" in str(caught.value)
    assert (f"Did you mean '{near}'" in str(caught.value)) == (near is not None)


def test_a_magnification_without_a_number() -> None:
    with pytest.raises(InvalidArgumentError, match="says nothing for a query at 40x; add 40=N to it"):
        RoiBudget.of({10: 7}).rois(40)


@pytest.mark.parametrize(("value", "most"), [("base", 10), (3, 3), ({10: 7, 40: 9}, 9), (0, 0)])
def test_the_most_of_any_query(value: Any, most: int) -> None:
    assert RoiBudget.of(value).most == most
