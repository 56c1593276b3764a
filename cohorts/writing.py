"""GeoJSON as QuPath (0.5 or later) reads and writes it, and files and folders that are never half written."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import filelock
import shapely

from wsigym.errors import InvalidArgumentError
from wsigym.slides import Box

from .models import Node
from .regions import Region

__all__ = ["box_feature", "new_folder", "node_feature", "region_feature", "write_features", "write_text"]


def region_feature(region: Region) -> dict[str, Any]:
    """An annotated area as an annotation of QuPath; coordinates are level-0 pixels."""
    return _feature(
        shapely.geometry.mapping(region.area),
        {"classification": {"name": region.name}} if region.name is not None else {},
    )


def node_feature(node: Node) -> dict[str, Any]:
    """A node as a rectangle: its finding is the name, its magnification the class, and its metadata hold the rest."""
    return box_feature(
        node.box,
        name=node.finding,
        class_name=f"{node.magnification:g}x",
        metadata={
            "node_id": node.node_id,
            "parent_id": node.parent_id or "",
            "magnification": repr(node.magnification),
        },
    )


def box_feature(
    box: Box,
    *,
    name: str,
    class_name: str,
    metadata: Mapping[str, str],
    measurements: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """A rectangle in level-0 pixels. QuPath keeps metadata as text; by measurements it can colour and sort."""
    corners = [[box.x, box.y], [box.right, box.y], [box.right, box.bottom], [box.x, box.bottom], [box.x, box.y]]
    return _feature(
        {"type": "Polygon", "coordinates": [corners]},
        {"name": name, "classification": {"name": class_name}, "metadata": dict(metadata)}
        | ({"measurements": dict(measurements)} if measurements else {}),
    )


def _feature(geometry: Mapping[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, "properties": {"objectType": "annotation", **properties}}


def write_features(path: Path, features: Iterable[Mapping[str, Any]]) -> None:
    """A FeatureCollection, one feature a line."""
    lines = ",\n".join(json.dumps(feature, allow_nan=False) for feature in features)
    write_text(path, f'{{"type": "FeatureCollection", "features": [\n{lines}\n]}}\n')


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all: beside it first, then renamed into place. Makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """An empty folder beside `out` that becomes `out` if the block ends well, and is removed if not.

    What a killed process left is removed by the next that asks for the same `out`. Raises `InvalidArgumentError` where
    `out` is there and not empty, is being made by another process, or cannot be made.
    """
    out = out.absolute()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidArgumentError(f"{out} exists and is not an empty folder. Name a new folder, or remove it first.")
    hidden = out.parent / f".{out.name}.building"
    lock = filelock.FileLock(hidden / "lock")
    try:
        hidden.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise InvalidArgumentError(
            f"{out} is being built by another process. Wait for it, or name another folder."
        ) from None
    except OSError as error:
        raise InvalidArgumentError(f"{out} cannot be made ({error}). Name another folder.") from None
    try:
        folder = hidden / out.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        yield folder
        if out.is_dir():
            out.rmdir()
        folder.rename(out)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        lock.release()
