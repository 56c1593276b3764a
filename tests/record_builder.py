"""Episode records and run folders for tests of tables, made in code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wsigym.benchmarks.records import EpisodeRecord
from wsigym.benchmarks.run_folder import CohortStamp, ItemsStamp, Run, RunConfig

HIT_IOU = 0.3


def record(score: float | None, **fields: Any) -> EpisodeRecord:
    """One localization episode of `score`; None is an infrastructure error. Group names are given as fields.

    Its item is that of its slide and magnification, unless one is given.
    """
    groups = {"slide": "s", "patient": "p", "organ": "Lung", "split": "test", "magnification": 10.0}
    groups |= {name: fields.pop(name) for name in groups.keys() & fields.keys()}
    hit = score is not None and score >= HIT_IOU
    metrics = {"iou": score, "hit": hit, "rois_used": 2, "best_look_iou": score, "seen_share": 0.5, "regret": 0.0}
    metrics |= {"first_hit_step": 1 if hit else None, "cause": "hit" if hit else "never viewed"}
    metrics |= fields.pop("metrics", {})
    given = {
        "suite": "evipath",
        "task": "localization",
        "item": f"{groups['slide']}/{groups['magnification']:g}x",
        "policy": "looker",
        "budget": "base",
        "seed": 0,
        "outcome": "infrastructure_error" if score is None else "scored",
        "score": score,
        "groups": groups,
        "metrics": {} if score is None else metrics,
        "steps": (),
        "seed_used": 1,
        "started": "2025-01-01T00:00:00+00:00",
        "seconds": 2.0,
        "version": "0",
        "commit": None,
    }
    return EpisodeRecord(**(given | fields))


def patients(scores: Sequence[float | None], **fields: Any) -> list[EpisodeRecord]:
    """One episode a patient."""
    return [record(score, patient=f"p{i}", slide=f"s{i}", **fields) for i, score in enumerate(scores)]


def made_run(records: Sequence[EpisodeRecord], name: str = "R", **fields: Any) -> Run:
    """A run of these episodes, in memory; `items` and `references_sha256` are the same unless given."""
    given = {
        "suite": "evipath",
        "task": "localization",
        "cohort": CohortStamp(path="c", name="c", sha256="c"),
        "split": None,
        "subset": "all",
        "items": ItemsStamp(count=len({record.item for record in records}), sha256="items"),
        "references_sha256": "references",
        "env": {},
        "policies": tuple(dict.fromkeys(record.policy for record in records)),
        "budgets": tuple(dict.fromkeys(record.budget for record in records)),
        "seeds": (0,),
        "created": "2025-01-01T00:00:00+00:00",
        "version": "0",
        "commit": None,
        "versions": {},
        "machine": {},
    }
    return Run(Path(name), RunConfig(**(given | fields)), tuple(records))


def written_run(folder: Path, records: Sequence[EpisodeRecord], **fields: Any) -> Path:
    """`made_run` as a run folder."""
    folder.mkdir()
    (folder / "run.json").write_text(made_run(records, **fields).config.model_dump_json())
    (folder / "episodes.jsonl").write_text("".join(f"{record.model_dump_json()}\n" for record in records))
    return folder
