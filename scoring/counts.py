"""How far counts are off (PathView-Bench OCN)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

__all__ = ["IMPUTED", "CountErrors", "count_errors"]

IMPUTED = 0
"""The count in place of one that was not given. This project's choice: the paper says nothing of such replies."""


@dataclass(frozen=True)
class CountErrors:
    """Mean absolute errors, lower is better: `mae` with `IMPUTED` for missing counts, `mae_parsed` without those items.

    `coverage` is the share of items with a count. Read the three together: a model that answers only what is easy has
    a low `mae_parsed`, one that never answers has an `mae` that is the mean count. `errors` (n,) are those of `mae`.
    """

    mae: float | None
    mae_parsed: float | None
    coverage: float | None
    errors: npt.NDArray[np.float64]


def count_errors(counts: Sequence[float | None], truths: Sequence[float]) -> CountErrors:
    """Errors of `counts` (n,), None where none was given. Chance has no level: print a constant guess beside it.

    Raises `InvalidArgumentError` where lengths differ or a number is not finite.
    """
    if len(counts) != len(truths):
        raise InvalidArgumentError(f"{len(counts)} counts and {len(truths)} truths; an item needs both.")
    given = np.array([count is not None for count in counts], dtype=np.bool_)
    filled = np.array([IMPUTED if count is None else count for count in counts], dtype=np.float64)
    errors = np.abs(filled - np.asarray(truths, dtype=np.float64))
    if not np.isfinite(errors).all():
        raise InvalidArgumentError("a count is not finite; a count that was not given is None.")
    if not len(errors):
        return CountErrors(None, None, None, errors)
    return CountErrors(
        mae=float(errors.mean()),
        mae_parsed=float(errors[given].mean()) if given.any() else None,
        coverage=float(given.mean()),
        errors=errors,
    )
