"""What the paper states on evipath tasks 1, 2 and 4 beside the same figures of our runs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from ..evidence_measures import accuracy
from ..evidence_table import ordered_rows, parts_of
from ..published_facts import facts_table, published_facts
from ..records import EpisodeRecord
from ..rows import group_by, scored
from ..tables import Cell, Table

__all__ = ["published_table"]

NUMBERS = {"evipath/interpretation": "T1", "evipath/verification": "T2", "evipath/integration": "T4"}


def published_table(records: Sequence[EpisodeRecord]) -> Table:
    """The paper's figures on this task, each as it prints it, and beside it what these runs have of the same."""
    number = NUMBERS[f"{records[0].suite}/{records[0].task}"]
    ours = _our_facts(number, records)
    rows: list[dict[str, Cell]] = []
    for key, fact in published_facts("evipath_prose_facts").items():
        if number in key.split("."):
            rows.append({"fact": key, "paper": str(fact.value), "ours": ours.get(key), "note": fact.note})
    return facts_table(
        "EviPathBench, arXiv 2607.19261",
        rows,
        "Accuracies in %, on the paper's own slides, from its text: its tables are not public. Here: the number of "
        "items, and of policies with an endpoint the best accuracy, seconds a question and spread over organs.",
    )


def _our_facts(number: str, records: Sequence[EpisodeRecord]) -> dict[str, str]:
    facts = {f"{number}.items": f"{len({record.item for record in records}):,}"}
    models = [
        scored(episodes) for (_, endpoint, budget), episodes in ordered_rows(records) if endpoint and budget == "all"
    ]
    models = [episodes for episodes in models if episodes]
    if not models:
        return facts
    best = max(models, key=lambda episodes: accuracy(episodes).value or 0)
    facts[f"{number}.Gemini-3-Flash"] = _percent(best)
    for name, group in parts_of(best, "magnification").items():
        facts[f"{number}.Gemini.{name}"] = _percent(group)
    facts[f"latency.{number}.Gemini_s"] = f"{fmean(record.seconds for record in best):.1f}"
    organs = [accuracy(group).value for group in group_by(best, lambda record: record.groups.get("organ")).values()]
    known = [value for value in organs if value is not None]
    if len(known) > 1:
        facts[f"organ.range.{number}"] = f"{100 * (max(known) - min(known)):.1f}"
    return facts


def _percent(episodes: Sequence[EpisodeRecord]) -> str:
    return f"{100 * (accuracy(episodes).value or 0):.1f}"
