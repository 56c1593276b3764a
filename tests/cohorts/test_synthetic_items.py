"""A synthetic cohort has items for every task that builds them, so that each environment and task runs at once."""

from __future__ import annotations

import json
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wsigym.cli import app
from wsigym.cohorts import Cohort, load_items
from wsigym.cohorts.builders import BUILDERS
from wsigym.cohorts.files import item_tasks
from wsigym.cohorts.items import letter
from wsigym.cohorts.synthetic import make_synthetic_cohort
from wsigym.cohorts.synthetic.entities import ENTITIES, of_category
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
    cohort = Cohort.load(folder)
    asked = [each for task in ("integration", "interpretation") for each in load_items(cohort, "evipath", task)]
    assert set(Counter(each.reference.answer for each in asked)) == {0, 1, 2, 3}


def test_one_slide_has_no_set_of_four_and_is_made_all_the_same(tmp_path: Path) -> None:
    made = make_synthetic_cohort(tmp_path / "one", slides=1, size_px=2048, jobs=1)
    assert Cohort.faults_of(made) == []


@pytest.mark.parametrize("seed", [1, 2])
def test_four_slides_or_more_have_grades_whatever_the_seed(tmp_path: Path, seed: int) -> None:
    made = make_synthetic_cohort(tmp_path / "four", slides=4, seed=seed, size_px=2048, jobs=1)
    assert load_items(Cohort.load(made), "casescope", "c")


def test_every_malignant_lesion_but_melanoma_has_a_grade_of_its_own() -> None:
    """So two patients, whose organs differ, are enough for items of casescope/c."""
    text = (resources.files("wsigym.cohorts.synthetic") / "ontology.jsonl").read_text("utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    grading = {line["entity"]: line.get("grading") for line in lines if "entity" in line}
    malignant = [entity.diagnosis for organ in ENTITIES for entity in of_category(organ, "malignant")]
    assert [name for name in malignant if grading[name] is None] == ["Malignant melanoma"]
    graded = [name for name in grading.values() if name is not None]
    assert len(graded) == len(set(graded))


def test_a_cohort_too_small_for_a_task_says_so(tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["cohort", "synth", str(tmp_path / "one"), "--slides", "1", "--size-px", "2048"])
    assert said.exit_code == 0
    assert "1 slide gave no items of evipath/interpretation" in said.output
