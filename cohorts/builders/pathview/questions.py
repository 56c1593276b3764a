"""What the rules of tasks share: a question with its answer, why there is none, and the options beside the right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...items import AnswerFormat, in_base_order
from ..building import Evenly
from .field import Field
from .labels import Kind, Labels
from .marks import Outline

__all__ = [
    "BOXES",
    "CHOOSE",
    "COUNT",
    "INSUFFICIENT",
    "OTHERS",
    "QUADRANTS",
    "TERMS",
    "Asking",
    "NotAskedError",
    "Question",
    "in_words",
    "quadrant_of",
]

INSUFFICIENT = "Insufficient information"
"""An option of every closed question, right in the two traps alone."""

OTHERS = 3
"""Options beside the right one and insufficiency; so chance is 1/5 where there are enough."""

QUADRANTS = ("Top-left quadrant", "Top-right quadrant", "Bottom-left quadrant", "Bottom-right quadrant")

CHOOSE = AnswerFormat(kind="option", words="Answer with the letter of one option.")
BOXES = AnswerFormat(
    kind="boxes",
    words="Answer with a JSON list of boxes [x1, y1, x2, y2], in thousandths of the image's width and height from its "
    "top left corner.",
)
COUNT = AnswerFormat(kind="number", words="Answer with one whole number.")
TERMS = AnswerFormat(kind="terms", words="Answer with a list of standard terms, separated by commas.")


class NotAskedError(Exception):
    """There is no such item of this picture; the text is the reason."""


@dataclass(frozen=True)
class Question:
    """An item before it has an id.

    `right` is the answer: the text of an option, or what the format holds. `options` are all of them, in a fixed order
    where `ordered`, else in any. For people who review it, `asked_box` is the box that the question names, `boxes` are
    the annotations that the answer rests on; `notes` go to the reference's provenance.
    """

    text: str
    form: AnswerFormat
    right: Any
    options: tuple[str, ...] = ()
    ordered: bool = False
    asked_box: list[int] | None = None
    boxes: tuple[list[int], ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Asking:
    """What rules know beside the picture: the labels, those that occur in its source, all organs, the lot, what options
    are drawn by, and how to measure the share of the picture's tissue within areas (None where it has no tissue)."""

    labels: Labels
    in_source: tuple[str, ...]
    organs: tuple[str, ...]
    seed: int
    key: str
    evenly: Evenly
    fraction_of_tissue: Callable[[Sequence[Outline]], float | None]

    def shuffled(self, values: Sequence[Any], purpose: str = "") -> list[Any]:
        """The values in an order of this item's own."""
        return in_base_order(values, f"{self.key}\0{purpose}", self.seed)

    def choices(self, right: str, others: Sequence[str]) -> tuple[str, ...]:
        """The right option, up to three of the others, drawn evenly, else by lot, and insufficiency.

        To be called once, when all else is settled. Raises `NotAskedError` where there is no other.
        """
        order = self.shuffled([other for other in dict.fromkeys(others) if other != right], "options")
        if not order:
            raise NotAskedError("there is no other option")
        return (right, *self.evenly.draw(right, order, OTHERS), INSUFFICIENT)

    def categories(self, field: Field) -> list[str]:
        """The labels that may stand beside a right one: of the source, seen at such a view."""
        kinds: tuple[Kind, ...] = (
            ("structure", "lesion") if field.picture.view == "slide" else ("cell", "structure", "lesion")
        )
        wanted = set(self.labels.of_kinds(kinds))
        near = [name for name in self.in_source if name in wanted]
        far = [name for name in self.labels.standard if name in wanted and name not in near]
        return near if len(near) > OTHERS else [*near, *self.shuffled(far, "far")[: OTHERS + 1 - len(near)]]


def in_words(box: Sequence[int]) -> str:
    """A box in a question."""
    return f"[{', '.join(map(str, box))}] (x1, y1, x2, y2 in thousandths of the image's width and height)"


def quadrant_of(field: Field, places: Any) -> Any:
    """The place in `QUADRANTS` of each object's centre; a centre on a middle line is right of it, or below."""
    centres = (field.boxes[places, :2] + field.boxes[places, 2:]) / 2
    return (centres[:, 0] >= field.size[0] / 2) + 2 * (centres[:, 1] >= field.size[1] / 2)
