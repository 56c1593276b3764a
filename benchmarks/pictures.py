"""A localization trajectory as a picture for people: where the policy looked, what it answered, what was right.

Drawn after the episode from its record. The reference is shown here, and only here: `env.render()` never shows it.
"""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from wsigym.cohorts import Cohort, LocalizationQuery, LocalizationReference
from wsigym.envs.localization import FINISH_AND_REPORT
from wsigym.envs.views import view_of
from wsigym.slides import Box

from .records import EpisodeRecord

__all__ = ["trajectory_picture"]

MAP_PX = 640
"""Side of the map of the search box."""

LOOK_PX, LOOKS_A_ROW = 160, 4
"""Side of a look, and how many stand side by side at the right of the map."""

MARGIN, TEXT_ROWS = 12, 3
INK, PAPER = (30, 30, 30), (255, 255, 255)
LOOK, ANSWER, REFERENCE = (30, 90, 220), (220, 40, 40), (20, 140, 60)


def trajectory_picture(
    cohort: Cohort, query: LocalizationQuery, reference: LocalizationReference, record: EpisodeRecord
) -> Image.Image:
    """The search box with numbered ROIs (blue), the answer (red) and valid boxes (green); each look beside it."""
    slide = cohort.open(query.slide_id)
    mapped = view_of(slide, query.search_box, MAP_PX, query.magnification)
    rois = [Box.of(step.roi) for step in record.steps if step.roi and step.action["tool"] != FINISH_AND_REPORT]
    rows = max(-(-len(rois) // LOOKS_A_ROW), 1)
    font = ImageFont.load_default(15)
    text_height = TEXT_ROWS * 20
    height = max(MAP_PX, rows * (LOOK_PX + MARGIN)) + text_height + 2 * MARGIN
    picture = Image.new("RGB", (MAP_PX + LOOKS_A_ROW * (LOOK_PX + MARGIN) + 2 * MARGIN, height), PAPER)
    draw = ImageDraw.Draw(picture)
    for line, text in enumerate(_captions(query, record)):
        draw.text((MARGIN, MARGIN + 20 * line), text, INK, font)
    top = MARGIN + text_height
    picture.paste(Image.fromarray(mapped.image[: mapped.size[1], : mapped.size[0]]), (MARGIN, top))
    scale = mapped.size[0] / query.search_box.width

    def outline(box: Box, colour: tuple[int, int, int], width: int, label: str = "") -> None:
        left, upper = MARGIN + (box.x - query.search_box.x) * scale, top + (box.y - query.search_box.y) * scale
        draw.rectangle((left, upper, left + box.width * scale, upper + box.height * scale), None, colour, width)
        if label:
            draw.text((left + 4, upper + 2), label, colour, font, stroke_width=2, stroke_fill=PAPER)

    for number, roi in enumerate(rois, start=1):
        outline(roi, LOOK, 1, str(number))
    for box in reference.boxes:
        outline(box, REFERENCE, 3)
    final = record.steps[-1]
    if record.outcome == "scored" and final.box:
        outline(_placed(Box.of(final.box), reference.boxes[0]).shifted_inside(query.search_box), ANSWER, 3)
    for number, roi in enumerate(rois, start=1):
        row, column = divmod(number - 1, LOOKS_A_ROW)
        left, upper = MARGIN * 2 + MAP_PX + column * (LOOK_PX + MARGIN), top + row * (LOOK_PX + MARGIN)
        look = view_of(slide, roi, LOOK_PX, query.magnification)
        picture.paste(Image.fromarray(np.ascontiguousarray(look.image)), (left, upper))
        draw.rectangle((left, upper, left + LOOK_PX, upper + LOOK_PX), None, LOOK, 1)
        draw.text((left + 4, upper + 2), str(number), LOOK, font, stroke_width=2, stroke_fill=PAPER)
    return picture


def _captions(query: LocalizationQuery, record: EpisodeRecord) -> list[str]:
    score = "none" if record.score is None else f"{record.score:.2f}"
    return [
        f"{query.slide_id}, {query.magnification:g}x: {query.target}",
        f"policy {record.policy}, budget {record.budget}: {record.outcome}, IoU {score}",
        "blue: looks in order    red: answer, in the size that is scored    green: valid boxes",
    ]


def _placed(answer: Box, valid: Box) -> Box:
    return Box(0, 0, valid.width, valid.height).centred_on(*answer.centre)
