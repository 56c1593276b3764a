"""A synthetic cohort has items for every task that builds them, so that each environment and task runs at once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from wsigym.cohorts import Cohort, load_items
from wsigym.cohorts.builders import BUILDERS
from wsigym.cohorts.files import item_tasks
from wsigym.cohorts.items import letter
from wsigym.cohorts.synthetic import make_synthetic_cohort
from wsigym.envs.evidence import EvidenceEnv


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six slides, as the default cohort has."""
    return make_synthetic_cohort(tmp_path_factory.mktemp("synthetic") / "six", slides=6, size_px=2048, jobs=1)


def test_every_task_has_items_without_a_fault(folder: Path) -> None:
    assert set(BUILDERS) <= {f"{suite}/{task}" for suite, task in item_tasks(folder)}
    assert Cohort.faults_of(folder) == []


@pytest.mark.parametrize("name", ["evipath/interpretation", "evipath/verification", "evipath/integration"])
def test_the_best_score_is_known_and_reached(folder: Path, name: str) -> None:
    suite, task = name.split("/")
    asked = load_items(Cohort.load(folder), suite, task)
    assert len(asked) >= 12
    env = EvidenceEnv(folder, suite, task, answer="text", image_px=36)
    for each in asked:
        for place in range(4):
            env.reset(options={"item_id": each.item.item_id})
            assert env.step(letter(place))[1] == float(place == each.reference.answer)


def test_keys_are_spread_over_the_letters(folder: Path) -> None:
    asked = load_items(Cohort.load(folder), "evipath", "integration")
    assert set(Counter(each.reference.answer for each in asked)) == {0, 1, 2, 3}


def test_one_slide_has_no_set_of_four_and_is_made_all_the_same(tmp_path: Path) -> None:
    made = make_synthetic_cohort(tmp_path / "one", slides=1, size_px=2048, jobs=1)
    assert Cohort.faults_of(made) == []
