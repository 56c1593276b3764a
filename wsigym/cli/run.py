"""`wsigym run | sweep | replay`: play episodes into a run folder, and recompute their scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsigym.errors import InvalidArgumentError

from .progress import progress_of

if TYPE_CHECKING:
    from wsigym.benchmarks.runner import RunSummary

__all__ = ["replay", "run", "sweep"]

BUDGETS = (
    "tight, base or loose; localization: a number of ROIs, or one a magnification such as 2.5=10,10=7,40=5; "
    "exploration: K=6,3,2, K=all, or tiles=N for searches"
)

Task = Annotated[str, typer.Argument(metavar="SUITE/TASK", help="What to run; `wsigym suites` lists them.")]
Policies = Annotated[list[str], typer.Option("--policy", help="Who plays, from `wsigym policies`. May be repeated.")]
Out = Annotated[Path, typer.Option(help="The run folder. An unfinished run in it goes on.")]
CohortFolder = Annotated[Path | None, typer.Option("--cohort", help="The cohort's folder (default: a synthetic one).")]
Split = Annotated[str | None, typer.Option(help="train, val or test (default: all slides).")]
Subset = Annotated[str, typer.Option(help="Which items: all, a number, or the task's own, such as paper.")]
Jobs = Annotated[int, typer.Option(help="Processes.")]
Blind = Annotated[
    list[str] | None, typer.Option(help="Add control rows that do not see: text or images. May be repeated.")
]
AllowOutside = Annotated[bool, typer.Option("--allow-outside", help="Allow slide paths that leave the cohort folder.")]
ViewPx = Annotated[int | None, typer.Option(help="Side of the view in pixels (default: 224).")]
OverviewPx = Annotated[int | None, typer.Option(help="Side of the overview in pixels (default: 256).")]
Target = Annotated[str | None, typer.Option(help="exploration: the class of the regions to find (default: tumour).")]
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
    policy: Policies,
    out: Out,
    cohort: CohortFolder = None,
    split: Split = None,
    subset: Subset = "all",
    budget: Annotated[str | None, typer.Option(help=f"{BUDGETS} (default: the task's).")] = None,
    seed: Annotated[int, typer.Option(help="Of the policies' random numbers.")] = 0,
    blind: Blind = None,
    jobs: Jobs = 1,
    view_px: ViewPx = None,
    overview_px: OverviewPx = None,
    target: Target = None,
    env: EnvArguments = None,
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Run policies on a task at one budget and seed."""
    _run(
        task,
        out,
        as_json,
        policies=policy,
        budgets=[] if budget is None else [budget],
        seeds=[seed],
        cohort=cohort,
        split=split,
        subset=subset,
        blind=blind or [],
        jobs=jobs,
        env_arguments=_given(view_px=view_px, overview_px=overview_px, target=target) | _env_arguments(env or []),
        allow_outside=allow_outside,
    )


def sweep(
    task: Task,
    policy: Policies,
    out: Out,
    budget: Annotated[list[str], typer.Option(help=f"{BUDGETS}. May be repeated.")],
    cohort: CohortFolder = None,
    split: Split = None,
    subset: Subset = "all",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds: 0 to this less one.")] = 1,
    blind: Blind = None,
    jobs: Jobs = 1,
    view_px: ViewPx = None,
    overview_px: OverviewPx = None,
    target: Target = None,
    env: EnvArguments = None,
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Run policies x budgets x seeds on a task."""
    _run(
        task,
        out,
        as_json,
        policies=policy,
        budgets=budget,
        seeds=range(seeds),
        cohort=cohort,
        split=split,
        subset=subset,
        blind=blind or [],
        jobs=jobs,
        env_arguments=_given(view_px=view_px, overview_px=overview_px, target=target) | _env_arguments(env or []),
        allow_outside=allow_outside,
    )


def replay(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    episode: Annotated[str, typer.Argument(help="Its place in the run, from 0, or ITEM[:POLICY[:BUDGET[:SEED]]].")],
    cohort: Annotated[Path | None, typer.Option(help="The run's cohort, where it has moved.")] = None,
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Recompute an episode's score from its recorded actions; exit code 1 if it differs."""
    from wsigym.benchmarks.replay import replay as replay_episode

    result = replay_episode(run, episode, cohort=cohort, allow_outside=allow_outside)
    if as_json:
        content = {
            "episode": result.key._asdict(),
            "agrees": result.agrees,
            "recorded_score": result.recorded_score,
            "replayed_score": result.replayed_score,
            "differences": result.differences,
        }
        typer.echo(json.dumps(content, indent=2))
    elif result.agrees:
        typer.echo(f"agrees: {_episode_text(result.key)} scores {result.replayed_score:.6g} again")
    else:
        typer.echo(f"differs: {_episode_text(result.key)}")
        typer.echo("\n".join(f"  {difference}" for difference in result.differences))
    raise typer.Exit(0 if result.agrees else 1)


def _episode_text(key: Any) -> str:
    return f"{key.item} by {key.policy} at {key.budget}, seed {key.seed}"


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


def _run(task: str, out: Path, as_json: bool, *, seeds: Sequence[int], **arguments: Any) -> None:
    from wsigym.benchmarks.runner import run as run_task

    try:
        with progress_of("episodes") as progress:
            summary = run_task(task, out=out, seeds=seeds, progress=progress, **arguments)
    except KeyboardInterrupt:
        typer.echo(f"stopped; finished episodes are kept in {out}, and the same command goes on from there", err=True)
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
        raise typer.Exit(1)


def _summary_text(summary: RunSummary) -> str:
    before = f", {summary.finished_before} were there already" if summary.finished_before else ""
    return (
        f"{summary.played - summary.failed} episodes played{before}; records in {summary.folder}\n"
        f"wsigym table {summary.folder}"
    )


def _summary_json(summary: RunSummary) -> dict[str, Any]:
    return {
        "run": str(summary.folder),
        "asked": summary.asked,
        "finished_before": summary.finished_before,
        "played": summary.played,
        "failed": summary.failed,
        "first_error": summary.first_error,
    }
