"""docs/agents.md shows each agent's graph as the code has it, and every agent and prompt by its name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from model_stub import StubClient

from wsigym.agents.endpoints import Endpoint
from wsigym.agents.registry import AGENTS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "agents.md").read_text(encoding="utf-8")


def drawn(name: str) -> str:
    client: Any = StubClient(lambda messages: "")
    graph: Any = AGENTS[name].make([client])
    return str(graph.graph.get_graph().draw_mermaid()).strip()


@pytest.mark.parametrize("name", [name for name in AGENTS if ":" not in name])
def test_a_graph_is_drawn_from_the_graph_itself(name: str) -> None:
    section = PAGE.split(f"\n### {name}\n")[1].split("\n### ")[0]
    (shown,) = re.findall(r"```mermaid\n(.*?)\n```", section, re.DOTALL)
    assert shown == drawn(name)


def test_a_page_scorer_has_the_graph_of_the_scorer() -> None:
    assert drawn("tile-scorer:page") == drawn("tile-scorer")


def test_every_agent_is_in_the_table() -> None:
    for name in AGENTS:
        assert f"\n| `{name}` | " in PAGE


def test_settings_of_endpoints_are_real_and_their_defaults_right() -> None:
    page = (DOCS / "own-model.md").read_text(encoding="utf-8")
    table = page.split("| setting | default |")[1].split("\n\n")[0]
    fields = Endpoint.model_fields
    for names, default in re.findall(r"^\| (`[^|]+`) \| ([^|]+) \|", table, re.MULTILINE):
        listed = re.findall(r"`(\w+)`", names)
        assert set(listed) <= set(fields)
        for name, value in zip(listed, default.split(", "), strict=False):
            if value not in ("none", "known for a few", "`{}`", "or the family's"):
                assert str(fields[name].default).removesuffix(".0").lower() == value.strip("`").lower(), name
