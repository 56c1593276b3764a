"""The picture of a trajectory: every frame is where its box is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cohort_builder import SLIDE_PX, build_cohort
from record_builder import record

from wsigym.benchmarks.pictures import ANSWER, LOOK, MARGIN, REFERENCE, TEXT_ROWS, trajectory_picture
from wsigym.benchmarks.records import StepRecord
from wsigym.cohorts import Cohort, LocalizationQuery, LocalizationReference
from wsigym.slides import Box

TOP = MARGIN + 20 * TEXT_ROWS
SCALE = 640 / SLIDE_PX
"""The whole slide is mapped at 640 px, the side of the map."""

QUERY = LocalizationQuery("q", "s1", "crowded", 40.0, Box(0, 0, SLIDE_PX, SLIDE_PX))
ROI, ANSWERED, VALID = Box(1408, 192, 320, 320), Box(300, 1200, 40, 40), Box(1024, 1024, 512, 256)


def _step(tool: int, box: Box, roi: Box | None) -> StepRecord:
    asked, shown = tuple(box.to_list()), tuple(roi.to_list()) if roi else None
    return StepRecord(action={"tool": tool}, box=asked, roi=shown, act_seconds=0, step_seconds=0)


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    return Cohort.load(build_cohort(tmp_path_factory.mktemp("pictures") / "c"))


def drawn(cohort: Cohort, outcome: str) -> np.ndarray:
    steps = (_step(0, ROI, ROI), _step(1, ANSWERED, ROI))
    played = record(0.2, slide="s1", outcome=outcome, steps=steps)
    return np.asarray(trajectory_picture(cohort, QUERY, LocalizationReference("q", (VALID,), ("a",)), played))


def at(picture: np.ndarray, x: float, y: float) -> tuple[int, ...]:
    """The colour at a level-0 place of the map."""
    return tuple(int(part) for part in picture[round(TOP + y * SCALE), round(MARGIN + x * SCALE)])


def test_looks_answer_and_reference_are_where_they_are(cohort: Cohort) -> None:
    picture = drawn(cohort, "scored")
    assert at(picture, *ROI.centre) not in (LOOK, ANSWER, REFERENCE)
    assert at(picture, ROI.right, ROI.centre[1]) == LOOK
    assert at(picture, VALID.x, VALID.centre[1]) == REFERENCE
    assert at(picture, VALID.centre[0], VALID.bottom) == REFERENCE
    # The answer keeps its centre and takes the valid box's size.
    x, y = ANSWERED.centre
    assert at(picture, x + VALID.width / 2, y) == ANSWER
    assert at(picture, x, y - VALID.height / 2) == ANSWER


def test_an_episode_without_an_answer_shows_none(cohort: Cohort) -> None:
    assert not (drawn(cohort, "invalid")[TOP:] == ANSWER).all(axis=2).any()


def test_each_look_stands_beside_the_map(cohort: Cohort, tmp_path: Path) -> None:
    picture = drawn(cohort, "scored")
    left = 2 * MARGIN + 640
    assert tuple(picture[TOP, left + 40]) == LOOK  # its frame
    assert picture[TOP + 20 : TOP + 140, left + 20 : left + 140].std() > 10  # its pixels
    assert (picture[TOP + 20 : TOP + 140, left + 192 : left + 300] == 255).all()  # there was no second look
