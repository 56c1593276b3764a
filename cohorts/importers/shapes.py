"""What the dialects share: shapes as files draw them, and the areas that they amount to.

A dialect's reader says what is drawn (`Drawing`, `Shape`) and judges no geometry. `settle` does, once for all: it
checks numbers, repairs rings that cross themselves, cuts out exclusions, clips to the slide, names classes, and skips
a shape that cannot be mended. All coordinates are level-0 pixels; areas are square level-0 pixels.
"""

from __future__ import annotations

import math
import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import shapely
from shapely import GEOSException, MultiPolygon, Polygon
from shapely.validation import explain_validity

from wsigym.cohorts.regions import Region
from wsigym.errors import AnnotationError
from wsigym.slides import Box

__all__ = [
    "EXCLUSION",
    "Annotations",
    "Drawing",
    "FaultyShapeError",
    "Part",
    "Ring",
    "Shape",
    "as_part",
    "coordinate",
    "geometry_of",
    "settle",
]

EXCLUSION = "exclusion"
"""Areas of this class (after the mapping of names) are cut out of all others and are no region themselves."""

MAX_COORDINATE_PX = 2**31
"""No slide is as large; beyond it a coordinate is garbage, and geometry would overflow."""

Ring: TypeAlias = Sequence[tuple[object, object]]
"""A closed outline as (x, y) pairs in level-0 pixels, as the file has them: numbers or text; closing it is optional."""

Part: TypeAlias = Sequence[Ring]
"""One polygon: its outline, then its holes."""


class FaultyShapeError(ValueError):
    """One shape cannot be read; it is skipped with this reason, and its neighbours are kept."""


@dataclass(frozen=True)
class Shape:
    """One thing drawn. `position` is where in the file, by index; `label` the class name that the file gives.

    Exactly one of `parts` (polygons that together are the area), `fault` (why it cannot be read) and `left_out` (the
    kind of a mark that is no area, such as a dot or a ruler) says what it is. `cuts` names the layer whose areas it is
    cut out of; `is_area` is False where cutting is all it does. `otherwise` is another reading of the outline and why
    there is one: it is taken where the first crosses itself and it does not.
    """

    position: str
    label: str | None = None
    parts: Sequence[Part] = ()
    fault: str | None = None
    left_out: str | None = None
    layer: str = ""
    cuts: str | None = None
    is_area: bool = True
    otherwise: tuple[Sequence[Part], str] | None = None


@dataclass(frozen=True)
class Drawing:
    """All that a file holds on one slide. `stem` is the slide's name without folder and ending.

    `size` is the (width, height) in pixels of the image that was annotated, where the file says it.
    """

    stem: str
    shapes: tuple[Shape, ...]
    size: tuple[float, float] | None = None

    @property
    def labels(self) -> set[str | None]:
        """The class names of the areas as the file has them, None among them if an area has no class."""
        return {shape.label for shape in self.shapes if shape.left_out is None and shape.is_area}


@dataclass(frozen=True)
class Annotations:
    """The areas of one slide, and what became of the rest.

    `left_out` counts marks that are no areas by kind, `clipped` the areas that were cut at the slide's edge.
    `warnings` name each shape that was skipped or repaired.
    """

    stem: str
    regions: tuple[Region, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    clipped: int = 0
    warnings: tuple[str, ...] = ()


@dataclass
class _Area:
    shape: Shape
    name: str | None
    geometry: Polygon | MultiPolygon
    clipped: bool


def as_part(left: object, top: object, right: object, bottom: object) -> Part:
    """The rectangle between two corners."""
    return [[(left, top), (right, top), (right, bottom), (left, bottom)]]


def settle(file: str, drawing: Drawing, classes: Mapping[str, str], slide_box: Box | None = None) -> Annotations:
    """The areas of a drawing.

    `classes` maps the file's class names to others; names that it lacks are kept, and `""` stands for areas without
    a class. Areas are clipped to `slide_box` where it is given. Raises `AnnotationError` where shapes are faulty and
    not one area is left, and where the annotated image is not of the slide's size.
    """
    if slide_box is not None and drawing.size is not None and drawing.size != (slide_box.width, slide_box.height):
        width, height = drawing.size
        raise AnnotationError(
            file,
            "",
            f"{drawing.stem!r} was annotated on an image of {width} x {height} px, but the slide has "
            f"{slide_box.width} x {slide_box.height} px; coordinates must be level-0 pixels, so rescale them first.",
        )
    warnings: list[str] = []
    faults: list[str] = []
    areas: list[_Area] = []
    for shape in drawing.shapes:
        if shape.left_out is not None:
            continue
        try:
            geometry, repaired = geometry_of(shape)
            clipped = _clip(geometry, slide_box)
        except FaultyShapeError as error:
            faults.append(f"{shape.position}: {error}")
            warnings.append(f"{file}: {shape.position}: skipped: {error}")
            continue
        if repaired:
            warnings.append(
                f"{file}: {shape.position}: repaired: {repaired}; its area is now {geometry.area:g} square px"
            )
        name = classes.get(shape.label or "", shape.label) if shape.is_area else None
        areas.append(_Area(shape, name, clipped, clipped is not geometry))
    kept = [area for area in areas if area.shape.is_area and area.name != EXCLUSION]
    for cut in areas:
        if cut.name == EXCLUSION or cut.shape.cuts is not None:
            warnings += _cut_out(file, cut, kept)
    kept = [area for area in kept if not area.geometry.is_empty]
    if faults and not kept:
        shown = "; ".join(faults[:3]) + ("; ..." if len(faults) > 3 else "")
        raise AnnotationError(file, "", f"no valid area is left on {drawing.stem!r}, {len(faults)} faulty: {shown}")
    return Annotations(
        drawing.stem,
        tuple(Region(area.name, area.geometry) for area in kept),
        dict(Counter(shape.left_out for shape in drawing.shapes if shape.left_out is not None)),
        sum(area.clipped for area in kept),
        tuple(warnings),
    )


def _cut_out(file: str, cut: _Area, kept: Iterable[_Area]) -> list[str]:
    """Take `cut` out of the areas that it applies to; a warning for each that vanishes, or if it meets none."""
    layer = None if cut.name == EXCLUSION else cut.shape.cuts
    met = [
        area
        for area in kept
        if area is not cut and layer in (None, area.shape.layer) and area.geometry.intersects(cut.geometry)
    ]
    if not met and (cut.name == EXCLUSION or not cut.shape.is_area):
        return [f"{file}: {cut.shape.position}: excludes nothing: no area meets it"]
    vanished = []
    for area in met:
        area.geometry = _only_area(area.geometry.difference(cut.geometry))
        if area.geometry.is_empty:
            vanished.append(f"{file}: {area.shape.position}: skipped: {cut.shape.position} excludes all of it")
    return vanished


def geometry_of(shape: Shape) -> tuple[Polygon | MultiPolygon, str]:
    """The valid area of a shape, and what had to be repaired ("" if nothing). Raises `FaultyShapeError`."""
    if shape.fault is not None:
        raise FaultyShapeError(shape.fault)
    drawn = _drawn(shape.parts)
    if not drawn.is_valid and shape.otherwise is not None:
        parts, reason = shape.otherwise
        other = _drawn(parts)
        if other.is_valid:
            return other, reason
    problem = "" if drawn.is_valid else explain_validity(drawn)
    # "structure" keeps all that an outline runs around, however often, and takes holes away. A zero-width buffer would
    # lose loops of the other orientation; "linework" would punch a hole where a stroke overlaps its own beginning.
    # The union joins the parts that it may leave side by side.
    try:
        valid = _only_area(_mended(drawn)) if problem else drawn
    except GEOSException as error:
        raise FaultyShapeError(f"{problem}, which cannot be repaired ({error})") from None
    if valid.is_empty or valid.area == 0:
        raise FaultyShapeError("its points enclose no area")
    return valid, problem


def _mended(drawn: Polygon | MultiPolygon) -> shapely.Geometry:
    return shapely.union_all(shapely.get_parts(shapely.make_valid(drawn, method="structure", keep_collapsed=False)))


def _drawn(parts: Sequence[Part]) -> Polygon | MultiPolygon:
    """The outlines as they are, valid or not."""
    polygons = [Polygon(shell, holes) for shell, *holes in ([_ring(ring) for ring in part] for part in parts)]
    if not polygons:
        raise FaultyShapeError("it has no polygon")
    return polygons[0] if len(polygons) == 1 else MultiPolygon(polygons)


def _ring(ring: Ring) -> list[tuple[float, float]]:
    points = [(coordinate(x), coordinate(y)) for x, y in ring]
    if len(set(points)) < 3:
        raise FaultyShapeError(f"an outline needs three different points; found {len(set(points))}")
    return points


def coordinate(value: object) -> float:
    """A number of level-0 pixels, from a number or text; `FaultyShapeError` where it is none, or not finite."""
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if abs(number) < MAX_COORDINATE_PX:
            return number
    raise FaultyShapeError(f"coordinate {reprlib.repr(value)} is not a finite number of pixels")


def _clip(area: Polygon | MultiPolygon, slide_box: Box | None) -> Polygon | MultiPolygon:
    """The part of an area on the slide; the same object where all of it is."""
    if slide_box is None:
        return area
    frame = shapely.box(slide_box.x, slide_box.y, slide_box.right, slide_box.bottom)
    if frame.covers(area):
        return area
    inside = _only_area(area.intersection(frame))
    if inside.is_empty:
        bounds = ", ".join(f"{bound:g}" for bound in area.bounds)
        raise FaultyShapeError(
            f"it lies outside the slide of {slide_box.width} x {slide_box.height} px (its bounds are {bounds})"
        )
    return inside


def _only_area(geometry: shapely.Geometry) -> Polygon | MultiPolygon:
    """A geometry without the points and lines that set operations leave where areas touch."""
    polygons = [part for part in shapely.get_parts(shapely.get_parts(geometry)) if isinstance(part, Polygon)]
    polygons = [polygon for polygon in polygons if not polygon.is_empty]
    return polygons[0] if len(polygons) == 1 else MultiPolygon(polygons)
