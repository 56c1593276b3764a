"""PathLang's rank correlations, from its published tables."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from wsigym.scoring.ranks import spearman

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
