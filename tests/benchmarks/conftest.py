from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stub_policies import make_policy

from wsigym.benchmarks.records import EpisodeRecord
from wsigym.benchmarks.run_folder import load_run
from wsigym.benchmarks.runner import RunSummary, run


@pytest.fixture
def play(tiny_cohort: Path, tmp_path: Path) -> Callable[..., RunSummary]:
    """`run` of the localization task on the tiny cohort, with stub policies, into a folder of the test."""

    def call(*policies: str, out: str = "run", **arguments: Any) -> RunSummary:
        given = {"cohort": tiny_cohort, "make_policy": make_policy, "policies": policies or ["looker"]} | arguments
        return run("evipath/localization", out=tmp_path / out, **given)

    return call


@pytest.fixture
def timeless(tmp_path: Path) -> Callable[..., dict[Any, dict[str, Any]]]:
    """The records of a run by key, without what may differ between two runs of the same episodes."""

    def call(out: str | Path = "run") -> dict[Any, dict[str, Any]]:
        return {record.key: _without_times(record) for record in load_run(tmp_path / out).records}

    return call


def _without_times(record: EpisodeRecord) -> dict[str, Any]:
    # The commit too: somebody may commit, or edit a file, between the two runs.
    content = record.model_dump(exclude={"started", "seconds", "commit"})
    for step in content["steps"]:
        del step["act_seconds"], step["step_seconds"]
    return content
