"""Tiny tiled pyramidal TIFF files for tests, made in code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import imagecodecs
import numpy as np
import numpy.typing as npt
import tifffile


def write_slide(
    path: Path,
    pixels: npt.NDArray[np.uint8],
    *,
    downsamples: Sequence[int] = (1, 4, 16),
    tile_px: int = 64,
    mpp: float | None = 0.25,
    compression: str = "deflate",
    aperio: str | None = None,
    bigtiff: bool = False,
    rgb: bool = False,
    quality: int = 90,
    **tags: Any,
) -> Path:
    """Write `pixels` (height, width, 3) as a tiled pyramid whose levels are area means over the whole extent.

    Lossless unless `compression="jpeg"`, which has the given quality and YCbCr inside unless `rgb`. A level's size is
    that of level 0 divided and rounded down, as scanners have it. `aperio` is what follows the sizes in an SVS file's
    description, such as "|AppMag = 40|MPP = 0.25", and makes the file one; `mpp` is then not written as a tag.
    """
    height, width = pixels.shape[:2]
    with tifffile.TiffWriter(path, bigtiff=bigtiff) as tiff:
        for number, downsample in enumerate(downsamples):
            size = max(1, width // downsample), max(1, height // downsample)
            level = pixels if downsample == 1 else cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
            options: dict[str, Any] = {"tile": (tile_px, tile_px), "compression": compression, "metadata": None, **tags}
            options.setdefault("photometric", "rgb" if level.ndim == 3 else "minisblack")
            if aperio is not None:
                options["description"] = f"Aperio Image Library v1\r\n{width}x{height} ({tile_px}x{tile_px}){aperio}"
            else:
                options["subfiletype"] = 0 if number == 0 else 1
                if mpp is not None:
                    options["resolution"] = (1e4 / mpp, 1e4 / mpp)
                    options["resolutionunit"] = "centimeter"
            tiff.write(level, **options)
    return path


def write_abbreviated(path: Path, pixels: npt.NDArray[np.uint8], *, rgb: bool, tile_px: int = 64) -> Path:
    """One level whose JPEG tiles leave their tables to the file, and do not say what their colours are.

    `rgb` stores RGB as it is (photometric RGB), else YCbCr.
    """
    height, width = pixels.shape[:2]
    padded = np.pad(pixels, ((0, -height % tile_px), (0, -width % tile_px), (0, 0)), mode="edge")
    tiles = []
    for y in range(0, height, tile_px):
        for x in range(0, width, tile_px):
            tile = np.ascontiguousarray(padded[y : y + tile_px, x : x + tile_px])
            tiles.append(imagecodecs.jpeg8_encode(tile, 90, colorspace="rgb", outcolorspace="rgb" if rgb else "ycbcr"))
    tables, _ = _parted(tiles[0])
    with tifffile.TiffWriter(path) as tiff:
        tiff.write(
            iter([_parted(tile)[1] for tile in tiles]),
            shape=pixels.shape,
            dtype=np.uint8,
            tile=(tile_px, tile_px),
            compression="jpeg",
            compressionargs={"outcolorspace": "rgb"} if rgb else None,
            photometric="rgb" if rgb else "ycbcr",
            extratags=[(347, 7, len(tables), tables, True)],
            resolution=(40000, 40000),
            resolutionunit="centimeter",
            metadata=None,
        )
    return path


def _parted(stream: bytes) -> tuple[bytes, bytes]:
    """A JPEG stream's tables as a stream of their own, and the stream without tables and words on colour."""
    tables, rest, at = b"", b"", 2
    while stream[at + 1] != 0xDA:
        after = at + 2 + int.from_bytes(stream[at + 2 : at + 4], "big")
        if stream[at + 1] in (0xDB, 0xC4):
            tables += stream[at:after]
        elif stream[at + 1] not in (0xE0, 0xEE):
            rest += stream[at:after]
        at = after
    return b"\xff\xd8" + tables + b"\xff\xd9", b"\xff\xd8" + rest + stream[at:]


def gradient(width: int, height: int) -> npt.NDArray[np.uint8]:
    """(height, width, 3): red is x, green is y (both below 256), blue is 128, so that a pixel says where it is from."""
    assert max(width, height) <= 256
    pixels = np.full((height, width, 3), 128, dtype=np.uint8)
    pixels[..., 0] = np.arange(width)
    pixels[..., 1] = np.arange(height)[:, None]
    return pixels


def noise(width: int, height: int, seed: int = 0) -> npt.NDArray[np.uint8]:
    """(height, width, 3): seeded random pixels, smooth enough for JPEG."""
    coarse = np.random.default_rng(seed).integers(0, 256, (height // 8 + 2, width // 8 + 2, 3), dtype=np.uint8)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
