"""`wsigym review | export`: items for people to look at, and for models to learn from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from wsigym.errors import InvalidArgumentError

__all__ = ["export", "review"]

Name = Annotated[str, typer.Argument(metavar="SUITE[/TASK]", help="Such as pathview, or pathview/area-estimation.")]
CohortFolder = Annotated[
    Path | None, typer.Option("--cohort", help="The cohort's folder; without it a small synthetic one.")
]
AllowOutside = Annotated[bool, typer.Option("--allow-outside", help="Allow slide paths that leave the cohort folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def review(
    suite: Name,
    out: Annotated[Path, typer.Option(metavar="PNG", help="The picture to write.")],
    cohort: CohortFolder = None,
    n: Annotated[int, typer.Option("--n", min=1, max=500, help="Items, of each task alike.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Of the lot that draws them.")] = 0,
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Write a contact sheet of items: images with boxes, question, answer, source. It shows the answers."""
    from wsigym.benchmarks.review import contact_sheet, items_of, items_to_review
    from wsigym.cohorts import Cohort
    from wsigym.cohorts.synthetic import default_cohort

    loaded = Cohort.load(cohort or default_cohort(), allow_outside=allow_outside)
    chosen = items_to_review(items_of(loaded, suite), n, seed)
    sheet = contact_sheet(loaded, chosen)
    try:
        sheet.save(out, format="PNG")
    except OSError as error:
        raise InvalidArgumentError(f"the picture cannot be written: {error}; choose another --out.") from None
    typer.echo(json.dumps({"out": str(out), "items": len(chosen)}) if as_json else f"{len(chosen)} items in {out}")


def export(
    suite: Name,
    out: Annotated[Path, typer.Option(help="The JSONL to write, one item a line.")],
    cohort: CohortFolder = None,
    split: Annotated[str, typer.Option(help="Only train: val and test are refused.")] = "train",
    form: Annotated[str, typer.Option("--format", help="Only chat: a user's message, and the answer.")] = "chat",
    images: Annotated[
        str,
        typer.Option(metavar="refs|files", help="Images by file or slide and box, or as PNG files beside the JSONL."),
    ] = "refs",
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Write the train items with their answers as chats, for supervised fine-tuning."""
    from wsigym.benchmarks.item_export import export_items
    from wsigym.cohorts import Cohort
    from wsigym.cohorts.synthetic import default_cohort

    loaded = Cohort.load(cohort or default_cohort(), allow_outside=allow_outside)
    done = export_items(suite, loaded, out, split=split, form=form, images=images)
    if as_json:
        typer.echo(json.dumps({"out": str(done.path), "items": done.items, "images": done.images}))
        return
    files = f" and {done.images:,} images" if done.images else ""
    typer.echo(f"{done.items:,} items{files} of split train written to {done.path}")
