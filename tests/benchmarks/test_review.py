"""The contact sheet of items: what is asked stands on it whole, and asked boxes look other than those of answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evidence_builder import SUITE, TASK, build_evidence, item, reference

from wsigym.benchmarks.review import ASKED, GAP_PX, LINE_PX, RIGHT, SIDE_PX, contact_sheet, legend
from wsigym.cohorts import Cohort, load_items

STATEMENTS = "Judge each statement:\n" + "\n".join(f"{n}. {'a finding of some length ' * 3}" for n in range(1, 5))


def test_statements_to_judge_are_all_shown(tmp_path: Path) -> None:
    images = [{"file": "images/field.png", "magnification": 10}]
    items = [item(0, images=images), item(1, images=images, question=STATEMENTS)]
    build_evidence(tmp_path, items, [reference(0), reference(1)], pixels=False)
    cohort = Cohort.load(tmp_path)
    short, long = (contact_sheet(cohort, [each]).height for each in load_items(cohort, SUITE, TASK))
    assert long - short == LINE_PX * (2 * 4 + 1 - 1), "each of the four takes two lines"


ANSWER = {"answer": {"kind": "boxes", "words": "Answer with boxes."}, "options": []}


@pytest.mark.parametrize(
    ("changes", "answer", "provenance", "colours"),
    [
        ({}, 0, {"asked_box": [100, 100, 400, 400], "boxes": [[500, 500, 900, 900]]}, [ASKED, RIGHT]),
        ({}, 0, {"asked_box": [100, 100, 400, 400]}, [ASKED]),
        ({}, 0, {"boxes": [[500, 500, 900, 900]]}, [RIGHT]),
        (ANSWER, [[500, 500, 900, 900]], {}, [RIGHT]),
        ({}, 0, {}, []),
    ],
)
def test_boxes_have_the_colour_that_the_caption_says(
    tmp_path: Path,
    changes: dict[str, Any],
    answer: Any,
    provenance: dict[str, Any],
    colours: list[tuple[int, int, int]],
) -> None:
    images = [{"file": "images/field.png", "magnification": 10}]
    given = [item(0, images=images, **changes)], [reference(0, answer=answer, provenance=provenance)]
    build_evidence(tmp_path, *given, pixels=False)
    cohort = Cohort.load(tmp_path)
    asked = load_items(cohort, SUITE, TASK)
    picture = np.asarray(contact_sheet(cohort, asked))[GAP_PX : GAP_PX + SIDE_PX, GAP_PX : GAP_PX + SIDE_PX]
    drawn = [colour for colour in (ASKED, RIGHT) if (picture == colour).all(axis=2).any()]
    assert drawn == colours
    assert [colour for _, colour in legend(asked[0])] == colours
