"""Known answers, worked by hand: search box 1000 x 1000, valid boxes of 100 x 100."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsigym.scoring.navigation import CAUSES, Look, navigation, seen_share
from wsigym.slides import Box

SEARCH = Box(0, 0, 1000, 1000)
VALID = Box(400, 400, 100, 100)
TARGET = 10.0


def look(x: int, y: int, width: int, height: int, magnification: float = 10.0) -> Look:
    return Look(Box(x, y, width, height), magnification)


def test_the_answer_takes_the_valid_size_and_is_kept_as_given_too() -> None:
    result = navigation("scored", Box(425, 400, 100, 200), [], [VALID], SEARCH, TARGET)
    # Centre (475, 500): placed at (425, 450); I = 75 * 50 = 3750; IoU = 3750 / (20000 - 3750).
    assert result.iou == pytest.approx(3750 / 16250)
    # As given: common 75 * 100 = 7500 of 10000 + 20000 - 7500.
    assert result.iou_as_given == pytest.approx(7500 / 22500)
    assert (result.best_look_iou, result.first_hit_step, result.seen_share, result.regret) == (0, None, 0, 0)
    assert (result.hit, result.cause) == (False, "chosen with IoU < 0.3")


def test_the_first_look_that_would_have_hit_and_the_regret_of_the_answer() -> None:
    looks = [look(0, 0, 100, 100), look(450, 400, 100, 100), look(400, 400, 100, 100)]
    result = navigation("scored", Box(450, 400, 100, 100), looks, [VALID], SEARCH, TARGET)
    # Half a box aside: I = 50 * 100, IoU = 5000 / 15000, which is a hit.
    assert result.iou == pytest.approx(1 / 3)
    assert (result.best_look_iou, result.first_hit_step) == (1, 2)
    assert result.regret == pytest.approx(2 / 3)
    assert (result.hit, result.cause) == (True, "hit")


def test_an_answer_better_than_every_look_is_not_regretted() -> None:
    result = navigation("scored", VALID, [look(450, 400, 100, 100)], [VALID], SEARCH, TARGET)
    assert (result.iou, result.regret) == (1, 0)


def test_the_best_of_several_valid_boxes_counts_for_each_number() -> None:
    other = Box(0, 900, 100, 100)
    result = navigation("scored", other, [look(400, 400, 50, 100)], [VALID, other], SEARCH, TARGET)
    assert (result.iou, result.seen_share) == (1, 0.5)


def test_the_union_of_looks_counts_once() -> None:
    halves_that_overlap = [look(400, 400, 60, 100), look(440, 400, 30, 100), look(0, 0, 10, 10)]
    assert seen_share(halves_that_overlap, [VALID], TARGET) == pytest.approx(0.7)
    assert seen_share([look(0, 0, 1000, 1000)], [VALID], TARGET) == 1


def test_a_look_without_more_detail_than_the_overview_shows_nothing() -> None:
    assert seen_share([look(0, 0, 1000, 1000, 2.5)], [VALID], TARGET) == 0
    assert seen_share([look(0, 0, 1000, 1000, 2.51)], [VALID], TARGET) == 1


CAUSE_CASES = [
    ("invalid", None, [look(400, 400, 100, 100)], "invalid"),
    ("unparsed", None, [], "invalid"),
    ("refused", None, [], "invalid"),
    ("budget_exhausted", None, [look(400, 400, 100, 100)], "no finish"),
    # A look that would have hit, and an answer elsewhere.
    ("scored", Box(0, 0, 100, 100), [look(400, 400, 100, 100)], "viewed but not chosen"),
    # A look that would have hit, and an answer with some overlap.
    ("scored", Box(480, 400, 100, 100), [look(400, 400, 100, 100)], "viewed but not chosen"),
    # The look's centre is far off, yet it showed the whole box, and the answer misses wholly.
    ("scored", Box(0, 0, 100, 100), [look(400, 400, 600, 600)], "viewed but not chosen"),
    # The same look, with an answer that overlaps a little: chosen, badly.
    ("scored", Box(480, 400, 100, 100), [look(400, 400, 600, 600)], "chosen with IoU < 0.3"),
    # Just under half of the box was seen.
    ("scored", Box(0, 0, 100, 100), [look(451, 400, 400, 600)], "never viewed"),
    ("scored", Box(0, 0, 100, 100), [look(450, 400, 400, 600)], "viewed but not chosen"),
    ("scored", Box(0, 0, 100, 100), [], "never viewed"),
]


@pytest.mark.parametrize(("outcome", "answer", "looks", "cause"), CAUSE_CASES)
def test_cause(outcome: str, answer: Box | None, looks: list[Look], cause: str) -> None:
    assert navigation(outcome, answer, looks, [VALID], SEARCH, TARGET).cause == cause


boxes = st.builds(Box, st.integers(-50, 900), st.integers(-50, 900), st.integers(1, 200), st.integers(1, 200))


@given(boxes, st.lists(st.builds(Look, boxes, st.floats(0, 40))), st.lists(boxes, min_size=1, max_size=3))
def test_every_number_stays_in_its_range(answer: Box, looks: list[Look], valid: list[Box]) -> None:
    result = navigation("scored", answer, looks, valid, SEARCH, TARGET)
    for share in (result.iou, result.iou_as_given, result.best_look_iou, result.seen_share, result.regret):
        assert 0 <= share <= 1
    assert result.regret >= result.best_look_iou - result.iou
    assert result.cause in CAUSES
    assert (result.cause == "hit") == result.hit
    assert (result.first_hit_step is None) == (result.best_look_iou < 0.3)
