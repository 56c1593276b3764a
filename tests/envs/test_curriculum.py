"""Which queries are drawn: by magnification, region and distance, seeded, and changed in stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from wsigym.cohorts import Cohort, LocalizationQuery, LocalizationReference
from wsigym.envs import LocalizationEnv
from wsigym.envs.curriculum import QueryFilter
from wsigym.errors import InvalidArgumentError, UnknownNameError
from wsigym.slides import Box


def asked(name: str, magnification: float, *boxes: Box) -> tuple[LocalizationQuery, LocalizationReference]:
    query = LocalizationQuery(name, "s", "t", magnification, Box(1000, 2000, 300, 400))
    return query, LocalizationReference(name, boxes, ("n",) * len(boxes))


QUERIES = [
    asked("middle", 10, Box(1100, 2150, 100, 100)),  # centre (1150, 2200): distance 0, 1/12 of the area
    asked("corner", 40, Box(1000, 2000, 30, 40)),  # centre (1015, 2020): 0.9 of the way to the corner, 1/100
    asked("both", 2.5, Box(1000, 2000, 30, 40), Box(1000, 2000, 300, 400)),  # the largest, the nearest
]


@pytest.mark.parametrize(
    ("ranges", "kept"),
    [
        (None, ["middle", "corner", "both"]),
        ({}, ["middle", "corner", "both"]),
        ({"magnification": (10, 40)}, ["middle", "corner"]),
        ({"magnification": [40, 40]}, ["corner"]),
        ({"region": (0, 0.01)}, ["corner"]),
        ({"region": (1 / 12, 1)}, ["middle", "both"]),
        ({"distance": (0, 0)}, ["middle", "both"]),
        ({"distance": (0.9, 0.9)}, ["corner"]),
        ({"distance": (0, 0.9), "region": (0, 0.5)}, ["middle", "corner"]),
        (QueryFilter(magnification=(2.5, 2.5)), ["both"]),
    ],
)
def test_what_is_kept(ranges: Any, kept: list[str]) -> None:
    assert QueryFilter.of(ranges).ids(QUERIES) == tuple(kept)


def test_nothing_left_says_what_there_is() -> None:
    with pytest.raises(InvalidArgumentError, match=r"no query is within .*magnification 2.5 to 40, region 0.01 to 1"):
        QueryFilter(magnification=(3, 4)).ids(QUERIES)


@pytest.mark.parametrize("value", [(2, 1), 3, "ab", (1, 2, 3), (float("nan"), 1)])
def test_what_is_no_range(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"region is .*two numbers \(lowest, highest\)"):
        QueryFilter.of({"region": value})


def test_what_is_no_filter() -> None:
    with pytest.raises(UnknownNameError, match="unknown range of queries 'size'"):
        QueryFilter.of({"size": (0, 1)})
    with pytest.raises(InvalidArgumentError, match="queries is 'easy'; allowed is a mapping"):
        QueryFilter.of("easy")


def drawn(env: gym.Env[Any, Any], seed: int = 0) -> list[str]:
    return [env.reset(seed=seed if number == 0 else None)[1]["query_id"] for number in range(40)]


def test_an_environment_draws_from_them_seeded_and_in_stages(tiny_cohort: Path) -> None:
    cohort = Cohort.load(tiny_cohort)
    env = LocalizationEnv(cohort, queries={"magnification": (10, 10)})
    first = drawn(env)
    assert first == drawn(LocalizationEnv(cohort, queries=QueryFilter(magnification=(10, 10))))
    assert {query_id.split("/")[1] for query_id in first} == {"10x"}
    assert len(set(first)) == 4
    assert len(env.query_ids) == 10  # any can still be asked for
    env.reset(options={"query_id": env.query_ids[0]})
    env.set_queries(None)
    assert drawn(env) == drawn(LocalizationEnv(cohort))
    with pytest.raises(InvalidArgumentError, match="no query is within"):
        env.set_queries({"magnification": (1, 2)})
    assert set(drawn(env)) == set(env.query_ids)
    with pytest.raises(InvalidArgumentError, match="no query is within"):
        LocalizationEnv(cohort, queries={"magnification": (1, 2)})


def test_stages_reach_every_environment_of_a_vector(tiny_cohort: Path) -> None:
    vector = gym.make_vec(
        "wsigym/LocalizationPanZoom-v0", num_envs=3, cohort=str(tiny_cohort), queries={"magnification": (40, 40)}
    )
    assert set(vector.reset(seed=0)[1]["magnification"]) == {40}
    vector.call("set_queries", {"magnification": (2.5, 2.5)})  # type: ignore[attr-defined]
    assert set(vector.reset(seed=0)[1]["magnification"]) == {2.5}
    vector.close()
