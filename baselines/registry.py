"""Every policy by the environment that it plays and its name, in one table. A new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wsigym.envs.policy import Policy
from wsigym.errors import InvalidArgumentError, UnknownNameError

from .density_search import stain_density, tissue_density
from .oracle import Oracle
from .random_looks import RandomLooks
from .search_centre import SearchCentre
from .tile_policies import BeamSearch, BestFirst, FreeTilePolicy, ScoreTiles
from .tile_scorers import OracleScores, RandomScores, StainDensity, TileScorer, TissueDensity
from .tissue_centroid import TissueCentroid

__all__ = ["EXPLORATION", "LOCALIZATION", "POLICIES", "PolicyCard", "chooses_next", "make_policy"]

LOCALIZATION, EXPLORATION = "wsigym/Localization-v0", "wsigym/Exploration-v0"


@dataclass(frozen=True)
class PolicyCard:
    """How to make a policy, and one line on what it does.

    With `argument`, the policy is asked for as NAME:ARGUMENT, and `make` takes what stands after the colon.
    """

    make: Callable[..., Policy]
    summary: str
    argument: str | None = None

    def form(self, name: str) -> str:
        """How the policy called `name` is asked for."""
        return name if self.argument is None else f"{name}:{self.argument}"


SCORERS: Mapping[str, Callable[[], TileScorer]] = {
    "random": RandomScores,
    "tissue-density": TissueDensity,
    "stain-density": StainDensity,
    "oracle": OracleScores,
}


def _scorer(name: str) -> TileScorer:
    if name not in SCORERS:
        raise UnknownNameError("tile scorer", name, SCORERS)
    return SCORERS[name]()


def _scoring(name: str) -> Callable[[], Policy]:
    return lambda: ScoreTiles(_scorer(name))


def _searching(search: type[FreeTilePolicy]) -> Callable[[str], Policy]:
    return lambda scorer: search(_scorer(scorer))


SEARCHES: Mapping[str, PolicyCard] = {
    "best-first": PolicyCard(_searching(BestFirst), "opens the most suspicious tile seen so far", "SCORER"),
    "beam": PolicyCard(_searching(BeamSearch), "opens six a magnification, then begins again on top", "SCORER"),
}
"""Policies that choose what to open next, in the free schedule."""

POLICIES: Mapping[str, Mapping[str, PolicyCard]] = {
    LOCALIZATION: {
        "random": PolicyCard(RandomLooks, "random looks, then a random box"),
        "search-centre": PolicyCard(
            SearchCentre, "the centre of the search box, without a look (named in EviPathBench)"
        ),
        "tissue-centroid": PolicyCard(TissueCentroid, "the centroid of the overview's tissue, without a look"),
        "tissue-density": PolicyCard(tissue_density, "spends its looks on the fields with the most tissue"),
        "stain-density": PolicyCard(stain_density, "spends its looks on the fields with the most haematoxylin"),
        "oracle": PolicyCard(Oracle, "reads the reference: the upper bound, not a contestant"),
    },
    EXPLORATION: {
        "random": PolicyCard(_scoring("random"), "a random order, Yes to every tile"),
        "tissue-density": PolicyCard(_scoring("tissue-density"), "tiles by how much is tissue, Yes to every tile"),
        "stain-density": PolicyCard(_scoring("stain-density"), "tiles by their haematoxylin, Yes to every tile"),
        "oracle": PolicyCard(_scoring("oracle"), "reads the reference: the upper bound, not a contestant"),
        **SEARCHES,
    },
}


def make_policy(name: str, environment: str = LOCALIZATION) -> Policy:
    """A new policy for an environment by its name in `POLICIES`, such as "random" or "best-first:stain-density".

    Raises `UnknownNameError` with a near match, or `InvalidArgumentError` where an argument is missing or too many.
    """
    known = POLICIES.get(environment, {})
    head, colon, argument = name.partition(":")
    if head not in known:
        raise UnknownNameError("policy", name, known)
    card = known[head]
    if (card.argument is not None) != bool(argument) or (colon and not argument):
        raise InvalidArgumentError(f"policy {name!r}: it is asked for as {card.form(head)}.")
    return card.make(argument) if argument else card.make()


def chooses_next(name: str) -> bool:
    """Whether a policy of exploration plays the free schedule, by its name."""
    return name.partition(":")[0] in SEARCHES
