"""The tables of evipath/localization, by episodes whose means can be counted."""

from __future__ import annotations

import time

import pytest
from record_builder import patients, record

from wsigym.benchmarks.evipath.localization_rows import ordered_rows, rois_allowed
from wsigym.benchmarks.evipath.localization_table import (
    against_table,
    budget_table,
    by_tables,
    localization_tables,
    main_table,
    paired_table,
    policy_difference,
)
from wsigym.benchmarks.records import EpisodeRecord
from wsigym.benchmarks.rows import where
from wsigym.benchmarks.tables import Cell, TableOptions
from wsigym.errors import UnknownNameError
from wsigym.scoring.intervals import Estimate


def estimate(cell: Cell) -> Estimate:
    assert isinstance(cell, Estimate)
    return cell


def at_scales(**fields: object) -> list[EpisodeRecord]:
    """Six patients, each asked at 2.5x (IoU 0.6), 10x (0.3: just a hit) and 40x (0)."""
    scores = {2.5: 0.6, 10.0: 0.3, 40.0: 0.0}
    return [entry for scale, score in scores.items() for entry in patients([score] * 6, magnification=scale, **fields)]


def test_means_and_hits_for_each_magnification_and_overall() -> None:
    table = main_table(at_scales())
    (row,) = table.rows
    assert {key: estimate(row[key]).value for key in ("iou_2.5x", "iou_10x", "iou_40x", "iou")} == {
        "iou_2.5x": pytest.approx(0.6),
        "iou_10x": pytest.approx(0.3),
        "iou_40x": 0,
        "iou": pytest.approx(0.3),
    }
    assert [estimate(row[key]).value for key in ("hit_2.5x", "hit_10x", "hit_40x", "hit")] == [
        1,
        1,
        0,
        pytest.approx(2 / 3),
    ]
    assert (estimate(row["iou"]).n, estimate(row["iou"]).units) == (18, 6)
    assert (estimate(row["iou"]).low, estimate(row["iou"]).high) == (pytest.approx(0.3), pytest.approx(0.3))
    assert (row["queries"], row["episodes"], row["patients"], row["rois_used"]) == (18, 18, 6, 2)


def test_failures_stay_in_the_denominator_and_infrastructure_errors_do_not() -> None:
    records = [
        record(0.9, slide="a"),
        record(0.0, slide="b", outcome="invalid"),
        record(0.0, slide="c", outcome="budget_exhausted"),
        record(None, slide="d"),
    ]
    table = main_table(records)
    (row,) = table.rows
    assert estimate(row["iou"]).value == pytest.approx(0.3)
    assert {
        name: row[name] for name in ("scored", "invalid", "budget_exhausted", "refused", "infrastructure_error")
    } == {
        "scored": 1,
        "invalid": 1,
        "budget_exhausted": 1,
        "refused": 0,
        "infrastructure_error": 1,
    }
    assert (row["queries"], row["episodes"]) == (3, 3)
    assert any("Infrastructure errors (1) have no score" in note for note in table.notes)


def test_a_row_of_nothing_but_infrastructure_errors_has_no_mean_and_not_zero() -> None:
    (row,) = main_table(patients([None, None])).rows
    assert (estimate(row["iou"]).value, estimate(row["hit"]).value, row["rois_used"]) == (None, None, None)
    assert (row["episodes"], row["infrastructure_error"]) == (0, 2)


def test_seeds_are_pooled() -> None:
    (row,) = main_table(patients([0.2] * 5) + patients([0.4] * 5, seed=1)).rows
    assert (estimate(row["iou"]).value, estimate(row["iou"]).n, estimate(row["iou"]).units) == (
        pytest.approx(0.3),
        10,
        5,
    )
    assert (row["queries"], row["episodes"]) == (5, 10)


def test_budgets_go_from_small_to_large_whatever_their_spelling() -> None:
    budgets = ("loose", "8", "tight", "2.5=1,10=2,40=1", "base")
    records = [record(0.1, budget=budget) for budget in budgets]
    assert [row[2] for row, _ in ordered_rows(records)] == ["2.5=1,10=2,40=1", "tight", "base", "8", "loose"]


def test_allowed_rois_are_averaged_over_queries_not_episodes() -> None:
    records = [record(0.1, magnification=2.5, seed=seed) for seed in range(3)] + [record(0.1, magnification=40.0)]
    assert rois_allowed(records) == (10 + 5) / 2


def test_an_endpoint_is_a_column_only_where_there_is_one() -> None:
    assert [column.key for column in main_table(at_scales()).keys] == ["policy", "budget"]
    agents = [record(0.1, endpoint="http://127.0.0.1:8000/v1"), record(0.1, endpoint="http://127.0.0.1:9000/v1")]
    table = main_table(agents)
    assert [column.key for column in table.keys] == ["policy", "endpoint", "budget"]
    assert [row["endpoint"] for row in table.rows] == ["http://127.0.0.1:8000/v1", "http://127.0.0.1:9000/v1"]


# -- differences between budgets -------------------------------------------------------------------------------------


def test_a_gain_of_every_patient_excludes_zero() -> None:
    scores = [0.1, 0.5, 0.3, 0.9, 0.2, 0.4]
    records = patients(scores, budget="tight") + patients([score + 0.05 for score in scores], budget="loose")
    table = paired_table(records)
    assert table is not None
    (row,) = table.rows
    assert row["budgets"] == "loose - tight"
    gain = estimate(row["difference"])
    assert (gain.value, gain.low, gain.high) == (pytest.approx(0.05),) * 3
    assert gain.excludes_zero
    assert table.columns[2].text(gain).endswith("*")
    assert row["queries"] == 6
    assert estimate(row["difference_10x"]) == gain


def test_only_queries_with_a_score_at_both_budgets_are_compared() -> None:
    tight = patients([0.1, None, 0.3, 0.5, 0.1, 0.2], budget="tight")
    base = patients([0.2, 0.9, None, 0.6, 0.2, 0.3], budget="base")
    table = paired_table(tight + base)
    assert table is not None
    assert table.rows[0]["queries"] == 4
    assert estimate(table.rows[0]["difference"]).value == pytest.approx(0.1)
    assert estimate(table.rows[0]["difference"]).low is None


def test_seeds_are_averaged_before_pairing() -> None:
    tight = patients([0.2] * 5, budget="tight", seed=0) + patients([0.4] * 5, budget="tight", seed=1)
    difference = policy_difference(patients([0.5] * 5, budget="base", seed=7), tight)
    assert (difference.value, difference.n) == (pytest.approx(0.2), 5)


def test_three_budgets_give_three_differences_a_policy_and_one_gives_none() -> None:
    three = [entry for budget in ("loose", "tight", "base") for entry in at_scales(budget=budget)]
    table = paired_table(three + at_scales(policy="once"))
    assert table is not None
    assert [(row["policy"], row["budgets"]) for row in table.rows] == [
        ("looker", "base - tight"),
        ("looker", "loose - tight"),
        ("looker", "loose - base"),
    ]
    assert paired_table(at_scales()) is None


# -- groups ----------------------------------------------------------------------------------------------------------


def organs() -> list[EpisodeRecord]:
    """20 queries of Lung (IoU 0.5), 20 of Colon (0.2), 19 of Skin (0.9), 25 of no known organ (0)."""
    counts = {"Lung": (20, 0.5), "Colon": (20, 0.2), "Skin": (19, 0.9), None: (25, 0.0)}
    return [
        record(score, organ=organ, slide=f"{organ}{i}", patient=f"{organ}{i}")
        for organ, (count, score) in counts.items()
        for i in range(count)
    ]


def test_by_organ_flags_small_groups_and_leaves_them_out_of_the_spread() -> None:
    each, spread = by_tables(organs(), "organ")
    assert [(row["organ"], row["queries"], row["flag"]) for row in each.rows] == [
        ("Colon", 20, ""),
        ("Lung", 20, ""),
        ("Skin", 19, "n < 20"),
        ("unknown", 25, ""),
    ]
    (row,) = spread.rows
    assert row["spread"] == pytest.approx(0.3)
    assert (row["highest"], row["lowest"], row["groups"]) == ("Lung", "Colon", 2)


def test_without_two_large_groups_there_is_no_spread() -> None:
    assert [table.name for table in by_tables(at_scales(), "magnification")] == ["by"]


def test_groups_are_in_order_of_their_number() -> None:
    records = [record(0.1, magnification=scale) for scale in (40.0, 2.5, 10.0)]
    assert [row["magnification"] for row in by_tables(records, "magnification")[0].rows] == ["2.5x", "10x", "40x"]


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="organ"):
        localization_tables(at_scales(), TableOptions(by="organs"))


# -- one policy against the others -----------------------------------------------------------------------------------


def test_each_policy_minus_the_one_named() -> None:
    """Six patients of 10x and six of 40x; the seeds of a query are averaged first."""
    centre = patients([0.1] * 6, magnification=10.0, policy="centre") + patients(
        [0.3] * 6, magnification=40.0, policy="centre"
    )
    other = patients([0.4] * 6, magnification=10.0, policy="other") + patients(
        [0.5] * 6, magnification=40.0, policy="other"
    )
    again = patients([0.6] * 6, magnification=10.0, policy="other", seed=1)
    table = against_table(centre + other + again, "centre")
    (row,) = table.rows
    assert (row["policy"], row["budget"], row["queries"]) == ("other", "base", 12)
    assert estimate(row["difference_10x"]).value == pytest.approx(0.4)
    assert estimate(row["difference_40x"]).value == pytest.approx(0.2)
    assert estimate(row["difference"]).value == pytest.approx(0.3)
    with pytest.raises(UnknownNameError, match="policy to hold others against"):
        against_table(centre, "center")


def test_budgets_are_held_against_the_same() -> None:
    records = [
        entry
        for policy, score in (("a", 0.1), ("b", 0.6))
        for budget in ("tight", "base")
        for entry in patients([score] * 5, policy=policy, budget=budget)
    ]
    records += patients([0.9] * 5, policy="b", budget="loose")
    rows = against_table(records, "a").rows
    assert [(row["policy"], row["budget"]) for row in rows] == [("b", "tight"), ("b", "base")]
    assert localization_tables(records, TableOptions(against="a"))[-1].rows == rows


def test_only_some_groups() -> None:
    kept = where(at_scales(), "magnification", ["10", "40x"])
    assert {entry.groups["magnification"] for entry in kept} == {10.0, 40.0}
    assert len(kept) == 12
    with pytest.raises(UnknownNameError, match="magnification"):
        where(at_scales(), "magnification", ["20"])
    with pytest.raises(UnknownNameError, match="field"):
        where(at_scales(), "magnifications", ["10"])


# -- the whole -------------------------------------------------------------------------------------------------------


def test_options_choose_the_tables() -> None:
    records = at_scales(budget="tight") + at_scales(budget="base")
    everything = TableOptions(causes=True, confidence=True, budgets=True, published=True)
    assert [table.name for table in localization_tables(records, TableOptions())] == ["localization", "paired"]
    names = [table.name for table in localization_tables(records, everything)]
    assert names == ["localization", "paired", "causes", "confidence", "budgets", "published"]
    assert localization_tables(records, TableOptions(by="organ"))[0].name == "by"


def test_the_budget_curve_as_text() -> None:
    table = budget_table(patients([0.5] * 5, budget="tight") + patients([1.0] * 5, budget="loose"))
    assert [(row["budget"], row["rois_allowed"]) for row in table.rows] == [("tight", 4), ("loose", 14)]
    assert [row["bar"] for row in table.rows] == ["█" * 15, "█" * 30]
    assert budget_table(patients([1 / 240 / 30 * 31])).rows[0]["bar"] == "▏"
    assert budget_table(patients([0.0])).rows[0]["bar"] == ""


def test_ten_thousand_episodes_take_a_few_seconds() -> None:
    records = [
        record((i % 7) / 7, item=f"q{i}", patient=f"p{i % 300}", magnification=(2.5, 10.0, 40.0)[i % 3], budget=budget)
        for budget in ("tight", "base")
        for i in range(5000)
    ]
    start = time.perf_counter()
    localization_tables(records, TableOptions(by="organ", causes=True, confidence=True, budgets=True, published=True))
    assert time.perf_counter() - start < 15
