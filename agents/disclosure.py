"""What an episode showed to an endpoint: how much of the tissue at which magnification, and which facts.

An agent knows the slide only through its images, so tissue is what `tissue_mask_of` finds in the overview, on a grid of
256 cells along its longer side. An image that was sent covers the cells under its box, in part where it covers a cell
in part; sent again it counts once, and overlapping images count in full up to the whole cell. The share is of the
tissue in the overview's box, which is the slide, or for a deeper query its search box: so it is never less than the
share of the slide's tissue.

A magnification is given as the next of 1.25, 2.5, 5, 10 ... from above, within the 10 % by which scans vary: "10" holds
what was sent at more than 5x and at most 10x.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsigym.envs.views import ImageSource
from wsigym.slides import Box, tissue_mask_of
from wsigym.slides.geometry import UPSAMPLING_TOLERANCE

from .messages import OVERVIEW, ImageRef
from .records import Disclosure

__all__ = ["Tissue", "disclosed", "magnification_label"]

GRID_PX = 256
LOWEST = 1.25


@dataclass(frozen=True, eq=False)
class Tissue:
    """Where tissue is: bool (height, width) over a level-0 box."""

    mask: npt.NDArray[np.bool_]
    box: Box

    @classmethod
    def of(cls, source: ImageSource) -> Tissue:
        """From the episode's overview. Reads the slide: call it in a thread."""
        view = source.image(OVERVIEW, GRID_PX)
        return cls(tissue_mask_of(np.ascontiguousarray(view.image)).astype(np.bool_), view.box)

    def share(self, boxes: Iterable[tuple[int, int, int, int]]) -> float:
        """The share, 0..1, of the tissue under any of these level-0 boxes; 0 where there is no tissue."""
        height, width = self.mask.shape
        covered = np.zeros((height, width), np.float32)
        for x, y, w, h in boxes:
            columns = _coverage((x - self.box.x) * width / self.box.width, w * width / self.box.width, width)
            rows = _coverage((y - self.box.y) * height / self.box.height, h * height / self.box.height, height)
            covered += np.outer(rows, columns)
        tissue = int(self.mask.sum())
        return float(np.minimum(covered, 1)[self.mask].sum() / tissue) if tissue else 0.0


def _coverage(start: float, length: float, cells: int) -> npt.NDArray[np.float32]:
    """float32 (cells,): how much of each cell, 0..1, an interval covers."""
    edges = np.clip(np.arange(cells + 1), start, start + length)
    return np.diff(edges).astype(np.float32)


def disclosed(images: Iterable[ImageRef], fields: Iterable[str], tissue: Tissue | None) -> Disclosure:
    """What these images and fields disclose; without a tissue map, the fields alone."""
    boxes: dict[float, set[tuple[int, int, int, int]]] = {}
    for image in images:
        if image.box is not None and image.magnification is not None:
            boxes.setdefault(magnification_label(image.magnification), set()).add(image.box)
    shares = {f"{label:g}": round(tissue.share(sorted(boxes[label])), 4) for label in sorted(boxes)} if tissue else {}
    return Disclosure(metadata=tuple(sorted(set(fields))), tissue_share=shares)


def magnification_label(magnification: float) -> float:
    """The next of 1.25, 2.5, 5 ... that a magnification does not exceed by more than 10 %."""
    doublings = math.ceil(math.log2(max(magnification, LOWEST) / UPSAMPLING_TOLERANCE / LOWEST))
    return LOWEST * 2.0 ** max(0, doublings)
