"""Confidence against truth, by answers worked by hand and by invariances."""

from __future__ import annotations

from itertools import permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.confidence import auroc, brier_score, calibration_error, confidence_report, risk_coverage

PAIRS = st.lists(st.tuples(st.sampled_from([0, 0.25, 0.5, 0.9, 1]), st.booleans()), min_size=1, max_size=30)


def arrays(pairs: list[tuple[float, bool]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([pair[0] for pair in pairs], float), np.array([pair[1] for pair in pairs], bool)


def test_worked_by_hand() -> None:
    report = confidence_report([0.9, 0.8, 0.6, 0.4, None], [True, False, True, False, True])
    assert (report.n, report.missing) == (4, 1)
    assert report.accuracy == 0.5
    assert report.mean_confidence == pytest.approx(0.675)
    # Of the four pairs of a right and a wrong answer three are in order (0.6 against 0.8 is not).
    assert report.auroc == pytest.approx(0.75)
    assert report.brier == pytest.approx((0.01 + 0.64 + 0.16 + 0.16) / 4)
    assert report.risk_coverage_area == pytest.approx((0 + 1 / 2 + 1 / 3 + 2 / 4) / 4)
    # 80 % of four answers are 3.2, so all four are needed.
    assert report.accuracy_at_coverage == pytest.approx(0.5)


def test_accuracy_at_80_percent_of_five_drops_the_least_confident() -> None:
    report = confidence_report([0.9, 0.8, 0.7, 0.6, 0.1], [True, True, True, False, False])
    assert report.accuracy_at_coverage == pytest.approx(3 / 4)


def test_a_confidence_that_knows_everything() -> None:
    report = confidence_report([1.0, 1.0, 0.0, 0.0], [True, True, False, False])
    assert (report.auroc, report.brier) == (1, 0)
    assert report.risk_coverage_area == pytest.approx((0 + 0 + 1 / 3 + 1 / 2) / 4)


def test_equal_confidences_say_nothing() -> None:
    report = confidence_report([0.5] * 4, [True, False, False, False])
    assert report.auroc == 0.5
    assert risk_coverage(*arrays([(0.5, True), (0.5, False)] * 2)).tolist() == [0.5] * 4
    assert report.risk_coverage_area == pytest.approx(0.75)
    assert report.accuracy_at_coverage == pytest.approx(0.25)


def test_ties_have_the_expected_risk_over_their_orders() -> None:
    confidences, right = np.array([0.9, 0.5, 0.5, 0.5, 0.1]), np.array([False, True, False, True, True])
    risks = []
    for order in permutations([1, 2, 3]):
        errors = np.cumsum(~right[[0, *order, 4]])
        risks.append(errors / np.arange(1, 6))
    assert risk_coverage(confidences, right) == pytest.approx(np.mean(risks, axis=0))


@pytest.mark.parametrize("right", [[True, True], [False, False]])
def test_one_class_has_no_auroc(right: list[bool]) -> None:
    report = confidence_report([0.2, 0.8], right)
    assert report.auroc is None
    assert report.brier is not None
    assert report.risk_coverage_area == (0 if right[0] else 1)


@pytest.mark.parametrize("confidences", [[], [None, None]])
def test_nothing_stated_leaves_everything_undefined(confidences: list[None]) -> None:
    report = confidence_report(confidences, [True] * len(confidences))
    assert (report.n, report.missing) == (0, len(confidences))
    assert (report.accuracy, report.mean_confidence, report.auroc, report.brier) == (None,) * 4
    assert (report.risk_coverage_area, report.accuracy_at_coverage) == (None, None)


def test_empty_arrays() -> None:
    empty = np.array([], float), np.array([], bool)
    assert (auroc(*empty), brier_score(*empty), risk_coverage(*empty).tolist()) == (None, None, [])


@given(PAIRS, st.randoms())
def test_the_order_of_the_answers_does_not_matter(pairs: list[tuple[float, bool]], random: object) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert risk_coverage(*arrays(shuffled)) == pytest.approx(risk_coverage(*arrays(pairs)))
    first, second = auroc(*arrays(pairs)), auroc(*arrays(shuffled))
    assert first == (None if second is None else pytest.approx(second))


@given(PAIRS)
def test_auroc_counts_pairs(pairs: list[tuple[float, bool]]) -> None:
    hits = [confidence for confidence, right in pairs if right]
    misses = [confidence for confidence, right in pairs if not right]
    wins = [1.0 if hit > miss else 0.5 if hit == miss else 0.0 for hit in hits for miss in misses]
    assert auroc(*arrays(pairs)) == (pytest.approx(np.mean(wins)) if wins else None)


@given(PAIRS)
def test_the_curve_ends_at_the_error_rate_and_stays_in_0_to_1(pairs: list[tuple[float, bool]]) -> None:
    risks = risk_coverage(*arrays(pairs))
    assert len(risks) == len(pairs)
    assert risks[-1] == pytest.approx(np.mean([not right for _, right in pairs]))
    assert ((risks >= 0) & (risks <= 1)).all()


@pytest.mark.parametrize("confidence", [1.01, -0.1, float("nan")])
def test_a_confidence_outside_0_to_1_is_refused(confidence: float) -> None:
    with pytest.raises(InvalidArgumentError, match="allowed is 0 to 1"):
        confidence_report([confidence], [True])


def test_lengths_must_agree() -> None:
    with pytest.raises(InvalidArgumentError, match="each needs the other"):
        confidence_report([0.1], [])
    with pytest.raises(InvalidArgumentError, match="both are"):
        auroc(np.array([0.1, 0.2]), np.array([True]))


def test_calibration_error_by_hand() -> None:
    confidences, right = np.array([0.1, 0.2, 0.8, 0.9]), np.array([False, True, True, True])
    # Two bins: |0.15 - 0.5| and |0.85 - 1|; one bin: |0.5 - 0.75|.
    assert calibration_error(confidences, right, bins=2) == pytest.approx((0.35 + 0.15) / 2)
    assert calibration_error(confidences, right, bins=1) == pytest.approx(0.25)
    assert calibration_error(confidences, right) == pytest.approx((0.1 + 0.8 + 0.2 + 0.1) / 4)
    assert calibration_error(np.zeros(0), np.zeros(0, bool)) is None


def test_who_states_the_chance_level_is_calibrated() -> None:
    assert calibration_error(np.full(40, 0.25), np.arange(40) % 4 == 0) == pytest.approx(0)
    assert calibration_error(np.ones(10), np.zeros(10, bool)) == 1


@given(PAIRS, st.randoms())
def test_calibration_error_does_not_depend_on_the_order(pairs: list[tuple[float, bool]], random: Random) -> None:
    shuffled = random.sample(pairs, len(pairs))
    error = calibration_error(*arrays(pairs), bins=3)
    assert error == pytest.approx(calibration_error(*arrays(shuffled), bins=3))
    assert error is not None
    assert 0 <= error <= 1
