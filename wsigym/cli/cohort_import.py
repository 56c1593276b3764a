"""`wsigym cohort import DIALECT FILES...`: annotations of other programs into a cohort."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wsigym.errors import InvalidArgumentError

from .progress import progress_of

if TYPE_CHECKING:
    from wsigym.cohorts.importers import ImportReport

__all__ = ["counted", "import_"]


def import_(
    dialect: Annotated[str, typer.Argument(help="asap, imagescope, geojson, coco or polygons.")],
    files: Annotated[list[Path], typer.Argument(help="The annotation files, named like their slides.")],
    cohort: Annotated[Path, typer.Option(help="The cohort's folder.")],
    slides: Annotated[
        Path | None, typer.Option(help="A folder with slides: those that a file is for join the cohort.")
    ] = None,
    class_names: Annotated[
        list[str] | None,
        typer.Option(
            "--class", metavar="FILE_NAME=NAME", help="Rename a class. An empty FILE_NAME: areas without one."
        ),
    ] = None,
    kind: Annotated[
        str, typer.Option("--as", help="What the shapes are: regions, or nodes (geojson only).")
    ] = "regions",
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite what a slide has already.")] = False,
    allow_outside: Annotated[bool, typer.Option(help="Allow slide paths that leave the cohort's folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Import annotation files into a cohort; a file belongs to the slide of the same name.

    Areas of class "exclusion" are cut out of the others. If one file cannot be read, nothing is written.
    """
    from wsigym.cohorts.importers import import_annotations, import_nodes

    classes = _classes(class_names or [])
    if kind not in ("regions", "nodes"):
        raise InvalidArgumentError(f"--as is {kind!r}; allowed are regions and nodes.")
    if kind == "nodes" and (dialect != "geojson" or classes):
        raise InvalidArgumentError("--as nodes reads geojson, whose class names it does not use; leave out --class.")
    with progress_of("files") as progress:
        if kind == "nodes":
            report = import_nodes(
                files, cohort, slides=slides, replace=replace, allow_outside=allow_outside, progress=progress
            )
        else:
            report = import_annotations(
                files,
                dialect,
                cohort,
                slides=slides,
                classes=classes,
                replace=replace,
                allow_outside=allow_outside,
                progress=progress,
            )
    if as_json:
        typer.echo(json.dumps(asdict(report), indent=2))
    else:
        _print(report, kind)


def _classes(pairs: list[str]) -> dict[str, str]:
    classes: dict[str, str] = {}
    for pair in pairs:
        found, sign, name = pair.rpartition("=")
        if not sign:
            raise InvalidArgumentError(f"--class is {pair!r}; it is written FILE_NAME=NAME, such as Tumor=tumour.")
        classes[found] = name
    return classes


def _print(report: ImportReport, kind: str) -> None:
    for warning in report.warnings:
        typer.echo(f"warning: {warning}", err=True)
    for one in report.imports:
        extra = [f"{one.clipped} clipped to the slide"] if one.clipped else []
        extra += [f"left out {_counts(one.left_out)}"] if one.left_out else []
        typer.echo(
            f"{one.slide_id}: {counted(one.count, kind)} from {one.file}" + "".join(f", {each}" for each in extra)
        )
    for title, names in (("no slide for", report.unmatched), ("no file for slide", report.without_file)):
        for name in names:
            typer.echo(f"{title} {name}", err=True)
    total = sum(one.count for one in report.imports)
    new = f", {len(report.added)} of them new in the cohort" if report.added else ""
    typer.echo(f"{counted(total, kind)} on {counted(len(report.imports), 'slides')}{new}")
    if report.outside:
        outside = len(report.outside)
        typer.echo(
            f"{counted(outside, 'slides')} {'lies' if outside == 1 else 'lie'} outside the cohort's folder: use it "
            "with --allow-outside",
            err=True,
        )


def counted(count: int, plural: str) -> str:
    """Such as "1 slide" and "2 slides"."""
    return f"{count} {plural.removesuffix('s') if count == 1 else plural}"


def _counts(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in left_out.items())
