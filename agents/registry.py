"""Every agent by its name, in one table. A new one is a file and a line here.

Reading the table imports no agent, so that listing what there is needs neither LangGraph nor the openai client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wsigym.errors import InvalidArgumentError, UnknownNameError

if TYPE_CHECKING:
    from .client import Client
    from .seat import Agent

__all__ = ["AGENTS", "AgentCard", "agent_names", "make_agent"]

LOCALIZATION, EXPLORATION, EVIDENCE = "wsigym/Localization-v0", "wsigym/Exploration-v0", "wsigym/Evidence-v0"


@dataclass(frozen=True)
class AgentCard:
    """What an agent plays, one line on what it does, how one is made, and who in it asks a model.

    With several `roles` each may have an endpoint of its own, in that order; one endpoint serves them all.
    """

    environment: str
    summary: str
    make: Callable[[Sequence[Client]], Agent]
    roles: tuple[str, ...] = ("model",)


def _localizer(clients: Sequence[Client]) -> Agent:
    from .localizer import Localizer

    return Localizer(*clients)


def _verifier(clients: Sequence[Client]) -> Agent:
    from .verifier import Verifier

    return Verifier(*clients)


def _tile_scorer(clients: Sequence[Client]) -> Agent:
    from .tile_scorer import TileScorer

    return TileScorer(*clients)


def _page_scorer(clients: Sequence[Client]) -> Agent:
    from .tile_scorer import TileScorer

    return TileScorer(*clients, page=True)


def _answerer(clients: Sequence[Client]) -> Agent:
    from .answerer import Answerer

    return Answerer(*clients)


AGENTS: Mapping[str, AgentCard] = {
    "localizer": AgentCard(LOCALIZATION, "looks where it wants, then reports a box (EviPathBench's loop)", _localizer),
    "verifier": AgentCard(
        LOCALIZATION,
        "ranks candidates, judges each look, turns back where it conflicts",
        _verifier,
        ("propose", "judge"),
    ),
    "tile-scorer": AgentCard(
        EXPLORATION, "Yes or No and a score, one tile a request (EviPathBench's way)", _tile_scorer
    ),
    "tile-scorer:page": AgentCard(EXPLORATION, "the same, all tiles of a page in one request", _page_scorer),
    "answerer": AgentCard(EVIDENCE, "answers an item in one request", _answerer),
}


def agent_names(environment: str | None = None) -> tuple[str, ...]:
    """The agents of an environment, or all."""
    return tuple(name for name, card in AGENTS.items() if environment in (None, card.environment))


def make_agent(name: str, clients: Sequence[Client], environment: str) -> Agent:
    """A new agent by its name in `AGENTS`, asking these endpoints.

    Raises `UnknownNameError`, and `InvalidArgumentError` where it plays another environment or has fewer roles.
    """
    if name not in AGENTS:
        raise UnknownNameError("agent", name, agent_names(environment))
    card = AGENTS[name]
    if card.environment != environment:
        known = ", ".join(agent_names(environment)) or "none"
        raise InvalidArgumentError(f"agent {name!r} plays {card.environment}; for {environment} there are: {known}.")
    if not 1 <= len(clients) <= len(card.roles):
        raise InvalidArgumentError(
            f"agent {name!r} was given {len(clients)} endpoints; it takes 1"
            + (f" to {len(card.roles)}, for {', '.join(card.roles)}." if len(card.roles) > 1 else ".")
        )
    return card.make(clients)
