"""`wsigym items build --stem-endpoint`: a model puts the questions of items into other words.

What it writes is used only where it is one question that names no option and keeps what is quoted. Three tries; then
the template stays. A reference's provenance says which it was ("stem"). Options, images and keys are never changed, and
the model sees neither image nor option.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from wsigym.cohorts import Asked, EvidenceItem
from wsigym.errors import EndpointError
from wsigym.scoring.answers import fold

from .client import Client, Turn

__all__ = ["TRIES", "Rewritten", "fault_of", "rewrite_stems"]

TRIES = 3

PROMPT = (
    "Rewrite this question of a pathology test in other words. Keep its meaning, its magnification and everything in "
    "quotation marks exactly. Write one question that ends with a question mark, and nothing else. Name no answer.\n\n"
)

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
    folded = fold(question)
    before = fold(item.question)
    if any(fold(option) in folded and fold(option) not in before for option in item.options):
        return "names an option"
    quoted = item.question.split('"')[1::2]
    if any(f'"{part}"' not in question for part in quoted):
        return "changed what is quoted"
    return None


def rewrite_stems(
    asked: Sequence[Asked], client: Client, *, concurrency: int = 4, progress: Callable[[int, int], None] | None = None
) -> Rewritten:
    """The items with their questions rewritten by the endpoint of `client`, `concurrency` at a time.

    Equal questions are asked once for each item, so that wordings vary. Raises what `Client.ask` raises, but for a
    failure of one request alone, which counts as a try.
    """
    return asyncio.run(_rewrite(asked, client, concurrency, progress))


async def _rewrite(
    asked: Sequence[Asked], client: Client, concurrency: int, progress: Callable[[int, int], None] | None
) -> Rewritten:
    gate, kept = asyncio.Semaphore(concurrency), dict[str, int]()
    done = 0

    async def one(each: Asked) -> Asked:
        nonlocal done
        async with gate:
            question, why = await _try(each.item, client)
        done += 1
        if progress is not None:
            progress(done, len(asked))
        if question is None:
            kept[why] = kept.get(why, 0) + 1
            return _noted(each, f"template: {why}")
        reworded = replace(each, item=each.item.model_copy(update={"question": question}))
        return _noted(reworded, f"endpoint {client.endpoint.name}")

    try:
        return Rewritten(await asyncio.gather(*map(one, asked)), kept)
    finally:
        await client.close()


def _noted(asked: Asked, stem: str) -> Asked:
    provenance = {**asked.reference.provenance, "stem": stem}
    return replace(asked, reference=asked.reference.model_copy(update={"provenance": provenance}))


async def _try(item: EvidenceItem, client: Client) -> tuple[str | None, str]:
    why = ""
    for number in range(TRIES):
        try:
            answer = await client.ask(
                Turn(f"{item.suite}/{item.task}/{item.item_id}", number),
                [{"role": "user", "content": f"{PROMPT}{item.question}"}],
            )
        except EndpointError as error:
            if error.lasting:
                raise
            why = "no answer"
            continue
        question = answer.text.strip()
        fault = fault_of(question, item)
        if fault is None:
            return question, ""
        why = fault
    return None, why
