"""`wsigym table --against` for exploration: paired differences of hit rates, by episodes whose tiles can be counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from record_builder import record

from wsigym.benchmarks.evipath.exploration_pairs import against_table
from wsigym.benchmarks.evipath.exploration_table import exploration_curve, exploration_tables
from wsigym.benchmarks.records import EpisodeRecord
from wsigym.benchmarks.tables import Cell, TableOptions
from wsigym.errors import InvalidArgumentError, RunError, UnknownNameError
from wsigym.scoring.intervals import Estimate, unit_weights

Tiles = tuple[int, int, int]
"""Positive, reached and retained tiles of one slide."""


def slides(policy: str, tiles: Sequence[Tiles | None], **fields: object) -> list[EpisodeRecord]:
    """One episode a patient: at 2.5x half of two positives are kept, at 10x as `tiles` say; None met an error."""
    given = {"policy": policy, "task": "exploration", "budget": "K=6,3,2", **fields}
    found = []
    for number, counts in enumerate(tiles):
        metrics: dict[str, object] = {"positives_2.5x": 2, "reached_2.5x": 2, "retained_2.5x": 1, "tiles_viewed": 50}
        metrics |= dict(zip(("positives_10x", "reached_10x", "retained_10x"), counts or (), strict=False))
        metrics |= {"tile_px": 128, "skip_empty": True, "tiles_allowed": given.get("allowed")}
        names = {"item": f"s{number}", "slide": f"s{number}", "patient": f"p{number}", "metrics": metrics}
        others = {name: value for name, value in given.items() if name != "allowed"}
        found.append(record(None if counts is None else 0.5, **names, **others))
    return found


def estimate(cell: Cell) -> Estimate:
    assert isinstance(cell, Estimate)
    return cell


MINE: list[Tiles] = [(10, 4, 2), (2, 2, 1), (0, 0, 0), (30, 12, 9), (4, 0, 0), (8, 8, 3), (5, 1, 0)]
THEIRS: list[Tiles] = [(10, 8, 1), (2, 0, 0), (0, 0, 0), (30, 10, 9), (4, 3, 3), (8, 2, 1), (5, 5, 2)]


def test_a_difference_is_of_sums_over_slides() -> None:
    (row,) = against_table(slides("a", MINE) + slides("b", THEIRS), "b").rows
    assert (row["policy"], row["budget"], row["slides"], row["pairs"], row["unpaired"]) == ("a", "K=6,3,2", 7, 7, 0)
    assert estimate(row["difference_unconditional_10x"]).value == pytest.approx(15 / 59 - 16 / 59)
    # Each policy's conditional rate is of what it reached itself; a slide that one did not get into is in.
    conditional = estimate(row["difference_conditional_10x"])
    assert conditional.value == pytest.approx(15 / 27 - 16 / 28)
    assert (conditional.n, conditional.units) == (6, 6)
    assert [estimate(row[f"difference_{name}_2.5x"]).value for name in ("unconditional", "conditional")] == [0, 0]
    assert (row["viewed"], row["viewed_against"]) == (50, 50)


def test_both_see_the_same_draws_of_patients() -> None:
    (row,) = against_table(slides("a", MINE) + slides("b", THEIRS), "b").rows
    mine, theirs = (np.array([tiles for tiles in each if tiles[0]], float) for each in (MINE, THEIRS))
    for name, whole in (("unconditional", 0), ("conditional", 1)):
        differences = []
        for draw in np.concatenate(list(unit_weights(6))):
            a, b = draw @ mine, draw @ theirs
            if a[whole] and b[whole]:
                differences.append(a[2] / a[whole] - b[2] / b[whole])
        found = estimate(row[f"difference_{name}_10x"])
        assert (found.low, found.high) == pytest.approx(np.quantile(differences, (0.025, 0.975)))


def test_a_gain_on_every_slide_is_starred_and_too_few_patients_have_no_interval() -> None:
    better = [(whole, reached, min(whole, kept + 2)) for whole, reached, kept in THEIRS]
    table = against_table(slides("a", better) + slides("b", THEIRS), "b")
    column = next(each for each in table.columns if each.key == "difference_unconditional_10x")
    assert column.text(table.rows[0][column.key]).endswith("]*")
    assert not column.text(table.rows[0]["difference_unconditional_2.5x"]).endswith("*")
    assert any(note.startswith("* the interval excludes 0.") for note in table.notes)
    few = against_table(slides("a", better[:4]) + slides("b", THEIRS[:4]), "b")
    assert column.text(few.rows[0][column.key]) == "+14.29 [-]"


def test_only_the_same_slide_and_seed_is_a_pair() -> None:
    """Of `a` one slide met an error, `b` has another seed beside; so three episodes and more have no partner."""
    partly: list[Tiles | None] = [*MINE[:6], None]
    records = slides("a", partly) + slides("b", THEIRS) + slides("b", THEIRS[:2], seed=1)
    table = against_table(records, "b")
    (row,) = table.rows
    assert (row["slides"], row["pairs"], row["unpaired"]) == (6, 6, 3)
    assert estimate(row["difference_unconditional_10x"]).value == pytest.approx(15 / 54 - 14 / 54)
    assert any(note.startswith("Without a pair, left out") for note in table.notes)
    seeds = slides("a", MINE) + slides("a", MINE, seed=1) + slides("b", THEIRS) + slides("b", MINE, seed=1)
    whole = against_table(seeds, "b")
    assert (whole.rows[0]["slides"], whole.rows[0]["pairs"]) == (7, 14)
    assert estimate(whole.rows[0]["difference_unconditional_10x"]).value == pytest.approx(-1 / 118)
    assert not any("left out" in note.lower() for note in whole.notes)


def test_budgets_are_held_against_the_same() -> None:
    records = [
        entry
        for policy, budgets in (("a", ("K=3,2,1", "K=6,3,2")), ("b", ("K=6,3,2",)), ("best-first:b", ("tiles=6,3,2",)))
        for budget in budgets
        for entry in slides(policy, MINE, budget=budget)
    ]
    table = against_table(records, "b")
    assert [(row["policy"], row["budget"]) for row in table.rows] == [("a", "K=6,3,2")]
    told = "Left out, as b did not play at their budgets: a at K=3,2,1; best-first:b at tiles=6,3,2."
    assert told in table.notes


def test_searches_are_compared_where_both_might_view_as_many_tiles() -> None:
    """tiles=6,3,2 is what each one's own scorer views: here 90 for both on four slides, 80 against 90 on three."""
    mine = slides("beam:x", MINE[:4], budget="tiles=6,3,2", allowed=90)
    mine += [
        entry.model_copy(update={"item": f"s{number}"})
        for number, entry in enumerate(slides("beam:x", MINE[4:], budget="tiles=6,3,2", allowed=80), start=4)
    ]
    table = against_table(mine + slides("beam:y", THEIRS, budget="tiles=6,3,2", allowed=90), "beam:y")
    (row,) = table.rows
    assert (row["pairs"], row["unpaired"], row["other_budget"]) == (4, 0, 3)
    assert estimate(row["difference_unconditional_10x"]).value == pytest.approx(12 / 42 - 10 / 42)
    assert any(note.startswith("Unequal budgets, left out") for note in table.notes)


def test_a_policy_that_did_not_play_or_has_no_budget_in_common() -> None:
    records = slides("a", MINE) + slides("b", THEIRS, budget="K=3,2,1")
    with pytest.raises(UnknownNameError, match=r"policy to hold others against 'c'.*Known: a, b\."):
        against_table(records, "c")
    with pytest.raises(InvalidArgumentError, match=r"against b: it played at K=3,2,1, other policies at K=6,3,2"):
        against_table(records, "b")
    with pytest.raises(InvalidArgumentError, match="other policies at none"):
        against_table(slides("a", MINE), "a")


def test_it_is_one_more_table() -> None:
    records = slides("a", MINE) + slides("b", THEIRS)
    plain = exploration_tables(records, TableOptions())
    main, against = exploration_tables(records, TableOptions(against="b"))
    assert [main] == plain
    assert (against.name, against.rows) == ("against", against_table(records, "b").rows)


def test_a_run_of_nothing_but_errors_says_so() -> None:
    records = slides("a", [None, None])
    with pytest.raises(RunError, match=r"none of these episodes has a score \(2 infrastructure errors"):
        exploration_tables(records, TableOptions())
    with pytest.raises(RunError, match="none of these episodes has a score"):
        exploration_curve(records)
