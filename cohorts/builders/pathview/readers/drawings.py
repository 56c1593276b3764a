"""Areas of the dialects that are read into cohorts too (`wsigym.cohorts.importers`): one image or slide a file."""

from __future__ import annotations

from pathlib import Path

from shapely import MultiPolygon, Polygon, get_parts

from ....importers.dialects import DIALECTS, read_drawings
from ....importers.shapes import FaultyShapeError, geometry_of
from ..marks import Marks, Outline
from ..sources import Source

__all__ = ["outline_of", "read"]


def read(root: Path, source: Source, marks: Marks) -> None:
    classes = DIALECTS[source.format].classes
    for path in source.files(root, source.annotations, "annotations"):
        name = path.relative_to(root).as_posix()
        for drawing in read_drawings(path, source.format):
            for place, shape in enumerate(drawing.shapes):
                if shape.left_out is not None or not shape.is_area:
                    continue
                label = classes.get(shape.label or "", shape.label) or ""
                try:
                    area, _ = geometry_of(shape)
                except FaultyShapeError as error:
                    marks.drop(name, place, drawing.stem, label, str(error))
                    continue
                outline = outline_of(area) if source.view == "slide" else None
                marks.add(name, place, drawing.stem, label, area.bounds, outline)


def outline_of(area: Polygon | MultiPolygon) -> Outline:
    """The rings of an area."""
    return [
        [list(ring.coords) for ring in (polygon.exterior, *polygon.interiors)] for polygon in get_parts(area).tolist()
    ]
