"""The contact sheet of items: what is asked stands on it whole."""

from __future__ import annotations

from pathlib import Path

from evidence_builder import SUITE, TASK, build_evidence, item, reference

from wsigym.benchmarks.review import LINE_PX, contact_sheet
from wsigym.cohorts import Cohort, load_items

STATEMENTS = "Judge each statement:\n" + "\n".join(f"{n}. {'a finding of some length ' * 3}" for n in range(1, 5))


def test_statements_to_judge_are_all_shown(tmp_path: Path) -> None:
    images = [{"file": "images/field.png", "magnification": 10}]
    items = [item(0, images=images), item(1, images=images, question=STATEMENTS)]
    build_evidence(tmp_path, items, [reference(0), reference(1)], pixels=False)
    cohort = Cohort.load(tmp_path)
    short, long = (contact_sheet(cohort, [each]).height for each in load_items(cohort, SUITE, TASK))
    assert long - short == LINE_PX * (2 * 4 + 1 - 1), "each of the four takes two lines"
