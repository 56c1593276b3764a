from __future__ import annotations

import pytest
from record_builder import made_run, patients

from wsigym.benchmarks.encoder_ablation import encoder_table
from wsigym.benchmarks.run_folder import Run
from wsigym.errors import RunError
from wsigym.scoring.intervals import Estimate


def run_with(shares: dict[str, int], name: str = "R") -> Run:
    """Of each policy, so many of ten items are right."""
    records = [
        record
        for policy, right in shares.items()
        for record in patients([1.0] * right + [0.0] * (10 - right), policy=policy, budget="all")
    ]
    return made_run(records, name, task="interpretation")


@pytest.mark.parametrize(("second", "rho"), [((2, 4, 6, 8), 1.0), ((8, 6, 4, 2), -1.0), ((2, 6, 4, 8), 0.8)])
def test_rho_of_the_policies_in_both(second: tuple[int, ...], rho: float) -> None:
    policies = ("a", "b", "c", "d")
    one = run_with(dict(zip(policies, (1, 3, 5, 7), strict=True)) | {"only-first": 9})
    table = encoder_table(one, run_with(dict(zip(policies, second, strict=True)), "Q"))
    *rows, last = table.rows
    assert [row["policy"] for row in rows] == list(policies)
    found = last["rho"]
    assert isinstance(found, Estimate)
    assert found.value == pytest.approx(rho)
    assert found.n == 4


def test_runs_that_do_not_compare_are_refused() -> None:
    with pytest.raises(RunError, match="no policy in common"):
        encoder_table(run_with({"a": 1}), run_with({"b": 1}, "Q"))
    other = made_run(patients([1.0]), "Q")
    with pytest.raises(RunError, match="localization"):
        encoder_table(run_with({"a": 1}), other)
