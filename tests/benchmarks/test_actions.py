from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from wsigym.benchmarks.actions import decoded, encoded
from wsigym.benchmarks.records import StepRecord


def through_a_record(action: Any) -> Any:
    line = StepRecord(action=encoded(action), act_seconds=0, step_seconds=0).model_dump_json()
    json.loads(line, parse_constant=pytest.fail)  # NaN and Infinity are not JSON.
    return decoded(StepRecord.model_validate_json(line).action)


@given(arrays.arrays(np.float32, 4, elements=st.floats(width=32)))
def test_float32_comes_back_exactly(box: np.ndarray[Any, Any]) -> None:
    back = through_a_record({"tool": np.int64(1), "box": box})
    assert back["tool"] == 1
    np.testing.assert_array_equal(back["box"], box.astype(np.float64))


@given(st.lists(st.floats(), min_size=1, max_size=4))
def test_float64_comes_back_exactly(values: list[float]) -> None:
    np.testing.assert_array_equal(through_a_record(values), np.array(values))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_is_not_taken_for_a_number(text: str) -> None:
    assert through_a_record({"answer": text}) == {"answer": text}


def test_a_lone_number_that_json_lacks() -> None:
    assert math.isnan(through_a_record({"confidence": float("nan")})["confidence"])
    assert through_a_record(np.float32("-inf")) == -math.inf


def test_what_is_no_action() -> None:
    with pytest.raises(TypeError, match="found object"):
        encoded({"box": object()})
