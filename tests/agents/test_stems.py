"""Questions in a model's words: what is used, what is not, and that nothing else of an item changes."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from evidence_builder import item, reference

from wsigym.agents.stems import TRIES, fault_of, rewrite_stems
from wsigym.cohorts import Asked, EvidenceItem, EvidenceReference
from wsigym.errors import EndpointError

QUOTED = 'Which image shows this finding at 10x: "Crowded glands"?'


def made(question: str = "Which of these is seen?", **changes: Any) -> EvidenceItem:
    return EvidenceItem.model_validate(item(question=question, **changes))


class Model:
    """Answers with each of `texts` in turn, an error where one is an exception; remembers what it was asked."""

    endpoint = SimpleNamespace(name="m")

    def __init__(self, *texts: str | Exception) -> None:
        self.texts, self.asked, self.closed = list(texts), list[tuple[Any, Any]](), False

    async def ask(self, turn: Any, messages: Sequence[Any]) -> Any:
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


def test_the_first_good_wording_is_used_and_nothing_else_changes() -> None:
    found, model = rewritten(made(), "Are there mitoses?", "What do you see?")
    (each,) = found.asked
    assert each.item == made("What do you see?")
    assert each.reference.answer == 0
    assert each.reference.provenance["stem"] == "endpoint m"
    assert found.kept == {}
    assert [turn.number for turn, _ in model.asked] == [0, 1]
    sent = str(model.asked[0][1])
    assert not any(option in sent for option in made().options)
    assert model.closed


def test_after_three_tries_the_template_stays() -> None:
    failed = EndpointError("busy")
    found, model = rewritten(made(), "No", failed, "Sheets, is it?", "never asked")
    assert found.asked[0].item == made()
    assert found.kept == {"names an option": 1}
    assert found.asked[0].reference.provenance["stem"] == "template: names an option"
    assert len(model.asked) == TRIES


def test_a_server_that_fails_for_good_ends_it() -> None:
    with pytest.raises(EndpointError):
        rewritten(made(), EndpointError("no such model", lasting=True))
