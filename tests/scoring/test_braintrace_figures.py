"""What BrainTRACE prints, from what its metrics are defined to be: the code's numbers against the published tables.

The tables have rounded percentages; the records that they come from are made again from whole counts of right answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from wsigym.scoring.agreement import quadratic_weighted_kappa
from wsigym.scoring.case_steps import case_scores
from wsigym.scoring.chance import chance_adjusted, chance_discounted, mean_chance
from wsigym.scoring.factual_audit import AuditedAnswer, audit_scores
from wsigym.scoring.intervals import mean_estimate, paired_difference
from wsigym.scoring.ranks import rank_spreads, ranks

Rows = dict[str, dict[str, Any]]
Published = Callable[[str], list[dict[str, Any]]]

ROUNDED = 0.05 + 1e-9
"""Half of the last digit printed."""

SUBCLASSES = {
    "L1": ("ACQ", "DET"),
    "L2": ("BUR", "LOC", "APP"),
    "L3": ("QNT", "EVT", "EFF"),
    "L4": ("TRJ", "TMP", "RSP"),
}
CHANCES = {"L1": 0.33158, "L2": 0.23474, "L3": 0.36788, "L4": 0.22665}
"""Of L1 from its families' options. Of the others the middle of what the printed scores of all complete models allow
(0.001 wide at most), as the paper does not print them."""

PASSING = AuditedAnswer(2, 2, slots_satisfied=True, critical_error=False, unsupported_claim=False, quality=5)
OMITTING = AuditedAnswer(1, 2, slots_satisfied=True, critical_error=False, unsupported_claim=False, quality=3)


@pytest.fixture(scope="module")
def closed(published: Published) -> Rows:
    return {row["model"]: row for row in published("braintrace_table2_closed_form")}


@pytest.fixture(scope="module")
def open_ended(published: Published) -> Rows:
    return {row["row"]: row for row in published("braintrace_table3_open_case")}


def complete(rows: Rows, names: Sequence[str]) -> Rows:
    """The rows of models with a number under each of the names."""
    models = {model: row for model, row in rows.items() if row["group"] not in ("count", "human")}
    return {model: row for model, row in models.items() if all(row[name] is not None for name in names)}


def first_right(percent: float, items: int) -> np.ndarray:
    """Right and wrong answers (items,), as many right as a printed percentage says."""
    return (np.arange(items) < round(percent / 100 * items)).astype(float)


def pooled(row: dict[str, Any], sizes: dict[str, Any], names: Sequence[str]) -> float | None:
    right = np.concatenate([first_right(row[name], sizes[name]) for name in names])
    return mean_estimate(right, ["all"] * len(right)).value


def test_the_closed_items_of_the_families_are_those_of_the_subclasses(closed: Rows, published: Published) -> None:
    families = published("braintrace_table6_task_counts")
    total = families.pop()
    sums = [sum(row[name] for row in families) for name in ("broad", "3d", "case", "total")]
    assert sums == [total[name] for name in ("broad", "3d", "case", "total")] == [5653, 1200, 420, 7273]
    sizes = closed["n"]
    for name in (name for names in SUBCLASSES.values() for name in names):
        inside = [row for row in families if row["table2_subclass_inferred"] == name]
        assert sum(row["total"] for row in inside) == sizes[name]
    answered_freely = [row for row in families if row["answer_type"] == "open"]
    # Table 3 has 1,597 broad open items, three fewer.
    assert [sum(row[name] for row in answered_freely) for name in ("broad", "3d")] == [1600, 77]
    assert (sizes["Broad"], sizes["3D"]) == (5653 - 1600, 1200 - 77)


def test_accuracy_over_subclasses_and_over_tracks_is_that_of_the_same_items(closed: Rows) -> None:
    names, tracks = [name for names in SUBCLASSES.values() for name in names], ["Broad", "3D"]
    models = complete(closed, [*names, *tracks])
    assert len(models) == 19
    for row in models.values():
        by_subclass, by_track = (pooled(row, closed["n"], columns) for columns in (names, tracks))
        assert 100 * (by_subclass or 0) == pytest.approx(100 * (by_track or 0), abs=0.06)


def test_open_passes_over_families_and_over_tracks_are_those_of_the_same_items(open_ended: Rows) -> None:
    names, tracks = ["L1-ABN", "L2-APP", "L3-EFF", "L4-TRJ", "IMP", "CMP", "DIF"], ["Broad", "3D"]
    models = complete(open_ended, [*names, *tracks])
    assert len(models) == 16
    for row in models.values():
        by_family, by_track = (pooled(row, open_ended["n"], columns) for columns in (names, tracks))
        assert 100 * (by_family or 0) == pytest.approx(100 * (by_track or 0), abs=0.14)


def test_step_passes_of_the_steps(open_ended: Rows, published: Published) -> None:
    rows = [row for row in published("braintrace_fig4_steps") if row["step_pass_table3"] is not None]
    found = {}
    for row in rows:
        steps = [first_right(percent, 70) for name, percent in row.items() if name.startswith("S")]
        passes = np.stack(steps, axis=1).astype(bool)
        assert passes.shape == (70, 6)
        value = case_scores(passes, range(70)).step_pass.value
        found[row["model"]] = 100 * (value or 0)
        assert found[row["model"]] == pytest.approx(open_ended[row["model"]]["Step"], abs=ROUNDED)
    assert len(found) == 9
    # Figure 11 prints 24.1 where Table 3 has 24.0.
    assert found["GPT-5.4"] == pytest.approx(100 * 101 / 420)


def test_survival_of_gpt_5_mini(open_ended: Rows) -> None:
    # 12, 30, 19, 26, 14 and 2 of 70 pass a step, 12, 7, 5, 5, 2 and 0 all steps up to it.
    through, others = (12, 7, 5, 5, 2, 0), (0, 23, 14, 21, 12, 2)
    passes = np.zeros((70, 6), dtype=bool)
    for step, (reached, further) in enumerate(zip(through, others, strict=True)):
        passes[:reached, step] = passes[12 : 12 + further, step] = True
    assert passes.sum(axis=0).tolist() == [12, 30, 19, 26, 14, 2]
    scores = case_scores(passes, range(70))
    assert scores.survival.tolist() == list(through)
    row = open_ended["GPT-5-mini"]
    assert 100 * (scores.step_pass.value or 0) == pytest.approx(row["Step"], abs=ROUNDED)
    assert scores.case_success.value == row["Case"] == 0


def test_one_case_of_seventy_succeeds_at_most(open_ended: Rows) -> None:
    passes = np.zeros((70, 6), dtype=bool)
    passes[0] = True
    best = 100 * (case_scores(passes, range(70)).case_success.value or 0)
    assert max(row["Case"] for row in complete(open_ended, ["Case"]).values()) == pytest.approx(best, abs=ROUNDED)


def test_the_physician(open_ended: Rows) -> None:
    passes = np.ones((10, 6), dtype=bool)
    passes[8, 2:4] = passes[9, 3:] = False
    scores = case_scores(passes, range(10))
    row = open_ended["ABR diplomate oncologist"]
    assert 100 * (scores.step_pass.value or 0) == pytest.approx(row["Step"], abs=ROUNDED)
    assert 100 * (scores.case_success.value or 0) == pytest.approx(row["Case"])


def test_chance_discounted_scores_in_the_text() -> None:
    for raw, chance, printed in ((45.6, 36.78, 14.0), (32.85, 23.48, 12.2), (33.0, 36.78, -6.0), (1.68, 33.16, -47.1)):
        assert 100 * chance_adjusted(raw / 100, chance / 100) == pytest.approx(printed, abs=ROUNDED)


def options_of(level: str, items: int) -> list[int]:
    """Options that make the level's chance: L1's are its families', a mix of two and five stands for the others."""
    if level == "L1":  # presence; sequence; plane; laterality
        return [2] * 350 + [6] * 200 + [3] * 200 + [5] * 200
    twos = round((CHANCES[level] - 1 / 5) / (1 / 2 - 1 / 5) * items)
    return [2] * twos + [5] * (items - twos)


def test_chance_discounted_scores_of_every_complete_model(closed: Rows, published: Published) -> None:
    sizes = closed["n"]
    options = {level: options_of(level, sum(sizes[name] for name in names)) for level, names in SUBCLASSES.items()}
    for level, chance in CHANCES.items():
        assert mean_chance(options[level]) == pytest.approx(chance, abs=0.0002)
    printed = {row["model"]: row for row in published("braintrace_fig13_cds")}
    models = complete(closed, [name for names in SUBCLASSES.values() for name in names])
    assert len(models) == 19
    for model, row in models.items():
        right = {
            level: np.concatenate([first_right(row[name], sizes[name]) for name in names])
            for level, names in SUBCLASSES.items()
        }
        for level, answers in right.items():
            levels = [level] * len(answers)
            score = chance_discounted(answers, options[level], levels, levels).value
            assert 100 * (score or 0) == pytest.approx(printed[model][level], abs=0.1), (model, level)
        everything = [level for level, answers in right.items() for _ in answers]
        mean = chance_discounted(
            np.concatenate(list(right.values())), np.concatenate(list(options.values())), everything, everything
        )
        assert mean.value is not None
        assert 100 * mean.value == pytest.approx(printed[model]["mean"], abs=0.1), model


def axes_of(closed: Rows, open_ended: Rows, names: Sequence[str]) -> np.ndarray:
    """Scores (models, 5), NaN where the tables have none."""
    axes = ((closed, "Broad"), (open_ended, "Broad"), (closed, "3D"), (open_ended, "Step"), (open_ended, "Case"))
    return np.array([[rows.get(name, {}).get(column) for rows, column in axes] for name in names], dtype=float)


def test_rank_spreads(closed: Rows, open_ended: Rows, published: Published) -> None:
    spreads = {row["model"]: (row["min_rank"], row["max_rank"]) for row in published("braintrace_fig12_rank_spread")}
    found = rank_spreads(axes_of(closed, open_ended, list(spreads)))
    assert len(spreads) == 20
    for (name, spread), pair in zip(spreads.items(), found.tolist(), strict=True):
        assert tuple(pair) == spread, name


def test_ranks_with_ties_and_missing_axes(closed: Rows, open_ended: Rows, published: Published) -> None:
    names = [row["model"] for row in published("braintrace_fig12_rank_spread")]
    found = dict(zip(names, ranks(axes_of(closed, open_ended, names)).tolist(), strict=True))
    assert found["GPT-5"] == [1, 7, 2, 4, 1.5]
    assert sum(row[4] == 11.5 for row in found.values()) == 18
    assert found["M3D-LaMed"] == [pytest.approx(np.nan, nan_ok=True)] * 2 + [13, 13, 11.5]


def test_ablations_are_paired_differences(published: Published) -> None:
    full, *ablated = published("braintrace_table4_ablation")
    counts = {"Qwen3.5-27B": (15, 35, 18), "GPT-5.4": (32, 46, 11)}
    for model, right in counts.items():
        before = first_right(full[f"acc_{model}"], 120)
        for row, count in zip(ablated, right, strict=True):
            after = (np.arange(120) < count).astype(float)
            assert 100 * (mean_estimate(after, range(120)).value or 0) == pytest.approx(
                row[f"acc_{model}"], abs=ROUNDED
            )
            drop = paired_difference(after, before, range(120))
            assert 100 * (drop.value or 0) == pytest.approx(row[f"drop_{model}"], abs=ROUNDED)
            assert drop.excludes_zero


def test_passes_of_the_judges_are_shares_of_52(published: Published) -> None:
    rows = published("braintrace_fig10_judges")
    printed = [row[f"{judge}_pass"] for row in rows for judge in ("release", "gemini", "claude")]
    counts = [17, 8, 8, 6, 7, 8, 5, 6, 6]
    for percent, passing in zip(printed, counts, strict=True):
        scores = audit_scores([PASSING] * passing + [OMITTING] * (52 - passing), range(52))
        assert 100 * (scores.pass_rate.value or 0) == pytest.approx(percent, abs=ROUNDED)
        assert scores.critical_errors.value == 0


def test_intervals_of_the_3d_track(published: Published) -> None:
    rows = published("braintrace_table8_3d")
    assert len(rows) == 20
    for row in rows:
        right = first_right(row["closed_acc"], 1123)
        estimates = [mean_estimate(right, range(1123), seed=seed) for seed in range(4)]
        # A bound moves by 0.1 from seed to seed, the paper's as well; ours is the mean of four.
        low, high = np.mean([(estimate.low, estimate.high) for estimate in estimates], axis=0)
        assert (100 * low, 100 * high) == pytest.approx((row["ci_lo"], row["ci_hi"]), abs=0.35), row["model"]


def test_kappa_of_raters_who_never_differ_by_more_than_their_constant() -> None:
    assert quadratic_weighted_kappa(np.array([1, 2, 3, 4, 5]), np.full(5, 3)) == pytest.approx(0)
