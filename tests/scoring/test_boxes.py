"""Dice of unions of boxes: by hand, and by painting pixels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.boxes import union_dice

BOX = (100, 100, 300, 200)
BOXES = st.lists(
    st.tuples(*[st.integers(0, 40)] * 4).map(
        lambda box: (min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]) + 1, max(box[1], box[3]) + 1)
    ),
    min_size=1,
    max_size=5,
)


def painted(boxes: list[tuple[int, int, int, int]]) -> np.ndarray:
    mask = np.zeros((42, 42), bool)
    for x1, y1, x2, y2 in boxes:
        mask[y1:y2, x1:x2] = True
    return mask


def test_by_hand() -> None:
    assert union_dice([BOX], [BOX]) == 1
    assert union_dice([BOX, BOX], [BOX]) == 1
    assert union_dice([(100, 100, 200, 200), (200, 100, 300, 200)], [BOX]) == 1
    assert union_dice([(200, 100, 400, 200)], [BOX]) == 0.5
    assert union_dice([], [BOX]) == 0
    assert union_dice([(300, 100, 400, 200)], [BOX]) == 0
    assert union_dice([(150, 150, 150, 190)], [BOX]) == 0
    # The whole image against a hundredth of it: 2 * 0.01 / 1.01.
    assert union_dice([(0, 0, 1000, 1000)], [(0, 0, 100, 100)]) == pytest.approx(2 / 101)


@given(BOXES, BOXES)
def test_it_counts_pixels(predicted: list[tuple[int, int, int, int]], target: list[tuple[int, int, int, int]]) -> None:
    first, second = painted(predicted), painted(target)
    assert union_dice(predicted, target) == pytest.approx(2 * (first & second).sum() / (first.sum() + second.sum()))
    assert union_dice(predicted, target) == pytest.approx(union_dice(target, predicted))
    assert union_dice(predicted, predicted[::-1] * 2) == 1


def test_a_target_needs_an_area() -> None:
    for target in ([], [(1, 1, 1, 5)]):
        with pytest.raises(InvalidArgumentError, match="cover nothing"):
            union_dice([BOX], target)
    with pytest.raises(InvalidArgumentError, match="not finite"):
        union_dice([(0, 0, float("nan"), 1)], [BOX])
