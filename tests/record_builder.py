"""Episode records and run folders for tests of tables, made in code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wsigym.agents.records import AgentRecord, Disclosure, RequestRecord
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


def request(**fields: Any) -> RequestRecord:
    """A request to endpoint `e` of 100 tokens in, 10 out, 1 s and 0.01 USD, unless given."""
    given: dict[str, Any] = {
        "endpoint": "e",
        "turn": 0,
        "sha256": "0" * 64,
        "tokens_in": 100,
        "tokens_out": 10,
        "seconds": 1.0,
        "cost_usd": 0.01,
        "image_count": 1,
        "image_bytes": 1_000_000,
        "finish_reason": "stop",
    }
    return RequestRecord(**(given | fields))


def agent_record(score: float | None, *requests: RequestRecord, **fields: Any) -> EpisodeRecord:
    """An episode of `agent:localizer` with these requests.

    `places`, by default all local, and the tissue `shares` shown are by endpoint.
    """
    names = dict.fromkeys(each.endpoint for each in requests)
    places = fields.pop("places", dict.fromkeys(names, "local"))
    shares = fields.pop("shares", {name: {"2.5": 0.5} for name in names})
    agent = AgentRecord(
        requests=requests,
        endpoints=places,
        disclosure={name: Disclosure(metadata=("target",), tissue_share=share) for name, share in shares.items()},
    )
    return record(score, **({"policy": "agent:localizer", "endpoint": "+".join(places), "agent": agent} | fields))


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
