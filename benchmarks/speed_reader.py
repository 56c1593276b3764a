"""`wsigym bench reader`: the reader against the usual way, TiffSlide, and the JPEG decoder alone, side by side.

The usual way is OpenSlide's `read_region` at the best level and Pillow's `resize`. The decode limit is libjpeg-turbo
decoding the tiles that a read touches, shrunk as the read has them shrunk, already in memory, and nothing else. Regions
at random are read without the tile cache, which would come to hold whole levels and be what is measured; OpenSlide
keeps its own.
"""

from __future__ import annotations

import multiprocessing
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import openslide
import simplejpeg
from PIL import Image

from wsigym.slides import Box, Slide, cache_info, open_slide, set_cache_size
from wsigym.slides.backends import tiles
from wsigym.slides.backends._jpeg import JpegKind, decode

from .speed_slides import SpeedSlide, speed_slide, speed_slides
from .speed_timing import Ratio, interleaved, ratio

__all__ = ["ReaderSizes", "Row", "bench_reader", "navigation"]

SEED = 20261201
NAVIGATION_CACHE = 256 * 2**20
NAVIGATION_PX = 224
THINKING_S = 0.005
"""What a quick policy takes between two reads, in which prefetching may work."""

DOWNSAMPLES = (1, 2, 4, 8, 16)

TARGETS: dict[tuple[int, int], float] = {
    (224, 1): 1.8, (224, 2): 5.5, (224, 4): 6, (224, 8): 12, (224, 16): 4.5, (1024, 1): 4, (1024, 2): 9, (1024, 8): 18
}  # fmt: skip
"""What is aimed at, against the usual way, by output px and downsample: levels 1, 4 and 16, tiles of 256 px."""

TARGET_NAVIGATION, TARGET_OPEN = 20.0, 3.0


@dataclass(frozen=True, slots=True)
class ReaderSizes:
    """How much is measured: slides, their side, regions a pattern by output px, steps, repeats, reads a process."""

    slides: int = 4
    side_px: int = 24_000
    regions: tuple[tuple[int, int], ...] = ((224, 60), (1024, 8))
    steps: int = 400
    repeats: int = 5
    process_reads: int = 1000

    @classmethod
    def quick(cls) -> ReaderSizes:
        return cls(1, 2048, ((224, 4),), 20, 2, 20)


@dataclass(frozen=True, slots=True)
class Row:
    """One thing measured: `ours_ms` a read (wall, median), and how many times longer the others take.

    `limit_share` is the decode limit's time over ours: 1 would be decoding alone. `target` is for `usual`.
    """

    slide: str
    pattern: str
    ours_ms: float
    usual: Ratio | None = None
    usual_cpu: Ratio | None = None
    tiffslide: Ratio | None = None
    limit_share: Ratio | None = None
    limit_share_cpu: Ratio | None = None
    target: float | None = None
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        return {key: value._asdict() if isinstance(value, Ratio) else value for key, value in asdict(self).items()}


def bench_reader(
    sizes: ReaderSizes, folder: Path | None = None, progress: Callable[[int, int], None] | None = None
) -> list[Row]:
    """Make the slides where they are not there yet, measure everything, and return a row for each pattern and slide."""
    slides = speed_slides(sizes.side_px)[: sizes.slides]
    paths = [speed_slide(slide, folder) for slide in slides]
    before = cache_info().max_bytes
    rows: list[Row] = []
    try:
        for number, (slide, path) in enumerate(zip(slides, paths, strict=True)):
            rows += _bench_slide(slide, path, sizes, first=number == 0)
            if progress is not None:
                progress(number + 1, len(slides))
    finally:
        set_cache_size(before)
    return rows


def _bench_slide(slide: SpeedSlide, path: Path, sizes: ReaderSizes, *, first: bool) -> Iterator[Row]:
    with closing(_Contestants(path)) as contestants:
        for px, count in sizes.regions:
            for downsample in DOWNSAMPLES:
                if px * downsample <= slide.side_px:
                    boxes = _random_boxes(slide.side_px, px * downsample, count)
                    target = TARGETS.get((px, downsample)) if first else None
                    yield contestants.random(slide.label, boxes, px, downsample, sizes.repeats, target)
        yield contestants.navigation(slide, sizes, TARGET_NAVIGATION if first else None)
        if first:
            yield contestants.opening(slide.label, path, sizes.repeats)
            yield contestants.threads(slide, sizes)
            yield from contestants.prefetching(slide, sizes)
            yield from _processes(slide, path, sizes.process_reads)


class _Contestants:
    """The ways of reading one slide. Each takes a box and gives uint8 (px, px, 3)."""

    def __init__(self, path: Path) -> None:
        from tiffslide import TiffSlide

        self.slide = open_slide(path, backend="tiles")
        self._openslide = openslide.OpenSlide(path)
        self._tiffslide = TiffSlide(path)

    def close(self) -> None:
        for opened in (self.slide, self._openslide, self._tiffslide):
            opened.close()

    def ours(self, box: Box, px: int) -> npt.NDArray[np.uint8]:
        return self.slide.read(box, (px, px))

    def usual(self, box: Box, px: int) -> npt.NDArray[np.uint8]:
        return _region(self._openslide, box, px)

    def tiffslide(self, box: Box, px: int) -> npt.NDArray[np.uint8]:
        return _region(self._tiffslide, box, px)

    def random(
        self, slide: str, boxes: Sequence[Box], px: int, downsample: int, repeats: int, target: float | None
    ) -> Row:
        set_cache_size(0)
        with _recorded_decodes() as decodes:
            for box in boxes:
                self.ours(box, px)

        def limit() -> None:
            for stream, height, width in decodes:
                simplejpeg.decode_jpeg(stream, "RGB", min_height=height, min_width=width)

        taken = interleaved(
            {
                "ours": lambda: [self.ours(box, px) for box in boxes],
                "usual": lambda: [self.usual(box, px) for box in boxes],
                "tiffslide": lambda: [self.tiffslide(box, px) for box in boxes],
                "limit": limit,
            },
            repeats,
        )
        wall = {name: [seconds.wall for seconds in turns] for name, turns in taken.items()}
        cpu = {name: [seconds.cpu for seconds in turns] for name, turns in taken.items()}
        return Row(
            slide,
            f"random, {px} px, {40 / downsample:g}x",
            float(np.median(wall["ours"])) / len(boxes) * 1e3,
            ratio(wall["usual"], wall["ours"]),
            ratio(cpu["usual"], cpu["ours"]),
            ratio(wall["tiffslide"], wall["ours"]),
            ratio(wall["limit"], wall["ours"]),
            ratio(cpu["limit"], cpu["ours"]),
            target,
        )

    def navigation(self, slide: SpeedSlide, sizes: ReaderSizes, target: float | None) -> Row:
        boxes = navigation(slide.side_px, NAVIGATION_PX, sizes.steps, np.random.default_rng(SEED))

        def ours() -> None:
            _empty_cache()
            for box in boxes:
                self.ours(box, NAVIGATION_PX)

        taken = interleaved(
            {
                "ours": ours,
                "usual": lambda: [self.usual(box, NAVIGATION_PX) for box in boxes],
                "tiffslide": lambda: [self.tiffslide(box, NAVIGATION_PX) for box in boxes],
            },
            sizes.repeats,
        )
        wall = {name: [seconds.wall for seconds in turns] for name, turns in taken.items()}
        cpu = {name: [seconds.cpu for seconds in turns] for name, turns in taken.items()}
        return Row(
            slide.label,
            f"navigation, {NAVIGATION_PX} px",
            float(np.median(wall["ours"])) / len(boxes) * 1e3,
            ratio(wall["usual"], wall["ours"]),
            ratio(cpu["usual"], cpu["ours"]),
            ratio(wall["tiffslide"], wall["ours"]),
            target=target,
        )

    def opening(self, slide: str, path: Path, repeats: int) -> Row:
        count = 20

        def ours() -> None:
            for _ in range(count):
                tiles.forget_indexes()
                open_slide(path).close()

        def usual() -> None:
            for _ in range(count):
                openslide.OpenSlide(path).close()

        taken = interleaved({"ours": ours, "usual": usual}, repeats)
        wall = {name: [seconds.wall for seconds in turns] for name, turns in taken.items()}
        cpu = {name: [seconds.cpu for seconds in turns] for name, turns in taken.items()}
        return Row(
            slide,
            "open a slide",
            float(np.median(wall["ours"])) / count * 1e3,
            ratio(wall["usual"], wall["ours"]),
            ratio(cpu["usual"], cpu["ours"]),
            target=TARGET_OPEN,
        )

    def threads(self, slide: SpeedSlide, sizes: ReaderSizes) -> Row:
        px, count = sizes.regions[0]
        boxes = _random_boxes(slide.side_px, px, 4 * count)
        set_cache_size(0)
        with ThreadPoolExecutor(2) as pool:
            taken = interleaved(
                {
                    "one": lambda: [self.ours(box, px) for box in boxes],
                    "two": lambda: list(pool.map(lambda box: self.ours(box, px), boxes)),
                },
                sizes.repeats,
            )
        one, two = ([seconds.wall for seconds in taken[name]] for name in ("one", "two"))
        note = f"two threads do {ratio(one, two)} times the reads of one"
        return Row(slide.label, f"threads, random, {px} px, 40x", float(np.median(one)) / len(boxes) * 1e3, note=note)

    def prefetching(self, slide: SpeedSlide, sizes: ReaderSizes) -> Iterator[Row]:
        """What the reads of a navigation take, with and without reading the neighbours of each view beforehand."""
        boxes = navigation(slide.side_px, NAVIGATION_PX, sizes.steps // 2, np.random.default_rng(SEED + 1))
        for thinking_s in (0.0, THINKING_S):
            without: list[float] = []
            ahead: list[float] = []

            def walk(into: list[float], prefetch: bool, thinking_s: float = thinking_s) -> None:
                into.append(self._walk(boxes, thinking_s, prefetch))

            taken = interleaved(
                {"without": partial(walk, without, False), "with": partial(walk, ahead, True)}, sizes.repeats
            )
            cpu = ratio([each.cpu for each in taken["with"]], [each.cpu for each in taken["without"]])
            shares = ratio(ahead[1:], without[1:])
            yield Row(
                slide.label,
                f"navigation, {thinking_s * 1e3:g} ms between reads",
                float(np.median(without[1:])) / len(boxes) * 1e3,
                note=f"prefetching the four neighbours: reads take {shares} of the time, CPU {cpu}",
            )

    def _walk(self, boxes: Sequence[Box], thinking_s: float, prefetch: bool) -> float:
        """Seconds that the reads of a walk take, of which prefetching takes some off and adds some."""
        _empty_cache()
        reading = 0.0
        waiting: list[Future[Any]] = []
        with ThreadPoolExecutor(1) as pool:
            for box in boxes:
                began = time.perf_counter()
                self.ours(box, NAVIGATION_PX)
                reading += time.perf_counter() - began
                if prefetch and all(future.done() for future in waiting):
                    waiting = [pool.submit(self.ours, near, NAVIGATION_PX) for near in _neighbours(box)]
                if thinking_s:
                    time.sleep(thinking_s)
        return reading


def navigation(side_px: int, px: int, steps: int, rng: np.random.Generator) -> list[Box]:
    """How an agent moves: 65 % pans by half a view, 30 % zooms by 2 in or out (40x to 2.5x), 5 % jumps."""
    step = 4
    x, y = rng.uniform(0, side_px, 2)
    boxes = []
    for _ in range(steps):
        move = rng.random()
        if move < 0.65:
            dx, dy = [(1, 0), (-1, 0), (0, 1), (0, -1)][rng.integers(4)]
            x, y = x + dx * px * step / 2, y + dy * px * step / 2
        elif move < 0.95:
            step = int(np.clip(step * 2 if rng.random() < 0.5 else step // 2, DOWNSAMPLES[0], DOWNSAMPLES[-1]))
        else:
            x, y = rng.uniform(0, side_px, 2)
        view = Box(0, 0, px * step, px * step).centred_on(x, y).shifted_inside(Box(0, 0, side_px, side_px))
        x, y = view.centre
        boxes.append(view)
    return boxes


def _neighbours(box: Box) -> list[Box]:
    half_x, half_y = box.width // 2, box.height // 2
    steps = ((half_x, 0), (-half_x, 0), (0, half_y), (0, -half_y))
    return [Box(box.x + dx, box.y + dy, box.width, box.height) for dx, dy in steps]


def _random_boxes(side_px: int, box_px: int, count: int) -> list[Box]:
    corners = np.random.default_rng(SEED + box_px).integers(0, side_px - box_px + 1, (count, 2))
    return [Box(x, y, box_px, box_px) for x, y in corners.tolist()]


def _region(slide: Any, box: Box, px: int) -> npt.NDArray[np.uint8]:
    downsample = box.width / px
    level = slide.get_best_level_for_downsample(downsample)
    side = round(box.width / slide.level_downsamples[level])
    region = slide.read_region((box.x, box.y), level, (side, side)).convert("RGB")
    return np.asarray(region if side == px else region.resize((px, px), Image.Resampling.BICUBIC))


def _empty_cache() -> None:
    set_cache_size(0)
    set_cache_size(NAVIGATION_CACHE)


@contextmanager
def _recorded_decodes() -> Iterator[list[tuple[bytes, int, int]]]:
    """The streams that the reader decodes meanwhile, with the height and width of what comes out."""
    found: list[tuple[bytes, int, int]] = []

    def recording(stream: bytes, kind: JpegKind, factor: int = 1) -> npt.NDArray[np.uint8]:
        found.append((stream, kind.height // factor, kind.width // factor))
        return decode(stream, kind, factor)

    with patch.object(tiles, "decode", recording):
        yield found


def _processes(slide: SpeedSlide, path: Path, reads: int) -> Iterator[Row]:
    """Four processes that read the same boxes at once, each held against this one's pixels."""
    set_cache_size(NAVIGATION_CACHE)
    boxes = navigation(slide.side_px, NAVIGATION_PX, reads, np.random.default_rng(SEED + 2))
    with open_slide(path, backend="tiles") as opened:
        expected = [_digest(opened, box) for box in boxes]
        for method in ("fork", "spawn"):
            began = time.perf_counter()
            with multiprocessing.get_context(method).Pool(4) as pool:
                found = pool.starmap(_digests, [(opened, boxes)] * 4)
            took = time.perf_counter() - began
            wrong = sum(one != other for answer in found for one, other in zip(answer, expected, strict=True))
            note = f"four processes ({method}), {reads:,} reads each: {wrong} wrong"
            yield Row(slide.label, f"processes, {method}", took / (4 * reads) * 1e3, note=note)


def _digests(slide: Slide, boxes: Sequence[Box]) -> list[int | str]:
    return [_digest(slide, box) for box in boxes]


def _digest(slide: Slide, box: Box) -> int | str:
    try:
        return zlib.crc32(slide.read(box, (NAVIGATION_PX, NAVIGATION_PX)).tobytes())
    except Exception as error:  # counted as wrong
        return repr(error)
