"""`wsigym run | sweep`: play episodes into a run folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsigym.errors import InvalidArgumentError

from .models import (
    Agents,
    ApiKeyEnv,
    BaseUrl,
    Concurrency,
    Coordinates,
    Egress,
    EndpointNames,
    EndpointsFile,
    MaxCost,
    ModelName,
    Policies,
    Settings,
    chosen_setups,
    players,
    told_spent,
)
from .progress import progress_of

if TYPE_CHECKING:
    from wsigym.benchmarks.runner import RunSummary

__all__ = ["run", "sweep"]

BUDGETS = (
    "Of localization: tight, base, loose, a number of ROIs, or one a magnification such as 2.5=10,10=7,40=5; of "
    "exploration: tight, base, loose, K=6,3,2, K=all, or tiles=N for searches; of items, their evidence: all, "
    "highest-power, 2.5x+10x, no-site, text, mosaic"
)

Task = Annotated[str, typer.Argument(metavar="SUITE/TASK", help="What to run; `wsigym suites` lists them.")]
Out = Annotated[Path, typer.Option(help="The run folder. An unfinished run in it goes on.")]
CohortFolder = Annotated[Path | None, typer.Option("--cohort", help="The cohort's folder (default: a synthetic one).")]
Split = Annotated[str | None, typer.Option(help="train, val or test (default: all slides).")]
Subset = Annotated[str, typer.Option(help="Which items: all, a number, or the task's own, such as paper.")]
Jobs = Annotated[
    int | None, typer.Option(help="Processes (default: 1; with --engine ray as many as there is room for).")
]
Engine = Annotated[str, typer.Option(help="What plays the episodes of baselines: processes, or ray.")]
Address = Annotated[
    str | None,
    typer.Option(
        help="Of the Ray to use: HOST:PORT, auto, local (default: $RAY_ADDRESS, else a Ray of the run's own)."
    ),
]
ResourcesOf = Annotated[
    list[str] | None,
    typer.Option(
        "--resources",
        metavar="POLICY=NAME:NUMBER",
        help="What a policy's Ray worker needs: tile-scorer:PATH=num_gpus:0.25,num_cpus:2. May be repeated.",
    ),
]
Blind = Annotated[
    list[str] | None, typer.Option(help="Add control rows that do not see: text or images. May be repeated.")
]
AllowOutside = Annotated[bool, typer.Option("--allow-outside", help="Allow slide paths that leave the cohort folder.")]
ViewPx = Annotated[int | None, typer.Option(help="Side of the view in pixels (default: 224).")]
OverviewPx = Annotated[int | None, typer.Option(help="Side of the overview in pixels (default: 256).")]
Target = Annotated[str | None, typer.Option(help="exploration: the class of the regions to find (default: tumour).")]
Evidence = Annotated[
    list[str] | None,
    typer.Option(
        help="How much of the evidence of items is shown: all, highest-power, 2.5x+10x, no-site, text, mosaic, joined "
        "by commas; or all-subsets, of the magnifications. May be repeated."
    ),
]
EnvArguments = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME=VALUE",
        help="An argument of the environment, as JSON: tile_px=128, magnifications=[2.5,10,20]. May be repeated.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def run(
    task: Task,
    out: Out,
    policy: Policies = None,
    agent: Agents = None,
    cohort: CohortFolder = None,
    split: Split = None,
    subset: Subset = "all",
    budget: Annotated[str | None, typer.Option(help=f"{BUDGETS} (default: the task's).")] = None,
    seed: Annotated[int, typer.Option(help="Of the policies' random numbers.")] = 0,
    blind: Blind = None,
    jobs: Jobs = None,
    engine: Engine = "processes",
    address: Address = None,
    resources: ResourcesOf = None,
    endpoint: EndpointNames = None,
    base_url: BaseUrl = None,
    model: ModelName = None,
    api_key_env: ApiKeyEnv = None,
    coordinates: Coordinates = None,
    settings: Settings = None,
    endpoints: EndpointsFile = None,
    concurrency: Concurrency = None,
    max_cost: MaxCost = None,
    egress: Egress = "local",
    view_px: ViewPx = None,
    overview_px: OverviewPx = None,
    target: Target = None,
    env: EnvArguments = None,
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Run policies and agents on a task at one budget and seed."""
    _run(
        task,
        out,
        as_json,
        policies=players(policy, agent),
        budgets=[] if budget is None else [budget],
        seeds=[seed],
        cohort=cohort,
        split=split,
        subset=subset,
        blind=blind or [],
        jobs=jobs,
        engine=engine,
        address=address,
        resources=_resources(resources or []),
        endpoints=chosen_setups(endpoint, base_url, model, endpoints, settings, api_key_env, coordinates),
        concurrency=concurrency,
        max_cost=max_cost,
        egress=egress,
        env_arguments=_given(view_px=view_px, overview_px=overview_px, target=target) | _env_arguments(env or []),
        allow_outside=allow_outside,
    )


def sweep(
    task: Task,
    out: Out,
    budget: Annotated[list[str] | None, typer.Option(help=f"{BUDGETS}. May be repeated.")] = None,
    evidence: Evidence = None,
    policy: Policies = None,
    agent: Agents = None,
    cohort: CohortFolder = None,
    split: Split = None,
    subset: Subset = "all",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds: 0 to this less one.")] = 1,
    blind: Blind = None,
    jobs: Jobs = None,
    engine: Engine = "processes",
    address: Address = None,
    resources: ResourcesOf = None,
    endpoint: EndpointNames = None,
    base_url: BaseUrl = None,
    model: ModelName = None,
    api_key_env: ApiKeyEnv = None,
    coordinates: Coordinates = None,
    settings: Settings = None,
    endpoints: EndpointsFile = None,
    concurrency: Concurrency = None,
    max_cost: MaxCost = None,
    egress: Egress = "local",
    view_px: ViewPx = None,
    overview_px: OverviewPx = None,
    target: Target = None,
    env: EnvArguments = None,
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Run policies and agents (x endpoints) x budgets x seeds on a task."""
    _run(
        task,
        out,
        as_json,
        policies=players(policy, agent),
        budgets=[*(budget or []), *_evidence(task, evidence or [], cohort, split, allow_outside)],
        seeds=range(seeds),
        cohort=cohort,
        split=split,
        subset=subset,
        blind=blind or [],
        jobs=jobs,
        engine=engine,
        address=address,
        resources=_resources(resources or []),
        endpoints=chosen_setups(endpoint, base_url, model, endpoints, settings, api_key_env, coordinates),
        concurrency=concurrency,
        max_cost=max_cost,
        egress=egress,
        env_arguments=_given(view_px=view_px, overview_px=overview_px, target=target) | _env_arguments(env or []),
        allow_outside=allow_outside,
    )
    if evidence and not as_json:
        _print_evidence(task, out)


def _evidence(
    task: str, named: Sequence[str], cohort: Path | None, split: str | None, allow_outside: bool
) -> list[str]:
    """The amounts of evidence to sweep over, which are the budgets of evidence tasks."""
    from wsigym.benchmarks.evidence_task import EvidenceTask
    from wsigym.benchmarks.suites import find_task
    from wsigym.cohorts import Cohort
    from wsigym.cohorts.synthetic import default_cohort

    the_task = find_task(task)
    if not named:
        return []
    if not isinstance(the_task, EvidenceTask):
        raise InvalidArgumentError(f"--evidence is for tasks over items; {the_task.name} has a --budget.")
    if "all-subsets" not in named:
        return list(named)
    loaded = Cohort.load(cohort or default_cohort(), allow_outside=allow_outside)
    return [name for name in named if name != "all-subsets"] + the_task.subsets_of_evidence(loaded, split)


def _print_evidence(task: str, out: Path) -> None:
    """What each amount brings, and all of it against the best single magnification."""
    from wsigym.benchmarks.evidence_table import evidence_table
    from wsigym.benchmarks.evidence_task import EvidenceTask
    from wsigym.benchmarks.run_folder import load_run
    from wsigym.benchmarks.suites import find_task

    from .table import console_for_tables

    the_task, console = find_task(task), console_for_tables()
    assert isinstance(the_task, EvidenceTask)  # _evidence has refused others
    console.print(evidence_table(the_task, load_run(out, steps=False).records).to_rich(console.width))


def _given(**values: int | str | None) -> dict[str, int | str]:
    return {name: value for name, value in values.items() if value is not None}


def _env_arguments(given: Sequence[str]) -> dict[str, Any]:
    arguments = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            arguments[name] = json.loads(value)
        except json.JSONDecodeError:
            raise InvalidArgumentError(
                f"--env {text}: {value!r} is no JSON value; write --env NAME=VALUE, such as tile_px=128, "
                "skip_empty=false or magnifications=[2.5,10,20]."
            ) from None
    return arguments


def _resources(given: Sequence[str]) -> dict[str, dict[str, float]]:
    resources: dict[str, dict[str, float]] = {}
    for text in given:
        policy, _, wanted = text.rpartition("=")  # a path may hold "=", what is wanted does not
        for part in wanted.split(","):
            name, _, number = part.partition(":")
            try:
                resources.setdefault(policy, {})[name] = float(number)
            except ValueError:
                raise InvalidArgumentError(
                    f"--resources {text}: {part!r} is no resource; write POLICY=NAME:NUMBER, such as "
                    "tile-scorer:PATH=num_gpus:0.25,num_cpus:2."
                ) from None
    return resources


def _run(task: str, out: Path, as_json: bool, *, seeds: Sequence[int], **arguments: Any) -> None:
    from wsigym.benchmarks.runner import run as run_task

    try:
        with progress_of("episodes") as progress:
            summary = run_task(task, out=out, seeds=seeds, progress=progress, **arguments)
    except KeyboardInterrupt:
        kept = "finished episodes and answered requests" if arguments["endpoints"] else "finished episodes"
        typer.echo(f"stopped; {kept} are kept in {out}, and the same command goes on from there", err=True)
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.dumps(_summary_json(summary), indent=2))
    else:
        typer.echo(_summary_text(summary))
    if summary.failed:
        typer.echo(
            f"{summary.failed} of {summary.played} episodes failed; the first: {summary.first_error}\n"
            "They have no score; the same command runs them again.",
            err=True,
        )
    if summary.stopped:
        left = summary.asked - summary.finished_before - summary.played
        typer.echo(
            f"stopped: {summary.stopped}\n{left} episodes are left; the same command goes on with them.", err=True
        )
    if summary.failed or summary.stopped:
        raise typer.Exit(1)


def _summary_text(summary: RunSummary) -> str:
    before = f", {summary.finished_before} were there already" if summary.finished_before else ""
    lines = [f"{summary.played - summary.failed} episodes played{before}; records in {summary.folder}"]
    if without := {
        name: count for name, count in summary.outcomes.items() if name not in ("scored", "infrastructure_error")
    }:
        lines.append(", ".join(f"{count} {name.replace('_', ' ')}" for name, count in without.items()))
    if summary.spent and summary.spent_in_all:
        lines.append(told_spent(summary.spent, summary.spent_in_all))
    return "\n".join([*lines, f"wsigym table {summary.folder}"])


def _summary_json(summary: RunSummary) -> dict[str, Any]:
    return {"run": str(summary.folder)} | {name: value for name, value in asdict(summary).items() if name != "folder"}
