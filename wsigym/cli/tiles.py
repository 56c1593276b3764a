"""`wsigym tiles train | calibrate | train-search`: a learned scorer, what suspicions are worth, a learned search."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from wsigym.errors import InvalidArgumentError

from .progress import progress_of

__all__ = ["app"]

app = typer.Typer(
    help="Make tile scorers and a search for evipath/exploration.", no_args_is_help=True, rich_markup_mode=None
)

TARGET = "tumour"
"""As `wsigym.cohorts.exploration.TUMOUR`, whose module is not loaded to print a help text."""

CohortFolder = Annotated[Path, typer.Option("--cohort", help="The cohort's folder.")]
Out = Annotated[Path, typer.Option(help="The file to write, a new one.")]
Target = Annotated[str, typer.Option(help="The class of the regions to find.")]
TilePx = Annotated[int, typer.Option(help="Side of a tile in pixels, as in the runs that will use it.")]
Magnifications = Annotated[str, typer.Option(help="Rising, such as 2.5,10,20 for slides scanned at 20x.")]
AllowOutside = Annotated[bool, typer.Option("--allow-outside", help="Allow slide paths that leave the cohort folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def train(
    cohort: CohortFolder,
    out: Out,
    split: Annotated[str, typer.Option(help="The slides to learn from.")] = "train",
    target: Target = TARGET,
    tile_px: TilePx = 128,
    magnifications: Magnifications = "2.5,10,40",
    seed: Annotated[int, typer.Option(help="Of the tiles drawn and the network's start.")] = 0,
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Train a small network on the tumour regions of a split; used as tile-scorer:OUT. Needs the extra rl."""
    from wsigym.baselines.checks import extra_rl

    with extra_rl("training"):
        from wsigym.baselines.tile_training import train_tile_scorer
    from wsigym.cohorts import Cohort

    loaded = Cohort.load(cohort, allow_outside=allow_outside)
    with progress_of("slides, then epochs") as progress:
        trained = train_tile_scorer(
            loaded,
            out,
            split=split,
            target=target,
            magnifications=_numbers(magnifications),
            tile_px=tile_px,
            seed=seed,
            progress=progress,
        )
    if as_json:
        content = {"out": str(out), "slides": trained.slides, "tiles": trained.tiles, "positives": trained.positives}
        typer.echo(json.dumps(content | {"loss": trained.loss}, indent=2))
    else:
        typer.echo(
            f"{out}: trained on {trained.tiles:,} tiles of {trained.slides} slides, {trained.positives:,} of them "
            f"positive; loss {trained.loss:.3f}"
        )


@app.command()
def calibrate(
    cohort: CohortFolder,
    out: Out,
    scorer: Annotated[str, typer.Option(help="Such as stain-density or tile-scorer:PATH.")],
    split: Annotated[str, typer.Option(help="Slides that the scorer was not trained on.")] = "val",
    target: Target = TARGET,
    tile_px: TilePx = 128,
    magnifications: Magnifications = "2.5,10,40",
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Learn how likely a scorer's suspicions mean tumour; used as adaptive:OUT."""
    from wsigym.baselines.checks import new_file
    from wsigym.baselines.registry import make_scorer
    from wsigym.baselines.tile_calibration import calibrate as calibrate_scorer
    from wsigym.cohorts import Cohort

    loaded = Cohort.load(cohort, allow_outside=allow_outside)
    with new_file(out) as file, progress_of("slides") as progress:
        calibration = calibrate_scorer(
            scorer,
            make_scorer(scorer),
            loaded,
            split=split,
            target=target,
            magnifications=_numbers(magnifications),
            tile_px=tile_px,
            progress=progress,
        )
        calibration.save(file)
    if as_json:
        typer.echo(json.dumps({"out": str(out), "scorer": scorer, "threshold": calibration.threshold}, indent=2))
    else:
        typer.echo(f"{out}: {scorer}; a search stops where the best open tile is below {calibration.threshold:.3f}")


@app.command()
def train_search(
    cohort: CohortFolder,
    out: Out,
    split: Annotated[str, typer.Option(help="The slides to learn on.")] = "train",
    target: Target = TARGET,
    tile_px: TilePx = 128,
    magnifications: Magnifications = "2.5,10,40",
    tiles: Annotated[
        str, typer.Option(metavar="LEAST,MOST", help="Budgets to learn: tiles that an episode may view.")
    ] = "64,320",
    steps: Annotated[int, typer.Option(help="Tiles to open in training.")] = 16_384,
    seed: Annotated[int, typer.Option(help="Of the network's start and the episodes drawn.")] = 0,
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Learn by PPO which tile to open next, from the hit rate alone; used as choose:OUT. Needs the extra rl."""
    from wsigym.baselines.checks import extra_rl

    with extra_rl("training"):
        from wsigym.baselines.chooser_training import train_chooser
    from wsigym.cohorts import Cohort

    loaded = Cohort.load(cohort, allow_outside=allow_outside)
    with progress_of("tiles opened") as progress:
        trained = train_chooser(
            loaded,
            out,
            split=split,
            target=target,
            magnifications=_numbers(magnifications),
            tile_px=tile_px,
            tiles=_numbers(tiles, "--tiles", "64,320"),
            steps=steps,
            seed=seed,
            progress=progress,
        )
    if as_json:
        typer.echo(json.dumps({"out": str(out), **asdict(trained)}, indent=2))
    else:
        typer.echo(
            f"{out}: {trained.episodes:,} episodes on {trained.slides} slides; hit rate of the first tenth "
            f"{trained.first_return:.3f}, of the last {trained.last_return:.3f}"
        )


def _numbers(text: str, option: str = "--magnifications", such_as: str = "2.5,10,40") -> list[float]:
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise InvalidArgumentError(f"{option} {text}: numbers are needed, such as {such_as}.") from None
