"""`wsigym bench [reader|env|scoring]`: speed on this machine, as ratios of what is measured side by side."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .progress import progress_of
from .table import console_for_tables

if TYPE_CHECKING:
    from wsigym.benchmarks.speed_reader import Row
    from wsigym.benchmarks.speed_timing import Ratio

__all__ = ["app"]

app = typer.Typer(help="Measure speed on this machine, as ratios side by side; without a name, everything.")

Folder = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where the slides are kept, about 300 MB (default: the user's cache)."),
]
Quick = Annotated[bool, typer.Option("--quick", help="Small slides and few reads: whether it works, not how fast.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def bench(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        reader()
        env()
        scoring()


@app.command()
def reader(folder: Folder = None, quick: Quick = False, as_json: AsJson = False) -> None:
    """Reading regions: against OpenSlide with Pillow, TiffSlide, and the JPEG decoder alone."""
    from wsigym.benchmarks.speed_reader import ReaderSizes, bench_reader

    with progress_of("measurements") as progress:
        rows = bench_reader(ReaderSizes.quick() if quick else ReaderSizes(), folder, progress)
    if as_json:
        typer.echo(json.dumps([row.to_json() for row in rows], indent=1))
        return
    _print(
        "How many times longer others take than wsigym (median, lowest and highest round); the limit is decoding alone",
        ("slide", "pattern", "ms", "usual way", "CPU", "target", "tiffslide", "share of limit", "CPU"),
        [_reader_cells(row) for row in rows if not row.note],
    )
    for row in rows:
        if row.note:
            typer.echo(f"{row.pattern}: {row.ours_ms:.2f} ms a read; {row.note}")


@app.command()
def env(quick: Quick = False, as_json: AsJson = False) -> None:
    """Steps of Localization-v0 with a random policy, alone and in vectors; many episodes of pan and zoom at once."""
    from wsigym.benchmarks.speed_env import EnvSizes, bench_env

    with progress_of("settings") as progress:
        measured = bench_env(EnvSizes.quick() if quick else EnvSizes(), progress)
    if as_json:
        typer.echo(json.dumps(measured.to_json(), indent=1))
        return
    _print(
        "Steps a second of Localization-v0 with a random policy",
        (
            "view",
            "reads a second",
            "single",
            "sync 4",
            "sync 16",
            "async 4",
            "async 16",
            "own ms a step",
            "own, median",
        ),
        [
            [
                f"{row.view_px} px",
                *(f"{value:,.0f}" for value in (row.reads, *row.steps.values())),
                f"{row.own_ms:.3f}",
                f"{row.own_median_ms:.3f}",
            ]
            for row in measured.rows
        ],
    )
    _print(
        "LocalizationPanZoom-v0 with three views of 96 px, 16 environments at once",
        ("how", "frames a second", "ours / these", "frames a core", "ours / these", "MiB"),
        [
            [
                row.name,
                f"{row.frames:,.0f}",
                str(row.ours),
                f"{row.frames_a_core:,.0f}",
                str(row.ours_a_core),
                "" if math.isnan(row.mib) else f"{row.mib:,.0f}",
            ]
            for row in measured.vectors
        ],
    )
    typer.echo(f"a second environment on an open slide takes {measured.second_env_mib:.2f} MiB beside the tile cache")


@app.command()
def scoring(quick: Quick = False, as_json: AsJson = False) -> None:
    """Scoring replies one by one, metrics over all of them, and a bootstrap of 2,000 draws against SciPy's."""
    from wsigym.benchmarks.speed_scoring import ScoringSizes, bench_scoring

    with progress_of("measurements") as progress:
        measured = bench_scoring(ScoringSizes.quick() if quick else ScoringSizes(), progress)
    if as_json:
        typer.echo(json.dumps(measured.to_json(), indent=1))
        return
    _print(
        "Seconds of processor time on one core",
        ("what", "of", "seconds"),
        [
            ["replies parsed and scored", f"{measured.replies:,}", f"{measured.score_s:.1f}"],
            ["metrics with intervals", f"{measured.replies:,}", f"{measured.metrics_s:.1f}"],
            ["bootstrap over cases", f"{measured.items:,}", f"{measured.bootstrap_s:.2f}"],
        ],
    )
    typer.echo(f"scipy.stats.bootstrap takes {measured.against_scipy} times as long")


def _reader_cells(row: Row) -> list[str]:
    return [
        row.slide,
        row.pattern,
        f"{row.ours_ms:.2f}",
        _text(row.usual),
        _median(row.usual_cpu),
        "" if row.target is None else f"{row.target:g}",
        _median(row.tiffslide),
        _text(row.limit_share),
        _median(row.limit_share_cpu),
    ]


def _text(ratio: Ratio | None) -> str:
    return "" if ratio is None else str(ratio)


def _median(ratio: Ratio | None) -> str:
    return "" if ratio is None else f"{ratio.median:.2f}"


def _print(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(*columns, title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console = console_for_tables()
    console.print(table)
