"""Blinded sheets for judges and readers, and how far two gradings agree (CaseScope's audit of its judge).

A sheet shows what a judge needs and not who answered: rows in a shuffled order under codes, the key apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wsigym.errors import InvalidArgumentError

from .agreement import Agreement, agreement

__all__ = ["GRADES", "SheetRow", "blinded_sheet", "judge_agreement"]

GRADES = (0, 1, 2)
"""Wrong, partly right, right: the paper's grades of a diagnosis."""


@dataclass(frozen=True)
class SheetRow:
    """One answer to grade under its `code`; the grade is filled in by the judge."""

    code: str
    site: str
    reference: str
    answer: str


def blinded_sheet(
    answers: Sequence[tuple[str, str, str, str, str]], seed: int = 0
) -> tuple[list[SheetRow], dict[str, tuple[str, str]]]:
    """Rows in the order of their codes, and the key from code to (model, item).

    `answers` are (model, item, site, reference, answer). A code is a hash of seed, model and item, so that the same
    answers give the same sheet whatever their order, and the order tells nothing. Raises `InvalidArgumentError` where
    a model answers an item twice.
    """
    rows, key = [], {}
    for model, item, site, reference, answer in answers:
        code = hashlib.sha256(f"{seed}\0{model}\0{item}".encode()).hexdigest()[:10]
        if code in key:
            raise InvalidArgumentError(f"{model!r} answers {item!r} twice; a sheet has each answer once.")
        rows.append(SheetRow(code, site, reference, answer))
        key[code] = (model, item)
    return sorted(rows, key=lambda row: row.code), key


def judge_agreement(first: Mapping[str, int | None], second: Mapping[str, int | None]) -> Agreement:
    """Exact agreement, quadratic-weighted kappa and mean grades of two gradings, from code to grade in `GRADES`.

    None, or a code that the other lacks, is a missing grade: counted against `coverage`, and left out of the rest.
    Raises `InvalidArgumentError` for another grade, naming its code.
    """
    codes = sorted({*first, *second})
    levels = []
    for grading in (first, second):
        for code, grade in grading.items():
            if grade is not None and grade not in GRADES:
                raise InvalidArgumentError(
                    f"{code} has the grade {grade!r}; allowed are {', '.join(map(str, GRADES))}."
                )
        levels.append(np.array([-1 if grading.get(code) is None else grading[code] for code in codes], dtype=np.intp))
    return agreement(*levels)
