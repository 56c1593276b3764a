"""Policies for evidence: what each answers, and that guessing is at chance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from evidence_builder import SUITE, TASK, build_evidence, item, reference

from wsigym.baselines.evidence_policies import Frequent, RandomAnswer, TextPrior, in_words
from wsigym.benchmarks.evidence_task import EvidenceTask
from wsigym.cohorts import Cohort
from wsigym.envs import EvidenceEnv
from wsigym.errors import InvalidArgumentError
from wsigym.scoring.chance import is_at_chance
from wsigym.scoring.items import score_item

FILE = [{"file": "images/field.png"}]


def shown(**changes: Any) -> dict[str, Any]:
    return {"answer_kind": "option", "options": ("a cat", "a dog", "birds"), "question": "Which?", **changes}


@pytest.mark.parametrize("answer", ["option", "text"])
def test_random_is_at_chance_and_uses_every_option(tmp_path: Path, answer: str) -> None:
    build_evidence(tmp_path, [item(0, images=FILE)], [reference(0, answer=2)], pixels=False)
    env = EvidenceEnv(tmp_path, SUITE, TASK, answer=answer, image_px=36)
    policy = RandomAnswer()
    right, episodes, seen = 0, 800, set()
    for seed in range(episodes):
        observation, info = env.reset(seed=seed)
        policy.seed(seed)
        policy.reset(observation, info)
        action = policy.act(observation, info)
        seen.add(action)
        right += int(env.step(action)[1])
    assert len(seen) == 4
    assert is_at_chance(right, episodes, 0.25)


def test_random_answers_of_other_kinds_are_parsed() -> None:
    policy = RandomAnswer()
    for kind, answer in (("ranking", [2, 0, 1]), ("boxes", [[1, 2, 900, 800]]), ("number", 7)):
        for seed in range(50):
            policy.seed(seed)
            text = policy.act({}, shown(answer_kind=kind))
            assert score_item(kind, text, answer, options=shown()["options"]).outcome == "scored", text
    with pytest.raises(InvalidArgumentError, match="json"):
        policy.act({}, shown(answer_kind="json"))


def training(tmp_path: Path, keys: list[int], options: Callable[[int], list[str]]) -> list[Any]:
    numbers = range(len(keys))
    items = [item(n, images=FILE, options=options(n), split="train") for n in numbers]
    build_evidence(
        tmp_path, items, [reference(n, answer=key) for n, key in zip(numbers, keys, strict=True)], pixels=False
    )
    return EvidenceTask(f"{SUITE}/{TASK}", "", circular=True).items(Cohort.load(tmp_path), "train")


def test_frequent_takes_the_option_most_often_right_in_training(tmp_path: Path) -> None:
    orders = (["a cat", "a dog", "birds"], ["birds", "a dog", "a cat"])
    policy = Frequent()
    policy.see_training(training(tmp_path, [0, 2, 1, 2], lambda n: orders[n % 2]))  # a cat, a cat, a dog, a cat
    assert policy.act({}, shown()) == "A"
    assert policy.act({}, shown(options=("a dog", "birds"))) == "A"
    assert policy.act({"option_mask": None}, shown(options=("birds", "a dog", "a cat"))) == 2


def test_frequent_takes_the_place_most_often_right_where_options_are_new(tmp_path: Path) -> None:
    policy = Frequent()
    policy.see_training(training(tmp_path, [1, 1, 0, 2], lambda n: [f"x{n}", f"y{n}", f"z{n}"]))
    assert policy.act({}, shown()) == "B"


def test_text_prior_takes_the_nearest_words_or_the_longest_option() -> None:
    policy = TextPrior()
    assert policy.act({}, shown(question="Do dog and cat differ? A dog barks.")) == "B"
    assert policy.act({}, shown(options=("a", "bbb", "cc"), question="?")) == "B"
    assert policy.act({"option_mask": None}, shown(options=("?", "!!"), question="...")) == 1
    with pytest.raises(InvalidArgumentError, match="number"):
        policy.act({}, shown(answer_kind="number"))


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("option", 1),
        ("ranking", [2, 0, 1]),
        ("boxes", [[0, 0, 10, 20], [500, 500, 1000, 1000]]),
        ("number", 12),
        ("json", {"answers": [True, False]}),
        ("text", "a plain answer"),
    ],
)
def test_a_reference_in_words_scores_1(kind: str, answer: Any) -> None:
    assert score_item(kind, in_words(kind, answer), answer, options=shown()["options"]).value == 1
