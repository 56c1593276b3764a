"""One scripted server for the tests of agents, and a cohort to play on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wsigym.agents.scripted_server import ScriptedServer


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedServer]:
    """A server that behaves."""
    with ScriptedServer() as server:
        yield server
