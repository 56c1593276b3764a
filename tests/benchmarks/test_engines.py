"""Engines by name, and what their arguments may be. Needs no Ray."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wsigym.benchmarks.resources import Resources, resources_of
from wsigym.benchmarks.runner import RunSummary
from wsigym.errors import InvalidArgumentError, UnknownNameError, WsigymError

Play = Callable[..., RunSummary]


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        ({"engine": "rya"}, UnknownNameError, "unknown engine 'rya'. Did you mean 'ray'?"),
        ({"engine": "ray", "jobs": 0}, InvalidArgumentError, "jobs is 0"),
        ({"address": "auto"}, InvalidArgumentError, "^address: processes of this machine take jobs alone"),
        (
            {"address": "", "resources": {"looker": {"num_gpus": 1}}},
            InvalidArgumentError,
            "^address and resources: processes of this machine",
        ),
        ({"engine": "ray", "address": "ray://head:10001"}, InvalidArgumentError, "ray job submit"),
        ({"engine": "ray", "address": ""}, InvalidArgumentError, "HOST:PORT, auto or local"),
        (
            {"engine": "ray", "policies": ["agent:localizer"]},
            InvalidArgumentError,
            "engine is 'ray': agents play in one",
        ),
        ({"engine": "ray", "resources": {"loker": {"num_gpus": 1}}}, UnknownNameError, "Did you mean 'looker'?"),
        ({"engine": "ray", "resources": {"looker": {"gpus": 1}}}, UnknownNameError, "Did you mean 'num_gpus'?"),
        ({"engine": "ray", "resources": {"looker": {"num_cpus": 0}}}, InvalidArgumentError, "num_cpus is 0; allowed"),
        (
            {"engine": "ray", "resources": {"looker": {"num_gpus": 1.5}}},
            InvalidArgumentError,
            "num_gpus is 1.5; allowed",
        ),
        (
            {"engine": "ray", "resources": {"looker": {"num_gpus": float("nan")}}},
            InvalidArgumentError,
            "num_gpus is nan",
        ),
    ],
)
def test_bad_arguments(
    play: Play, tmp_path: Path, arguments: dict[str, Any], error: type[WsigymError], told: str
) -> None:
    with pytest.raises(error, match=told):
        play(**arguments)
    assert not (tmp_path / "run").exists()


def test_an_address_of_the_environment_is_looked_at_too(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "ray://head:10001")
    with pytest.raises(InvalidArgumentError, match="ray job submit"):
        play(engine="ray")


def test_without_ray_it_is_said_how_to_get_it(play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "wsigym.benchmarks.ray_engine", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InvalidArgumentError, match=r"needs ray, which is not installed: pip install 'wsigym\[ray\]'"):
        play(engine="ray")
    assert not (tmp_path / "run").exists()


def test_resources_are_of_a_policy() -> None:
    given = {"first": {"num_gpus": 0.25, "num_cpus": 2.0}, "second": {"num_cpus": 0.5}}
    assert resources_of(given, ["first", "second", "third"]) == {
        "first": Resources(num_cpus=2, num_gpus=0.25),
        "second": Resources(num_cpus=0.5, num_gpus=0),
    }
