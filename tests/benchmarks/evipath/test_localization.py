from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from cohort_builder import NODES, build_cohort

from wsigym.benchmarks.evipath.localization import Localization, stratified
from wsigym.benchmarks.task import choose_items
from wsigym.cohorts import Cohort
from wsigym.errors import InvalidArgumentError

TASK = Localization()


def ids(cohort: Cohort, subset: str) -> list[str]:
    return [item.item_id for item in choose_items(TASK, cohort, None, subset)]


def test_items_carry_what_tables_split_by(tmp_path: Path) -> None:
    slides = [
        {"slide_id": "s1", "patient_id": "p1", "organ": "Skin", "split": "test"},
        {"slide_id": "s2", "split": "train"},
    ]
    cohort = Cohort.load(build_cohort(tmp_path, slides=slides))
    items = TASK.items(cohort, None)
    assert [dict(items[index].groups) for index in (0, 5)] == [
        {"slide": "s1", "patient": "p1", "organ": "Skin", "split": "test", "magnification": 2.5},
        {"slide": "s2", "patient": None, "organ": None, "split": "train", "magnification": 2.5},
    ]
    assert [item.item_id for item in TASK.items(cohort, "train")] == [item.item_id for item in items[5:]]


def test_a_number_draws_items_by_lot_that_stay(tiny_cohort: Path) -> None:
    cohort = Cohort.load(tiny_cohort)
    everything = ids(cohort, "all")
    assert len(everything) == 10
    for count in range(1, 10):
        fewer, more = ids(cohort, str(count)), ids(cohort, str(count + 1))
        assert len(fewer) == count
        assert set(fewer) < set(more)
        assert fewer == [item for item in everything if item in fewer]
    assert ids(cohort, "10") == everything
    assert ids(cohort, "5") != everything[:5]


def test_the_paper_asks_the_nodes_of_one_path_a_slide(tiny_cohort: Path) -> None:
    cohort = Cohort.load(tiny_cohort)
    by_nodes = {}
    for item in choose_items(TASK, cohort, None, "paper"):
        by_nodes.setdefault(item.question.slide_id, []).append(item.reference.node_ids)
    paths = [[("a",), ("a-1", "a-2"), ("a-1-1",)], [("b",), ("b-1",)]]
    assert by_nodes.keys() == {"s1", "s2"}
    assert all(nodes in paths for nodes in by_nodes.values())


def test_the_paper_needs_paths(tmp_path: Path) -> None:
    cohort = Cohort.load(build_cohort(tmp_path, slides=[{"slide_id": "s1"}], paths=[]))
    with pytest.raises(InvalidArgumentError, match=r"add paths\.jsonl"):
        ids(cohort, "paper")


def test_the_paper_takes_fifty_slides_at_most_and_five_for_efficiency(tmp_path: Path) -> None:
    slides = [{"slide_id": f"s{n}", "path": "s.svs", "organ": "a" if n < 45 else "b"} for n in range(60)]
    build_cohort(tmp_path, slides=[{"slide_id": "s"}])
    (tmp_path / "s.svs").rename(tmp_path / "kept.svs")
    build_cohort(tmp_path, slides=slides, nodes=NODES[:1], paths=[PATH], pixels=False)
    (tmp_path / "kept.svs").rename(tmp_path / "s.svs")
    cohort = Cohort.load(tmp_path)
    chosen = choose_items(TASK, cohort, None, "paper")
    assert Counter(item.groups["organ"] for item in chosen) == {"a": 38, "b": 12}
    few = choose_items(TASK, cohort, None, "efficiency")
    assert Counter(item.groups["organ"] for item in few) == {"a": 4, "b": 1}


PATH = {"path_id": "p", "node_ids": ["a"], "diagnosis": "carcinoma"}


def test_strata_get_places_in_proportion() -> None:
    strata = {
        f"{organ}{n}": organ for organ, count in (("a", 50), ("b", 30), ("c", 15), ("d", 5)) for n in range(count)
    }
    # Quotas for 10 of 100: 5, 3, 1.5, 0.5. The two remainders of a half compete for one place: the first name wins.
    chosen = stratified(strata, 10, seed=0)
    assert Counter(name[0] for name in chosen) == {"a": 5, "b": 3, "c": 2}
    assert chosen == stratified(dict(reversed(strata.items())), 10, seed=0)
    assert chosen != stratified(strata, 10, seed=1)
    assert stratified(strata, 100, seed=0) == sorted(strata)
    assert stratified(strata, 200, seed=0) == sorted(strata)


def test_no_episode_takes_more_steps_than_the_limit(tiny_cohort: Path) -> None:
    """Two invalid requests before each answered one, and three at the end: the longest way to the end."""
    from wsigym.envs.localization import extract_roi

    cohort = Cohort.load(tiny_cohort)
    item = TASK.items(cohort, None)[0]
    env = TASK.make_env(cohort, None, "2", {})
    env.reset(options=TASK.reset_options(item))
    nothing, look = extract_roi([0, 0, 0, 0]), extract_roi([0, 0, 1, 1])
    actions = [nothing, nothing, look, nothing, nothing, look, nothing, nothing, nothing]
    overs = [env.step(action)[2] for action in actions]
    assert overs == [False] * 8 + [True]
    assert TASK.step_limit(item, "2") == len(actions)
