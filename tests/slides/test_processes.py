"""Slides in threads, and in processes that were forked, spawned, or given a pickle."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from slide_reads import processes, reads, reads_with_threads
from slides_builder import noise, write_slide

from wsigym.slides import Slide, open_slide

BACKENDS = ("tiles", "openslide", "tiffslide", "image")


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    from PIL import Image

    folder = tmp_path_factory.mktemp("processes")
    slide = write_slide(folder / "slide.tif", noise(700, 500), compression="jpeg")
    Image.fromarray(noise(700, 500)).save(folder / "image.png")
    return {"tiles": slide, "openslide": slide, "tiffslide": slide, "image": folder / "image.png"}


@pytest.fixture(params=BACKENDS)
def slide(request: pytest.FixtureRequest, paths: dict[str, Path]) -> Slide:
    return open_slide(paths[request.param], mpp=0.25, backend=request.param)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_other_processes_read_the_same_pixels(slide: Slide, method: str) -> None:
    with slide:
        expected = [reads(slide, seed) for seed in (0, 1)]  # the file is open, and read, before the fork
        with processes(2, method) as pool:
            found = list(pool.map(partial(reads_with_threads, slide), (0, 1, 0, 1)))
        assert found == [*expected, *expected]
        assert [reads(slide, seed) for seed in (0, 1)] == expected


def test_a_child_has_a_cache_of_its_own_for_openslide_and_does_not_free_its_parent_s() -> None:
    """Freeing takes the cache's lock, which a thread of the parent may have held at the moment of the fork."""
    from wsigym.slides.backends import openslide

    ours = openslide._shared_cache()
    assert openslide._shared_cache() is ours
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(
        target=lambda: answers.put((openslide._shared_cache() is ours, ours in openslide._inherited))
    )
    child.start()
    child.join(20)
    assert answers.get() == (False, True)
    assert openslide._shared_cache() is ours


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_while_other_threads_read_does_not_hang(slide: Slide) -> None:
    """Their locks are held at the moment of the fork, and no thread of the child will ever free them."""
    with slide:
        expected = reads(slide, 0, 10)
        done = threading.Event()

        def keep_reading(seed: int) -> None:
            while not done.is_set():
                reads(slide, seed, 5)

        with ThreadPoolExecutor(3) as pool:
            for seed in range(3):
                pool.submit(keep_reading, seed)
            try:
                context = multiprocessing.get_context("fork")
                for _ in range(4):
                    answers = context.SimpleQueue()
                    child = context.Process(target=lambda queue=answers: queue.put(reads(slide, 0, 10) == expected))
                    child.start()
                    child.join(20)
                    alive = child.is_alive()
                    if alive:
                        child.kill()
                        child.join()
                    assert not alive, "the child hangs"
                    assert answers.get() is True
            finally:
                done.set()


def test_threads_read_the_same_pixels(slide: Slide) -> None:
    with slide:
        expected = [reads(slide, seed) for seed in range(4)]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(partial(reads, slide), range(4))) == expected


def test_threads_may_open_at_once(slide: Slide) -> None:
    with slide:
        expected = slide.read(slide.box).tobytes()
        for _ in range(5):
            slide.close()
            with ThreadPoolExecutor(4) as pool:
                assert set(pool.map(lambda _: slide.read(slide.box).tobytes(), range(4))) == {expected}


def test_a_pickle_carries_what_is_known_and_opens_the_file_when_it_reads(slide: Slide, tmp_path: Path) -> None:
    with slide:
        pickled = pickle.dumps(slide)
        assert len(pickled) < 10_000
        other = pickle.loads(pickled)
        for name in ("path", "backend", "dimensions", "level_dimensions", "resolution", "background", "icc_profile"):
            assert getattr(other, name) == getattr(slide, name)
        assert dict(other.properties) == dict(slide.properties)
        assert reads(other, 3, 10) == reads(slide, 3, 10)
        other.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_four_processes_read_a_thousand_regions_each(paths: dict[str, Path], method: str) -> None:
    with open_slide(paths["tiles"]) as slide:
        assert slide.backend == "tiles"
        expected = reads(slide, 0, 1000)
        with processes(4, method) as pool:
            for found in pool.map(partial(reads, slide, count=1000), [0, 0, 0, 0]):
                assert found == expected


def test_a_child_begins_with_its_own_files_and_an_empty_cache(paths: dict[str, Path]) -> None:
    from wsigym.slides import cache_info
    from wsigym.slides.files import open_files

    with open_slide(paths["tiles"]) as slide:
        slide.read(slide.box)
        ours = open_files()
        assert cache_info().tiles > 0
        context = multiprocessing.get_context("fork")
        answers = context.SimpleQueue()
        child = context.Process(
            target=lambda: answers.put((open_files() is ours, len(open_files()), cache_info().tiles))
        )
        child.start()
        child.join(20)
        assert answers.get() == (False, 0, 0)
