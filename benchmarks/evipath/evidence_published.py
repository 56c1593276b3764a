"""What the paper states on evipath tasks 1, 2 and 4 beside the same figures of our runs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from ..evidence_measures import accuracy
from ..evidence_table import is_model, ordered_rows, parts_of
from ..published_facts import facts_table, published_facts
from ..records import EpisodeRecord
from ..rows import group_by, scored
from ..tables import Cell, Table

__all__ = ["published_table"]

BEST = "here: the best model"

LABELS = {
    "T1.items": ("items", ""),
    "T2.items": ("items", ""),
    "T4.items": ("items", ""),
    "T1.Gemini-3-Flash": ("Gemini-3-Flash, accuracy", BEST),
    "T2.Gemini-3-Flash": ("Gemini-3-Flash, accuracy", BEST),
    "T1.top5_min": ("fifth-best model, accuracy", ""),
    "T1.Patho-R1.range": ("Patho-R1, accuracy", ""),
    "T1.Quilt-LLaVA": ("Quilt-LLaVA, accuracy", ""),
    "T1.LLaVA-Med.range": ("LLaVA-Med, accuracy", ""),
    "T1.Gemini.2.5x": ("Gemini-3-Flash at 2.5x, accuracy", BEST),
    "T1.Gemini.40x": ("Gemini-3-Flash at 40x, accuracy", BEST),
    "T2.Gemini.2.5x": ("Gemini-3-Flash at 2.5x, accuracy", BEST),
    "T2.Gemini.40x": ("Gemini-3-Flash at 40x, accuracy", BEST),
    "T1.best_at_40x": ("models that are best at 40x", ""),
    "T2.best_at_40x": ("models that are best at 40x", ""),
    "T4.InternVL2.5-8B": ("InternVL2.5-8B, accuracy", ""),
    "T4.Lingshu-7B": ("Lingshu-7B, accuracy", ""),
    "T4.InternVL2.5-26B": ("InternVL2.5-26B, accuracy", ""),
    "T4.n_over_87": ("models above 87 %", ""),
    "T4.LLaVA-Med.10x": ("LLaVA-Med with 10x alone, accuracy", ""),
    "T4.LLaVA-Med.all": ("LLaVA-Med with all three, accuracy", ""),
    "T4.pathology_range": ("pathology-specialised models, accuracy", ""),
    "T4.LLaVA-1.5": ("LLaVA-1.5, accuracy", ""),
    "T4.multiscale_gain": ("all three over the best single one, points", ""),
    "T4.best_single_scale_10x": ("models whose best single one is 10x", ""),
    "expert.T1": ("pathologists, accuracy", ""),
    "expert.T2": ("pathologists, accuracy", ""),
    "expert.T4": ("pathologists, accuracy", ""),
    "latency.T1.GPT-5.2_s": ("GPT-5.2, seconds a question", ""),
    "latency.T2.GPT-5.2_s": ("GPT-5.2, seconds a question", ""),
    "latency.T4.GPT-5.2_s": ("GPT-5.2, seconds a question", ""),
    "latency.T1.Gemini_s": ("Gemini-3-Flash, seconds a question", BEST),
    "latency.T2.Gemini_s": ("Gemini-3-Flash, seconds a question", BEST),
    "latency.T4.Gemini_s": ("Gemini-3-Flash, seconds a question", BEST),
    "organ.range.T1": ("accuracy, spread over organs", BEST),
    "organ.range.T2": ("accuracy, spread over organs", f"max-min over 5 organs, points; {BEST}"),
    "organ.range.T4": ("accuracy, spread over organs", f"max-min over 5 organs, points; {BEST}"),
}
"""The paper's facts on these tasks: what each is called, and what to know of it beside the paper's own note."""

NUMBERS = {"evipath/interpretation": "T1", "evipath/verification": "T2", "evipath/integration": "T4"}


def published_table(records: Sequence[EpisodeRecord]) -> Table:
    """The paper's figures on this task, each as it prints it, and beside it what these runs have of the same."""
    number = NUMBERS[f"{records[0].suite}/{records[0].task}"]
    ours = _our_facts(number, records)
    rows: list[dict[str, Cell]] = []
    for key, fact in published_facts("evipath_prose_facts").items():
        if number in key.split("."):
            label, further = LABELS[key]
            paper = f"{fact.value:,}" if isinstance(fact.value, int) else str(fact.value)
            note = "; ".join(text for text in (fact.note, further) if text)
            rows.append({"fact": label, "paper": paper, "ours": ours.get(key), "note": note})
    return facts_table(
        "EviPathBench, arXiv 2607.19261",
        rows,
        "Accuracies in %. The paper's figures are on its own slides, from its text: its tables are not public. They "
        "compare with a run on the same slides only. The best model here has an endpoint, and is no blind "
        "control.",
    )


def _our_facts(number: str, records: Sequence[EpisodeRecord]) -> dict[str, str]:
    facts = {f"{number}.items": f"{len({record.item for record in records}):,}"}
    models = [
        scored(episodes)
        for (policy, endpoint, budget), episodes in ordered_rows(records)
        if endpoint and is_model(policy) and budget == "all"
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
