"""The audit of the suites on a synthetic cohort: what is found there is known, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsigym.benchmarks.audit import Audit, audit
from wsigym.cohorts import Cohort
from wsigym.cohorts.builders import BUILDERS
from wsigym.cohorts.synthetic import make_synthetic_cohort


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_synthetic_cohort(tmp_path_factory.mktemp("audited") / "twelve", slides=12, size_px=2048, jobs=1)


def found_in(found: Audit) -> set[tuple[str, str]]:
    rules = {(guess.task, guess.rule) for guess in found.guesses if guess.flagged}
    return rules | {(finding.task, each.check) for each in found.checks for finding in each.findings}


KNOWN: set[tuple[str, str]] = set()


def test_what_the_synthetic_suites_leak_is_known(folder: Path) -> None:
    found = audit(Cohort.load(folder))
    assert found_in(found) == KNOWN
    assert {guess.task for guess in found.guesses} >= set(BUILDERS)
