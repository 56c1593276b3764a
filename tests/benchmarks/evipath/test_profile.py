"""One row a policy across the suite, and the paper's figures on tasks of items."""

from __future__ import annotations

from typing import Any

import pytest
from record_builder import made_run, patients, record

from wsigym.benchmarks.evipath.evidence_published import published_table
from wsigym.benchmarks.evipath.profile import profile_table
from wsigym.benchmarks.published_facts import published_facts
from wsigym.benchmarks.records import EpisodeRecord
from wsigym.benchmarks.run_folder import Run
from wsigym.errors import RunError
from wsigym.scoring.intervals import Estimate


def asked(task: str, scores: list[int], **fields: Any) -> list[EpisodeRecord]:
    """One item a patient of a task of items; items of two tasks at one place are paired."""
    return [
        record(
            float(score),
            task=task,
            item=f"i{place}",
            patient=f"p{place}",
            magnification=(2.5, 10.0)[place % 2],
            budget=fields.get("budget", "all"),
            metrics={"options": 4, "right": bool(score), "letter": 0, "chosen": 0},
            policy=fields.get("policy", "p"),
            endpoint=fields.get("endpoint"),
            organ=("Lung", "Skin")[place % 2],
        )
        for place, score in enumerate(scores)
    ]


def runs(**tasks: list[EpisodeRecord]) -> list[Run]:
    return [made_run(records, name, task=name) for name, records in tasks.items()]


def test_a_row_joins_the_tasks_of_one_policy() -> None:
    t1, t2 = [1, 0, 0, 1, 0, 0], [1, 1, 0, 1, 0, 1]
    table = profile_table(
        runs(
            interpretation=asked("interpretation", t1),
            verification=asked("verification", t2),
            integration=asked("integration", [1, 1, 1, 0, 0, 0]) + asked("integration", [0] * 6, budget="10x"),
            localization=patients([0.2, 0.4], policy="p") + patients([0.3], policy="search-centre"),
        )
    )
    rows = {str(row["policy"]): row for row in table.rows}
    row = rows["p"]
    found = {key: cell.value for key, cell in row.items() if isinstance(cell, Estimate)}
    assert found["t1"] == pytest.approx(2 / 6)
    assert found["t2"] == pytest.approx(4 / 6)
    assert found["gap"] == pytest.approx(2 / 6)
    assert found["t4"] == 0.5
    assert found["t3a"] == pytest.approx(0.3)
    assert found["t1_2.5x"] == pytest.approx(1 / 3)
    assert found["t2_10x"] == 1
    assert row["t3b"] is None
    centre = rows["search-centre"]
    assert isinstance(centre["t3a"], Estimate)
    assert centre["t1"] is None
    assert {key: rows["experts (paper)"][key] for key in ("t1", "t2", "t4")} == pytest.approx(
        {"t1": 0.936, "t2": 0.923, "t4": 0.966}
    )
    assert rows["chance"]["t1"] == 0.25
    assert rows["search-centre (paper)"]["t3a"] == "0.25-0.28"


def test_exploration_counts_tiles_at_the_last_magnification() -> None:
    metrics = {"positives_2.5x": 4, "retained_2.5x": 4, "positives_40x": 50, "retained_40x": 5}
    records = patients([0.5, 0.5], task="exploration", policy="p", budget="K=6,3,2", metrics=metrics)
    (row, *_) = profile_table(runs(exploration=records)).rows
    kept = row["t3b"]
    assert isinstance(kept, Estimate)
    assert kept.value == pytest.approx(0.1)


def test_a_run_of_another_suite_is_refused() -> None:
    records = asked("interpretation", [1])
    with pytest.raises(RunError, match="casescope/triage"):
        profile_table([made_run(records, "R", suite="casescope", task="triage")])


def published(task: str, *scores: int, **fields: Any) -> dict[str, dict[str, Any]]:
    return {str(row["fact"]): dict(row) for row in published_table(asked(task, list(scores), **fields)).rows}


def test_published_figures_beside_models_only() -> None:
    rows = published("interpretation", 1, 0)
    assert (rows["items"]["paper"], rows["items"]["ours"]) == ("10,284", "2")
    assert rows["pathologists, accuracy"]["paper"] == "93.6"
    assert all(row["ours"] is None for fact, row in rows.items() if fact != "items")
    rows = published("interpretation", 1, 0, 1, 1, policy="agent:answerer", endpoint="m")
    assert rows["Gemini-3-Flash, accuracy"]["ours"] == "75.0"
    assert rows["Gemini-3-Flash, accuracy"]["note"] == "leader; here: the best model"
    assert rows["Gemini-3-Flash at 2.5x, accuracy"]["ours"] == "100.0"
    assert rows["accuracy, spread over organs"]["ours"] == "50.0"
    assert rows["Gemini-3-Flash, seconds a question"]["ours"] == "2.0"
    played = asked("interpretation", [1, 0], policy="agent:answerer", endpoint="m")
    played += asked("interpretation", [1, 1], policy="agent:answerer+blind-images", endpoint="m")
    facts = {str(row["fact"]): row for row in published_table(played).rows}
    assert facts["Gemini-3-Flash, accuracy"]["ours"] == "50.0"


@pytest.mark.parametrize(("task", "number"), [("interpretation", "T1"), ("verification", "T2"), ("integration", "T4")])
def test_every_published_figure_of_a_task_is_told_in_words(task: str, number: str) -> None:
    rows = published(task, 1)
    facts = [fact for key, fact in published_facts("evipath_prose_facts").items() if number in key.split(".")]
    assert len(rows) == len(facts)
    assert [row["paper"].replace(",", "") for row in rows.values()] == [str(fact.value) for fact in facts]
    for fact in rows:
        assert number not in fact
        assert "_" not in fact
