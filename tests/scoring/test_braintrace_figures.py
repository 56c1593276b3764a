"""BrainTRACE's rank spreads and chance-discounted scores, from its published tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wsigym.scoring.agreement import quadratic_weighted_kappa
from wsigym.scoring.chance import chance_adjusted
from wsigym.scoring.intervals import mean_estimate
from wsigym.scoring.ranks import rank_spreads

Published = Callable[[str], list[dict[str, Any]]]


def test_rank_spreads(published: Published) -> None:
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


def test_chance_discounted_means(published: Published) -> None:
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
