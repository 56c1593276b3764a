"""What PathView-Bench prints, and what the code makes of its definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wsigym.scoring.boxes import union_dice
from wsigym.scoring.macro_f1 import macro_f1

Published = Callable[[str], list[dict[str, Any]]]

FOUR_CLASSES = np.repeat(np.arange(4), 5)


def test_the_best_frozen_model_of_each_column(published: Published) -> None:
    rows = published("pathview_table3_main")
    frozen = [
        row for row in rows if "tuned" not in row["group"].casefold() and "control" not in row["group"].casefold()
    ]
    assert len(frozen) == 18
    assert len({(row["model"], row["params"]) for row in frozen}) == 18
    for column, name, value in (
        ("R_OGD", "GLM-4.6V-Flash", 0.201),
        ("R_RCL", "Lingshu", 0.636),
        ("S_ORG", "Gemini-2.5-Flash", 0.940),
        ("S_LGD", None, 0.552),
        ("S_ARE", "Med", 0.448),
        ("S_DLO", None, 0.475),
    ):
        best = max((row for row in frozen if row[column] is not None), key=lambda row: row[column])
        assert best[column] == value
        assert name is None or name.split()[0] in best["model"]
    best = min((row for row in frozen if row["R_OCN"] is not None), key=lambda row: row["R_OCN"])
    assert (best["R_OCN"], best["model"]) == (16.82, "GPT-5-mini")


def test_twelve_scored_columns_and_two_traps(published: Published) -> None:
    columns = list(published("pathview_table3_main")[0])
    assert sum(name.startswith("R_") for name in columns) + sum(name.startswith("S_") for name in columns) == 12
    facts = {row["key"]: row["value"] for row in published("pathview_prose_facts")}
    assert facts["tasks"] == 8 + 6 == 12 + 2


def test_control_rows_of_macro_f1_agree_with_five_options_and_the_union(published: Published) -> None:
    rows = {row["model"]: row for row in published("pathview_table3_main")}
    random = macro_f1(FOUR_CLASSES, np.tile(np.arange(5), 4))
    for column in ("R_DLO", "S_ARE", "S_DLO"):
        assert rows["Random Choice"][column] == pytest.approx(random.union, abs=0.004)
        assert rows["Random Choice"][column] != pytest.approx(random.truth_only, abs=0.03)
        constant = macro_f1(FOUR_CLASSES, np.full(20, 1)).union
        assert rows["Frequent Choice"][column] == pytest.approx(constant, abs=0.006)
    four = macro_f1(np.repeat(np.arange(4), 4), np.tile(np.arange(4), 4)).union
    assert rows["Random Choice"]["R_DLO"] != pytest.approx(four, abs=0.05)


def test_dice() -> None:
    box = (0, 0, 100, 100)
    assert union_dice([box], [box]) == union_dice([box, box], [box]) == 1
    assert union_dice([(50, 0, 150, 100)], [box]) == 0.5
    assert union_dice([], [box]) == 0
