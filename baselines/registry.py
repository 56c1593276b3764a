"""Every policy by name, in one table. A new one is a file beside this one and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wsigym.envs.policy import Policy
from wsigym.errors import UnknownNameError

from .density_search import stain_density, tissue_density
from .oracle import Oracle
from .random_looks import RandomLooks
from .search_centre import SearchCentre
from .tissue_centroid import TissueCentroid

__all__ = ["POLICIES", "PolicyCard", "make_policy"]


@dataclass(frozen=True)
class PolicyCard:
    """How to make a policy, and one line on what it does. Only the search centre is named in the paper."""

    make: Callable[[], Policy]
    summary: str


POLICIES: Mapping[str, PolicyCard] = {
    "random": PolicyCard(RandomLooks, "random looks, then a random box"),
    "search-centre": PolicyCard(SearchCentre, "the centre of the search box, without a look (named in EviPathBench)"),
    "tissue-centroid": PolicyCard(TissueCentroid, "the centroid of the overview's tissue, without a look"),
    "tissue-density": PolicyCard(tissue_density, "spends its looks on the fields with the most tissue"),
    "stain-density": PolicyCard(stain_density, "spends its looks on the fields with the most haematoxylin"),
    "oracle": PolicyCard(Oracle, "reads the reference: the upper bound, not a contestant"),
}


def make_policy(name: str) -> Policy:
    """A new policy by its name in `POLICIES`; `UnknownNameError` with a near match otherwise."""
    if name not in POLICIES:
        raise UnknownNameError("policy", name, POLICIES)
    return POLICIES[name].make()
