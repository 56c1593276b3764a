"""Running a task: every policy at every budget and seed on every item, kept as it goes, and resumed where it stopped.

    run("evipath/localization", cohort="my-cohort", policies=["stain-density"], budgets=["base"], out="my-run")

Everything that can be checked is checked before the first episode. The same call again goes on with what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import wsigym
from wsigym.baselines import make_policy as make_baseline
from wsigym.cohorts import Cohort
from wsigym.cohorts.synthetic import default_cohort
from wsigym.envs.policy import Policy
from wsigym.errors import CohortError, InvalidArgumentError, UnknownNameError

from .episodes import Player, Setup, policy_label, utc_now
from .provenance import git_commit, machine, versions
from .records import EpisodeKey, EpisodeRecord
from .run_folder import CohortStamp, RunConfig, RunFolder, items_stamp, references_sha256
from .suites import find_task
from .task import Task, choose_items
from .workers import play_all

__all__ = ["Progress", "RunSummary", "run"]

Progress = Callable[[int, int], None]
"""Called with (episodes done, episodes asked for), once before the first and after each."""


@dataclass(frozen=True)
class RunSummary:
    """What a call of `run` did. `failed` episodes ended in an infrastructure error; another call repeats them."""

    folder: Path
    asked: int
    finished_before: int
    played: int
    failed: int
    first_error: str | None


def run(
    task: str,
    *,
    policies: Sequence[str],
    out: str | Path,
    cohort: str | Path | None = None,
    split: str | None = None,
    subset: str = "all",
    budgets: Sequence[str] = (),
    seeds: Sequence[int] = (0,),
    blind: Sequence[str] = (),
    jobs: int = 1,
    env_arguments: Mapping[str, Any] | None = None,
    allow_outside: bool = False,
    make_policy: Callable[[str], Policy] | None = None,
    progress: Progress | None = None,
) -> RunSummary:
    """Play every (policy, budget, seed, item) that the run folder `out` does not hold yet.

    Args:
        task: `SUITE/TASK`, or `SUITE` where it has one task.
        budgets: as the task spells them; none means the task's default.
        policies: names that `make_policy` knows, the baselines by default; each `blind` ("text", "images") adds a
            control row to each.
        cohort: its folder; None takes the synthetic default cohort.
        split, subset: which items: "all", a number drawn by lot, or a subset of the task's own, such as "paper".
        jobs: processes; more than one are spawned, so `make_policy` must be importable then. Records do not depend
            on it, apart from times and the order of lines.
        env_arguments: over the task's defaults. `allow_outside`: as for `Cohort.load`.

    Raises `CohortError` with every fault of the split's slides, `UnknownNameError`, `InvalidArgumentError` and
    `RunError` before the first episode. What a policy or a slide raises later fails its episode alone.
    """
    the_task = find_task(task)
    arguments = _env_arguments(the_task, env_arguments or {})
    if jobs < 1:
        raise InvalidArgumentError(f"jobs is {jobs}; at least 1 process is needed.")
    if not policies:
        raise InvalidArgumentError("no policy was given; name at least one.")
    sights = (None, *dict.fromkeys(blind))
    labels = [policy_label(policy, sight) for policy in dict.fromkeys(policies) for sight in sights]
    budgets_of = {
        label: list(
            dict.fromkeys(the_task.budget_label(budget, label) for budget in budgets or [the_task.default_budget])
        )
        for label in labels
    }
    seeds = _seeds(seeds)
    loaded = Cohort.load(cohort if cohort is not None else default_cohort(), allow_outside=allow_outside)
    if faults := loaded.check_slides(split):
        raise CohortError(faults)
    arguments = the_task.settled(arguments, loaded, split)
    items = choose_items(the_task, loaded, split, subset, arguments)
    setup = Setup(
        task=the_task,
        cohort=loaded,
        split=split,
        env_arguments=arguments,
        items={(item.item_id, item.rotation): item for item in items},
        make_policy=make_policy or partial(make_baseline, environment=the_task.environment),
        version=wsigym.__version__,
        commit=git_commit(),
    )
    suite, _, name = the_task.name.partition("/")
    # Item by item, so that episodes on one slide are neighbours and a stopped run is as complete for each policy.
    keys = [
        EpisodeKey(suite, name, item.item_id, item.rotation, label, None, budget, seed)
        for item in items
        for label in labels
        for budget in budgets_of[label]
        for seed in seeds
    ]
    config = RunConfig(
        suite=suite,
        task=name,
        cohort=CohortStamp(
            path=str(loaded.root.resolve()), name=loaded.name, sha256=loaded.sha256, allow_outside=allow_outside
        ),
        split=split,
        subset=subset,
        items=items_stamp(items),
        references_sha256=references_sha256(items),
        env=arguments,
        policies=tuple(labels),
        budgets=tuple(dict.fromkeys(budget for spent in budgets_of.values() for budget in spent)),
        seeds=tuple(seeds),
        created=utc_now(),
        version=setup.version,
        commit=setup.commit,
        versions=versions(),
        machine=machine(),
    )
    with closing(Player(setup)) as player:
        for key in keys[: len(keys) // len(items)]:
            player.prepare(key)
        with RunFolder(out, config) as folder:
            todo = [key for key in keys if key not in folder.finished]
            return _play(folder, player, todo, len(keys), jobs, progress)


def _play(
    folder: RunFolder, player: Player, todo: Sequence[EpisodeKey], asked: int, jobs: int, progress: Progress | None
) -> RunSummary:
    failed, first_error, played = 0, None, 0
    before = asked - len(todo)
    if progress:
        progress(before, asked)
    with closing(_records(player, todo, jobs)) as records:
        for record in records:
            folder.append(record)
            played += 1
            if record.outcome == "infrastructure_error":
                failed += 1
                first_error = first_error or record.error
            if progress:
                progress(before + played, asked)
    return RunSummary(folder.folder, asked, before, played, failed, first_error)


def _records(player: Player, todo: Sequence[EpisodeKey], jobs: int) -> Generator[EpisodeRecord, None, None]:
    if jobs == 1 or len(todo) < 2:
        yield from map(player.play, todo)
    else:
        yield from play_all(player.setup, todo, jobs)


def _env_arguments(task: Task, given: Mapping[str, Any]) -> dict[str, Any]:
    for name in given:
        if name not in task.env_arguments:
            raise UnknownNameError("environment argument", name, task.env_arguments)
    return {**task.env_arguments, **given}


def _seeds(seeds: Sequence[int]) -> list[int]:
    once = list(dict.fromkeys(seeds))
    if not once or any(seed < 0 for seed in once):
        raise InvalidArgumentError(f"seeds are {once}; whole numbers of 0 or more are needed, at least one.")
    return once
