"""Large slides for the speed benchmarks, made once in the user's cache, of pieces that are tissue to a JPEG coder.

What a decoder costs depends on how many bytes a pixel takes, so a flat or a noisy slide would measure something else.
The pieces have nuclei, fibres and grain over stain that varies slowly, and two in five are glass. At quality 80 with
4:2:0 chroma a tile of 256 px takes 7, 13 and 17 kB at 40x, 10x and 2.5x; those of a real slide (CMU-1-Small-Region,
coded alike) take 9, 13 and 14 kB at 20x, 10x and 2.5x.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import platformdirs
import simplejpeg
import tifffile
from filelock import FileLock

__all__ = ["SpeedSlide", "speed_slide", "speed_slides"]

PIECE_PX = 1024
PIECES = 15
GLASS = (0, 2)
QUALITY = 80
SEED = 20261130


@dataclass(frozen=True, slots=True)
class SpeedSlide:
    """What a slide is like: side in level-0 pixels, downsample of each level (up to 64), side of a tile."""

    side_px: int
    downsamples: tuple[int, ...]
    tile_px: int

    @property
    def name(self) -> str:
        levels = "-".join(str(downsample) for downsample in self.downsamples)
        return f"{self.side_px}px_levels-{levels}_tiles-{self.tile_px}"

    @property
    def label(self) -> str:
        """How tables call it."""
        step = self.downsamples[1]
        return f"x{step}, {self.tile_px} px"


def speed_slides(side_px: int) -> tuple[SpeedSlide, ...]:
    """Two pyramids with two sizes of tiles."""
    pyramids = ((1, 4, 16), (1, 2, 4, 8, 16, 32))
    return tuple(SpeedSlide(side_px, downsamples, tile_px) for downsamples in pyramids for tile_px in (256, 512))


def speed_slide(slide: SpeedSlide, folder: Path | None = None) -> Path:
    """The file of a slide, made if it is not there: in `folder`, by default the user's cache."""
    folder = folder or platformdirs.user_cache_path("wsigym") / "speed"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{slide.name}_1.tif"
    with FileLock(path.with_suffix(".lock")):
        if not path.exists():
            unfinished = path.with_suffix(f".{os.getpid()}.part")
            _write(unfinished, slide)
            unfinished.rename(path)
    return path


def _write(path: Path, slide: SpeedSlide) -> None:
    pieces = _pieces()
    count = -(-slide.side_px // PIECE_PX)
    chosen = np.random.default_rng(SEED + 1).integers(0, len(pieces), (count, count))
    with tifffile.TiffWriter(path, bigtiff=True) as tiff:
        for number, downsample in enumerate(slide.downsamples):
            side = PIECE_PX // downsample
            shrunk = [cv2.resize(piece, (side, side), interpolation=cv2.INTER_AREA) for piece in pieces]
            size = slide.side_px // downsample

            tiff.write(
                _tiles(shrunk, chosen, size, slide.tile_px),
                shape=(size, size, 3),
                dtype=np.uint8,
                tile=(slide.tile_px, slide.tile_px),
                compression="jpeg",
                photometric="ycbcr",
                subsampling=(2, 2),
                subfiletype=0 if number == 0 else 1,
                resolution=(40000 / downsample, 40000 / downsample),
                resolutionunit="centimeter",
                metadata=None,
            )


def _tiles(
    pieces: Sequence[npt.NDArray[Any]], chosen: npt.NDArray[np.int64], size: int, tile_px: int
) -> Iterator[bytes]:
    """Encoded tiles of a square level that is a mosaic of square pieces, row by row."""
    side = len(pieces[0])
    rows: dict[int, npt.NDArray[Any]] = {}
    for top in range(0, size, tile_px):
        wanted = range(top // side, -(-min(top + tile_px, size) // side))
        rows = {
            row: rows[row] if row in rows else np.concatenate([pieces[piece] for piece in chosen[row]], axis=1)
            for row in wanted
        }
        strip = np.concatenate(list(rows.values()))[top - wanted[0] * side :][: min(tile_px, size - top), :size]
        strip = cv2.copyMakeBorder(strip, 0, tile_px - len(strip), 0, -size % tile_px, cv2.BORDER_REPLICATE)
        for left in range(0, size, tile_px):
            tile = np.ascontiguousarray(strip[:, left : left + tile_px])
            yield simplejpeg.encode_jpeg(tile, QUALITY, "RGB", "420")


@functools.cache
def _pieces() -> list[npt.NDArray[np.uint8]]:
    rng = np.random.default_rng(SEED)
    return [_glass(rng) if index % 5 in GLASS else _tissue(rng) for index in range(PIECES)]


def _glass(rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    grain = rng.normal(0, 1, (PIECE_PX, PIECE_PX, 1))
    return np.clip(np.array([243, 241, 244]) + grain, 0, 255).astype(np.uint8)


def _tissue(rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Eosin that varies slowly, fibres along one direction, nuclei of 6 to 12 um, and the scanner's grain, at 40x."""
    fibres = rng.normal(0, 1, (PIECE_PX, PIECE_PX))
    fibres = _standard(cv2.GaussianBlur(fibres, (0, 0), 18, sigmaY=2.4))
    eosin = 0.34 + 0.08 * _noise(rng, 90) + 0.06 * _noise(rng, 12) + 0.07 * fibres
    nuclei = np.zeros((PIECE_PX, PIECE_PX))
    for _ in range(int(rng.integers(300, 900))):
        x, y = (int(value) for value in rng.integers(0, PIECE_PX, 2))
        axes = tuple(int(value) for value in rng.integers(12, 25, 2))
        cv2.ellipse(nuclei, (x, y), axes, float(rng.uniform(0, 180)), 0, 360, float(rng.uniform(0.5, 1)), -1)
    chromatin = 1 + 0.22 * _noise(rng, 2)
    haematoxylin = 0.08 + 0.75 * cv2.GaussianBlur(nuclei, (0, 0), 1.5) * chromatin
    # Optical densities of the two stains in R, G, B (Ruifrok and Johnston 2001).
    density = haematoxylin[..., None] * np.array([0.65, 0.70, 0.29]) + eosin[..., None] * np.array([0.07, 0.99, 0.11])
    grain = cv2.GaussianBlur(rng.normal(0, 3.5, (PIECE_PX, PIECE_PX, 3)), (0, 0), 0.7)
    shown: npt.NDArray[np.float64] = 255 * np.power(10.0, -np.maximum(density, 0)) + grain
    return np.clip(shown, 0, 255).astype(np.uint8)


def _noise(rng: np.random.Generator, sigma: float) -> npt.NDArray[np.float64]:
    """Smooth noise of mean 0 and deviation 1. What is very smooth is made small and enlarged."""
    step = max(1, int(sigma / 4))
    side = PIECE_PX // step
    noise = cv2.GaussianBlur(rng.normal(0, 1, (side, side)), (0, 0), sigma / step)
    return _standard(cv2.resize(noise, (PIECE_PX, PIECE_PX), interpolation=cv2.INTER_CUBIC))


def _standard(noise: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return np.asarray((noise - noise.mean()) / noise.std(), dtype=np.float64)
