"""A cohort's annotations as files that QuPath opens: one GeoJSON a slide and kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wsigym.errors import InvalidArgumentError

from .cohort import Cohort
from .writing import node_feature, region_feature, write_features

__all__ = ["export_qupath"]


def export_qupath(
    cohort: Cohort, out: str | Path, *, rois: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
) -> list[Path]:
    """Write `nodes/`, `regions/` and `rois/<slide_id>.geojson` under `out`, where there is something to write.

    In QuPath, open the slide and drag a file onto it. `rois` are features for each slide_id, made by `box_feature`:
    what a run showed, answered, scored and kept.
    What `nodes/` holds comes back with `import_nodes`, also after QuPath (0.5 or later) has saved it. Returns the files
    written. Raises `InvalidArgumentError` if `out` holds something already, or `rois` name a slide that is not there.
    """
    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidArgumentError(f"{folder} is there and not empty; name a new folder, as people edit such files.")
    for slide_id in rois or {}:
        cohort.slide(slide_id)
    written: list[Path] = []
    for entry in cohort.slides:
        kinds: dict[str, Sequence[Mapping[str, Any]]] = {
            "nodes": [node_feature(node) for node in cohort.nodes_of(entry.slide_id)],
            "regions": [region_feature(region) for region in cohort.regions(entry.slide_id)],
            "rois": (rois or {}).get(entry.slide_id, ()),
        }
        for kind, features in kinds.items():
            if features:
                path = folder / kind / f"{entry.slide_id}.geojson"
                write_features(path, features)
                written.append(path)
    return written
