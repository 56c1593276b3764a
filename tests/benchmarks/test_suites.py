from __future__ import annotations

import pickle

import pytest

from wsigym.benchmarks import suites
from wsigym.benchmarks.suites import TASKS, find_task
from wsigym.errors import InvalidArgumentError, UnknownNameError


def test_a_task_is_found_by_its_name_or_by_its_suite() -> None:
    assert find_task("evipath/localization") is TASKS["evipath/localization"]
    for name, task in TASKS.items():
        assert task.name == name
        assert task.budget_label(task.default_budget, "random") == task.default_budget
        assert type(pickle.loads(pickle.dumps(task))) is type(task)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("evipth/localization", "unknown suite 'evipth'. Did you mean 'evipath'?"),
        ("evipath/localisation", "unknown task 'evipath/localisation'. Did you mean 'evipath/localization'?"),
        ("evipath/", "unknown task 'evipath/'."),
        ("", "unknown suite ''."),
    ],
)
def test_near_matches(name: str, message: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_task(name)
    assert str(caught.value).startswith(message)


def test_a_suite_alone_names_a_task_only_if_it_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    task = TASKS["evipath/localization"]
    monkeypatch.setattr(suites, "TASKS", {"one/a": task, "two/a": task, "two/b": task})
    assert find_task("one") is task
    with pytest.raises(InvalidArgumentError, match="name one: two/a, two/b"):
        find_task("two")
