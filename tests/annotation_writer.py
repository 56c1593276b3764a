"""Polygons written in every dialect, for tests: what goes in must come out."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from xml.sax.saxutils import quoteattr

Point = tuple[float, float]
Ring = Sequence[Point]
Drawn = Sequence[tuple[Ring, Sequence[Ring]]]
"""Polygons as (outline, holes)."""

SQUARE: Ring = [(100, 100), (300, 100), (300, 300), (100, 300)]
HOLE: Ring = [(150, 150), (250, 150), (250, 250), (150, 250)]
BOW_TIE: Ring = [(100, 100), (300, 300), (300, 100), (100, 300)]


def asap(drawn: Drawn) -> str:
    """Outlines in CAMELYON16's group _0, holes in its group _2."""
    return asap_shapes(
        [("Polygon", "_0", outline) for outline, _ in drawn]
        + [("Polygon", "_2", hole) for _, holes in drawn for hole in holes]
    )


def asap_shapes(shapes: Sequence[tuple[str, str, Ring]]) -> str:
    """(Type, PartOfGroup, points) each."""
    annotations = "".join(
        f"<Annotation Name='a' Type={quoteattr(kind)} PartOfGroup={quoteattr(group)}><Coordinates>"
        + "".join(f'<Coordinate Order="{order}" X="{x}" Y="{y}"/>' for order, (x, y) in enumerate(points))
        + "</Coordinates></Annotation>"
        for kind, group, points in shapes
    )
    return f"<?xml version='1.0'?><ASAP_Annotations><Annotations>{annotations}</Annotations></ASAP_Annotations>"


def imagescope(drawn: Drawn) -> str:
    """One layer, holes as negative regions."""
    return imagescope_layers(
        [("Tumor", [("0", "0", outline) for outline, _ in drawn] + [("0", "1", h) for _, hs in drawn for h in hs])]
    )


def imagescope_layers(layers: Sequence[tuple[str, Sequence[tuple[str, str, Ring]]]]) -> str:
    """(layer name, [(Type, NegativeROA, points)]) each."""
    text = "".join(
        f"<Annotation Id='1' Name={quoteattr(name)}><Regions><RegionAttributeHeaders/>"
        + "".join(
            f'<Region Type="{kind}" NegativeROA="{negative}"><Vertices>'
            + "".join(f'<Vertex X="{x}" Y="{y}" Z="0"/>' for x, y in points)
            + "</Vertices></Region>"
            for kind, negative, points in regions
        )
        + "</Regions></Annotation>"
        for name, regions in layers
    )
    return f"<Annotations>{text}</Annotations>"


def geojson(drawn: Drawn) -> str:
    """One MultiPolygon feature of class Tumor."""
    coordinates = [[_closed(ring) for ring in (outline, *holes)] for outline, holes in drawn]
    return geojson_features([{"type": "MultiPolygon", "coordinates": coordinates}])


def geojson_features(geometries: Sequence[object]) -> str:
    features = [
        {"type": "Feature", "geometry": geometry, "properties": {"classification": {"name": "Tumor"}}}
        for geometry in geometries
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


def polygons(drawn: Drawn) -> str:
    groups = {
        "positive": [outline for outline, _ in drawn],
        "negative": [hole for _, holes in drawn for hole in holes],
    }
    return json.dumps(
        {
            group: [{"name": f"Annotation {index}", "vertices": ring} for index, ring in enumerate(rings)]
            for group, rings in groups.items()
        }
    )


def coco(annotations: Sequence[dict[str, object]], names: Sequence[str] = ("case.tif",), **image: object) -> str:
    """One image for each name; annotations are on the first unless they say otherwise."""
    return json.dumps(
        {
            "images": [{"id": index, "file_name": name, **image} for index, name in enumerate(names)],
            "categories": [{"id": 7, "name": "Tumor"}],
            "annotations": [{"id": i, "image_id": 0, "category_id": 7, **one} for i, one in enumerate(annotations)],
        }
    )


WRITERS: dict[str, Callable[[Drawn], str]] = {
    "asap": asap,
    "imagescope": imagescope,
    "geojson": geojson,
    "polygons": polygons,
}
"""The dialects that can hold holes."""


def _closed(ring: Ring) -> list[Point]:
    return [*ring, ring[0]]
