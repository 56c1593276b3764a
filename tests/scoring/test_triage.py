"""Critical misses and over-calls, by hand and for guessers."""

from __future__ import annotations

import numpy as np
import pytest

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.triage import BEHAVIOURS, TriageErrors, triage_errors

NON, BENIGN, MIDDLE, MALIGNANT = range(4)


def errors(rows: list[tuple[int, int, bool]]) -> TriageErrors:
    chosen, behaviours, in_situ = (np.array(column) for column in zip(*rows, strict=True))
    return triage_errors(chosen, behaviours, in_situ)


def test_by_hand() -> None:
    result = errors(
        [
            (BENIGN, MALIGNANT, False),  # missed
            (NON, MIDDLE, True),  # missed: in situ
            (MIDDLE, MALIGNANT, False),
            (-1, MALIGNANT, False),  # unparsed is no miss, and counts below the line
            (NON, MIDDLE, False),  # borderline is not critical, and not harmless
            (MALIGNANT, BENIGN, False),  # over-called
            (MIDDLE, NON, False),  # over-called
            (-1, NON, False),
            (BENIGN, NON, False),
        ]
    )
    assert (result.critical, result.harmless) == (4, 4)
    assert result.miss == 0.5
    assert result.over_call == 0.5
    assert result.unparsed == pytest.approx(2 / 9)
    assert np.flatnonzero(result.missed).tolist() == [0, 1]
    assert np.flatnonzero(result.over_called).tolist() == [5, 6]


@pytest.mark.parametrize(
    ("always", "miss", "over_call"), [(NON, 1, 0), (BENIGN, 1, 0), (MIDDLE, 0, 1), (MALIGNANT, 0, 1)]
)
def test_one_rate_alone_is_won_by_one_answer(always: int, miss: float, over_call: float) -> None:
    result = errors([(always, behaviour, True) for behaviour in range(len(BEHAVIOURS))])
    assert (result.miss, result.over_call) == (miss, over_call)


def test_a_uniform_guesser_scores_half_in_both() -> None:
    result = errors([(chosen, behaviour, True) for chosen in range(4) for behaviour in range(4)])
    assert (result.miss, result.over_call) == (0.5, 0.5)


def test_no_such_cases() -> None:
    result = errors([(NON, MIDDLE, False)])
    assert (result.miss, result.over_call) == (None, None)
    none = np.zeros(0, int)
    assert triage_errors(none, none, none.astype(bool)).unparsed is None


def test_bad_classes() -> None:
    with pytest.raises(InvalidArgumentError, match="0 to 3"):
        errors([(4, 0, False)])
    with pytest.raises(InvalidArgumentError, match="0 to 3"):
        errors([(0, -1, False)])
    with pytest.raises(InvalidArgumentError, match="need equal"):
        triage_errors(np.zeros(2, int), np.zeros(1, int), np.zeros(2, bool))
