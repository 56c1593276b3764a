"""Do distractors chosen with another encoder rank the policies otherwise? (EviPathBench's construction ablation.)"""

from __future__ import annotations

import numpy as np

from wsigym.errors import RunError
from wsigym.scoring.ranks import rank_stability

from .evidence_measures import accuracy
from .records import EpisodeRecord
from .rows import group_by, row_of, scored
from .run_folder import Run
from .tables import Block, Cell, Column, Table

__all__ = ["encoder_table"]


def encoder_table(first: Run, second: Run) -> Table:
    """The accuracy of each policy (with endpoint and evidence) that both runs have, and Spearman's rho of the two.

    Raises `RunError` where the tasks differ, or the runs have no such policy in common.
    """
    names = [f"{run.config.suite}/{run.config.task}" for run in (first, second)]
    if names[0] != names[1]:
        raise RunError(f"{first.name} is a run of {names[0]}, {second.name} of {names[1]}; one task is compared.")
    one, other = (group_by(scored(run.records), row_of) for run in (first, second))
    common = [row for row in one if row in other]
    if not common:
        raise RunError(f"{first.name} and {second.name} have no policy in common with answers in both.")
    rows: list[dict[str, Cell]] = [
        {
            "policy": policy,
            "endpoint": endpoint,
            "budget": budget,
            "first": accuracy(one[policy, endpoint, budget]),
            "second": accuracy(other[policy, endpoint, budget]),
        }
        for policy, endpoint, budget in common
    ]
    rho = rank_stability(*(np.array([_value(of[row]) for row in common]) for of in (one, other)))
    rows.append({"policy": "Spearman's rho", "rho": rho, "first": None, "second": None})
    return Table(
        "encoders",
        f"{names[0]}: {first.name} and {second.name}",
        (Column("policy", "policy"), Column("endpoint", "endpoint"), Column("budget", "evidence")),
        (
            Block(
                "",
                (
                    Column("first", "accuracy,\nfirst", 1, 100),
                    Column("second", "accuracy,\nsecond", 1, 100),
                    Column("rho", "rho"),
                ),
            ),
        ),
        tuple(rows),
        ('Rho over policies, ties on average ranks; its interval resamples policies. "-" under three of them.',),
    )


def _value(records: list[EpisodeRecord]) -> float:
    value = accuracy(records).value
    assert value is not None, "each row has answers"
    return value
