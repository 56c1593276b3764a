"""Areas of the dialects that are read into cohorts too (`wsigym.cohorts.importers`): one image or slide a file."""

from __future__ import annotations

from pathlib import Path

from shapely import MultiPolygon, Polygon, get_parts

from wsigym.errors import CohortError

from ....importers.dialects import DIALECTS, read_drawings
from ....importers.shapes import Drawing, FaultyShapeError, geometry_of
from ..faults import Faults
from ..marks import Marks, Outline
from ..sources import Source

__all__ = ["outline_of", "read"]


def read(root: Path, source: Source, marks: Marks) -> None:
    """Raises `CohortError` with the files that cannot be read, and with every shape that cannot and tells no class."""
    faults = Faults()
    for path in source.files(root, source.annotations, "annotations"):
        name = path.relative_to(root).as_posix()
        with faults.of_file(name):
            for drawing in read_drawings(path, source.format):
                _add(name, drawing, source, marks, faults)
    if faults:
        raise CohortError(faults.listed)


def _add(name: str, drawing: Drawing, source: Source, marks: Marks, faults: Faults) -> None:
    classes = DIALECTS[source.format].classes
    for place, shape in enumerate(drawing.shapes):
        if shape.left_out is not None or not shape.is_area:
            continue
        if shape.fault is not None and shape.label is None:
            faults.add(name, None, shape.position, shape.fault)
            continue
        label = classes.get(shape.label or "", shape.label) or ""
        try:
            area, _ = geometry_of(shape)
        except FaultyShapeError as error:
            marks.drop(name, place, drawing.stem, label, str(error))
            marks.unusable.add(name, None, shape.position, str(error))
            continue
        outline = outline_of(area) if source.view == "slide" else None
        marks.add(name, place, drawing.stem, label, area.bounds, outline)


def outline_of(area: Polygon | MultiPolygon) -> Outline:
    """The rings of an area."""
    return [
        [list(ring.coords) for ring in (polygon.exterior, *polygon.interiors)] for polygon in get_parts(area).tolist()
    ]
