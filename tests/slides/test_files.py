"""Open files: bounded in number, and not mistaken for others that took their place."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from slides_builder import noise, write_slide

from wsigym.errors import SlideReadError
from wsigym.slides import Box, open_slide
from wsigym.slides.files import MAX_OPEN_FILES, open_files

LOCAL = ("tiles", "openslide", "tiffslide", "image")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_slide(tmp_path / "slide.tif", noise(128, 96), downsamples=(1,), compression="jpeg")


def _write_another(path: Path, backend: str, seed: int) -> None:
    if backend == "image":
        from PIL import Image

        Image.fromarray(noise(128, 96, seed)).save(path, format="PNG")
    else:
        write_slide(path, noise(128, 96, seed), downsamples=(1,), compression="jpeg")
    path.write_bytes(path.read_bytes().ljust(2**17, b"\0"))  # all of one size, so that size tells nothing


@pytest.mark.parametrize("backend", LOCAL)
@pytest.mark.parametrize("how", ["replaced", "overwritten", "removed"])
def test_a_file_that_is_another_is_noticed(tmp_path: Path, backend: str, how: str) -> None:
    path = tmp_path / "slide"
    _write_another(path, backend, 0)
    slide = open_slide(path, backend=backend, mpp=0.5)
    before = slide.read(slide.box)
    if how == "removed":
        path.unlink()
    elif how == "overwritten":
        _write_another(path, backend, 1)
    else:
        other = tmp_path / "other"
        _write_another(other, backend, 1)
        os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
        other.replace(path)
    with pytest.raises(SlideReadError, match="no longer there" if how == "removed" else r"replaced.*Open it again"):
        slide.read(slide.box)
    if how != "removed":
        with open_slide(path, backend=backend, mpp=0.5) as anew:
            assert not np.array_equal(anew.read(anew.box), before)
        with pytest.raises(SlideReadError, match="replaced"):
            slide.read(slide.box)


def test_a_slide_of_a_file_read_anew_does_not_get_the_old_tiles(path: Path, tmp_path: Path) -> None:
    with open_slide(path) as slide:
        slide.read(slide.box)
    write_slide(tmp_path / "other.tif", noise(128, 96, 1), downsamples=(1,), compression="jpeg")
    (tmp_path / "other.tif").replace(path)
    with open_slide(path) as one, open_slide(path, backend="openslide") as other:
        np.testing.assert_array_equal(one.read(one.box), other.read(other.box))


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + MAX_OPEN_FILES + 20, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files in /proc, which this system lacks")
@pytest.mark.usefixtures("few_descriptors")
@pytest.mark.parametrize("backend", ["tiles", "openslide"])
def test_a_thousand_slides_may_be_held(path: Path, backend: str) -> None:
    count = 1000 if backend == "tiles" else 200
    slides = []
    for number in range(count):
        copy = path.with_name(f"{number}.tif")
        shutil.copy(path, copy)
        slides.append(open_slide(copy, backend=backend))
    expected = slides[0].read(Box(0, 0, 128, 96), (32, 24))
    for slide in slides:
        np.testing.assert_array_equal(slide.read(slide.box, (32, 24)), expected)
    assert len(open_files()) == MAX_OPEN_FILES


def test_a_file_let_go_while_it_is_read_stays_readable(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for one, threads that read two files drive each other's out all the time."""
    monkeypatch.setattr(open_files(), "limit", 1)
    copy = path.with_name("copy.tif")
    shutil.copy(path, copy)
    slides = [open_slide(each, backend=backend) for each in (path, copy) for backend in ("tiles", "openslide")]
    expected = slides[0].read(slides[0].box).tobytes()
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda number: slides[number % 4].read(slides[0].box).tobytes() == expected, range(400))
        assert all(found)
    assert len(open_files()) == 1


def test_slides_of_one_file_share_it(path: Path) -> None:
    one, two = open_slide(path), open_slide(path)
    assert one._backend() is two._backend()
    one.close()
    np.testing.assert_array_equal(two.read(two.box), one.read(one.box))
