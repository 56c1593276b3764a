"""What a lesion is made of: a lesion (2.5x) holds nests (10x), a nest holds foci (40x).

`planning.py` places them, `findings.py` names them, `drawing.py` draws them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import shapely

from .entities import Entity
from .shapes import Points

__all__ = ["Focus", "Lesion", "Nest"]


@dataclass
class Focus:
    """A 40x structure. `annotated` foci become nodes."""

    outline: Points
    name: str
    count: int
    owner: int
    annotated: bool
    finding: str = ""


@dataclass
class Nest:
    """A 10x structure with its foci."""

    outline: Points
    name: str
    owner: int
    annotated: bool
    foci: list[Focus] = field(default_factory=list)
    finding: str = ""


@dataclass
class Lesion:
    """A 2.5x structure with its nests. `outline` becomes the union with what protrudes from it."""

    outline: Points
    entity: Entity
    owner: int
    nests: list[Nest] = field(default_factory=list)
    finding: str = ""

    @property
    def region(self) -> shapely.Polygon:
        """The lesion and its nests as one valid polygon without holes, level-0 px."""
        parts = [shapely.Polygon(self.outline.astype(float)).buffer(0)]
        parts += [shapely.Polygon(nest.outline.astype(float)).buffer(0) for nest in self.nests]
        union = shapely.union_all(parts)
        if union.geom_type != "Polygon":
            union = max(union.geoms, key=lambda part: part.area)
        return shapely.Polygon(union.exterior).simplify(4)
