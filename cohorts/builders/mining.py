"""Distractors that are unlike the key and each other: greedy choice of the smallest largest cosine (EviPathBench).

A set starts with one text; the candidate whose largest cosine to those chosen is smallest is added, until the set is
full. A set with a pair above the threshold is rejected: 0.6 is accepted, anything above it is not. Cosines are compared
at six decimals, so that the last bits of a sum decide nothing; of equal candidates the first counts.

No matrix of all similarities is ever made. A candidate's largest cosine is never below its cosine to the start, so one
product of all vectors with the start says which candidates to look at first, and when the others need no look.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["SET_SIZE", "THRESHOLD", "mine_sets", "unlike"]

THRESHOLD = 0.6
"""The largest cosine between two members of a set (EviPathBench, section on T1 and T2)."""

SET_SIZE = 4

DECIMALS = 6

FEW = 1024
"""Candidates looked at first, four times as many each time that they do not settle it: of 51,363 enough as a rule."""


def mine_sets(
    vectors: Any, cells: Sequence[Hashable], names: Sequence[str], *, seed: int, threshold: float = THRESHOLD
) -> list[tuple[int, ...]]:
    """Sets of four rows of `vectors` (n, d), unit rows, array or CSR, each within one of `cells` (n,).

    Each row is in at most one set. Starts are in an order drawn with `seed` from `names` (n,), which are unique and
    also say which of equal candidates comes first, so that the order of rows does not matter. A start whose set is
    rejected is not used again.
    """
    rows_of: dict[Hashable, list[int]] = {}
    for row in sorted(range(len(names)), key=lambda row: names[row]):
        rows_of.setdefault(cells[row], []).append(row)
    found: list[tuple[int, ...]] = []
    for cell in sorted(rows_of, key=repr):
        rows = np.array(rows_of[cell])
        lots = [hashlib.sha256(f"{seed}\0{names[row]}".encode()).digest() for row in rows]
        starts = sorted(range(len(rows)), key=lambda place: lots[place])
        found += [tuple(rows[list(places)].tolist()) for places in _sets(vectors[rows], starts, threshold)]
    return found


def _sets(vectors: Any, starts: Sequence[int], threshold: float) -> list[tuple[int, ...]]:
    free = np.ones(vectors.shape[0], bool)
    kept = np.arange(vectors.shape[0])  # the rows that `vectors` still holds
    held = vectors
    found = []
    for start in starts:
        if not free[start]:
            continue
        free[start] = False
        if free[kept].sum() < 0.9 * len(kept):  # the products get shorter as rows are used up
            kept = np.flatnonzero(free)
            held = vectors[kept]
        chosen = unlike(held, vectors[start], free[kept], SET_SIZE - 1, threshold)
        if chosen is None:
            continue
        members = (start, *kept[chosen].tolist())
        free[list(members)] = False
        found.append(members)
    return found


def unlike(
    vectors: Any, start: Any, free: npt.NDArray[np.bool_], count: int, threshold: float = THRESHOLD
) -> list[int] | None:
    """`count` rows of `vectors` (n, d) among those `free` (n,), chosen greedily beside the unit vector `start`.

    None where the smallest largest cosine is above the threshold, or too few rows are free.
    """
    candidates = np.flatnonzero(free)
    if len(candidates) < count:
        return None
    to_start = _cosines(vectors, start)[candidates]
    few = FEW
    while True:
        near, beyond = _least(to_start, few)
        held, largest = vectors[candidates[near]], to_start[near]
        chosen: list[int] = []
        while len(chosen) < count:
            best = int(largest.argmin())
            if min(largest[best], beyond[0]) > threshold:
                return None
            if (largest[best], near[best]) > beyond:
                break
            chosen.append(best)
            np.maximum(largest, _cosines(held, held[best]), out=largest)
            largest[chosen] = np.inf
        else:
            return [int(candidate) for candidate in candidates[near[chosen]]]
        few *= 4


def _least(numbers: npt.NDArray[np.float64], few: int) -> tuple[npt.NDArray[np.intp], tuple[float, int]]:
    """The places of the `few` smallest numbers (n,), of equal ones the first, in order of place; and the next smallest
    with its place, infinite where there is none."""
    if few >= len(numbers):
        return np.arange(len(numbers)), (np.inf, 0)
    following = float(np.partition(numbers, few)[few])
    below, equal = np.flatnonzero(numbers < following), np.flatnonzero(numbers == following)
    taken = few - len(below)
    return np.sort(np.concatenate([below, equal[:taken]])), (following, int(equal[taken]))


def _cosines(vectors: Any, vector: Any) -> npt.NDArray[np.float64]:
    products = vectors @ vector.T
    dense = products.toarray()[:, 0] if hasattr(products, "toarray") else np.asarray(products)
    return np.round(dense.astype(np.float64), DECIMALS)
