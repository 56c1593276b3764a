"""Answers to one item under several orders of its options (CaseScope's CircularEval; MMBench, Liu et al. 2023).

An item of n options is asked n times, once a cyclic rotation, so that its key stands at each letter once. An option is
named here by its place in rotation 0, its content: in rotation r the option at a letter's place p (from 0) has the
content (p + r) mod n (cyclic left shifts). -1 stands for a reply that named no option.

    circular    share of items that are right in all rotations
    vanilla     mean over items of the share of rotations that are right
    consistent  share of items whose content is the same in all rotations, right or wrong, none unparsed; never
                below circular

Chance, for a uniform guesser: vanilla 1/n; circular n^-n (`circular_chance`). Who always names one letter scores
exactly 1/n and 0; who always names one content scores its hit rate in both.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

__all__ = ["UNPARSED", "RotationScores", "circular_chance", "content", "retention", "rotation_scores", "top_letter"]

UNPARSED = -1
"""The place of a reply that named no option."""

IntArray = npt.NDArray[np.integer]


def content(places: IntArray, rotations: IntArray, options: IntArray | int) -> IntArray:
    """The place in rotation 0 of what stands at `places` (n,) of `rotations` (n,); -1 stays -1."""
    moved: IntArray = (places + rotations) % options
    return np.where(places < 0, UNPARSED, moved)


@dataclass(frozen=True)
class RotationScores:
    """One entry an item, for the items that were asked in all their rotations, in the order of first appearance.

    `items` (m,) keys; `circular` and `consistent` bool (m,); `vanilla` float64 (m,) in 0..1; `first_rows` (m,) the row
    of each item's first answer, to look up its case. `incomplete` counts the items left out for a missing rotation.
    """

    items: tuple[Hashable, ...]
    circular: npt.NDArray[np.bool_]
    vanilla: npt.NDArray[np.float64]
    consistent: npt.NDArray[np.bool_]
    first_rows: npt.NDArray[np.intp]
    incomplete: int


def rotation_scores(
    contents: IntArray, keys: IntArray, items: Sequence[Hashable], rotations: IntArray, options: IntArray | int
) -> RotationScores:
    """Scores of answers, one row (n,) an item and rotation: content chosen or -1, key's content, item, rotation.

    `options` is the number of options, of all items or of each row. Means of the parts are the paper's figures (times
    100), and their intervals resample cases. Raises `InvalidArgumentError` where lengths differ or an item has a
    rotation twice.
    """
    counts = np.broadcast_to(np.asarray(options), (len(items),))
    if not len(contents) == len(keys) == len(items) == len(rotations):
        raise InvalidArgumentError(
            f"{len(contents)} answers, {len(keys)} keys, {len(items)} items, {len(rotations)} rotations; need equal."
        )
    places: dict[Hashable, int] = {}
    place = np.fromiter((places.setdefault(item, len(places)) for item in items), dtype=np.intp, count=len(items))
    asked = np.bincount(place, minlength=len(places))
    order = np.lexsort((rotations, place))
    twice = np.flatnonzero((np.diff(place[order]) == 0) & (np.diff(np.asarray(rotations)[order]) == 0))
    if len(twice):
        row = int(order[twice[0]])
        raise InvalidArgumentError(
            f"item {items[row]!r} has rotation {rotations[row]} twice; an answer each is needed."
        )
    first = np.full(len(places), len(items), dtype=np.intp)
    np.minimum.at(first, place, np.arange(len(items)))
    complete = asked == counts[first]
    right = np.bincount(place, weights=contents == keys, minlength=len(places))
    same = (contents == np.asarray(contents)[first][place]) & (contents != UNPARSED)
    agreeing = np.bincount(place, weights=same, minlength=len(places))
    return RotationScores(
        items=tuple(item for item, whole in zip(places, complete, strict=True) if whole),
        circular=(right == asked)[complete],
        vanilla=(right / np.maximum(asked, 1))[complete],
        consistent=(agreeing == asked)[complete],
        first_rows=first[complete],
        incomplete=int((~complete).sum()),
    )


def circular_chance(options: int) -> float:
    """n^-n: all n rotations right by independent uniform guesses (1e-10 for ten options, 0.39 % for four)."""
    if options < 1:
        raise InvalidArgumentError(f"{options} options; an item has at least one.")
    return float(options) ** -options


def top_letter(places: IntArray, options: int) -> tuple[int, float] | None:
    """The letter's place given most often and its share of the answers that named one; None where none did.

    Of letters as frequent the first counts. `places` (n,) are letters as shown, not contents. Chance: 1 / options.
    """
    counts = np.bincount(places[places >= 0], minlength=options)
    total = int(counts.sum())
    return (int(counts.argmax()), float(counts.max() / total)) if total else None


def retention(circular: npt.NDArray[np.float64], vanilla: npt.NDArray[np.float64]) -> float | None:
    """How much of the vanilla accuracy CircularEval keeps: circular / vanilla per model (m,), averaged over models.

    Not the ratio of the means: the paper's 24/26/68/61 % come out only so. A model whose vanilla accuracy is 0 has no
    ratio and is left out; None without any. Chance: n^(1 - n).
    """
    some = vanilla > 0
    return float((circular[some] / vanilla[some]).mean()) if some.any() else None
