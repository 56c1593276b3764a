"""A rendered scene as a tiled JPEG TIFF with levels 1/4/16, written as it is rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import imagecodecs
import numpy as np
import tifffile
from numpy.typing import NDArray

from .render import Renderer
from .scene import Scene
from .textures import BLOCK

__all__ = ["LEVELS", "MPP", "POWER", "TILE", "write_slide"]

TILE = 256
LEVELS = (1, 4, 16)
MPP = 0.25
POWER = 40
_QUALITY = 82
_THUMBNAIL = 768
_HEADER = "Aperio layout, synthetic slide made by wsigym\r\n"


def write_slide(path: Path, scene: Scene, check: Callable[[], None]) -> None:
    """Render `scene` into `path`; `check` is called after each row of blocks and may raise to stop.

    The file follows Aperio's layout (an image description that begins with "Aperio" and gives AppMag and MPP), which
    OpenSlide and TiffSlide both read. Memory stays at a few blocks and the encoded tiles of the smaller levels.
    """
    renderer = Renderer(scene)
    size = scene.size
    quarter: list[bytes] = []
    sixteenth = np.empty((scene.side // 16, scene.side // 16, 3), np.uint8)
    sixteenth[:] = scene.stain.glass
    blank = _encoded(np.full((TILE, TILE, 3), scene.stain.glass, np.uint8))

    def level_0() -> Iterator[bytes]:
        for row, blocks in enumerate(renderer.rows()):
            for column, block in enumerate(blocks):
                if block is None:
                    quarter.append(blank)
                    continue
                small = cv2.resize(block, (TILE, TILE), interpolation=cv2.INTER_AREA)
                quarter.append(_encoded(np.asarray(small, np.uint8)))
                side = BLOCK // 16
                sixteenth[row * side : (row + 1) * side, column * side : (column + 1) * side] = cv2.resize(
                    small, (side, side), interpolation=cv2.INTER_AREA
                )
            for top in range(0, BLOCK, TILE):
                if row * BLOCK + top >= size:
                    break
                for column, block in enumerate(blocks):
                    for left in range(0, BLOCK, TILE):
                        if column * BLOCK + left < size:
                            yield blank if block is None else _encoded(block[top : top + TILE, left : left + TILE])
            check()

    with tifffile.TiffWriter(path, bigtiff=False) as writer:
        _write(writer, level_0(), size, f"AppMag = {POWER}|MPP = {MPP}")
        _write_thumbnail(writer, sixteenth[: size // 16, : size // 16], size)
        _write(writer, iter(quarter), size // 4, "")
        _write(writer, _tiles(sixteenth, size // 16, scene.stain.glass), size // 16, "")


def _write(writer: tifffile.TiffWriter, tiles: Iterator[bytes], side: int, facts: str) -> None:
    description = f"{_HEADER}{side}x{side} ({TILE}x{TILE}) JPEG/YCC Q={_QUALITY}"
    writer.write(
        tiles,
        shape=(side, side, 3),
        dtype=np.uint8,
        tile=(TILE, TILE),
        photometric="ycbcr",
        subsampling=(2, 2),
        compression="jpeg",
        description=f"{description}|{facts}" if facts else description,
        metadata=None,
        software=False,
    )


def _write_thumbnail(writer: tifffile.TiffWriter, image: NDArray[np.uint8], size: int) -> None:
    """The second page of Aperio's layout, in one strip; readers take what is tiled for levels."""
    side = min(image.shape[0], _THUMBNAIL)
    small = np.asarray(cv2.resize(image, (side, side), interpolation=cv2.INTER_AREA), np.uint8)
    writer.write(
        iter([_encoded(small)]),
        shape=small.shape,
        dtype=np.uint8,
        rowsperstrip=side,
        photometric="ycbcr",
        subsampling=(2, 2),
        compression="jpeg",
        description=f"{_HEADER}{size}x{size} -> {side}x{side} - ",
        metadata=None,
        software=False,
    )


def _tiles(image: NDArray[np.uint8], side: int, glass: tuple[int, int, int]) -> Iterator[bytes]:
    count = -(-side // TILE)
    padded = np.empty((count * TILE, count * TILE, 3), np.uint8)
    padded[:] = glass
    padded[:side, :side] = image[:side, :side]
    for top in range(0, count * TILE, TILE):
        for left in range(0, count * TILE, TILE):
            yield _encoded(padded[top : top + TILE, left : left + TILE])


def _encoded(tile: NDArray[np.uint8]) -> bytes:
    return bytes(
        imagecodecs.jpeg8_encode(
            np.ascontiguousarray(tile), level=_QUALITY, colorspace="RGB", outcolorspace="YCBCR", subsampling="420"
        )
    )
