"""Rank correlations of PathLang and rank spreads of BrainTRACE, from their published tables."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from wsigym.scoring.agreement import quadratic_weighted_kappa
from wsigym.scoring.chance import chance_adjusted
from wsigym.scoring.intervals import mean_estimate
from wsigym.scoring.ranks import rank_spreads, spearman

Published = Callable[[str], list[dict[str, Any]]]

CORRELATIONS = (
    *("pathlang_appA_table2_spearman_mf1", "pathlang_appA_table6_spearman_i2t", "pathlang_appA_table7_spearman_t2i"),
    *("pathlang_appA_table8_spearman_i2i", "pathlang_appA_table10_spearman_v1", "pathlang_appA_table12_spearman_v2"),
)


def lattice_of_nine() -> set[float]:
    """Every rho of nine untied models that one, two or more exchanges give, printed to three digits."""
    return {round(1 - d / 120, 3) for d in range(0, 241, 2)}


def test_the_lattice_is_what_spearman_gives() -> None:
    rng = np.random.default_rng(0)
    order = np.arange(9.0)
    found = {round(spearman(order, rng.permutation(order)) or 0.0, 3) + 0.0 for _ in range(500)}
    assert found <= lattice_of_nine()
    swapped = [order.copy() for _ in range(8)]
    for place, ranking in enumerate(swapped):
        ranking[[place, place + 1]] = ranking[[place + 1, place]]
        assert spearman(order, ranking) == pytest.approx(1 - 2 / 120)


@pytest.mark.parametrize("table", CORRELATIONS)
def test_published_correlations_lie_on_the_lattice(published: Published, table: str) -> None:
    rows = published(table)
    names = [row["aggregation"] for row in rows]
    matrix = np.array([[row[name] for name in names] for row in rows])
    assert (matrix == matrix.T).all()
    assert (np.diag(matrix) == 1).all()
    allowed = lattice_of_nine()
    for first, second in combinations(range(len(names)), 2):
        # 0.8165 and the like print either way.
        assert min(abs(matrix[first, second] - rho) for rho in allowed) <= 0.0011


def test_rank_spreads_of_braintrace(published: Published) -> None:
    closed = {row["model"]: row for row in published("braintrace_table2_closed_form")}
    open_ended = {row["row"]: row for row in published("braintrace_table3_open_case")}
    spreads = {row["model"]: (row["min_rank"], row["max_rank"]) for row in published("braintrace_fig12_rank_spread")}
    names = list(spreads)
    axes = ((closed, "Broad"), (open_ended, "Broad"), (closed, "3D"), (open_ended, "Step"), (open_ended, "Case"))
    scores = [[rows.get(name, {}).get(column) for rows, column in axes] for name in names]
    found = rank_spreads(np.array(scores, dtype=float))
    assert len(names) == 20
    for name, (best, worst) in zip(names, found.tolist(), strict=True):
        assert (best, worst) == spreads[name], name


def test_chance_discounted_means_of_braintrace(published: Published) -> None:
    for row in published("braintrace_fig13_cds"):
        levels = [row[name] for name in ("L1", "L2", "L3", "L4") if row[name] is not None]
        assert row["mean"] == pytest.approx(sum(levels) / len(levels), abs=0.1)
    for raw, chance, printed in (
        (0.456, 0.3678, 14.0),
        (0.3285, 0.2348, 12.2),
        (0.330, 0.3678, -6.0),
        (0.0168, 0.3316, -47.1),
    ):
        assert 100 * chance_adjusted(raw, chance) == pytest.approx(printed, abs=0.1)


def test_an_interval_of_braintraces_size() -> None:
    # Accuracy 42.2 of 1,123 items: published 39.6 to 45.1.
    right = np.arange(1123) < round(0.422 * 1123)
    estimate = mean_estimate(right.astype(float), range(1123))
    assert estimate.low == pytest.approx(0.396, abs=0.005)
    assert estimate.high == pytest.approx(0.451, abs=0.005)


def test_kappa_of_raters_who_never_differ_by_more_than_their_constant() -> None:
    assert quadratic_weighted_kappa(np.array([1, 2, 3, 4, 5]), np.full(5, 3)) == pytest.approx(0)
