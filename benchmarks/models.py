"""The models of a run: which endpoints its agents ask, checked before it begins and opened while it plays.

A set-up is one endpoint, or several that share an agent's roles; records name it by the endpoints' names, joined with
a plus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsigym.agents.costs import Purse
from wsigym.agents.egress import check_egress
from wsigym.agents.endpoints import SCRIPTED, Endpoint
from wsigym.agents.request_log import REQUESTS, RequestLog
from wsigym.envs.policy import Policy
from wsigym.errors import InvalidArgumentError

if TYPE_CHECKING:
    from wsigym.agents.client import Client

__all__ = ["AGENT", "Models", "OpenModels", "Spent", "endpoint_stamp", "setup_label"]

AGENT = "agent:"
"""What the name of an agent begins with among policies."""

JOINED = "+"

ADDRESS_OF_NOBODY = "http://127.0.0.1:9/v1"
"""Stands for the scripted server until a run starts it."""


@dataclass(frozen=True)
class Spent:
    """What requests took. `cost_usd` is None where an endpoint has no price."""

    requests: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None


def setup_label(setup: Sequence[Endpoint]) -> str:
    """How records name a set-up."""
    return JOINED.join(endpoint.name for endpoint in setup)


def endpoint_stamp(endpoint: Endpoint) -> dict[str, Any]:
    """What `run.json` keeps of an endpoint: all but its name and where its key is."""
    return endpoint.model_dump(mode="json", exclude={"name", "api_key_env"})


class Models:
    """The set-ups of a run, and its limits. Raises `InvalidArgumentError` where two endpoints have one name."""

    def __init__(
        self, setups: Sequence[Sequence[Endpoint]], environment: str, *, max_cost: float | None, egress: str
    ) -> None:
        self.setups = {setup_label(setup): tuple(setup) for setup in setups}
        self.environment, self.max_cost, self.egress = environment, max_cost, egress
        self.endpoints: dict[str, Endpoint] = {}
        for endpoint in (endpoint for setup in setups for endpoint in setup):
            if self.endpoints.setdefault(endpoint.name, endpoint) != endpoint:
                raise InvalidArgumentError(f"two different endpoints are called {endpoint.name!r}; rename one of them.")
        for label, setup in self.setups.items():
            if len({endpoint.name for endpoint in setup}) < len(setup):
                raise InvalidArgumentError(f"set-up {label!r} names one endpoint twice; once is enough.")

    @property
    def priced(self) -> bool:
        return all(endpoint.price_in is not None for endpoint in self.endpoints.values())

    def check(self, agents: Sequence[str]) -> None:
        """Everything that can be known before the first request: egress, keys, prices, and that each agent plays.

        Raises `EgressError`, `InvalidArgumentError` and `UnknownNameError`. Asks no endpoint anything.
        """
        for endpoint in self.endpoints.values():
            check_egress(endpoint, self.egress)
        purse = None if self.max_cost is None else Purse(self.max_cost)
        clients = {name: _client(endpoint, None, purse) for name, endpoint in self.endpoints.items()}
        for agent in agents:
            for setup in self.setups.values():
                _make_agent(agent, [clients[endpoint.name] for endpoint in setup], self.environment)

    @contextmanager
    def opened(self, folder: Path) -> Iterator[OpenModels]:
        """The models ready to be asked, their answers logged in the run's folder, whose lock the caller holds."""
        with RequestLog(folder / REQUESTS) as log, _scripted_url(self.endpoints) as url:
            purse = None if self.max_cost is None else Purse(self.max_cost, spent_usd=log.cost_usd)
            clients = {name: _client(endpoint, log, purse, url) for name, endpoint in self.endpoints.items()}
            yield OpenModels(self, log, clients)


class OpenModels:
    """A run's clients, each shared by all of its episodes, and what they spend."""

    def __init__(self, models: Models, log: RequestLog, clients: Mapping[str, Client]) -> None:
        self._models, self._log, self._clients = models, log, clients
        self._before = self.in_all

    def make_policy(self, name: str, label: str | None) -> Policy:
        """A new agent that asks the set-up of that label."""
        assert label is not None, "an agent's key names its set-up"
        setup = self._models.setups[label]
        return _make_agent(name, [self._clients[endpoint.name] for endpoint in setup], self._models.environment)

    def client(self, name: str) -> Client:
        """The client of the endpoint of that name."""
        return self._clients[name]

    @property
    def in_all(self) -> Spent:
        """What the run's folder has seen, earlier calls included."""
        log = self._log
        return Spent(len(log), log.tokens_in, log.tokens_out, log.cost_usd if self._models.priced else None)

    @property
    def spent(self) -> Spent:
        """What was spent since these models were opened."""
        now, before = self.in_all, self._before
        cost = None if now.cost_usd is None or before.cost_usd is None else now.cost_usd - before.cost_usd
        return Spent(
            now.requests - before.requests,
            now.tokens_in - before.tokens_in,
            now.tokens_out - before.tokens_out,
            cost,
        )

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()


def _client(endpoint: Endpoint, log: RequestLog | None, purse: Purse | None, url: str = ADDRESS_OF_NOBODY) -> Client:
    try:
        from wsigym.agents.client import Client
    except ModuleNotFoundError as error:
        raise _not_installed(error) from None
    if endpoint.base_url is None:
        endpoint = endpoint.model_copy(update={"base_url": url})
    return Client(endpoint, log=log, purse=purse)


def _make_agent(name: str, clients: Sequence[Client], environment: str) -> Policy:
    try:
        from wsigym.agents.registry import make_agent
    except ModuleNotFoundError as error:
        raise _not_installed(error) from None
    return make_agent(name.removeprefix(AGENT), clients, environment)


def _not_installed(error: ModuleNotFoundError) -> InvalidArgumentError:
    return InvalidArgumentError(f"agents need {error.name}, which is not installed: pip install 'wsigym[agents]'.")


@contextmanager
def _scripted_url(endpoints: Mapping[str, Endpoint]) -> Iterator[str]:
    """The address of the scripted model's server, which is started where an endpoint has no address of its own."""
    if SCRIPTED not in endpoints or endpoints[SCRIPTED].base_url is not None:
        yield ADDRESS_OF_NOBODY
        return
    from wsigym.agents.scripted_server import ScriptedServer

    with ScriptedServer() as server:
        yield server.base_url
