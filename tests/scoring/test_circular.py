"""CircularEval: by hand, by loops, and the chance levels of guessers that can be worked out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.circular import (
    UNPARSED,
    RotationScores,
    circular_chance,
    content,
    retention,
    rotation_scores,
    top_letter,
)


def scored(answers: dict[str, list[int]], keys: dict[str, int]) -> RotationScores:
    """Letters' places given to each item in rotations 0, 1 ..; as many as the item has options."""
    rows = [(item, turn, len(given), place) for item, given in answers.items() for turn, place in enumerate(given)]
    rotations, options, places = (np.array([row[column] for row in rows]) for column in (1, 2, 3))
    items = [row[0] for row in rows]
    return rotation_scores(
        content(places, rotations, options), np.array([keys[item] for item in items]), items, rotations, options
    )


def test_the_key_stands_at_every_letter_once() -> None:
    # Content 2 of four options stands at C, B, A, D in rotations 0 to 3.
    places = np.array([2, 1, 0, 3])
    assert content(places, np.arange(4), 4).tolist() == [2, 2, 2, 2]
    assert content(np.array([UNPARSED]), np.array([3]), 4).tolist() == [UNPARSED]


def test_by_hand() -> None:
    result = scored(
        {
            "right": [2, 1, 0, 3],
            "same but wrong": [0, 3, 2, 1],
            "one letter": [0, 0, 0, 0],
            "one unparsed": [2, 1, 0, UNPARSED],
            "never parsed": [UNPARSED] * 4,
            "two options": [0, 1],
        },
        {"right": 2, "same but wrong": 1, "one letter": 1, "one unparsed": 2, "never parsed": 0, "two options": 0},
    )
    assert result.circular.tolist() == [True, False, False, False, False, True]
    assert result.vanilla.tolist() == [1, 0, 0.25, 0.75, 0, 1]
    assert result.consistent.tolist() == [True, True, False, False, False, True]
    assert result.first_rows.tolist() == [0, 4, 8, 12, 16, 20]
    assert result.incomplete == 0


def test_an_item_without_all_its_rotations_is_left_out_and_counted() -> None:
    rotations = np.array([0, 1, 0])
    result = rotation_scores(np.array([0, 0, 1]), np.array([0, 0, 1]), ["a", "a", "b"], rotations, 2)
    assert (result.items, result.incomplete) == (("a",), 1)
    assert result.circular.tolist() == [True]


def test_a_rotation_twice() -> None:
    with pytest.raises(InvalidArgumentError, match="'a' has rotation 0 twice"):
        rotation_scores(np.zeros(2, int), np.zeros(2, int), ["a", "a"], np.zeros(2, int), 2)
    with pytest.raises(InvalidArgumentError, match="need equal"):
        rotation_scores(np.zeros(2, int), np.zeros(1, int), ["a", "a"], np.arange(2), 2)


def test_nothing() -> None:
    none = np.zeros(0, int)
    result = rotation_scores(none, none, [], none, 4)
    assert (result.items, len(result.circular), result.incomplete) == ((), 0, 0)


@given(st.data())
def test_it_is_the_loop_and_consistent_is_never_below_circular(data: st.DataObject) -> None:
    answers = {
        f"item {number}": data.draw(
            st.integers(2, 5).flatmap(lambda n: st.lists(st.integers(-1, n - 1), min_size=n, max_size=n))
        )
        for number in range(data.draw(st.integers(1, 6)))
    }
    keys = {item: data.draw(st.integers(0, len(given) - 1)) for item, given in answers.items()}
    result = scored(answers, keys)
    for place, (item, replies) in enumerate(answers.items()):
        n = len(replies)
        contents = [-1 if p < 0 else (p + r) % n for r, p in enumerate(replies)]
        assert result.circular[place] == all(one == keys[item] for one in contents)
        assert result.vanilla[place] == pytest.approx(sum(one == keys[item] for one in contents) / n)
        assert result.consistent[place] == (len(set(contents)) == 1 and contents[0] >= 0)
    assert (result.consistent >= result.circular).all()
    assert result.vanilla.mean() >= result.circular.mean()


def test_chance() -> None:
    assert circular_chance(10) == pytest.approx(1e-10)
    assert circular_chance(4) == pytest.approx(0.390625e-2)
    assert circular_chance(2) == pytest.approx(0.25)
    assert circular_chance(3) == pytest.approx(1 / 27)
    with pytest.raises(InvalidArgumentError):
        circular_chance(0)


@pytest.mark.parametrize("letter", range(10))
def test_who_always_names_one_letter(letter: int) -> None:
    keys = {f"item {key}": key % 10 for key in range(40)}
    result = scored({item: [letter] * 10 for item in keys}, keys)
    assert result.vanilla.tolist() == [0.1] * 40
    assert not result.circular.any()
    assert not result.consistent.any()


def test_who_always_names_one_content_scores_its_hit_rate() -> None:
    keys = {f"item {key}": key % 10 for key in range(40)}
    result = scored({item: [(3 - turn) % 10 for turn in range(10)] for item in keys}, keys)
    assert result.vanilla.mean() == result.circular.mean() == 0.1
    assert result.consistent.all()


def test_a_uniform_guesser_is_at_chance() -> None:
    rng = np.random.default_rng(0)
    keys = {f"item {key}": key % 2 for key in range(4000)}
    result = scored({item: rng.integers(2, size=2).tolist() for item in keys}, keys)
    assert result.vanilla.mean() == pytest.approx(0.5, abs=0.03)
    assert result.circular.mean() == pytest.approx(circular_chance(2), abs=0.03)


def test_top_letter() -> None:
    assert top_letter(np.array([0, 3, 3, UNPARSED]), 4) == (3, pytest.approx(2 / 3))
    assert top_letter(np.array([1, 0]), 4) == (0, 0.5)
    assert top_letter(np.array([UNPARSED]), 4) is None
    assert top_letter(np.repeat(np.arange(10), 5), 10) == (0, 0.1)


def test_retention_is_averaged_over_models() -> None:
    assert retention(np.array([0.5, 0.1]), np.array([0.5, 0.4])) == pytest.approx((1 + 0.25) / 2)
    assert retention(np.array([0.5, 0.0]), np.array([0.5, 0.0])) == 1
    assert retention(np.array([0.0]), np.array([0.0])) is None
