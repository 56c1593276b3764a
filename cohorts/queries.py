"""Localization queries: what a policy is asked, and the reference that it never sees.

A query asks for one finding at one magnification inside a search box (EviPathBench task 3, mode A): the whole
slide for the first node of a path, the annotated parent's box for a deeper one. Nodes with the same slide,
magnification, finding and search box are one query with several valid boxes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from wsigym.errors import InvalidArgumentError
from wsigym.slides import Box

from .cohort import Cohort
from .models import Node

__all__ = ["LocalizationQuery", "LocalizationReference", "localization_queries"]


@dataclass(frozen=True)
class LocalizationQuery:
    """What is asked. Everything here may be shown to a model.

    `search_box` is in level-0 pixels, `magnification` objective-equivalent (40x = 0.25 um/px).
    """

    query_id: str
    slide_id: str
    target: str
    magnification: float
    search_box: Box


@dataclass(frozen=True)
class LocalizationReference:
    """The hidden answer: every valid box (level-0 pixels), and the nodes that they come from."""

    query_id: str
    boxes: tuple[Box, ...]
    node_ids: tuple[str, ...]


def localization_queries(
    cohort: Cohort, split: str | None = None
) -> list[tuple[LocalizationQuery, LocalizationReference]]:
    """All queries of a split with their references, in the order of the slides and nodes in the cohort.

    Opens the slides whose nodes have no parent, for their size. Raises `InvalidArgumentError` where there is
    nothing to ask.
    """
    found = list(_queries(cohort, split))
    if not found:
        raise InvalidArgumentError(
            f"cohort {cohort.name!r} has no annotated node on a slide of split {split or 'any'}; "
            "a localization query needs nodes in nodes.jsonl."
        )
    return found


def _queries(cohort: Cohort, split: str | None) -> Iterator[tuple[LocalizationQuery, LocalizationReference]]:
    for entry in cohort.in_split(split):
        nodes = cohort.nodes_of(entry.slide_id)
        box_of = {node.node_id: node.box for node in nodes}
        groups: dict[tuple[float, str, Box], list[Node]] = {}
        for node in nodes:
            search_box = cohort.open(entry.slide_id).box if node.parent_id is None else box_of[node.parent_id]
            groups.setdefault((node.magnification, node.finding, search_box), []).append(node)
        for (magnification, finding, search_box), found in groups.items():
            query_id = _query_id(entry.slide_id, magnification, finding, search_box)
            yield (
                LocalizationQuery(query_id, entry.slide_id, finding, magnification, search_box),
                LocalizationReference(
                    query_id, tuple(node.box for node in found), tuple(node.node_id for node in found)
                ),
            )


def _query_id(slide_id: str, magnification: float, finding: str, search_box: Box) -> str:
    """Stable when nodes are added or reordered, and made of nothing but what the query itself shows."""
    shown = json.dumps([slide_id, magnification, finding, search_box.to_list()])
    return f"{slide_id}/{magnification:g}x/{hashlib.sha256(shown.encode()).hexdigest()[:12]}"
