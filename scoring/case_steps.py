"""How far does a case get through its ordered steps? (BrainTRACE's case track: 70 cases of 6 steps.)

From P (cases, steps), whether the answer to a step passes its audit (`factual_audit.AuditedAnswer.passes`):

    step pass     mean of P over all cases and steps
    case success  share of cases whose steps all pass
    survival      at step k, the number of cases whose steps 1 to k all pass: never rising, at the last step the
                  cases that succeed

A free answer has no chance level. If steps passed independently at a rate p, case success would be p to the power of
their number: 0.24 at six steps gives 0.0002.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

from .intervals import Estimate, mean_estimate

__all__ = ["CaseScores", "case_scores"]


@dataclass(frozen=True)
class CaseScores:
    """Shares in 0..1, the paper's figures times 100; `survival` int64 (steps,) counts cases.

    `step_pass` has the paper's interval, which resamples single answers as if those of a case were independent;
    `step_pass_by_unit` has the same value and resamples cases or patients. `case_success` resamples these as well.
    Without cases the shares have no value.
    """

    step_pass: Estimate
    step_pass_by_unit: Estimate
    case_success: Estimate
    survival: npt.NDArray[np.int64]


def case_scores(passes: npt.NDArray[np.bool_], units: Sequence[Hashable]) -> CaseScores:
    """Scores of `passes`, bool (cases, steps), the steps in order; `units` (cases,) is the case or patient of each.

    A step without an answer is False, as each counts in the denominator. Intervals are 95 % percentile ones. Raises
    `InvalidArgumentError` where the array isn't such a table or lengths differ.
    """
    if passes.ndim != 2 or passes.dtype != np.bool_ or not passes.shape[1]:
        raise InvalidArgumentError(f"passes are {passes.dtype} {passes.shape}; needed is bool (cases, steps).")
    through = np.logical_and.accumulate(passes, axis=1)
    answers = passes.ravel().astype(np.float64)
    return CaseScores(
        case_success=mean_estimate(through[:, -1].astype(np.float64), units),
        step_pass=mean_estimate(answers, range(len(answers))),
        step_pass_by_unit=mean_estimate(answers, [unit for unit in units for _ in range(passes.shape[1])]),
        survival=through.sum(axis=0, dtype=np.int64),
    )
