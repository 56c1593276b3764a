"""The share of wrong answers that name a look-alike, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.look_alikes import LookAlikes, look_alikes

KEYS = np.array([0, 1, 2])
IS_LOOK_ALIKE = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]], bool)


def test_by_hand() -> None:
    contents, rows = np.array([1, 2, 0, -1, 0, 3, 0]), np.array([0, 0, 0, 0, 1, 1, 2])
    # Wrong and parsed on items 0 and 1: contents 1 (yes), 2 (no), 0 (yes), 3 (no). Uniform: (1/3 + 2/3) / 2.
    assert look_alikes(contents, rows, KEYS, IS_LOOK_ALIKE) == LookAlikes(0.5, pytest.approx(0.5), 4, 2)


def test_wrong_answers_drawn_uniformly_score_the_uniform_share() -> None:
    rows = np.repeat(np.arange(3), 4)
    contents = np.tile(np.arange(4), 3)
    result = look_alikes(contents, rows, KEYS, IS_LOOK_ALIKE)
    assert result.share == result.uniform


def test_no_look_alikes() -> None:
    none = np.zeros_like(IS_LOOK_ALIKE)
    assert look_alikes(np.array([1]), np.array([0]), KEYS, none) == LookAlikes(None, None, 0, 0)
    all_right = look_alikes(KEYS, np.arange(3), KEYS, IS_LOOK_ALIKE)
    assert (all_right.share, all_right.wrong, all_right.items) == (None, 0, 2)


def test_a_key_is_no_look_alike() -> None:
    with pytest.raises(InvalidArgumentError, match="itself"):
        look_alikes(KEYS, np.arange(3), KEYS, np.eye(3, 4, dtype=bool))
