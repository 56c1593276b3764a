"""What went wrong, and whether the confidence knew."""

from __future__ import annotations

import pytest
from record_builder import patients, record

from wsigym.benchmarks.evipath.localization_diagnostics import causes_table, confidence_table
from wsigym.scoring.intervals import Estimate
from wsigym.scoring.navigation import CAUSES


def test_each_scored_episode_has_one_cause_and_the_shares_add_up() -> None:
    records = [record(0.1, slide=f"s{i}", metrics={"cause": cause}) for i, cause in enumerate([*CAUSES, "hit", "hit"])]
    (row,) = causes_table([*records, record(None, slide="lost")]).rows
    assert row["episodes"] == 8
    assert row["hit"] == pytest.approx(3 / 8)
    assert [row[cause] for cause in CAUSES[1:]] == [pytest.approx(1 / 8)] * 5


def test_looks_are_described_over_the_episodes_that_looked() -> None:
    found = {"best_look_iou": 0.8, "regret": 0.3, "seen_share": 1.0, "rois_used": 4}
    missed = {"best_look_iou": 0.2, "regret": 0.1, "seen_share": 0.5, "first_hit_step": None}
    records = [
        record(0.5, slide="a", metrics=found | {"first_hit_step": 2}),
        record(0.5, slide="b", metrics=found | {"first_hit_step": 5}),
        record(0.1, slide="c", metrics=missed),
        record(0.1, slide="d", metrics=missed),
        record(0.9, slide="e", metrics={"rois_used": 0, "best_look_iou": 0.0, "regret": 0.0, "first_hit_step": None}),
    ]
    (row,) = causes_table(records).rows
    assert (row["looked"], row["look_would_hit"], row["first_hit_step"], row["seen_share"]) == (4, 0.5, 3.5, 0.75)
    assert isinstance(row["best_look_iou"], Estimate)
    assert row["best_look_iou"].value == pytest.approx(0.5)
    assert isinstance(row["regret"], Estimate)
    assert row["regret"].value == pytest.approx(0.2)


def test_a_policy_that_never_looks_has_no_looks_to_describe() -> None:
    (row,) = causes_table(patients([0.5, 0.1], metrics={"rois_used": 0})).rows
    assert (row["looked"], row["look_would_hit"], row["first_hit_step"], row["seen_share"]) == (0, None, None, None)


def test_nothing_but_infrastructure_errors_has_no_shares() -> None:
    (row,) = causes_table(patients([None])).rows
    assert (row["episodes"], row["hit"]) == (0, None)


def test_causes_by_group() -> None:
    records = [record(0.9, organ="Lung"), record(0.1, organ="Colon"), record(0.1, organ="Colon", seed=1)]
    rows = causes_table(records, "organ").rows
    assert [(row["organ"], row["episodes"], row["hit"]) for row in rows] == [("Lung", 1, 1), ("Colon", 2, 0)]


def test_confidence_against_hits() -> None:
    records = [
        record(0.9, slide="a", confidence=0.9),
        record(0.1, slide="b", confidence=0.4),
        record(0.2, slide="c", confidence=0.95),
        record(0.5, slide="d"),
        record(None, slide="e"),
    ]
    (row,) = confidence_table(records).rows
    assert (row["stated"], row["missing"]) == (3, 1)
    assert row["hits"] == pytest.approx(1 / 3)
    assert row["auroc"] == pytest.approx(0.5)
    assert row["brier"] == pytest.approx((0.01 + 0.16 + 0.9025) / 3)


def test_without_a_confidence_everything_is_undefined_and_not_zero() -> None:
    (row,) = confidence_table(patients([0.5, 0.1])).rows
    assert (row["stated"], row["missing"], row["auroc"], row["brier"]) == (0, 2, None, None)
