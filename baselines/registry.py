"""Every policy by the environment that it plays and its name, in one table. A new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from wsigym.cohorts.items import AnswerFormat
from wsigym.envs.policy import Policy
from wsigym.errors import InvalidArgumentError, UnknownNameError

from .checks import extra_rl
from .density_search import stain_density, tissue_density
from .evidence_policies import (
    EvidenceOracle,
    Frequent,
    RandomAnswer,
    TextPrior,
    frequent_answers,
    random_answers,
    text_prior_answers,
)
from .oracle import Oracle
from .pan_zoom_oracle import PanZoomOracle
from .random_looks import RandomLooks
from .search_centre import SearchCentre
from .tile_policies import Adaptive, BeamSearch, BestFirst, ScoreTiles
from .tile_scorers import OracleScores, RandomScores, StainDensity, TileScorer, TissueDensity
from .tissue_centroid import TissueCentroid

__all__ = [
    "EVIDENCE",
    "EXPLORATION",
    "LOCALIZATION",
    "POLICIES",
    "PolicyCard",
    "check_answers",
    "chooses_next",
    "make_policy",
    "make_scorer",
]

LOCALIZATION, EXPLORATION, EVIDENCE = "wsigym/Localization-v0", "wsigym/Exploration-v0", "wsigym/Evidence-v0"

LEARNED, NAVIGATOR = "tile-scorer", "ppo"


@dataclass(frozen=True)
class PolicyCard:
    """How to make a policy, and one line on what it does.

    With `argument`, the policy is asked for as NAME:ARGUMENT, and `make` takes what stands after the colon. `answers`
    tells of a form of answer to an evidence item whether the policy has one; None: it has one of every form.
    """

    make: Callable[..., Policy]
    summary: str
    argument: str | None = None
    answers: Callable[[AnswerFormat], bool] | None = None

    def form(self, name: str) -> str:
        """How the policy called `name` is asked for."""
        return name if self.argument is None else f"{name}:{self.argument}"


SCORERS: Mapping[str, Callable[[], TileScorer]] = {
    "random": RandomScores,
    "tissue-density": TissueDensity,
    "stain-density": StainDensity,
    "oracle": OracleScores,
}


def make_scorer(name: str) -> TileScorer:
    """A new tile scorer: "random", "tissue-density", "stain-density", "oracle" or "tile-scorer:PATH".

    Raises `UnknownNameError`, or `InvalidArgumentError` where the file is none or PyTorch is not installed.
    """
    head, _, path = name.partition(":")
    if head == LEARNED and path:
        return _learned(path)
    if name not in SCORERS:
        raise UnknownNameError("tile scorer", name, [*SCORERS, f"{LEARNED}:PATH"])
    return SCORERS[name]()


def _learned(path: str) -> TileScorer:
    with extra_rl(f"{LEARNED}:{path}"):
        from .learned_scorer import LearnedScorer
    return LearnedScorer(path)


def _navigator(path: str) -> Policy:
    with extra_rl(f"{NAVIGATOR}:{path}"):
        from .ppo_policy import PpoNavigator
    return PpoNavigator(path)


def _scoring(name: str) -> Callable[[], Policy]:
    return lambda: ScoreTiles(make_scorer(name))


def _searching(search: type[BestFirst | BeamSearch]) -> Callable[[str], Policy]:
    return lambda scorer: search(make_scorer(scorer))


def _adaptive(path: str) -> Policy:
    from .tile_calibration import Calibration

    calibration = Calibration.load(path)
    return Adaptive(make_scorer(calibration.scorer), calibration)


def _choosing(path: str) -> Policy:
    with extra_rl(f"choose:{path}"):
        from .tile_chooser import ChooseTiles
    return ChooseTiles(path)


SEARCHES: Mapping[str, PolicyCard] = {
    "best-first": PolicyCard(_searching(BestFirst), "opens the most suspicious tile seen so far", "SCORER"),
    "beam": PolicyCard(_searching(BeamSearch), "opens six a magnification, then begins again on top", "SCORER"),
    "adaptive": PolicyCard(_adaptive, "opens the likeliest tile by a calibration, stops when none is", "FILE"),
    "choose": PolicyCard(
        _choosing, "opens tiles as `wsigym tiles train-search` learned, scored by stain-density", "PATH"
    ),
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
        NAVIGATOR: PolicyCard(
            lambda path: _navigator(path), "a network from `wsigym train` that pans and zooms", "PATH"
        ),
        "pan-zoom-oracle": PolicyCard(
            PanZoomOracle, "reads the reference: the best that pan and zoom can reach, not a contestant"
        ),
        "oracle": PolicyCard(Oracle, "reads the reference: the upper bound, not a contestant"),
    },
    EXPLORATION: {
        "random": PolicyCard(_scoring("random"), "a random order, Yes to every tile"),
        "tissue-density": PolicyCard(_scoring("tissue-density"), "tiles by how much is tissue, Yes to every tile"),
        "stain-density": PolicyCard(_scoring("stain-density"), "tiles by their haematoxylin, Yes to every tile"),
        LEARNED: PolicyCard(
            lambda path: ScoreTiles(_learned(path)), "tiles by a network from `wsigym tiles train`", "PATH"
        ),
        "oracle": PolicyCard(_scoring("oracle"), "reads the reference: the upper bound, not a contestant"),
        **SEARCHES,
    },
    EVIDENCE: {
        "random": PolicyCard(RandomAnswer, "a uniform guess", answers=random_answers),
        "frequent": PolicyCard(Frequent, "the most frequent answer of the train split", answers=frequent_answers),
        "text-prior": PolicyCard(
            TextPrior,
            "the option nearest to the question's words, or the longest; sees no image",
            answers=text_prior_answers,
        ),
        "oracle": PolicyCard(EvidenceOracle, "reads the reference: the upper bound, not a contestant"),
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


def check_answers(names: Iterable[str], task: str, forms: Iterable[AnswerFormat]) -> None:
    """Hold policies of evidence by name against the forms of answer that the items of a task ask for.

    Raises `InvalidArgumentError` that names the policies which can, where one has no answer of a form. Names that are
    no policy's are left to `make_policy`.
    """
    cards = POLICIES[EVIDENCE]
    for form in dict.fromkeys(forms):
        able = [name for name, card in cards.items() if card.answers is None or card.answers(form)]
        unable = [name for name in names if name in cards and name not in able]
        if unable:
            raise InvalidArgumentError(
                f"{task} asks for answers of kind {form.kind}, which {' and '.join(unable)} cannot give. "
                f"Those that can: {', '.join(able)}, and agents."
            )


def chooses_next(name: str) -> bool:
    """Whether a policy of exploration plays the free schedule, by its name."""
    return name.partition(":")[0] in SEARCHES
