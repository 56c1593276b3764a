"""Policies for evidence items that look at no image: controls and bounds. Each answers in one step.

They answer as the environment takes it: with the place of an option, or in words that it parses.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from wsigym.cohorts import EvidenceReference
from wsigym.cohorts.items import AnswerFormat, letter
from wsigym.envs.policy import Info, Observation, SeededPolicy
from wsigym.errors import InvalidArgumentError

__all__ = [
    "EvidenceOracle",
    "Frequent",
    "RandomAnswer",
    "TextPrior",
    "frequent_answers",
    "random_answers",
    "text_prior_answers",
]

BOX_GRID = 1000

MAX_COUNT = 100
"""A random count is below it (this project's choice; PathView-Bench does not say what its own are drawn from)."""

TRUTH = "true/false"
"""How the words on the form of an answer write a truth value that is asked for, as CaseScope's do."""


def choose(observation: Observation, place: int) -> Any:
    """The action for the option at a place: the place itself where that is an action, else its letter."""
    return place if "option_mask" in observation else letter(place)


def random_answers(form: AnswerFormat) -> bool:
    """Whether `RandomAnswer` has an answer of this form: not of terms, free words or diagnoses."""
    return form.kind in ("option", "ranking", "boxes", "number") or (form.kind == "json" and TRUTH in form.words)


def frequent_answers(form: AnswerFormat) -> bool:
    """Whether `Frequent` has: the most frequent description says nothing of an image."""
    return form.kind != "terms"


def text_prior_answers(form: AnswerFormat) -> bool:
    """Whether `TextPrior` has: it chooses among options."""
    return form.kind == "option"


class RandomAnswer(SeededPolicy):
    """Uniform over the options; over orders for a ranking; one uniform box; a uniform count below 100; coins."""

    def reset(self, observation: Observation, info: Info) -> None:
        pass

    def act(self, observation: Observation, info: Info) -> Any:
        kind, count = info["answer_kind"], len(info["options"])
        if kind == "ranking":
            return ", ".join(letter(int(place)) for place in self.rng.permutation(count))
        if kind == "boxes":
            x1, x2 = sorted(self.rng.choice(BOX_GRID + 1, 2, replace=False).tolist())
            y1, y2 = sorted(self.rng.choice(BOX_GRID + 1, 2, replace=False).tolist())
            return json.dumps([[x1, y1, x2, y2]])
        if kind == "number":
            return str(int(self.rng.integers(MAX_COUNT)))
        asked = info.get("answer_words", "").count(TRUTH)
        if kind == "json" and asked:
            told = self.rng.integers(2, size=asked).astype(bool).tolist()
            return json.dumps({"answers": told})
        if kind != "option":
            raise InvalidArgumentError(f"policy random: there is no random answer of kind {kind}.")
        return choose(observation, int(self.rng.integers(count)))


class Frequent:
    """The most frequent answer of the train split: of an item's options, the one that was most often right there.

    Where no option was ever right, or all as often, the place that was most often right.
    """

    reads_training = True

    def __init__(self) -> None:
        self._texts: Counter[str] = Counter()
        self._places: Counter[int] = Counter()
        self._answers: Counter[str] = Counter()

    def see_training(self, items: Sequence[Any]) -> None:
        """Items (`wsigym.benchmarks.task.Item`) with their references; of each the unrotated one counts."""
        for item in items:
            if item.rotation:
                continue
            answer = item.reference.answer
            if item.question.answer.kind == "option":
                self._texts[item.question.options[answer]] += 1
                self._places[answer] += 1
            else:
                self._answers[in_words(item.question.answer.kind, answer)] += 1

    def reset(self, observation: Observation, info: Info) -> None:
        pass

    def act(self, observation: Observation, info: Info) -> Any:
        if info["answer_kind"] != "option":
            if info["answer_kind"] == "terms":
                raise InvalidArgumentError("policy frequent: the most frequent description says nothing of an image.")
            if not self._answers:
                raise InvalidArgumentError("policy frequent: the train split has no answer of this kind.")
            return self._answers.most_common(1)[0][0]
        places = range(len(info["options"]))
        key = [
            (self._texts[option], self._places[place]) for place, option in zip(places, info["options"], strict=True)
        ]
        return choose(observation, max(places, key=lambda place: (key[place], -place)))


class TextPrior(SeededPolicy):
    """The option whose words are nearest to the question's by TF-IDF; of several, the longest. Sees no image."""

    def reset(self, observation: Observation, info: Info) -> None:
        pass

    def act(self, observation: Observation, info: Info) -> Any:
        if info["answer_kind"] != "option":
            raise InvalidArgumentError(f"policy text-prior chooses options; asked was {info['answer_kind']}.")
        from sklearn.feature_extraction.text import TfidfVectorizer

        options = list(info["options"])
        near = np.zeros(len(options))
        try:
            vectors = TfidfVectorizer().fit_transform([*options, info["question"]])
            near = (vectors[:-1] @ vectors[-1].T).toarray()[:, 0].round(9)
        except ValueError:  # no word of two letters anywhere
            pass
        return choose(
            observation, max(range(len(options)), key=lambda place: (near[place], len(options[place]), -place))
        )


class EvidenceOracle:
    """Reads the reference through the door that only the runner opens."""

    reads_reference = True

    def reset(self, observation: Observation, info: Info) -> None:
        self._reference: EvidenceReference | None = None

    def see_reference(self, reference: EvidenceReference) -> None:
        self._reference = reference

    def act(self, observation: Observation, info: Info) -> Any:
        assert self._reference is not None, "the runner calls see_reference after reset"
        kind, answer = info["answer_kind"], self._reference.answer
        return choose(observation, answer) if kind == "option" else in_words(kind, answer)


def in_words(kind: str, answer: Any) -> str:
    """A reference's answer as a reply that is parsed back to it."""
    if kind == "option":
        return letter(answer)
    if kind == "ranking":
        return ", ".join(map(letter, answer))
    if kind == "terms":
        return ", ".join(answer)
    return answer if kind == "text" else json.dumps(answer)
