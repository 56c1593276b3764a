"""What EviPathBench prints or defines, and what the code makes of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from wsigym.benchmarks.published_facts import published_facts
from wsigym.scoring.chance import is_at_chance
from wsigym.scoring.hit_rates import LevelCounts, conditional_rate, unconditional_rate
from wsigym.scoring.localization import HIT_IOU, best_placed_iou, placed_iou
from wsigym.slides import Box

SEARCH = Box(0, 0, 10_000, 10_000)
VALID = Box(2000, 2000, 1300, 100)


def at(shift: int) -> Box:
    return Box(VALID.x + shift, VALID.y, VALID.width, VALID.height)


def test_size_constrained_iou() -> None:
    assert placed_iou(VALID, VALID, SEARCH) == 1
    assert placed_iou(at(650), VALID, SEARCH) == pytest.approx(1 / 3)
    assert placed_iou(at(700), VALID, SEARCH) == pytest.approx(HIT_IOU)
    assert placed_iou(at(1300), VALID, SEARCH) == 0
    assert best_placed_iou(at(1300), [VALID, at(1300)], SEARCH) == 1


def test_hit_rates() -> None:
    slides = [LevelCounts(4, 2, 1), LevelCounts(0, 0, 0)]
    assert (conditional_rate(slides), unconditional_rate(slides)) == (0.5, 0.25)
    first = [LevelCounts(4, 4, 3), LevelCounts(2, 2, 1)]
    assert conditional_rate(first) == unconditional_rate(first)
    more = [LevelCounts(9, 5, 2), LevelCounts(3, 1, 1)]
    assert unconditional_rate(more) == pytest.approx((conditional_rate(more) or 0) * 6 / 12)


def test_published_retention_from_magnification_to_magnification() -> None:
    facts = {key: fact.value for key, fact in published_facts("evipath_prose_facts").items()}
    full = [float(rate) for rate in str(facts["T3B.full.Gemini.uncond"]).split(",")]
    sweep = [float(rate) for rate in str(facts["T3B.sweep.Gemini.uncond.6-3-2"]).split(",")]
    kept = [100 * below / above for rates in (full, sweep) for above, below in pairwise(rates)]
    assert kept == [pytest.approx(share, abs=0.06) for share in (35.4, 10.9, 36.3, 11.3)]
    qwen = float(str(facts["T3B.sweep.Qwen.uncond.6-3-2"]).split(",")[2])
    assert float(facts["T3B.sweep.Qwen.40x.10-5-3"]) / qwen == pytest.approx(3.03, abs=0.006)
    gain = float(facts["T3B.oracle.40x.10-5-3"]) / float(facts["T3B.oracle.40x.6-3-2"])
    assert gain == pytest.approx(2.74, abs=0.006)


def test_items_of_the_two_visual_tasks(published: Callable[[str], list[dict[str, Any]]]) -> None:
    facts = {key: fact.value for key, fact in published_facts("evipath_prose_facts").items()}
    assert facts["T1.items"] == facts["T2.items"] == 2571 * 4
    sizes = {row["benchmark"]: row["size_as_printed"] for row in published("casescope_table1_sizes")}
    [printed] = [size for name, size in sizes.items() if name.startswith("EviPathBench")]
    assert printed == f"{2 * float(facts['T1.items']) / 1000:.1f}k"


def test_a_four_option_guesser_is_told_from_a_model_that_does_not_parse() -> None:
    assert is_at_chance(round(0.2515 * 10_284), 10_284, 0.25)
    assert not is_at_chance(round(0.07 * 10_284), 10_284, 0.25)
