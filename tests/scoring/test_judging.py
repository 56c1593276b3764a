"""Blinded sheets, and the agreement of two gradings."""

from __future__ import annotations

import pytest

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.judging import blinded_sheet, judge_agreement

ANSWERS = [
    (model, f"item {item}", "skin", "Melanoma", f"answer {item}") for model in ("m1", "m2") for item in range(20)
]


def test_a_sheet_hides_who_answered_and_mixes_the_rows() -> None:
    rows, key = blinded_sheet(ANSWERS, seed=1)
    assert len({row.code for row in rows}) == len(ANSWERS)
    assert not any("m1" in str(row) or "item" in str(row) for row in rows)
    models = [key[row.code][0] for row in rows]
    assert models != sorted(models)
    assert sorted(key.values()) == sorted((model, item) for model, item, *_ in ANSWERS)
    assert blinded_sheet(ANSWERS[::-1], seed=1) == (rows, {row.code: key[row.code] for row in rows})
    assert [row.code for row in blinded_sheet(ANSWERS, seed=2)[0]] != [row.code for row in rows]


def test_an_answer_twice() -> None:
    with pytest.raises(InvalidArgumentError, match="twice"):
        blinded_sheet(ANSWERS[:1] * 2)


def test_agreement_of_gradings() -> None:
    result = judge_agreement({"a": 0, "b": 1, "c": 2, "d": None}, {"a": 0, "b": 2, "c": 2, "e": 1})
    assert (result.n, result.coverage) == (3, pytest.approx(3 / 5))
    assert result.exact == pytest.approx(2 / 3)
    # O: 1; E: pairs of {0,1,2} and {0,2,2}: (0+4+4 + 1+1+1 + 4+0+0) / 3 = 5.
    assert result.kappa == pytest.approx(1 - 1 / 5)


def test_a_grade_that_is_none() -> None:
    with pytest.raises(InvalidArgumentError, match="x has the grade 3"):
        judge_agreement({"x": 3}, {"x": 1})
