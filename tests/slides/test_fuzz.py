"""Thousands of broken files: pixels of the right shape or a typed error, and never a hang."""

from __future__ import annotations

from pathlib import Path

import pytest
from slide_fuzz import fuzz, write_originals

CASES = 4000


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_broken_files_give_pixels_or_a_typed_error(
    tmp_path: Path, half: int, record_property: pytest.RecordProperty
) -> None:
    """A crash of native code ends one worker, never the parent; none was ever seen (see docs/speed.md)."""
    write_originals(tmp_path)
    outcome = fuzz(range(half * CASES // 2, (half + 1) * CASES // 2), tmp_path)
    counted = f"{dict(outcome.answers)}; workers that crashed: {outcome.crashed}; that hung: {outcome.hung}"
    record_property("outcome", counted)
    assert (outcome.wrong, outcome.hung, outcome.crashed) == ({}, [], {}), counted
    # It is no test if every file is refused, or none.
    assert outcome.answers["read"] > CASES / 20
    assert outcome.answers["BadTileError"] > CASES / 50
    assert outcome.answers["SlideOpenError"] > CASES / 20


def test_a_worker_that_dies_or_hangs_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import slide_fuzz

    write_originals(tmp_path)
    monkeypatch.setattr(slide_fuzz, "work", slide_fuzz.faulty_work)
    monkeypatch.setattr(slide_fuzz, "PATIENCE_S", 0.5)
    outcome = slide_fuzz.fuzz(range(6), tmp_path)
    assert outcome.crashed == {1: -11}
    assert outcome.hung == [3]
    assert outcome.answers == {"read": 4}
