"""Exploration: which slides are asked, and the tumour area that no policy sees.

An item is one slide (EviPathBench task 3, mode B). Its reference is the union of the slide's regions of one class,
empty where the slide has none: a negative slide is asked like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import shapely
from shapely import MultiPolygon, Polygon

from wsigym.errors import Fault, InvalidArgumentError, UnknownNameError
from wsigym.slides import Box

from .cohort import Cohort
from .files import REGIONS
from .regions import Region
from .tiles import POSITIVE_OVERLAP, TileGrid, overlap_shares

__all__ = ["TUMOUR", "ExplorationReference", "exploration_references", "faults_of_regions"]

TUMOUR = "tumour"
"""The class of the regions that are looked for, unless another is asked for."""


NO_CLASS = "(no class)"
"""How a message calls the class of regions whose annotator gave none."""


@dataclass(frozen=True)
class ExplorationReference:
    """The hidden answer: the area looked for on one slide, a valid polygon in level-0 pixels, perhaps empty.

    `area_wkb` is that area as well-known binary in hexadecimal digits, so that references compare and serialise.
    """

    slide_id: str
    area_wkb: str

    @cached_property
    def area(self) -> Polygon | MultiPolygon:
        area = shapely.from_wkb(self.area_wkb)
        assert isinstance(area, Polygon | MultiPolygon)
        return area

    def share(self, box: Box) -> float:
        """The share of a level-0 box that the area covers, in 0..1."""
        return float(shapely.area(shapely.intersection(self.area, shapely.box(*_corners(box))))) / box.area

    def positives(self, grid: TileGrid) -> tuple[npt.NDArray[np.bool_], ...]:
        """For each magnification bool (rows, columns), read-only: tiles of which the area covers more than 5 %."""
        return _positives(self, grid)


@lru_cache(maxsize=16)
def _positives(reference: ExplorationReference, grid: TileGrid) -> tuple[npt.NDArray[np.bool_], ...]:
    arrays = tuple(shares > POSITIVE_OVERLAP for shares in overlap_shares(grid, reference.area))
    for array in arrays:
        array.setflags(write=False)
    return arrays


def exploration_references(
    cohort: Cohort, split: str | None = None, target: str = TUMOUR
) -> dict[str, ExplorationReference]:
    """The reference of every slide of a split, by slide id, in the cohort's order; `target` is a region's class.

    In a cohort without any region every slide is negative. Where there are regions and none is of this class, not on
    any slide of the cohort, every answer would be wrong by a misspelt name: raises `UnknownNameError`. Raises
    `InvalidArgumentError` where `target` is no name.
    """
    if not isinstance(target, str) or not target.strip():
        raise InvalidArgumentError(f"target is {target!r}; it is the name of a class of regions, such as {TUMOUR!r}.")
    regions = {entry.slide_id: cohort.regions(entry.slide_id) for entry in cohort.slides}
    classes = sorted({region.name or NO_CLASS for found in regions.values() for region in found})
    if classes and target not in classes:
        raise UnknownNameError("target (a class of the cohort's regions)", target, classes)
    return {
        entry.slide_id: ExplorationReference(entry.slide_id, _area_wkb(regions[entry.slide_id], target))
        for entry in cohort.in_split(split)
    }


def faults_of_regions(cohort: Cohort, slide_id: str) -> list[Fault]:
    """Regions that lie wholly beyond their slide, which opens for it. What lies partly beyond is cut off instead."""
    slide = shapely.box(*_corners(cohort.open(slide_id).box))
    return [
        Fault(
            f"{REGIONS}/{slide_id}.geojson",
            None,
            "",
            f"a region of class {region.name!r} with left, top, right, bottom "
            f"{[round(value) for value in region.area.bounds]} lies outside the slide of {slide.bounds[2]:.0f} x "
            f"{slide.bounds[3]:.0f} px; regions are in level-0 pixels",
        )
        for region in cohort.regions(slide_id)
        if not region.area.intersects(slide)
    ]


def _area_wkb(regions: Iterable[Region], name: str) -> str:
    union = shapely.union_all([region.area for region in regions if region.name == name])
    area = union if isinstance(union, Polygon | MultiPolygon) else MultiPolygon()
    return str(shapely.to_wkb(area, hex=True))


def _corners(box: Box) -> tuple[int, int, int, int]:
    return box.x, box.y, box.right, box.bottom
