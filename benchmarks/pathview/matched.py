"""PathView-Bench's matched-slide analysis: does a model that answers an external question on a slide see that slide?

Kept are the pairs of model and slide where the model's answer to the external question is correct; on these slides it
is scored on the task, and the mean over models weighs each alike (section 5.3 of the protocol); controls are shown and
are in no mean. Beside it stands the same over all of a model's slides that have an external answer.

External answers are JSONL: {"policy": ..., "endpoint": ... (where the record has one), "slide": ..., "correct": bool},
one line a question; a slide with several questions is kept where at least one of them is answered correctly.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

from wsigym.errors import CohortError, Fault, InvalidArgumentError
from wsigym.scoring.intervals import Estimate

from ..evidence_table import is_model
from ..published_facts import published_facts
from ..records import EpisodeRecord
from ..rows import group_by, interval_note, join_runs, scored
from ..run_folder import Run
from ..tables import Block, Cell, Column, Table
from .tasks import COLUMNS, MEASURES

__all__ = ["External", "matched_table", "read_external"]

_Key = tuple[str, str | None, str]

External = dict[_Key, bool]
"""Whether the model (policy, endpoint) answered a question on the slide correctly."""

FACTS = {
    "pathview/lesion-grounding": "matched.lesion_grounding",
    "pathview/area-estimation": "matched.area_estimation",
    "pathview/slide-density-localization": "matched.density_localization",
}

TOLD = 5
"""Names of a kind that messages list."""


def read_external(path: Path) -> External:
    """External answers. Raises `CohortError` with every fault, by its line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or error
        raise CohortError([Fault(str(path), None, "", f"cannot be read: {said}")]) from None
    found: External = {}
    faults: list[Fault] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            content = json.loads(line)
        except (ValueError, RecursionError) as error:
            faults.append(Fault(str(path), number, "", f"not JSON: {error}"))
            continue
        fields = {"policy": str, "slide": str, "correct": bool, "endpoint": str | None}
        if not isinstance(content, dict):
            faults.append(Fault(str(path), number, "", f"found a {type(content).__name__}; an object is needed"))
            continue
        wrong = [name for name, kind in fields.items() if not isinstance(content.get(name), kind)]
        for name in wrong:
            allowed = "true or false" if name == "correct" else "text"
            faults.append(Fault(str(path), number, name, f"found {content.get(name)!r}; {allowed} is needed"))
        if not wrong:
            key = content["policy"], content.get("endpoint"), content["slide"]
            found[key] = found.get(key, False) or content["correct"]
    if not found and not faults:
        faults.append(Fault(str(path), None, "", "holds no answer; at least one line is needed"))
    if faults:
        raise CohortError(faults)
    return found


def matched_table(runs: Sequence[Run], external: External, *, common: bool = False) -> Table:
    """The task's metric on the slides that each policy answers correctly elsewhere, and the mean over models.

    Raises `InvalidArgumentError` where the task is of no slides, its items tell no slide, or no external answer is of a
    policy and slide of the runs; else as `join_runs` does.
    """
    records = scored(join_runs(runs, common=common))
    task = f"{runs[0].config.suite}/{runs[0].config.task}"
    if not (COLUMNS.get(task) or "").startswith("S_"):
        raise InvalidArgumentError(f"{task} is no task of pathview on slides with a metric; matched slides need one.")
    measure = MEASURES[task]
    played = {_key(record) for record in records if record.groups.get("slide") is not None}
    if not played:
        raise InvalidArgumentError(
            f"the items of {task} tell no slide, so that none can be matched: give the table of images (`images` in "
            "pathview/sources.toml) the column `slide`, build the items again and run again."
        )
    if not external.keys() & played:
        raise InvalidArgumentError(
            "no external answer is of a policy, endpoint and slide of the runs: the file has "
            f"{_names(external)}; the runs have {_names(played)}."
        )
    rows: list[dict[str, Cell]] = []
    values: list[float] = []
    for (policy, endpoint), episodes in group_by(records, lambda record: (record.policy, record.endpoint)).items():
        asked = [record for record in episodes if _key(record) in external]
        kept = [record for record in asked if external[_key(record)]]
        row: dict[str, Cell] = {"policy": policy, "endpoint": endpoint, "slides": len({_key(each) for each in asked})}
        row["kept"] = len({_key(each) for each in kept})
        row["all"] = measure.of(asked) if asked else None
        row["matched"] = measure.of(kept) if kept else None
        if is_model(policy) and isinstance(row["matched"], Estimate) and row["matched"].value is not None:
            values.append(row["matched"].value)
        rows.append(row)
    if values:
        count = f"{len(values)} models" if len(values) > 1 else "1 model"
        rows.append({"policy": f"mean over {count}", "matched": fmean(values)})
    if task in FACTS:
        fact = published_facts("pathview_prose_facts")[FACTS[task]]
        rows.append({"policy": "mean of the paper's 16", "matched": float(fact.value)})
    named = (Column("endpoint", "endpoint"),) if any(row.get("endpoint") for row in rows) else ()
    label = measure.label.replace("\n", " ")
    columns = (
        Column("slides", "slides\nanswered"),
        Column("kept", "of these\ncorrectly"),
        Column("all", f"{label},\nall of them", measure.digits, measure.scale),
        Column("matched", f"{label},\nthe correct", measure.digits, measure.scale),
    )
    cells = [cell for row in rows for cell in row.values() if isinstance(cell, Estimate)]
    notes = [interval_note(records, cells), "A high external score beside a low one here answers without seeing."]
    if any(not is_model(str(policy)) for policy, _, _ in played):
        notes.append("Baselines and blind controls are in no mean over models.")
    strange = external.keys() - played
    if strange:
        notes.append(f"{len(strange):,} external answers are of no episode of the runs: {_names(strange)}.")
    return Table(
        "matched",
        f"{task}: matched slides",
        (Column("policy", "policy"), *named),
        (Block("", columns),),
        tuple(rows),
        tuple(notes),
    )


def _key(record: EpisodeRecord) -> _Key:
    return record.policy, record.endpoint, str(record.groups.get("slide"))


def _names(keys: Iterable[_Key]) -> str:
    """The names of external answers or episodes, by what they are of; of many the first."""
    policies, endpoints, slides = (list(dict.fromkeys(names)) for names in zip(*sorted(keys, key=str), strict=True))
    known = [endpoint for endpoint in endpoints if endpoint is not None]
    told = [f"endpoint {_listed(known)}"] if known else []
    told += ["no endpoint"] if len(known) < len(endpoints) else []
    return f"policy {_listed(policies)}; {' or '.join(told)}; slide {_listed(slides)}"


def _listed(names: Sequence[object]) -> str:
    more = f" and {len(names) - TOLD:,} more" if len(names) > TOLD else ""
    return ", ".join(map(str, names[:TOLD])) + more
