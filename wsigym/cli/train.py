"""`wsigym train`: a navigator by cloning and reinforcement learning."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from wsigym.errors import InvalidArgumentError

from .progress import progress_of

__all__ = ["train"]


def train(
    cohort: Annotated[Path, typer.Option(help="The cohort's folder.")],
    out: Annotated[Path, typer.Option(help="The training's folder. An unfinished training in it goes on.")],
    steps: Annotated[int, typer.Option(help="Moves in the environments; 0 clones only.")] = 24_576,
    demos: Annotated[
        list[Path] | None, typer.Option(help="Demonstrations to clone first, from `wsigym demos`. May be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the network's start, and all that is drawn.")] = 0,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            help="tight, base, loose, or a number of ROIs. May be repeated: environments have one each, and the first "
            "is what the best policy is chosen by (default: base, tight, loose)."
        ),
    ] = None,
    magnifications: Annotated[
        str | None, typer.Option(metavar="LOW,HIGH", help="Queries to learn, such as 10,40 (default: all).")
    ] = None,
    view_px: Annotated[int, typer.Option(help="Side of all images, 36 or more.")] = 96,
    gamma: Annotated[float, typer.Option(help="Discount, of the learner and of the reward's shaping.")] = 0.99,
    learning_rate: Annotated[float, typer.Option(help="Of PPO; from nothing, without --demos, try 3e-4.")] = 1e-4,
    rollout: Annotated[int, typer.Option(help="Steps of each of 16 environments between updates of PPO.")] = 128,
    place_batches: Annotated[int, typer.Option(help="Batches of cloning that learn where targets lie.")] = 2_400,
    move_batches: Annotated[int, typer.Option(help="Batches of cloning that learn the moves.")] = 800,
    check_every: Annotated[int, typer.Option(help="Steps between checkpoints.")] = 6_144,
    allow_outside: Annotated[
        bool, typer.Option("--allow-outside", help="Allow slide paths that leave the cohort folder.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train a navigator on the split train, choose it on val; played as --policy ppo:OUT. Needs the extra rl."""
    from wsigym.baselines.checks import extra_rl

    with extra_rl("training"):
        from wsigym.baselines.train_ppo import TrainSettings, train_navigator
    from wsigym.cohorts import Cohort

    settings = TrainSettings(
        seed=seed,
        budgets=tuple(budget or TrainSettings.budgets),
        magnifications=None if magnifications is None else _range(magnifications),
        px=view_px,
        gamma=gamma,
        learning_rate=learning_rate,
        rollout=rollout,
        place_batches=place_batches,
        move_batches=move_batches,
    )
    loaded = Cohort.load(cohort, allow_outside=allow_outside)
    try:
        with progress_of("training") as progress:
            trained = train_navigator(
                loaded,
                out,
                steps=steps,
                demonstrations=demos or (),
                settings=settings,
                check_every=check_every,
                progress=progress,
            )
    except KeyboardInterrupt:
        typer.echo(
            f"stopped; the same command goes on from the last checkpoint in {out}, or begins where there is none",
            err=True,
        )
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.dumps(asdict(trained) | {"folder": str(trained.folder)}, indent=2))
    else:
        typer.echo(
            f"{trained.steps:,} steps in {trained.seconds / 60:.1f} minutes; best on val after {trained.best_step:,}: "
            f"mean IoU {trained.best_iou:.3f}\n"
            f"wsigym run evipath/localization --cohort {cohort} --split test --policy ppo:{out}"
        )


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = (float(number) for number in text.split(","))
    except ValueError:
        raise InvalidArgumentError(f"--magnifications {text}: two numbers are needed, such as 10,40.") from None
    return low, high
