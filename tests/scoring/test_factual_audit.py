"""Audited answers: the table of sixteen, scores by hand, what omission and contradiction lower."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.factual_audit import AuditedAnswer, audit_scores
from wsigym.scoring.intervals import mean_estimate

RIGHT = AuditedAnswer(3, 3, slots_satisfied=True, critical_error=False, unsupported_claim=False, quality=5)
OMITTING = replace(RIGHT, facts_met=2, quality=3)
CONTRADICTING = replace(RIGHT, critical_error=True, quality=1)
REFUSED = AuditedAnswer(0, 3, slots_satisfied=False, critical_error=False, unsupported_claim=False, quality=1)

answers = st.builds(
    lambda facts, *rest: AuditedAnswer(min(facts), max(facts), *rest),
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(1, 5),
)


def test_one_of_sixteen_passes() -> None:
    passing = []
    for facts, slots, no_error, no_claim in product((True, False), repeat=4):
        answer = AuditedAnswer(2 if facts else 1, 2, slots, not no_error, not no_claim, quality=5)
        if answer.passes:
            passing.append((facts, slots, no_error, no_claim))
    assert passing == [(True, True, True, True)]


def test_no_facts_required_are_all_present() -> None:
    assert replace(RIGHT, facts_met=0, facts_required=0).passes


def test_scores_by_hand() -> None:
    without_facts = replace(RIGHT, facts_met=0, facts_required=0, unsupported_claim=True, quality=4)
    short = replace(RIGHT, facts_met=1, facts_required=1)
    scores = audit_scores([RIGHT, OMITTING, CONTRADICTING, without_facts, short], "pqrst")
    assert scores.pass_rate.value == pytest.approx(2 / 5)
    assert scores.mean_quality.value == pytest.approx((5 + 3 + 1 + 4 + 5) / 5)
    assert scores.critical_errors.value == pytest.approx(1 / 5)
    # Over facts, not over answers: (3 + 2 + 3 + 1) / (3 + 3 + 3 + 1), and not the mean of 1, 2/3, 1, 1.
    assert scores.fact_coverage.value == pytest.approx(9 / 10)
    assert (scores.fact_coverage.n, scores.pass_rate.n) == (4, 5)


def test_an_omission_is_no_contradiction() -> None:
    units = "pqrstu"
    full, omitted, contradicted = (
        audit_scores([RIGHT] * 5 + [last], units) for last in (RIGHT, OMITTING, CONTRADICTING)
    )
    assert omitted.pass_rate == contradicted.pass_rate
    assert (full.critical_errors.value, omitted.critical_errors.value) == (0, 0)
    assert contradicted.critical_errors.value == pytest.approx(1 / 6)
    assert omitted.fact_coverage.value == pytest.approx(17 / 18)
    assert contradicted.fact_coverage.value == 1


def test_a_refusal_stays_in_every_denominator() -> None:
    scores = audit_scores([RIGHT, REFUSED], ["p", "q"])
    assert (scores.pass_rate.value, scores.fact_coverage.value, scores.mean_quality.value) == (0.5, 0.5, 3)
    assert scores.critical_errors.value == 0


def test_undefined_scores() -> None:
    without_facts = replace(RIGHT, facts_met=0, facts_required=0)
    scores = audit_scores([without_facts] * 3, "pqr")
    assert (scores.pass_rate.value, scores.fact_coverage.value, scores.fact_coverage.n) == (1, None, 0)
    nothing = audit_scores([], [])
    assert nothing.pass_rate.value is nothing.mean_quality.value is nothing.fact_coverage.value is None
    with pytest.raises(InvalidArgumentError, match="each"):
        audit_scores([RIGHT], ["p", "q"])


@settings(max_examples=40)
@given(st.lists(st.tuples(answers, st.sampled_from("pqrstuv")), min_size=1, max_size=20))
def test_scores_of_any_answers(pairs: list[tuple[AuditedAnswer, str]]) -> None:
    audited, units = zip(*pairs, strict=True)
    scores = audit_scores(audited, units)
    assert scores.pass_rate == mean_estimate([float(answer.passes) for answer in audited], units)
    # Who passes makes no critical error.
    assert (scores.pass_rate.value or 0) + (scores.critical_errors.value or 0) <= 1 + 1e-12
    assert 1 <= (scores.mean_quality.value or 0) <= 5
    assert (scores.fact_coverage.value is None) == all(answer.facts_required == 0 for answer in audited)
    # Quality overrides nothing.
    worst = audit_scores([replace(answer, quality=1) for answer in audited], units)
    assert worst.pass_rate == scores.pass_rate


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quality": 0}, "quality is 0"),
        ({"quality": 6}, "quality is 6"),
        ({"facts_met": 4}, "4 of 3"),
        ({"facts_met": -1}, "-1 of 3"),
        ({"facts_met": 0, "facts_required": -1}, "0 of -1"),
    ],
)
def test_findings_that_do_not_fit(changes: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        replace(RIGHT, **changes)
