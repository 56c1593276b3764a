"""The speed benchmarks work; how fast things are is not tested."""

from __future__ import annotations

import itertools
import json
import statistics
from pathlib import Path

import numpy as np
import pytest

from wsigym.benchmarks.speed_env import EnvSizes, bench_env, second_env_mib
from wsigym.benchmarks.speed_reader import ReaderSizes, bench_reader, navigation
from wsigym.benchmarks.speed_slides import SpeedSlide, speed_slide
from wsigym.benchmarks.speed_timing import interleaved, ratio
from wsigym.benchmarks.speed_vectors import DeepZoomEnv
from wsigym.slides import Box, cache_info, open_slide


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("speed")


def test_slides_are_made_once_and_are_pyramids_of_one_image(folder: Path) -> None:
    path = speed_slide(SpeedSlide(2048, (1, 4, 16), 256), folder)
    written = path.stat().st_mtime_ns
    assert speed_slide(SpeedSlide(2048, (1, 4, 16), 256), folder).stat().st_mtime_ns == written
    assert {file.suffix for file in folder.iterdir()} <= {".tif", ".lock"}
    with open_slide(path) as slide:
        assert slide.backend == "tiles"
        assert slide.mpp == pytest.approx(0.25)
        assert slide.level_dimensions == ((2048, 2048), (512, 512), (128, 128))
        level_1 = slide.read(slide.box, (512, 512)).astype(int)
        from_level_0 = slide.read(slide.box).reshape(512, 4, 512, 4, 3).mean(axis=(1, 3))
    same, shifted = (np.abs(level_1[by:] - from_level_0[: 512 - by]).mean() for by in (0, 2))
    assert same < 8  # each was coded
    assert shifted > 1.5 * same


def test_a_slide_takes_the_bytes_of_tissue(folder: Path) -> None:
    """The figures in the module's docstring, to a third: what a decoder costs depends on them."""
    path = speed_slide(SpeedSlide(4096, (1, 4, 16), 256), folder)
    with open_slide(path) as slide:
        for level, kilobytes in ((0, 7), (1, 13)):
            assert statistics.mean(slide._backend()._levels[level].counts.tolist()) / 1e3 == pytest.approx(  # type: ignore[attr-defined]
                kilobytes, rel=0.35
            )


def test_every_pattern_is_measured(folder: Path) -> None:
    bound = cache_info().max_bytes
    told: list[tuple[int, int]] = []
    rows = bench_reader(ReaderSizes.quick(), folder, lambda done, asked: told.append((done, asked)))
    assert told == [(number + 1, len(rows)) for number in range(len(rows))]
    assert cache_info().max_bytes == bound
    patterns = {row.pattern for row in rows}
    assert {"random, 224 px, 40x", "random, 224 px, 5x", "navigation, 224 px", "open a slide"} <= patterns
    assert {row.slide for row in rows} == {"x4, 256 px"}
    for row in rows:
        assert row.ours_ms > 0
        if row.pattern.startswith("random"):
            assert row.usual is not None
            assert row.limit_share is not None
            assert row.limit_share.low <= row.limit_share.median <= row.limit_share.high
        if row.pattern.startswith("processes"):
            assert row.note.endswith(": 0 wrong")
    json.dumps([row.to_json() for row in rows])


def test_navigation_stays_on_the_slide_and_moves_as_it_says() -> None:
    boxes = navigation(10_000, 224, 2000, np.random.default_rng(0))
    whole = Box(0, 0, 10_000, 10_000)
    assert all(whole.contains(box) for box in boxes)
    sides = [box.width // 224 for box in boxes]
    assert set(sides) == {1, 2, 4, 8, 16}
    zooms = sum(one != other for one, other in itertools.pairwise(sides)) / 2000
    assert 0.2 < zooms <= 0.3  # at the ends of the range a zoom changes nothing


def test_environments_are_measured() -> None:
    report = bench_env(EnvSizes.quick())
    (row,) = report.rows
    assert set(row.steps) == {"single", "sync 4", "sync 16", "async 4", "async 16"}
    assert all(rate > 0 for rate in (row.reads, *row.steps.values()))
    assert row.own_ms > 0
    assert [vector.name for vector in report.vectors] == [
        "asynchronous",
        "one process",
        "synchronous",
        "HistoGym's reading",
    ]
    assert all(vector.frames > 0 and vector.frames_a_core > 0 for vector in report.vectors)
    assert report.vectors[1].ours == (1, 1, 1)
    json.dumps(report.to_json())


def test_the_yardstick_moves_and_reads_tiles_as_they_lie(folder: Path) -> None:
    path = speed_slide(SpeedSlide(2048, (1, 4, 16), 256), folder)
    env = DeepZoomEnv(path, 64, np.random.default_rng(0))
    env.place = (11, 3, 2)  # level 11 of a DeepZoom pyramid of 2,048 px is the slide itself
    shown = env.step(3)
    assert env.place == (11, 4, 2)
    assert shown.shape == (3, 64, 64)
    with open_slide(path) as slide:
        there = slide.read(Box(4 * 64, 2 * 64, 64, 64)).transpose(2, 0, 1).astype(int)
        elsewhere = slide.read(Box(3 * 64, 2 * 64, 64, 64)).transpose(2, 0, 1).astype(int)
    assert np.abs(shown - there).mean() * 2 < np.abs(shown - elsewhere).mean()
    env.step(4)  # there is nothing finer
    assert env.place == (11, 4, 2)
    env.step(5)
    assert env.place == (10, 2, 1)
    env.step(4)
    assert env.place == (11, 5, 3)
    for _ in range(40):
        env.step(1)
    assert env.place == (11, 5, 31)


def test_a_second_environment_takes_little_memory(tiny_cohort: Path) -> None:
    memory = second_env_mib(tiny_cohort)
    assert np.isnan(memory) or memory < 5


def test_contestants_take_turns() -> None:
    turns: list[str] = []
    taken = interleaved({name: lambda number, name=name: turns.append(f"{name}{number}") for name in "abc"}, 2)  # type: ignore[misc]
    assert "".join(turns) == "a0b0c0b1c1a1c2a2b2"
    assert all(len(rounds) == 2 for rounds in taken.values())


def test_ratios_are_of_medians_with_the_range_of_rounds() -> None:
    assert ratio([2, 4, 9], [1, 4, 3]) == (4 / 3, 1, 3)
    assert str(ratio([2, 4, 9], [1, 4, 3])) == "1.33 (1.00-3.00)"
