"""`wsigym cohort export --qupath COHORT --out DIR`: annotations and runs as files to look at in QuPath."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsigym.errors import InvalidArgumentError

if TYPE_CHECKING:
    from wsigym.benchmarks.records import EpisodeRecord

__all__ = ["export"]


def export(
    cohort: Annotated[Path, typer.Argument(help="The cohort's folder.")],
    out: Annotated[Path, typer.Option(help="A new folder for nodes/, regions/ and rois/.")],
    qupath: Annotated[bool, typer.Option("--qupath", help="Write GeoJSON for QuPath; the only format so far.")] = False,
    run: Annotated[
        Path | None, typer.Option(help="A run on the cohort: its ROIs and answers, or its tiles, too.")
    ] = None,
    allow_outside: Annotated[bool, typer.Option(help="Allow slide paths that leave the cohort's folder.")] = False,
) -> None:
    """Write a cohort's nodes and regions, and a run's ROIs or tiles, as files that QuPath opens."""
    from wsigym.benchmarks.run_folder import load_run
    from wsigym.cohorts import Cohort
    from wsigym.cohorts.export import export_qupath

    if not qupath:
        raise InvalidArgumentError("no format was named; pass --qupath.")
    loaded = Cohort.load(cohort, allow_outside=allow_outside)
    rois: dict[str, list[dict[str, Any]]] = {}
    for record in load_run(run).records if run is not None else ():
        rois.setdefault(_slide_of(record), []).extend(_features(record))
    if run is not None and not any(rois.values()):
        raise InvalidArgumentError(
            f"{run} has no ROI, answer or tile to export: none of its episodes got as far, or they were recorded "
            "before steps held tiles; run it again, or leave out --run."
        )
    for path in export_qupath(loaded, out, rois=rois):
        typer.echo(path)


def _slide_of(record: EpisodeRecord) -> str:
    slide = record.groups.get("slide")
    if isinstance(slide, str):
        return slide
    raise InvalidArgumentError(
        f"the run's episode {record.item!r} of {record.suite}/{record.task} is on no slide: no ROIs to export."
    )


def _features(record: EpisodeRecord) -> Iterator[dict[str, Any]]:
    """Each ROI that was shown, in order, and the box that was answered; each tile that was scored, and whether kept."""
    from wsigym.cohorts.writing import box_feature
    from wsigym.envs.verdicts import suspicion
    from wsigym.slides import Box

    kept = {box for step in record.steps for box in step.kept or ()}
    for number, step in enumerate(record.steps, start=1):
        facts = {
            "item": record.item,
            "policy": record.policy,
            "budget": record.budget,
            "seed": str(record.seed),
            "step": str(number),
            "outcome": record.outcome,
            "score": "" if record.score is None else repr(record.score),
        }
        for tile in step.tiles or ():
            verdict = "Yes" if tile.yes else "No"
            yield box_feature(
                Box.of(tile.box),
                name=f"{record.policy} {number}: {verdict} {tile.score:g}",
                class_name=f"{'kept' if tile.box in kept else 'viewed'} {step.view_magnification:g}x",
                metadata=facts | {"verdict": verdict},
                measurements={"suspicion": suspicion(yes=tile.yes, score=tile.score), "stated score": tile.score},
            )
        box = step.roi if step.roi is not None else step.box
        if box is None or step.error is not None or Box.of(box).is_empty:
            continue
        said = step.reason or step.conclusion
        yield box_feature(
            Box.of(box),
            name=f"{record.policy} {number}" + (f": {said}" if said else ""),
            class_name="ROI" if step.roi is not None else "answer",
            metadata=facts,
        )
