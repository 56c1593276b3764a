"""Which episodes a worker is given at once."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from wsigym.benchmarks.episodes import Setup
from wsigym.benchmarks.handout import MAX_CHUNK, Handout
from wsigym.benchmarks.records import EpisodeKey
from wsigym.benchmarks.task import Item

NOTHING = cast(Any, None)


def handout(slides: list[str | None], workers: int) -> tuple[Handout, list[EpisodeKey]]:
    """One of an episode for each of `slides`, None for an item that asks no slide."""
    items = {(str(place), 0): Item(str(place), {"slide": slide}, None, None) for place, slide in enumerate(slides)}
    setup = Setup(NOTHING, NOTHING, None, {}, items, NOTHING, "", None)
    keys = [EpisodeKey("suite", "task", item, rotation, "looker", None, "base", 0) for item, rotation in items]
    return Handout(setup, keys, workers), keys


def sizes(slides: list[str | None], workers: int) -> list[int]:
    given_out, _ = handout(slides, workers)
    found = []
    while chunk := given_out.chunk():
        found.append(len(chunk))
    return found


def test_a_slide_is_one_worker_s() -> None:
    """Four episodes a chunk: a chunk goes on to the end of its slide, and the next begins with another."""
    assert sizes([f"s{place // 6}" for place in range(36)], workers=2) == [6] * 6
    assert sizes([f"s{place // 3}" for place in range(36)], workers=2) == [6] * 6


def test_one_slide_is_shared_where_all_workers_would_wait_for_one() -> None:
    assert sizes(["only"] * 36, workers=2) == [16, 16, 4]
    assert sizes(["only"] * 2, workers=2) == [2]


def test_items_without_a_slide_go_out_in_plain_chunks() -> None:
    assert sizes([None] * 36, workers=2) == [4] * 9
    assert sizes([None] * 1000, workers=1)[:2] == [MAX_CHUNK, MAX_CHUNK]


@given(st.lists(st.sampled_from(["a", "b", "c", None])), st.integers(1, 5))
def test_every_episode_is_given_out_once_and_in_order(slides: list[str | None], workers: int) -> None:
    given_out, keys = handout(slides, workers)
    found = []
    while chunk := given_out.chunk():
        found += chunk
        assert len(chunk) <= max(4, len(keys) / workers)
    assert found == keys
    assert given_out.waiting == 0
