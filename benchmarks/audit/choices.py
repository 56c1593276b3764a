"""Items as an answer-free probe sees them: the question's words, the options' words, and which options are right."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from wsigym.cohorts import Asked, EvidenceItem
from wsigym.cohorts.items import GROUPS
from wsigym.scoring.answers import is_insufficient
from wsigym.scoring.intervals import MIN_UNITS

__all__ = ["FOLDS", "Choices", "choices_of", "folds_of", "truths_of", "unit_of", "words_of"]

FOLDS = 5

NUMBERED = re.compile(r"^\d+[.)] ")


@dataclass(frozen=True)
class Choices:
    """Choices among options, one an item.

    `rights` are the places that are right; `units` what intervals take as one (one patient's items with one right
    answer: several questions about it are one piece of evidence, while another answer is another); `folds`
    (n,) numbers the parts in which learned rules are tried on what they have not seen, None where there are too few
    groups. `left_out` says what is not among the choices, and why.
    """

    questions: tuple[str, ...]
    options: tuple[tuple[str, ...], ...]
    rights: tuple[frozenset[int], ...]
    units: tuple[str, ...]
    folds: npt.NDArray[np.intp] | None
    left_out: str = ""

    def __len__(self) -> int:
        return len(self.questions)

    # Every option is a row of the flat arrays below.

    @cached_property
    def texts(self) -> list[str]:
        """(rows,) the options, folded: case and runs of spaces don't count."""
        return [" ".join(text.casefold().split()) for options in self.options for text in options]

    @cached_property
    def sizes(self) -> npt.NDArray[np.intp]:
        """(n,) how many options each item has."""
        return np.array([len(options) for options in self.options], dtype=np.intp)

    @cached_property
    def starts(self) -> npt.NDArray[np.intp]:
        """(n,) the row of each item's first option."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.intp)

    @cached_property
    def item_of(self) -> npt.NDArray[np.intp]:
        """(rows,) the item of each option."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def place_of(self) -> npt.NDArray[np.intp]:
        """(rows,) the place of each option in its item."""
        return np.arange(len(self.item_of)) - self.starts[self.item_of]

    @cached_property
    def is_right(self) -> npt.NDArray[np.bool_]:
        """(rows,) whether the option is right."""
        found = [
            place in right
            for options, right in zip(self.options, self.rights, strict=True)
            for place in range(len(options))
        ]
        return np.array(found, dtype=np.bool_)

    @cached_property
    def chances(self) -> npt.NDArray[np.float64]:
        """(n,) the share of right options."""
        shares: npt.NDArray[np.float64] = np.add.reduceat(self.is_right.astype(np.float64), self.starts) / self.sizes
        return shares

    def chosen(self, scores: npt.NDArray[np.floating]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
        """From a score of each row: which items (n,) the scores choose in, and how right the choice is there.

        Chosen is the option with the highest score; of k equal ones each with 1 / k. Where all are equal nothing is
        chosen, and the item is no evidence either way.
        """
        scores = np.round(np.asarray(scores, np.float64), 9)
        best = np.maximum.reduceat(scores, self.starts)
        tells = best > np.minimum.reduceat(scores, self.starts)
        taken = scores == best[self.item_of]
        right = np.add.reduceat((taken & self.is_right).astype(np.float64), self.starts)
        return tells, right / np.add.reduceat(taken.astype(np.float64), self.starts)

    def held_out(self) -> Iterator[tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:
        """The items (n,) to learn from and those to try on, fold by fold; no group is in both."""
        assert self.folds is not None, "learned rules are tried where there are folds"
        for fold in range(int(self.folds.max()) + 1):
            yield self.folds != fold, self.folds == fold


def unit_of(item: EvidenceItem) -> str:
    """The patient, or where it is unknown the case, slide, set or source."""
    kind = next(kind for kind in GROUPS if kind in item.group)
    return f"{kind} {item.group[kind]}"


def words_of(item: EvidenceItem) -> str:
    """What is read with the question, without the evidence that stands in words."""
    return item.model_copy(update={"findings": ()}).text


def _units(
    items: Sequence[EvidenceItem], options: Sequence[Sequence[str]], rights: Sequence[frozenset[int]]
) -> tuple[str, ...]:
    return tuple(
        "\0".join([unit_of(item), *(texts[place] for place in sorted(right))])
        for item, texts, right in zip(items, options, rights, strict=True)
    )


def folds_of(items: Sequence[EvidenceItem]) -> npt.NDArray[np.intp] | None:
    """(n,) the fold of each item, of five by group; None under five groups.

    Items that share a patient, case, slide or set, or are linked by a chain of them, are in one fold; where that leaves
    fewer than five groups, those that share a unit are.
    """
    links = _linked(items)
    groups = links if len(set(links)) >= MIN_UNITS else [unit_of(item) for item in items]
    if len(set(groups)) < MIN_UNITS:
        return None
    from sklearn.model_selection import GroupKFold

    folds = np.zeros(len(items), dtype=np.intp)
    for fold, (_, held_out) in enumerate(GroupKFold(FOLDS).split(np.zeros(len(items)), groups=groups)):
        folds[held_out] = fold
    return folds


def _linked(items: Sequence[EvidenceItem]) -> list[str]:
    """The group of each item: the smallest name among all that it is linked with."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    names = []
    for item in items:
        linked = [f"{kind} {name}" for kind, name in item.group.items() if kind != "source"]
        linked += [f"set {item.set_id}"] if item.set_id is not None else []
        linked = linked or [unit_of(item)]
        for name in linked[1:]:
            first, second = sorted((root(linked[0]), root(name)))
            parent[second] = first
        names.append(linked[0])
    return [root(name) for name in names]


def choices_of(asked: Sequence[Asked]) -> Choices | str:
    """The choices that items of a task offer, or why they offer none.

    An option that declines ("Insufficient information") is left out where it is wrong: whether to decline is what tasks
    with it measure. Of items that ask whether each of several statements is true, the statements are the options, and
    the true ones right.
    """
    kept = []
    for each in asked:
        found = _statements(each) if each.item.answer.kind == "json" else _options(each)
        if found is not None:
            kept.append((each.item, *found))
    kinds = sorted({each.item.answer.kind for each in asked})
    if not kept:
        return f"answers of kind {', '.join(kinds)} choose nothing"
    if all(_declines(options, rights) for _, _, options, rights in kept):
        return "every right answer is the option that declines"
    kept = [(item, question, *_answering(options, rights)) for item, question, options, rights in kept]
    usable = [each for each in kept if 0 < len(each[3]) < len(each[2])]
    left = len(asked) - len(usable)
    if not usable:
        return "in every item all options are right, or none"
    items, questions, options, rights = (tuple(part) for part in zip(*usable, strict=True))
    return Choices(
        questions,
        options,
        rights,
        _units(items, options, rights),
        folds_of(items),
        f"{left:,} without a choice" if left else "",
    )


def truths_of(asked: Sequence[Asked]) -> Choices | None:
    """True or false, for each statement of items that ask so; None where there are none."""
    items, truths = [], []
    for each in asked:
        found = _statements(each) if each.item.answer.kind == "json" else None
        if found is not None:
            items += [each.item] * len(found[1])
            truths += [place in found[2] for place in range(len(found[1]))]
    if not items:
        return None
    return Choices(
        tuple(item.question for item in items),
        (("true", "false"),) * len(items),
        tuple(frozenset([0 if true else 1]) for true in truths),
        tuple(map(unit_of, items)),  # a unit with one answer alone would say nothing of how often each is right
        folds_of(items),
    )


Found = tuple[str, tuple[str, ...], frozenset[int]]


def _options(asked: Asked) -> Found | None:
    item, reference = asked.item, asked.reference
    if item.answer.kind == "option":
        rights = frozenset([reference.answer, *reference.accepted])
    elif item.answer.kind == "ranking":
        rights = frozenset([reference.answer[0], *(answer[0] for answer in reference.accepted)])
    else:
        return None
    return words_of(item), item.options, rights


def _statements(asked: Asked) -> Found | None:
    """Numbered lines of the question that the reference holds a truth value of each for."""
    values = next(iter(asked.reference.answer.values()), None)
    lines = words_of(asked.item).splitlines()
    statements = tuple(NUMBERED.sub("", line) for line in lines if NUMBERED.match(line))
    if not isinstance(values, list) or len(values) != len(statements) or not all(map(_is_bool, values)):
        return None
    question = "\n".join(line for line in lines if not NUMBERED.match(line))
    return question, statements, frozenset(place for place, true in enumerate(values) if true)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


@lru_cache(maxsize=100_000)
def _says_so(option: str) -> bool:
    return is_insufficient(option)


def _declines(options: Sequence[str], rights: frozenset[int]) -> bool:
    return bool(rights) and all(_says_so(options[place]) for place in rights)


def _answering(options: tuple[str, ...], rights: frozenset[int]) -> tuple[tuple[str, ...], frozenset[int]]:
    kept = [place for place, option in enumerate(options) if place in rights or not _says_so(option)]
    return tuple(options[place] for place in kept), frozenset(new for new, old in enumerate(kept) if old in rights)
