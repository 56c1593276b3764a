"""Running a task: every policy at every budget and seed on every item, kept as it goes, and resumed where it stopped.

    run("evipath/localization", cohort="my-cohort", policies=["stain-density"], budgets=["base"], out="my-run")
    run("evipath/localization", policies=["agent:localizer"], endpoints=[endpoint], concurrency=32, out="my-run")

Everything that can be checked is checked before the first episode. The same call again goes on with what is missing.
Baselines play one after the other, in several processes or on a cluster; agents play many episodes side by side in this
process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import wsigym
from wsigym.agents.endpoints import Endpoint
from wsigym.baselines import make_policy as make_baseline
from wsigym.baselines.registry import EVIDENCE, check_answers
from wsigym.cohorts import Cohort
from wsigym.cohorts.synthetic import default_cohort
from wsigym.envs.policy import Policy
from wsigym.errors import CohortError, InvalidArgumentError, UnknownNameError

from .engines import PROCESSES, make_engine
from .episodes import Player, Setup, policy_label, utc_now
from .models import AGENT, Models, endpoint_stamp
from .playing import Playing, Progress, RunSummary
from .provenance import git_commit, machine, versions
from .records import EpisodeKey
from .run_folder import CohortStamp, RunConfig, RunFolder, items_stamp, references_sha256
from .suites import find_task
from .task import Task, choose_items

__all__ = ["Progress", "RunSummary", "run"]

DEFAULT_CONCURRENCY = 4

AGENTS_ALONE = (
    "agents play in one process, many episodes at once, beside their cost limit and the log of their requests; give "
    "concurrency, and run baselines that need several processes or machines in a call of their own."
)


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
    jobs: int | None = None,
    engine: str = PROCESSES,
    address: str | None = None,
    resources: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
    endpoints: Sequence[Endpoint | Sequence[Endpoint]] = (),
    concurrency: int | None = None,
    max_cost: float | None = None,
    egress: str = "local",
    env_arguments: Mapping[str, Any] | None = None,
    allow_outside: bool = False,
    make_policy: Callable[[str], Policy] | None = None,
    progress: Progress | None = None,
) -> RunSummary:
    """Play every (policy, budget, seed, item) that the run folder `out` does not hold yet.

    Args:
        task: `SUITE/TASK`, or `SUITE` where it has one task.
        budgets: as the task spells them; none means the task's default.
        policies: names that `make_policy` knows, by default the baselines, and `agent:NAME` for agents; each `blind`
            ("text", "images") adds a control row to each.
        cohort: its folder; None takes the synthetic default cohort.
        split, subset: which items: "all", a number drawn by lot, or a subset of the task's own, such as "paper".
        jobs: processes, 1 by default; more than one are spawned, so `make_policy` must be importable then. Records do
            not depend on it, apart from times and the order of lines.
        engine: "processes" of this machine, or "ray": on a cluster, where `jobs` is by default what there is room for.
            `address` is that of the Ray to use (`wsigym.benchmarks.ray_engine.play_on_ray`), `resources` the
            `num_cpus` and `num_gpus` of a worker by policy, 1 and 0 by default. Records do not depend on these either.
        endpoints: whom agents ask: each is an endpoint, or several that share an agent's roles; every agent plays with
            each. `scripted` without an address is a server of its own, which the run starts and stops.
        concurrency: episodes of agents in flight, 4 by default. Records do not depend on it, but for times.
        max_cost: USD that the run folder's requests may cost in all, earlier calls included; no request is begun that
            could pass it.
        egress: "local" lets images go to loopback and private addresses alone, "any" anywhere.
        env_arguments: over the task's defaults. `allow_outside`: as for `Cohort.load`.
        make_policy: makes every policy, agents too, which then need no endpoint.

    Raises `CohortError` with every fault of the split's slides, `UnknownNameError`, `InvalidArgumentError`,
    `EgressError` and `RunError` before the first episode. What a policy, a slide or a server raises later fails its
    episode alone; the cost limit, and a server that would fail every episode, stop the run, as the summary says.
    """
    the_task = find_task(task)
    arguments = _env_arguments(the_task, env_arguments or {})
    if not policies:
        raise InvalidArgumentError("no policy was given; name at least one.")
    play = make_engine(engine, policies, jobs=jobs, address=address, resources=resources)
    agents = [policy for policy in dict.fromkeys(policies) if policy.startswith(AGENT)]
    if agents and (jobs or 1) > 1:
        raise InvalidArgumentError(f"jobs is {jobs}: {AGENTS_ALONE}")
    if agents and engine != PROCESSES:
        raise InvalidArgumentError(f"engine is {engine!r}: {AGENTS_ALONE}")
    models = _models(the_task, agents, endpoints, max_cost, egress, concurrency, made_outside=bool(make_policy))
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
    if the_task.asks_slides and (faults := loaded.check_slides(split)):
        raise CohortError(faults)
    arguments = the_task.settled(arguments, loaded, split)
    items = choose_items(the_task, loaded, split, subset, arguments)
    if make_policy is None and the_task.environment == EVIDENCE:
        check_answers(policies, the_task.name, (item.question.answer for item in items))
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
        EpisodeKey(suite, name, item.item_id, item.rotation, label, endpoint, budget, seed)
        for item in items
        for label in labels
        for endpoint in (models.setups if models and label.startswith(AGENT) else [None])
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
        endpoints={name: endpoint_stamp(endpoint) for name, endpoint in (models.endpoints if models else {}).items()},
        created=utc_now(),
        version=setup.version,
        commit=setup.commit,
        versions=versions(),
        machine=machine(),
    )
    with closing(Player(setup)) as player:
        for key in keys[: len(keys) // len(items)]:
            if key.policy.startswith(AGENT):
                player.environments.copy_for(key)
            else:
                player.prepare(key)
        if models:
            models.check(agents)
        with RunFolder(out, config) as folder:
            return Playing(folder, keys, progress).all(player, models, play, concurrency or DEFAULT_CONCURRENCY)


def _models(
    task: Task,
    agents: Sequence[str],
    endpoints: Sequence[Endpoint | Sequence[Endpoint]],
    max_cost: float | None,
    egress: str,
    concurrency: int | None,
    *,
    made_outside: bool,
) -> Models | None:
    """The set-ups that the agents ask, None where there are none. Raises where arguments do not go together."""
    if not agents:
        given = {"endpoints": endpoints, "concurrency": concurrency, "max_cost": max_cost}
        if unused := [name for name, value in given.items() if value not in ((), [], None)]:
            raise InvalidArgumentError(
                f"{' and '.join(unused)}: only agents ask models and play side by side, and no agent was named "
                f"({AGENT}NAME); baselines take jobs."
            )
        return None
    if concurrency is not None and concurrency < 1:
        raise InvalidArgumentError(f"concurrency is {concurrency}; at least 1 episode is in flight.")
    if made_outside:
        if endpoints or max_cost is not None:
            raise InvalidArgumentError("endpoints and max_cost are for wsigym's own agents; make_policy makes these.")
        return None
    if not endpoints:
        raise InvalidArgumentError(
            f"{agents[0]} asks a model, and no endpoint was given: name one (--endpoint NAME; `scripted` is built in "
            "and needs no model), or give --base-url URL and --model NAME."
        )
    setups = [(each,) if isinstance(each, Endpoint) else tuple(each) for each in endpoints]
    return Models(setups, task.environment, max_cost=max_cost, egress=egress)


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
