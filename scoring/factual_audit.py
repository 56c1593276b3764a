"""Does a free answer pass the factual audit? (BrainTRACE's open answers and case steps.)

A judge, or a rule over a structured answer, finds four things:

    F  every required fact is present; an omission makes it 0
    S  every critical slot is right
    E  there is no critical error; a contradiction makes it 0: wrong anatomy, side, direction of change, timepoint,
       modality, diagnosis or severity that matters
    U  there is no unsupported claim that matters clinically

P = F S E U: an answer passes where all four hold. Pass rate, and beside it diagnostics that never change P. A free
answer has no chance level; print what one fixed text scores beside the models.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from wsigym.errors import InvalidArgumentError

from .hit_rates import micro_rate
from .intervals import Estimate, mean_estimate

__all__ = ["QUALITIES", "AuditScores", "AuditedAnswer", "audit_scores"]

QUALITIES = (1, 2, 3, 4, 5)
"""The paper's grades of an answer's quality, from the worst."""


@dataclass(frozen=True, slots=True)
class AuditedAnswer:
    """What the audit found in one answer: `facts_met` of `facts_required`, the rest as in the module's docstring.

    `quality` is one of `QUALITIES`. An answer that is missing, malformed or refused is audited too: no facts, no slots,
    quality 1, so that it fails and stays in every denominator. Raises `InvalidArgumentError` for another quality, or
    where the facts met are not 0 to the facts required.
    """

    facts_met: int
    facts_required: int
    slots_satisfied: bool
    critical_error: bool
    unsupported_claim: bool
    quality: int

    def __post_init__(self) -> None:
        if not 0 <= self.facts_met <= self.facts_required:
            raise InvalidArgumentError(
                f"{self.facts_met} of {self.facts_required} required facts met; allowed is 0 to the facts required."
            )
        if self.quality not in QUALITIES:
            raise InvalidArgumentError(
                f"the quality is {self.quality!r}; allowed are {', '.join(map(str, QUALITIES))}."
            )

    @property
    def facts_present(self) -> bool:
        """F: whether all required facts are met; true where none is required. Other facts don't count."""
        return self.facts_met == self.facts_required

    @property
    def passes(self) -> bool:
        """P = F S E U."""
        return self.facts_present and self.slots_satisfied and not self.critical_error and not self.unsupported_claim


@dataclass(frozen=True)
class AuditScores:
    """`pass_rate` and `critical_errors` are shares of the answers in 0..1, `mean_quality` is in 1..5.

    `fact_coverage` is the facts met / the facts required, both summed over answers, in 0..1; answers that require none
    add nothing, and its `n` leaves them out. It has no value where no answer requires any, the others where there is
    no answer. The paper's Pass, CriticalError and RequiredFactCoverage are 100 times these.
    """

    pass_rate: Estimate
    mean_quality: Estimate
    critical_errors: Estimate
    fact_coverage: Estimate


def audit_scores(answers: Sequence[AuditedAnswer], units: Sequence[Hashable]) -> AuditScores:
    """Scores of `answers` (n,) with 95 % percentile intervals, resampling `units` (n,), the patient of each answer.

    The paper resamples single answers: units that are all different. Raises `InvalidArgumentError` where lengths
    differ.
    """
    return AuditScores(
        pass_rate=mean_estimate([answer.passes for answer in answers], units),
        mean_quality=mean_estimate([answer.quality for answer in answers], units),
        critical_errors=mean_estimate([answer.critical_error for answer in answers], units),
        fact_coverage=micro_rate(
            [answer.facts_met for answer in answers], [answer.facts_required for answer in answers], units
        ),
    )
