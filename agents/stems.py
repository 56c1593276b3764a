"""`wsigym items build --stem-endpoint`: a model puts the questions of items into other words.

What it writes is used only where it is one question that names no option and keeps what is quoted and at which
magnifications. Where it is not, the model is told why and asked again; after three tries the template stays. A
reference's provenance says which it was ("stem"). Options, images and keys are never changed, and the model sees
neither image nor option.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from wsigym.cohorts import Asked, EvidenceItem
from wsigym.errors import EndpointError, WsigymError
from wsigym.scoring.answers import fold

from .client import Client, Turn
from .prompting import prompt

__all__ = ["TRIES", "Rewritten", "fault_of", "rewrite_stems"]

TRIES = 3

UNANSWERED = 3
"""Items in a row for which the server gave no answer, each tried three times: then it is the server, not the item."""

MAX_CHARS = 1000


@dataclass(frozen=True)
class Rewritten:
    """Items with their questions, and how many kept the template, by the last try's reason."""

    asked: list[Asked]
    kept: dict[str, int]


def fault_of(question: str, item: EvidenceItem) -> str | None:
    """Why a rewritten question is not used, None where it is."""
    if question.count("?") != 1 or not question.endswith("?") or "\n" in question or len(question) > MAX_CHARS:
        return "not one question"
    folded, before = fold(question), fold(item.question)
    if any(_names(folded, fold(option)) and not _names(before, fold(option)) for option in item.options):
        return "names an option"
    quoted = item.question.split('"')[1::2]
    if any(f'"{part}"' not in question for part in quoted):
        return "changed what is quoted"
    if any(power not in _POWER.findall(question) for power in _POWER.findall(item.question)):
        return "changed a magnification"
    return None


_POWER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?x(?!\w)")


def _names(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


def rewrite_stems(
    asked: Sequence[Asked], client: Client, *, concurrency: int = 4, progress: Callable[[int, int], None] | None = None
) -> Rewritten:
    """The items with their questions rewritten by the endpoint of `client`, `concurrency` at a time.

    Equal questions are asked once for each item, so that wordings vary. Raises what `Client.ask` raises once the
    requests in flight have been answered, and so kept in the client's log; but for failures of one item's requests
    alone, which are tries.
    """
    return asyncio.run(_Rewriting(client, concurrency).all(asked, progress))


class _Rewriting:
    def __init__(self, client: Client, concurrency: int) -> None:
        self._client, self._gate = client, asyncio.Semaphore(concurrency)
        self._kept: dict[str, int] = {}
        self._unanswered = 0
        self._error: WsigymError | None = None

    async def all(self, asked: Sequence[Asked], progress: Callable[[int, int], None] | None) -> Rewritten:
        done = 0

        async def one(each: Asked) -> Asked:
            nonlocal done
            async with self._gate:
                found = each if self._error is not None else await self._one(each)
            done += 1
            if progress is not None:
                progress(done, len(asked))
            return found

        try:
            found = await asyncio.gather(*map(one, asked))
        finally:
            await self._client.close()
        if self._error is not None:
            raise self._error
        return Rewritten(found, self._kept)

    async def _one(self, asked: Asked) -> Asked:
        try:
            question, why = await self._rewritten(asked.item)
        except WsigymError as error:
            self._error = self._error or error
            return asked
        if question is None:
            self._kept[why] = self._kept.get(why, 0) + 1
            return _noted(asked, f"template: {why}")
        reworded = replace(asked, item=asked.item.model_copy(update={"question": question}))
        return _noted(reworded, f"endpoint {self._client.endpoint.name}")

    async def _rewritten(self, item: EvidenceItem) -> tuple[str | None, str]:
        """A question that can be used, or None and why the last was none."""
        instructions = prompt("stem-v1")
        messages = [{"role": "user", "content": instructions.filled(question=item.question)}]
        why, answers, told = "", 0, 0
        for number in range(TRIES):
            try:
                answer = await self._client.ask(
                    Turn(f"{item.suite}/{item.task}/{item.item_id}", answers),  # failures leave no trace in a log
                    messages,
                    transcript=messages[told:],
                    prompt_sha256=instructions.sha256,
                )
            except EndpointError as error:
                why = "no answer"
                self._unanswered += number == TRIES - 1 and not answers
                if error.lasting or self._unanswered == UNANSWERED:
                    raise
                continue
            self._unanswered = 0
            question = answer.text.strip()
            fault = fault_of(question, item)
            if fault is None:
                return question, ""
            why, answers, told = fault, answers + 1, len(messages)
            messages = [
                *messages,
                {"role": "assistant", "content": answer.text or "(nothing)"},
                {"role": "user", "content": f"That cannot be used ({fault}). Try again."},
            ]
        return None, why


def _noted(asked: Asked, stem: str) -> Asked:
    provenance = {**asked.reference.provenance, "stem": stem}
    return replace(asked, reference=asked.reference.model_copy(update={"provenance": provenance}))
