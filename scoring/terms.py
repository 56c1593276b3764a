"""Which standard terms of the truth an answer names (PathView-Bench RDS)."""

from __future__ import annotations

from collections.abc import Collection

from wsigym.errors import InvalidArgumentError

__all__ = ["entity_recall"]


def entity_recall(named: Collection[str], truth: Collection[str]) -> float:
    """|G and P| / |G|, in 0..1: the share of the standard terms G of the `truth` among those `named`.

    Further terms cost nothing, as in the paper, so that naming the whole vocabulary scores 1: print how many were
    named beside it. Spellings are made standard before (`answers.parse_terms`). Chance: names drawn at random, k of V,
    score k / V on average. Raises `InvalidArgumentError` for an empty truth.
    """
    if not truth:
        raise InvalidArgumentError("the truth names no term; an item needs at least one.")
    return len(set(truth) & set(named)) / len(set(truth))
