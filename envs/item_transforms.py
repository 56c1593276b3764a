"""Other views of an item: its options rotated, or less of its evidence. The question and the key never change.

A rotation shifts the options cyclically to the left, so that the key visits each place once (CircularEval). Evidence is
named by parts joined with commas:

    all              as the item is
    highest-power    the last image and the last finding only (CaseScope's single-field ablation)
    2.5x+10x         images and findings at these magnifications only (EviPathBench's magnification ablation)
    text             no image, no features
    no-site          without the specimen's site and organ
    mosaic           all images as one, numbered in reading order, for models that take one image

What describes the evidence is made from it (`EvidenceItem.text`), so that it follows by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from wsigym.cohorts import EvidenceItem, EvidenceReference, ImageSpec, Metadata
from wsigym.errors import InvalidArgumentError

__all__ = ["Evidence", "rotated", "rotated_reference"]

ALL = "all"
SUBSET = re.compile(r"\d+(?:\.\d+)?x(?:\+\d+(?:\.\d+)?x)*")
PARTS = f"{ALL}, highest-power, text, no-site, mosaic, and magnifications such as 2.5x+10x, joined by commas"


@dataclass(frozen=True)
class Evidence:
    """How much of an item's evidence is shown. `keep` is None for all of it, or the magnifications kept."""

    keep: tuple[float, ...] | Literal["highest-power", "text"] | None = None
    site: bool = True
    mosaic: bool = False

    @classmethod
    def of(cls, spec: str) -> Evidence:
        """From its name, such as "highest-power,no-site". Raises `InvalidArgumentError`."""
        keep: tuple[float, ...] | Literal["highest-power", "text"] | None = None
        parts = [part.strip() for part in spec.split(",")]
        kept = [part for part in parts if part in ("highest-power", "text") or SUBSET.fullmatch(part)]
        rest = set(parts) - set(kept) - {"no-site", "mosaic"}
        if len(kept) > 1 or len(set(parts)) < len(parts) or rest - ({ALL} if len(parts) == 1 else set()):
            raise InvalidArgumentError(f"evidence {spec!r}: allowed are {PARTS}; one part says what is kept.")
        for part in kept:
            keep = "text" if part == "text" else "highest-power" if part == "highest-power" else _magnifications(part)
        if keep == "text" and "mosaic" in parts:
            raise InvalidArgumentError(f"evidence {spec!r}: without an image there is no mosaic.")
        return cls(keep, "no-site" not in parts, "mosaic" in parts)

    @property
    def label(self) -> str:
        """Its one spelling."""
        keep = "+".join(f"{value:g}x" for value in self.keep) if isinstance(self.keep, tuple) else self.keep
        parts = [keep, None if self.site else "no-site", "mosaic" if self.mosaic else None]
        return ",".join(filter(None, parts)) or ALL

    def of_item(self, item: EvidenceItem) -> EvidenceItem:
        """The item with this much of its evidence. Raises `InvalidArgumentError` where it would leave no question.

        Which images are kept is not free where the options name them, and no subset of magnifications may be empty.
        """
        if self == Evidence():
            return item
        images, findings = self._kept(item)
        if item.asks_for_image and len(images) < len(item.images):
            raise InvalidArgumentError(
                f"item {item.item_id!r} asks for one of its images, so that evidence {self.label!r} would take options "
                "away; such a task is asked with all images."
            )
        if self.mosaic and len(images) > 1:
            images = (ImageSpec(tiles=tuple(images)),)
        metadata = item.metadata
        if not self.site:
            metadata = Metadata(magnification=metadata.magnification)
        answer = item.answer
        if item.images and not images and answer.words_for_text is not None:
            answer = answer.model_copy(update={"words": answer.words_for_text})
        changes = {"images": tuple(images), "findings": tuple(findings), "metadata": metadata, "answer": answer}
        if self.keep == "text":
            changes["features"] = None
        return item.model_copy(update=changes)

    def _kept(self, item: EvidenceItem) -> tuple[Sequence[ImageSpec], Sequence[Any]]:
        if self.keep is None:
            return item.images, item.findings
        if self.keep == "text":
            return (), item.findings
        if self.keep == "highest-power":
            return item.images[-1:], item.findings[-1:]
        images = [image for image in item.images if image.magnification in self.keep]
        findings = [finding for finding in item.findings if finding.magnification in self.keep]
        if not images and not findings:
            raise InvalidArgumentError(
                f"item {item.item_id!r} has no evidence at {self.label}; it has "
                f"{_shown(image.magnification for image in item.images + item.findings)}."
            )
        return images, findings


def rotated(item: EvidenceItem, rotation: int) -> EvidenceItem:
    """The item with its options shifted left by `rotation` places, 0 to their number less one.

    Images keep their order. Raises `InvalidArgumentError` for another rotation.
    """
    if rotation == 0:
        return item
    if not 0 < rotation < len(item.options):
        raise InvalidArgumentError(
            f"rotation {rotation} of item {item.item_id!r}: allowed are 0 to {max(0, len(item.options) - 1)}."
        )
    return item.model_copy(update={"options": item.options[rotation:] + item.options[:rotation]})


def rotated_reference(reference: EvidenceReference, item: EvidenceItem, rotation: int) -> EvidenceReference:
    """The reference of `rotated(item, rotation)`: places move with the options, other answers stay."""
    if rotation == 0 or item.answer.kind not in ("option", "ranking"):
        return reference
    count = len(item.options)

    def moved(answer: Any) -> Any:
        return [moved(place) for place in answer] if isinstance(answer, list) else (answer - rotation) % count

    accepted, half = (tuple(map(moved, further)) for further in (reference.accepted, reference.half))
    return reference.model_copy(update={"answer": moved(reference.answer), "accepted": accepted, "half": half})


def _magnifications(part: str) -> tuple[float, ...]:
    return tuple(sorted({float(value.removesuffix("x")) for value in part.split("+")}))


def _shown(magnifications: Any) -> str:
    found = sorted({value for value in magnifications if value is not None})
    return ", ".join(f"{value:g}x" for value in found) or "none of a known magnification"
