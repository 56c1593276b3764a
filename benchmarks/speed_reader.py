"""`wsigym bench reader`: the reader against the usual way, TiffSlide, and the JPEG decoder alone, side by side.

The usual way is OpenSlide's `read_region` at the best level and Pillow's `resize`. The decode limit is libjpeg-turbo
decoding the tiles that a read touches, shrunk as the read has them shrunk, already in memory, and nothing else. Regions
at random are read without the tile cache, which would come to hold whole levels and be what is measured; OpenSlide
keeps its own. Each round has regions of its own, the same for all, so that no cache holds them from the last round.
"""

from __future__ import annotations

import functools
import multiprocessing
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
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
from wsigym.slides.backends._jpeg import OFF_ALIGNMENT, JpegKind, decode

from .speed_slides import SpeedSlide, speed_slide, speed_slides
from .speed_timing import Ratio, Seconds, interleaved, ratio

__all__ = ["ReaderSizes", "Row", "bench_reader", "navigation"]

SEED = 20261201
NAVIGATION_CACHE = 256 * 2**20
NAVIGATION_PX = 224
THINKING_S = 0.005
"""What a quick policy takes between two reads, in which prefetching may work."""

WARMING = 4
"""Of regions at random, and of prefetching, the round that warms up does a fourth of another's work."""

DOWNSAMPLES = (1, 2, 4, 8, 16)

TARGETS: dict[tuple[int, int], float] = {
    (224, 1): 1.8, (224, 2): 5.5, (224, 4): 6, (224, 8): 12, (224, 16): 4.5, (1024, 1): 4, (1024, 2): 9, (1024, 8): 18
}  # fmt: skip
"""What is aimed at, against the usual way, by output px and downsample: levels 1, 4 and 16, tiles of 256 px."""

TARGET_NAVIGATION, TARGET_OPEN = 20.0, 3.0


@dataclass(frozen=True, slots=True)
class ReaderSizes:
    """How much is measured: slides, their side, regions a round by output px, steps, repeats, reads a process.

    The first slide is the one with targets; `others` is the share of its regions that are read of the others.
    """

    slides: int = 4
    side_px: int = 24_000
    regions: tuple[tuple[int, int], ...] = ((224, 30), (1024, 4))
    steps: int = 400
    repeats: int = 5
    process_reads: int = 1000
    others: float = 0.35

    @classmethod
    def quick(cls) -> ReaderSizes:
        return cls(1, 2048, ((224, 4),), 20, 2, 20)

    def of_others(self) -> ReaderSizes:
        regions = tuple((px, max(1, round(count * self.others))) for px, count in self.regions)
        return replace(self, regions=regions)


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
    """Make the slides where they are not there yet, measure everything, and return a row for each pattern and slide.

    `progress` is told how many of the rows are done, of how many.
    """
    before = cache_info().max_bytes
    rows: list[Row] = []
    with ExitStack() as stack:
        stack.callback(set_cache_size, before)
        measurements: list[Callable[[], Row]] = []
        for number, slide in enumerate(speed_slides(sizes.side_px)[: sizes.slides]):
            measurements += _measurements(stack, slide, folder, sizes, first=number == 0)
        for measure in measurements:
            rows.append(measure())
            if progress is not None:
                progress(len(rows), len(measurements))
    return rows


def _measurements(
    stack: ExitStack, slide: SpeedSlide, folder: Path | None, sizes: ReaderSizes, *, first: bool
) -> list[Callable[[], Row]]:
    """What is measured on a slide, which is made and opened for the first of it, and closed with the stack."""
    if not first:
        sizes = sizes.of_others()

    @functools.cache
    def contestants() -> _Contestants:
        return stack.enter_context(closing(_Contestants(slide, speed_slide(slide, folder), sizes)))

    def random(px: int, downsample: int, count: int) -> Row:
        return contestants().random(px, downsample, count, TARGETS.get((px, downsample)) if first else None)

    patterns: list[Callable[[], Row]] = [
        partial(random, px, downsample, count)
        for px, count in sizes.regions
        for downsample in DOWNSAMPLES
        if px * downsample <= slide.side_px
    ]
    patterns.append(lambda: contestants().navigation(TARGET_NAVIGATION if first else None))
    if first:
        patterns += [
            lambda: contestants().opening(),
            lambda: contestants().threads(),
            lambda: contestants().prefetching(0.0),
            lambda: contestants().prefetching(THINKING_S),
            lambda: contestants().processes("fork"),
            lambda: contestants().processes("spawn"),
        ]
    return patterns


class _Contestants:
    """The ways of reading one slide. Each takes a box and gives uint8 (px, px, 3)."""

    def __init__(self, slide: SpeedSlide, path: Path, sizes: ReaderSizes) -> None:
        from tiffslide import TiffSlide

        self._label, self._side_px, self._path, self._sizes = slide.label, slide.side_px, path, sizes
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

    def random(self, px: int, downsample: int, count: int, target: float | None) -> Row:
        rounds = _random_boxes(self._side_px, px * downsample, count, self._sizes.repeats)
        set_cache_size(0)
        decodes = []
        for boxes in rounds:
            with _recorded_decodes() as found:
                _each(self.ours, boxes, px)
            decodes.append(found)
        # Always the same memory, placed as the reader places it: what the decoder alone is quickest at.
        largest = max(height * width for found in decodes for _, height, width in found)
        memory = np.empty(OFF_ALIGNMENT + 3 * largest, np.uint8)[OFF_ALIGNMENT:]

        def limit(number: int) -> None:
            for stream, height, width in decodes[number]:
                simplejpeg.decode_jpeg(stream, "RGB", min_height=height, min_width=width, buffer=memory)

        taken = interleaved(
            {
                "ours": lambda number: _each(self.ours, rounds[number], px),
                "usual": lambda number: _each(self.usual, rounds[number], px),
                "tiffslide": lambda number: _each(self.tiffslide, rounds[number], px),
                "limit": limit,
            },
            self._sizes.repeats,
        )
        return self._row(taken, f"random, {px} px, {40 / downsample:g}x", count, target)

    def navigation(self, target: float | None) -> Row:
        boxes = navigation(self._side_px, NAVIGATION_PX, self._sizes.steps, np.random.default_rng(SEED))

        def walked(read: Callable[[Box, int], object], number: int) -> None:
            if read == self.ours:
                _empty_cache()
            _each(read, boxes, NAVIGATION_PX)

        ways = {"ours": self.ours, "usual": self.usual, "tiffslide": self.tiffslide}
        taken = interleaved({name: partial(walked, read) for name, read in ways.items()}, self._sizes.repeats)
        return self._row(taken, f"navigation, {NAVIGATION_PX} px", len(boxes), target)

    def opening(self) -> Row:
        count = 20

        def ours(number: int) -> None:
            for _ in range(count):
                tiles.forget_indexes()
                open_slide(self._path).close()

        def usual(number: int) -> None:
            for _ in range(count):
                openslide.OpenSlide(self._path).close()

        return self._row(
            interleaved({"ours": ours, "usual": usual}, self._sizes.repeats), "open a slide", count, TARGET_OPEN
        )

    def _row(self, taken: Mapping[str, Sequence[Seconds]], pattern: str, reads: int, target: float | None) -> Row:
        wall = {name: [seconds.wall for seconds in turns] for name, turns in taken.items()}
        cpu = {name: [seconds.cpu for seconds in turns] for name, turns in taken.items()}

        def times(by: Mapping[str, Sequence[float]], name: str) -> Ratio | None:
            return ratio(by[name], by["ours"]) if name in by else None

        return Row(
            self._label,
            pattern,
            float(np.median(wall["ours"])) / reads * 1e3,
            usual=times(wall, "usual"),
            usual_cpu=times(cpu, "usual"),
            tiffslide=times(wall, "tiffslide"),
            limit_share=times(wall, "limit"),
            limit_share_cpu=times(cpu, "limit"),
            target=target,
        )

    def threads(self) -> Row:
        px, count = self._sizes.regions[0]
        boxes = _random_boxes(self._side_px, px, 8 * count, 1)[1]
        set_cache_size(0)
        with ThreadPoolExecutor(2) as pool:
            taken = interleaved(
                {
                    "one": lambda number: _each(self.ours, boxes, px),
                    "two": lambda number: list(pool.map(lambda box: self.ours(box, px), boxes)),
                },
                self._sizes.repeats,
            )
        one, two = ([seconds.wall for seconds in taken[name]] for name in ("one", "two"))
        note = f"two threads do {ratio(one, two)} times the reads of one"
        return Row(self._label, f"threads, random, {px} px, 40x", float(np.median(one)) / len(boxes) * 1e3, note=note)

    def prefetching(self, thinking_s: float) -> Row:
        """What the reads of a navigation take, with and without reading the neighbours of each view beforehand."""
        boxes = navigation(self._side_px, NAVIGATION_PX, self._sizes.steps // 4, np.random.default_rng(SEED + 1))
        reading: dict[bool, list[float]] = {False: [], True: []}

        def walk(prefetch: bool, number: int) -> None:
            part = boxes if number else boxes[: len(boxes) // WARMING]
            reading[prefetch].append(self._walk(part, thinking_s, prefetch))

        taken = interleaved({"without": partial(walk, False), "with": partial(walk, True)}, self._sizes.repeats)
        cpu = ratio([each.cpu for each in taken["with"]], [each.cpu for each in taken["without"]])
        shares = ratio(reading[True][1:], reading[False][1:])
        return Row(
            self._label,
            f"navigation, {thinking_s * 1e3:g} ms between reads",
            float(np.median(reading[False][1:])) / len(boxes) * 1e3,
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

    def processes(self, method: str) -> Row:
        """Four processes that read the same boxes at once, each held against this one's pixels."""
        set_cache_size(NAVIGATION_CACHE)
        reads = self._sizes.process_reads
        boxes = navigation(self._side_px, NAVIGATION_PX, reads, np.random.default_rng(SEED + 2))
        expected = [_digest(self.slide, box) for box in boxes]
        began = time.perf_counter()
        # An executor lets its processes end; a Pool sends SIGTERM, which a child with a handler of Python's can miss.
        with ProcessPoolExecutor(4, multiprocessing.get_context(method)) as pool:
            found = list(pool.map(_digests, [self.slide] * 4, [boxes] * 4))
        took = time.perf_counter() - began
        wrong = sum(one != other for answer in found for one, other in zip(answer, expected, strict=True))
        note = f"four processes ({method}), {reads:,} reads each: {wrong} wrong"
        return Row(self._label, f"processes, {method}", took / (4 * reads) * 1e3, note=note)


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


def _random_boxes(side_px: int, box_px: int, count: int, repeats: int) -> list[list[Box]]:
    """Boxes of each round, after a few of one that warms up."""
    rng = np.random.default_rng(SEED + box_px)
    counts = [max(1, count // WARMING), *[count] * repeats]
    return [
        [Box(x, y, box_px, box_px) for x, y in rng.integers(0, side_px - box_px + 1, (each, 2)).tolist()]
        for each in counts
    ]


def _each(read: Callable[[Box, int], object], boxes: Sequence[Box], px: int) -> None:
    for box in boxes:
        read(box, px)


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


def _digests(slide: Slide, boxes: Sequence[Box]) -> list[int | str]:
    return [_digest(slide, box) for box in boxes]


def _digest(slide: Slide, box: Box) -> int | str:
    try:
        return zlib.crc32(slide.read(box, (NAVIGATION_PX, NAVIGATION_PX)).tobytes())
    except Exception as error:  # counted as wrong
        return repr(error)
