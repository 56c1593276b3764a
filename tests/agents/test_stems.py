"""Questions in a model's words: what is used, what is not, and that nothing else of an item changes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from evidence_builder import item, reference

from wsigym.agents import Client, Endpoint
from wsigym.agents.costs import Purse
from wsigym.agents.request_log import RequestLog, read_requests
from wsigym.agents.scripted_server import ScriptedServer
from wsigym.agents.stems import TRIES, UNANSWERED, Rewritten, fault_of, rewrite_stems
from wsigym.cohorts import Asked, EvidenceItem, EvidenceReference
from wsigym.errors import CostLimitError, EndpointError

QUOTED = 'Which image shows this finding at 10x: "Crowded glands"?'


def made(question: str = "Which of these is seen?", **changes: Any) -> EvidenceItem:
    return EvidenceItem.model_validate(item(question=question, **changes))


class Model:
    """Answers with each of `texts` in turn, an error where one is an exception; remembers what it was asked."""

    endpoint = SimpleNamespace(name="m")

    def __init__(self, *texts: str | Exception) -> None:
        self.texts, self.asked, self.closed = list(texts), list[tuple[Any, Any]](), False

    async def ask(self, turn: Any, messages: Sequence[Any], **_: Any) -> Any:
        self.asked.append((turn, messages))
        text = self.texts.pop(0)
        if isinstance(text, Exception):
            raise text
        return SimpleNamespace(text=text)

    async def close(self) -> None:
        self.closed = True


def rewritten(asked: EvidenceItem, *texts: str | Exception) -> tuple[Any, Model]:
    model = Model(*texts)
    each = Asked(asked, EvidenceReference.model_validate(reference(0)))
    return rewrite_stems([each], model), model  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "fault"),
    [
        ("What does the image show?", None),
        ("What does it show? Choose?", "not one question"),
        ("Name what it shows.", "not one question"),
        ("What is\nseen?", "not one question"),
        ("", "not one question"),
        ("Are there Mitoses?", "names an option"),
        ("Which worksheets fit?", None),  # "sheets" is a part of a word
        ("x" * 2000 + "?", "not one question"),
    ],
)
def test_one_question_that_names_no_option(question: str, fault: str | None) -> None:
    assert fault_of(question, made()) == fault


def test_what_is_quoted_stays() -> None:
    images = made(QUOTED, options=["Image 1", "Image 2", "Image 3"])
    assert fault_of('At 10x, where is "Crowded glands" seen?', images) is None
    assert fault_of("At 10x, where are crowded glands seen?", images) == "changed what is quoted"
    assert fault_of('Is "Crowded glands" in Image 2?', images) == "names an option"
    assert fault_of('Which image shows "Crowded glands"?', images) == "changed a magnification"
    assert fault_of('At 40x, where is "Crowded glands" seen?', images) == "changed a magnification"


def test_the_first_good_wording_is_used_and_nothing_else_changes() -> None:
    found, model = rewritten(made(), "Are there mitoses?", "What do you see?")
    (each,) = found.asked
    assert each.item == made("What do you see?")
    assert each.reference.answer == 0
    assert each.reference.provenance["stem"] == "endpoint m"
    assert found.kept == {}
    assert [turn.number for turn, _ in model.asked] == [0, 1]
    first, second = (messages for _, messages in model.asked)
    assert not any(option in str(first) for option in made().options)
    assert second[:1] == first
    assert "names an option" in second[-1]["content"]
    assert model.closed


def test_after_three_tries_the_template_stays() -> None:
    failed = EndpointError("busy")
    found, model = rewritten(made(), "No", failed, "Sheets, is it?", "never asked")
    assert found.asked[0].item == made()
    assert found.kept == {"names an option": 1}
    assert found.asked[0].reference.provenance["stem"] == "template: names an option"
    assert [turn.number for turn, _ in model.asked] == [0, 1, 1]  # a failure has no number, as no log keeps it


def test_a_server_that_fails_for_good_ends_it() -> None:
    with pytest.raises(EndpointError):
        rewritten(made(), EndpointError("no such model", lasting=True))


# With the client that agents have, and a server ------------------------------------------------------------------


COUNT = 12


def items(count: int = COUNT) -> list[Asked]:
    found = []
    for number in range(count):
        asked = EvidenceItem.model_validate(item(number, question=f"Which of these is seen at {number}x?"))
        found.append(Asked(asked, EvidenceReference.model_validate(reference(number))))
    return found


def endpoint(server: ScriptedServer, **fields: Any) -> Endpoint:
    fields = {"price_in": 1.0, "price_out": 2.0, "max_tokens": 256, "retries": 0, **fields}
    return Endpoint(name="e", base_url=server.base_url, model="scripted", **fields)


def through(server: ScriptedServer, log: Path, limit: float = 1.0, count: int = COUNT, **how: int) -> Rewritten:
    with RequestLog(log) as opened:
        purse = Purse(limit, spent_usd=opened.cost_usd)
        return rewrite_stems(items(count), Client(endpoint(server), log=opened, purse=purse), **how)


def stems(found: Rewritten) -> set[str]:
    return {str(each.reference.provenance["stem"]) for each in found.asked}


@pytest.mark.network
def test_the_scripted_model_rewrites_and_what_it_wrote_is_asked_for_once(tmp_path: Path) -> None:
    with ScriptedServer() as server:
        found = through(server, tmp_path / "log.jsonl")
        assert server.requests == COUNT
        assert stems(found) == {"endpoint e"}
        for before, after in zip(items(), found.asked, strict=True):
            assert after.item.question != before.item.question
            assert fault_of(after.item.question, before.item) is None
        assert through(server, tmp_path / "log.jsonl") == found
        assert server.requests == COUNT
    lines = list(read_requests(tmp_path / "log.jsonl"))
    assert len(lines) == COUNT
    assert {line["request"]["prompt_sha256"] for line in lines} != {None}
    assert all("Question: Which" in line["transcript"][0]["content"] for line in lines)


@pytest.mark.network
@pytest.mark.parametrize("kind", ["refusal", "empty"])
def test_what_is_refused_three_times_keeps_the_template_and_is_paid_once(tmp_path: Path, kind: str) -> None:
    with ScriptedServer(misbehave={kind: 1.0}) as server:
        found = through(server, tmp_path / "log.jsonl", count=4)
        assert server.requests == 4 * TRIES
        assert stems(found) == {"template: not one question"}
        assert found.kept == {"not one question": 4}
        assert [each.item for each in found.asked] == [each.item for each in items(4)]
        assert through(server, tmp_path / "log.jsonl", count=4) == found
        assert server.requests == 4 * TRIES


@pytest.mark.network
def test_a_server_that_fails_now_and_then_is_asked_again_and_one_that_is_down_ends_it(tmp_path: Path) -> None:
    with ScriptedServer(misbehave={"500": "every:3"}) as server:
        assert stems(through(server, tmp_path / "log.jsonl", concurrency=1)) == {"endpoint e"}
    with ScriptedServer(misbehave={"drop": 1.0}) as server:
        with pytest.raises(EndpointError):
            through(server, tmp_path / "another.jsonl", count=60)
        assert server.requests <= (UNANSWERED + 3) * TRIES  # and what was in flight then


@pytest.mark.network
def test_a_cost_limit_is_not_passed_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with ScriptedServer() as server:
        with pytest.raises(CostLimitError):
            through(server, log, limit=0.002)
        first = server.requests
        with RequestLog(log) as opened:
            assert 0 < opened.cost_usd <= 0.002
            assert len(opened) == first < COUNT
        assert stems(through(server, log)) == {"endpoint e"}
        assert server.requests == COUNT


KILLED = """
import sys
sys.path[:0] = {path}
from pathlib import Path
from test_stems import COUNT, endpoint, items
from wsigym.agents import Client
from wsigym.agents.request_log import RequestLog
from wsigym.agents.stems import rewrite_stems
from types import SimpleNamespace
with RequestLog(Path({log!r})) as log:
    rewrite_stems(items(), Client(endpoint(SimpleNamespace(base_url={url!r})), log=log), concurrency=1)
"""


@pytest.mark.network
def test_what_was_answered_before_a_kill_is_not_asked_again(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    here = Path(__file__).resolve().parent
    with ScriptedServer(latency_s=0.05) as server:
        program = KILLED.format(path=[str(here), str(here.parent)], log=str(log), url=server.base_url)
        with subprocess.Popen([sys.executable, "-c", program]) as process:
            until = time.monotonic() + 60
            while lines_of(log) < 3 and time.monotonic() < until and process.poll() is None:
                time.sleep(0.01)
            process.kill()
        kept = lines_of(log)
        assert 3 <= kept < COUNT
        time.sleep(0.2)
        before = server.requests
        assert stems(through(server, log)) == {"endpoint e"}
        assert server.requests - before == COUNT - kept


def lines_of(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0
