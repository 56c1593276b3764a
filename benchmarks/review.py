"""A contact sheet of items for people who review them: images with their boxes, question, answer, source.

It shows references, so it is for people alone: never show it to a model that is tested.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from wsigym.cohorts import Asked, Cohort, ImageSpec, load_items
from wsigym.cohorts.files import item_tasks
from wsigym.cohorts.items import letter
from wsigym.envs.item_images import item_image
from wsigym.errors import InvalidArgumentError, UnknownNameError

from .task import by_lot

__all__ = ["contact_sheet", "items_of", "items_to_review", "legend"]

COLUMNS, SIDE_PX, GAP_PX, MAX_LINES = 5, 360, 12, 24
"""Items side by side, the square of an item's images, what lies between items, and the most lines of text below."""

LINE_CHARS, LINE_PX, FONT_PX = 60, 14, 11
Colour = tuple[int, int, int]
PAPER, INK, FAINT = (255, 255, 255), (30, 30, 30), (110, 110, 110)
ASKED, RIGHT = (0, 70, 255), (0, 150, 50)
BOX_PX = 2
"""How wide the lines of boxes are."""

THOUSAND = 1000

BOXES = ("asked_box", "boxes")
"""Fields of a reference's provenance that are drawn."""


def items_of(cohort: Cohort, name: str) -> list[Asked]:
    """The items of `SUITE` or `SUITE/TASK` in a cohort. Raises `UnknownNameError`."""
    suite, _, task = name.partition("/")
    known = item_tasks(cohort.root)
    chosen = [names for names in known if names[0] == suite and task in ("", names[1])]
    if not chosen:
        suites = [f"{suite}/{task}" for suite, task in known]
        raise UnknownNameError("items of the cohort (`wsigym items build` makes them)", name, suites)
    return [asked for names in chosen for asked in load_items(cohort, *names)]


def items_to_review(asked: Sequence[Asked], count: int, seed: int) -> list[Asked]:
    """`count` items drawn by lot, of each task as many as of every other as far as there are."""
    if count < 1:
        raise InvalidArgumentError(f"{count} items: at least one is shown.")
    tasks: dict[str, list[Asked]] = {}
    for each in asked:
        tasks.setdefault(each.item.task, []).append(each)
    drawn = [sorted(group, key=lambda each: by_lot(seed, each.item.item_id)) for group in tasks.values()]
    rounds = [group[turn] for turn in range(max(map(len, drawn))) for group in drawn if turn < len(group)]
    chosen = {id(each) for each in rounds[:count]}
    return [each for each in asked if id(each) in chosen]


def contact_sheet(cohort: Cohort, asked: Sequence[Asked]) -> Image.Image:
    """RGB: a cell for each item. The answer and the boxes that it rests on are green, a box that is asked about blue.

    Raises `SlideError` where an image cannot be read.
    """
    rows = [asked[start : start + COLUMNS] for start in range(0, len(asked), COLUMNS)]
    texts = [[_lines(each)[:MAX_LINES] for each in row] for row in rows]
    heights = [SIDE_PX + LINE_PX * max(map(len, row)) + 2 * GAP_PX for row in texts]
    sheet = Image.new("RGB", (COLUMNS * (SIDE_PX + GAP_PX) + GAP_PX, sum(heights) + GAP_PX), PAPER)
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(FONT_PX)
    top = GAP_PX
    for row, lines_of_row, height in zip(rows, texts, heights, strict=True):
        for column, (each, lines) in enumerate(zip(row, lines_of_row, strict=True)):
            left = GAP_PX + column * (SIDE_PX + GAP_PX)
            shown = _shown(cohort, each)
            if shown is not None:
                sheet.paste(shown, (left, top))
            for number, (line, colour) in enumerate(lines):
                draw.text((left, top + SIDE_PX + 2 + number * LINE_PX), line, colour, font)
        top += height
    return sheet


def _shown(cohort: Cohort, asked: Asked) -> Image.Image | None:
    """The item's image, or its images as a mosaic, with the boxes that it rests on."""
    images = asked.item.images
    if not images:
        return None
    parts = tuple(part for image in images for part in image.parts)
    spec = images[0] if len(images) == 1 else ImageSpec(tiles=parts)
    picture = Image.fromarray(np.ascontiguousarray(item_image(cohort, spec, SIDE_PX).image))
    draw = ImageDraw.Draw(picture)
    for boxes, colour in _boxes(asked):
        for x1, y1, x2, y2 in boxes:
            corners = (x1 * picture.width, y1 * picture.height, x2 * picture.width, y2 * picture.height)
            draw.rectangle([corner / THOUSAND for corner in corners], None, colour, BOX_PX)
    return picture


def _boxes(asked: Asked) -> list[tuple[list[list[int]], Colour]]:
    """The boxes of an item of one image by their colour: the one asked about, those that the answer rests on."""
    if sum(len(image.parts) for image in asked.item.images) != 1:
        return []
    known = asked.reference.provenance
    given = [known["asked_box"]] if "asked_box" in known else []
    answer = asked.reference.answer if asked.item.answer.kind == "boxes" else known.get("boxes", [])
    return [(boxes, colour) for boxes, colour in ((given, ASKED), (answer, RIGHT)) if boxes]


def legend(asked: Asked) -> list[tuple[str, Colour]]:
    """What the boxes of an item are, a line a colour."""
    said = {ASKED: "Blue: the box in the question", RIGHT: "Green: what the answer rests on"}
    return [(said[colour], colour) for _, colour in _boxes(asked)]


def _lines(asked: Asked) -> list[tuple[str, Colour]]:
    item, reference = asked.item, asked.reference
    lines: list[tuple[str, Colour]] = []

    def add(text: str, colour: Colour = INK) -> None:
        lines.extend((line, colour) for line in textwrap.wrap(text, LINE_CHARS, max_lines=4, placeholder=" ..."))

    add(f"{item.suite}/{item.task}  {item.item_id}  {item.split or 'no split'}")
    add(" ".join(f"{finding.magnification:g}x: {finding.text}" for finding in item.findings))
    for line in item.question.splitlines():  # statements to judge stand on lines of their own
        add(line)
    for place, option in enumerate(item.options):
        add(f"{letter(place)}. {option}", RIGHT if place == reference.answer else INK)
    if not item.options:
        add(f"Answer: {reference.answer}", RIGHT)
    lines.extend(legend(asked))
    source: dict[str, Any] = {**dict[str, Any](item.group.items()), **reference.strata, **reference.provenance}
    add("; ".join(f"{key} {value}" for key, value in source.items() if key not in BOXES and value is not None), FAINT)
    return lines
