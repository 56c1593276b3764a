"""Recompute a score from the recorded actions, through the environment that gave it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from wsigym.cohorts import Cohort
from wsigym.envs.policy import NoAnswerOutcome
from wsigym.errors import InvalidArgumentError, RunError, UnknownNameError

from .actions import decoded
from .records import EpisodeKey, EpisodeRecord, StepRecord
from .run_folder import Run, load_run
from .suites import find_task

__all__ = ["Replay", "cohort_of", "episode_names", "find_episode", "replay"]

NOT_REPLAYED = {"act_seconds", "step_seconds", "reason", "conclusion"}
"""Fields of a step that a replay cannot tell: times, and what the policy said."""


@dataclass(frozen=True)
class Replay:
    """A replayed episode; `differences` says where it left the record, empty where they agree."""

    key: EpisodeKey
    recorded_score: float
    replayed_score: float | None
    differences: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        return not self.differences


def replay(
    folder: str | Path, episode: str | int, *, cohort: str | Path | None = None, allow_outside: bool = False
) -> Replay:
    """Play an episode's recorded actions again, and compare steps, outcome, score and metrics, exactly.

    `episode` is as for `find_episode`. The cohort is looked for where the run found it, unless `cohort` says where it
    lies now. Raises `RunError` where the cohort is not the run's, or the folder is broken.
    """
    run = load_run(folder)
    record = find_episode(run, episode)
    if record.score is None:
        raise InvalidArgumentError(
            f"episode {':'.join(episode_names(record)[-1:])} ended in an infrastructure error ({record.error}); "
            "it has no score to recompute."
        )
    loaded = cohort_of(run, cohort, allow_outside=allow_outside)
    outcome, score, metrics, steps = _played_again(run, record, loaded)
    differences = [
        f"{name}: recorded {was!r}, replayed {now!r}"
        for name, was, now in [
            *_step_differences(record.steps, steps),
            ("outcome", record.outcome, outcome),
            ("score", record.score, score),
            *((name, record.metrics.get(name), metrics.get(name)) for name in {**record.metrics, **metrics}),
        ]
        if was != now
    ]
    return Replay(record.key, record.score, score, tuple(differences))


def cohort_of(run: Run, cohort: str | Path | None = None, *, allow_outside: bool = False) -> Cohort:
    """The run's cohort, from where the run found it or from `cohort`. Raises `RunError` where it is another one."""
    stamp = run.config.cohort
    loaded = Cohort.load(cohort or stamp.path, allow_outside=allow_outside or stamp.allow_outside)
    if loaded.sha256 != stamp.sha256:
        raise RunError(
            f"{loaded.root} is not the cohort of {run.folder}: its sha256 is {loaded.sha256}, "
            f"the run's {stamp.sha256}. Give the run's cohort with --cohort."
        )
    return loaded


def find_episode(run: Run, episode: str | int) -> EpisodeRecord:
    """The record that `episode` names: its place in `run.records`, from 0, or `ITEM[:POLICY[:BUDGET[:SEED]]]`.

    Raises `UnknownNameError`, or `InvalidArgumentError` where several episodes are meant.
    """
    wanted = str(episode)
    named = [record for record in run.records if wanted in episode_names(record)]
    if not named and wanted.isdecimal() and int(wanted) < len(run.records):
        return run.records[int(wanted)]
    full = [episode_names(record)[-1] for record in named or run.records]
    if not named:
        raise UnknownNameError("episode", wanted, full)
    if len(named) > 1:
        listed = ", ".join(full[:10]) + (", ..." if len(full) > 10 else "")
        raise InvalidArgumentError(f"episode {wanted!r} may mean {len(named)}: {listed}. Name one of them.")
    return named[0]


def episode_names(record: EpisodeRecord) -> list[str]:
    """Every way to name an episode, the shortest first. An agent is named with its endpoint: `agent:NAME@ENDPOINT`."""
    who = record.policy if record.endpoint is None else f"{record.policy}@{record.endpoint}"
    parts = [record.item, who, record.budget, str(record.seed)]
    if record.rotation:
        parts[0] += f"#{record.rotation}"
    return [":".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _played_again(
    run: Run, record: EpisodeRecord, cohort: Cohort
) -> tuple[str | None, float | None, dict[str, Any], list[StepRecord]]:
    """Outcome, score, metrics and steps; outcome and score None where the actions do not end the episode.

    That the policy gave no answer is taken from the record, where the actions leave the episode open.
    """
    task = find_task(f"{record.suite}/{record.task}")
    items = {(item.item_id, item.rotation): item for item in task.items(cohort, run.config.split, run.config.env)}
    item = items.get((record.item, record.rotation))
    if item is None:
        raise RunError(
            f"{run.folder}: episode {':'.join(episode_names(record)[-1:])} asks an item that its cohort does not have; "
            "the record was changed, and cannot be replayed."
        )
    env = task.make_env(cohort, run.config.split, record.budget, run.config.env)
    _, info = env.reset(seed=record.seed_used, options=record.options or task.reset_options(item))
    steps: list[StepRecord] = []
    for step in record.steps:
        if "outcome" in info:
            break
        observation, _, _, _, info = env.step(decoded(step.action))
        fields = task.step_fields(item, decoded(step.action), observation, info)
        told = {"error": info.get("error"), "note": info.get("note")}
        steps.append(StepRecord(action=step.action, **fields, **told, act_seconds=0, step_seconds=0))
    if "outcome" not in info and record.outcome in get_args(NoAnswerOutcome):
        info = env.get_wrapper_attr("give_up")(record.outcome)
    env.close()
    if "outcome" not in info:
        return None, None, {}, steps
    score = task.score(item, info["outcome"], steps, info)
    return info["outcome"], score.score, dict(score.metrics), steps


def _step_differences(recorded: Sequence[StepRecord], replayed: Sequence[StepRecord]) -> list[tuple[str, Any, Any]]:
    found: list[tuple[str, Any, Any]] = [("number of steps", len(recorded), len(replayed))]
    for number, (was, now) in enumerate(zip(recorded, replayed, strict=False), start=1):
        before, after = was.model_dump(exclude=NOT_REPLAYED), now.model_dump(exclude=NOT_REPLAYED)
        found += [(f"step {number}, {name}", before[name], after[name]) for name in before]
    return found
