"""COCO JSON: boxes and polygons on many images; an image stands for the slide of the same name.

Coordinates are level-0 pixels: an image of another size than its slide is an error. The polygons of an annotation are
parts of one area. A box counts where there is no polygon. Run-length masks are refused.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any, TypeAlias, TypeGuard

from wsigym.errors import AnnotationError

from .documents import label_of, read_json
from .shapes import Drawing, FaultyShapeError, Part, Shape, as_part, coordinate

__all__ = ["CLASSES", "Wrong", "box_part", "identified", "images_of", "polygon_part", "read"]

CLASSES: dict[str, str] = {}

Wrong: TypeAlias = Callable[[str, str], None]
"""Is told the position of an entry and what is wrong with it. It may raise; else the entry is passed over."""


def read(file: str, content: bytes) -> list[Drawing]:
    document = read_json(file, content)
    if not isinstance(document, dict):
        raise AnnotationError(file, "", f"found a {type(document).__name__}; a COCO file is an object")

    def wrong(position: str, reason: str) -> None:
        raise AnnotationError(file, position, reason)

    for key in ("categories", "images", "annotations"):
        if not isinstance(document.get(key), list):
            wrong(key, "a COCO file has lists 'images', 'annotations' and 'categories'")
    categories = {
        category["id"]: label_of(category.get("name"))
        for _, category in identified("categories", document["categories"], wrong)
    }
    images = dict(images_of(document["images"], wrong))
    shapes: dict[Any, list[Shape]] = {image_id: [] for image_id in images}
    for position, annotation in _objects("annotations", document["annotations"], wrong):
        for key, known in (("image_id", images), ("category_id", categories)):
            if annotation.get(key) not in known:
                raise AnnotationError(file, position, f"its {key} {annotation.get(key)!r} is not in the file")
        if isinstance(annotation.get("segmentation"), dict):
            raise AnnotationError(
                file, position, "its segmentation is a run-length mask, which is not read; convert masks to polygons"
            )
        shapes[annotation["image_id"]].append(_shape(position, categories[annotation["category_id"]], annotation))
    return [Drawing(stem, tuple(shapes[image_id]), size) for image_id, (stem, size) in images.items()]


def _objects(key: str, listed: list[Any], wrong: Wrong) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of one of the file's lists, each with its position; their ids are numbers or text."""
    for index, each in enumerate(listed):
        position = f"{key}[{index}]"
        if not isinstance(each, dict):
            wrong(position, f"found a {type(each).__name__}; an object is needed")
            continue
        faulty = [name for name in ("id", "image_id", "category_id") if not isinstance(each.get(name, 0), (int, str))]
        for name in faulty:
            wrong(position, f"its {name} is {reprlib.repr(each[name])}; allowed are whole numbers")
        if not faulty:
            yield position, each


def identified(key: str, listed: list[Any], wrong: Wrong) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a list whose ids others refer to: each has one of its own."""
    ids: set[Any] = set()
    for position, each in _objects(key, listed, wrong):
        if "id" not in each or each["id"] in ids:
            wrong(position, f"its id is {each.get('id')!r}; every one needs an id of its own")
            continue
        ids.add(each["id"])
        yield position, each


def images_of(listed: list[Any], wrong: Wrong) -> Iterator[tuple[Any, tuple[str, tuple[float, float] | None]]]:
    """The id of each image, with the name of its file without folder and ending, and its size where it is told."""
    stems: set[str] = set()
    for position, image in identified("images", listed, wrong):
        name = image.get("file_name")
        stem = PurePosixPath(name.replace("\\", "/")).stem if isinstance(name, str) else ""
        if not stem or stem in stems:
            found = f"a second image is called {stem!r}; slides are matched by that name"
            wrong(position, found if stem else "an image needs a 'file_name'")
            continue
        stems.add(stem)
        width, height = image.get("width"), image.get("height")
        size = (width, height) if _is_number(width) and _is_number(height) else None
        yield image["id"], (stem, size)


def _shape(position: str, label: str | None, annotation: dict[str, Any]) -> Shape:
    try:
        polygons, box = annotation.get("segmentation"), annotation.get("bbox")
        if isinstance(polygons, list) and polygons:
            return Shape(position, label, [polygon_part(polygon) for polygon in polygons])
        return Shape(position, label, [box_part(box)])
    except FaultyShapeError as error:
        return Shape(position, label, fault=str(error))


def polygon_part(flat: object) -> Part:
    if not isinstance(flat, list) or len(flat) % 2:
        raise FaultyShapeError("a polygon is a list [x1, y1, x2, y2, ...] of even length")
    return [list(zip(flat[::2], flat[1::2], strict=True))]


def box_part(box: object) -> Part:
    if not isinstance(box, list) or len(box) != 4:
        found = reprlib.repr(box)
        raise FaultyShapeError(f"it has no polygon, and its bbox is {found}; allowed is [x, y, width, height]")
    x, y, width, height = (coordinate(value) for value in box)
    if not (width > 0 and height > 0):
        raise FaultyShapeError(f"its bbox is {width:g} x {height:g} px; both must be above 0")
    return as_part(x, y, x + width, y + height)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
