"""Errors of triage that harm: a critical lesion called harmless, and the price of caution (CaseScope task B).

The four answers are ordered from harmless to harmful. A critical case is malignant or in situ (a borderline tumour is
neither). Both rates come together, as each is 0 for a model that always gives one answer: who calls everything
malignant misses nothing. Chance: a uniform guesser scores 50 % in both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

__all__ = ["BEHAVIOURS", "TriageErrors", "triage_errors"]

BEHAVIOURS = ("non-neoplastic", "benign", "intermediate", "malignant")
"""The classes in the order of the options of rotation 0; intermediate is borderline, in situ or precursor."""

_HARMLESS = 2
"""Classes below this one are harmless."""


@dataclass(frozen=True)
class TriageErrors:
    """`miss`: of `critical` answers, the share that said non-neoplastic or benign. `over_call`: of `harmless` answers,
    the share that said intermediate or malignant. `unparsed`: the share of all answers that said nothing.

    A share is None without answers to divide by. `missed` (n,) and `over_called` (n,) say which answers erred.
    """

    miss: float | None
    over_call: float | None
    unparsed: float | None
    critical: int
    harmless: int
    missed: npt.NDArray[np.bool_]
    over_called: npt.NDArray[np.bool_]


def triage_errors(
    chosen: npt.NDArray[np.integer], behaviours: npt.NDArray[np.integer], in_situ: npt.NDArray[np.bool_]
) -> TriageErrors:
    """Errors over answers (n,), pooled over rotations: chosen class or -1, the case's class, whether it is in situ.

    An answer that said nothing is no miss and no over-call, but stays in the denominators (the published figures lie
    on such fractions), so read both beside `unparsed`. Raises `InvalidArgumentError` where lengths differ or a class
    is none of the four.
    """
    if not len(chosen) == len(behaviours) == len(in_situ):
        raise InvalidArgumentError(
            f"{len(chosen)} answers, {len(behaviours)} classes, {len(in_situ)} flags; need equal."
        )
    if ((behaviours < 0) | (behaviours > 3) | (chosen < -1) | (chosen > 3)).any():
        raise InvalidArgumentError(f"a class is outside 0 to 3 ({', '.join(BEHAVIOURS)}); -1 is no answer.")
    critical = (behaviours == 3) | ((behaviours == 2) & in_situ)
    harmless = behaviours < _HARMLESS
    missed = critical & (chosen >= 0) & (chosen < _HARMLESS)
    over_called = harmless & (chosen >= _HARMLESS)
    return TriageErrors(
        miss=_share(missed, critical),
        over_call=_share(over_called, harmless),
        unparsed=_share(chosen < 0, np.ones(len(chosen), dtype=np.bool_)),
        critical=int(critical.sum()),
        harmless=int(harmless.sum()),
        missed=missed,
        over_called=over_called,
    )


def _share(part: npt.NDArray[np.bool_], whole: npt.NDArray[np.bool_]) -> float | None:
    return float(part.sum() / whole.sum()) if whole.any() else None
