"""Slides at a URL: a server on 127.0.0.1 that honours Range requests, and one that is not there."""

from __future__ import annotations

import pickle
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import numpy as np
import pytest
from slide_reads import processes, read_bytes

from wsigym.errors import SlideOpenError, SlideReadError
from wsigym.slides import Box, Slide, open_slide

pytestmark = pytest.mark.network


class _Ranges(SimpleHTTPRequestHandler):
    """A folder's files, whole or by one range of bytes."""

    protocol_version = "HTTP/1.1"
    served = 0

    def do_GET(self) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        start, end = (int(asked[1]), min(int(asked[2] or len(data)), len(data) - 1)) if asked else (0, len(data) - 1)
        self.send_response(206 if asked else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - start + 1))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{end}/{len(data)}")
        self.end_headers()
        type(self).served += end - start + 1
        self.wfile.write(data[start : end + 1])

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def serve() -> Iterator[object]:
    """A function from a folder to the URL that serves it, until the module's tests are done."""
    servers: list[ThreadingHTTPServer] = []

    def start(folder: Path) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Ranges, directory=str(folder)))
        server.daemon_threads = True
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def url(serve: object, noise_path: Path) -> str:
    return f"{serve(noise_path.parent)}/{noise_path.name}"  # type: ignore[operator]


def test_a_url_reads_as_the_file_does(url: str, noise_path: Path) -> None:
    with open_slide(url) as remote, open_slide(noise_path) as local:
        assert remote.backend == "tiffslide"
        assert remote.path == url
        assert remote.mpp == local.mpp
        assert remote.level_dimensions == local.level_dimensions
        np.testing.assert_array_equal(remote.read(remote.box), local.read(local.box))
        for size in ((128, 96), (32, 24), (50, 40)):
            np.testing.assert_array_equal(remote.read(remote.box, size), local.read(local.box, size))
        np.testing.assert_array_equal(remote.read_at(Box(-5, 9, 300, 100), 20), local.read_at(Box(-5, 9, 300, 100), 20))


def test_a_real_slide_by_url(serve: object, shared_data: Path) -> None:
    folder = shared_data / "cmu-1-small-region"
    remote = open_slide(f"{serve(folder)}/CMU-1-Small-Region.svs")  # type: ignore[operator]
    _Ranges.served = 0
    with remote, open_slide(folder / "CMU-1-Small-Region.svs") as local:
        box = Box(1000, 1200, 240, 240)
        np.testing.assert_array_equal(remote.read(box), local.read(box))
        assert _Ranges.served < local_size(local) / 2  # only what is needed
        assert set(remote.associated_images) == {"label", "macro", "thumbnail"}


def local_size(slide: Slide) -> int:
    return Path(slide.path).stat().st_size


def test_a_url_of_another_kind(noise_path: Path) -> None:
    with fsspec.open("memory://slides/noise.tif", "wb") as file:
        file.write(noise_path.read_bytes())
    with open_slide("memory://slides/noise.tif") as slide, open_slide(noise_path) as local:
        np.testing.assert_array_equal(slide.read(slide.box), local.read(local.box))


def test_urls_that_lead_nowhere(url: str) -> None:
    started = time.perf_counter()
    with pytest.raises(SlideOpenError, match=r"missing\.svs: cannot be opened \(404"):
        open_slide(url.rsplit("/", 1)[0] + "/missing.svs")
    with pytest.raises(SlideOpenError, match="cannot be opened"):
        open_slide("http://127.0.0.1:9/nobody-listens.svs")
    with pytest.raises(SlideOpenError, match="nothing-known"):
        open_slide("nothing-known://a/b.svs")
    with pytest.raises(SlideOpenError, match="reads local files only"):
        open_slide(url, backend="openslide")
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("name", ["garbage.svs", "png_named.svs", "stripped.tif", "truncated_tiles.tif", "float32.tif"])
def test_what_is_no_slide_is_none_by_url(serve: object, shared_cases: Path, name: str) -> None:
    with pytest.raises(SlideOpenError, match=name):
        open_slide(f"{serve(shared_cases)}/{name}")  # type: ignore[operator]


def test_bad_tiles_by_url(serve: object, shared_cases: Path) -> None:
    with open_slide(f"{serve(shared_cases)}/tile_truncated.tif") as slide:  # type: ignore[operator]
        with pytest.raises(SlideReadError, match="tile 5 of level 0"):
            slide.read(Box(256, 256, 256, 256))
        assert slide.read(Box(0, 0, 256, 256)).mean() < 250


def test_threads_share_a_remote_slide(url: str, noise_path: Path) -> None:
    boxes = [Box(x, y, 60, 60) for x in range(0, 450, 37) for y in range(0, 320, 41)]
    with open_slide(url) as remote, open_slide(noise_path) as local, ThreadPoolExecutor(4) as pool:
        for box, pixels in zip(boxes, pool.map(remote.read, boxes), strict=True):
            np.testing.assert_array_equal(pixels, local.read(box))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_other_processes_open_the_url_for_themselves(url: str, noise_path: Path, method: str) -> None:
    with open_slide(url) as remote, open_slide(noise_path) as local:
        box = Box(100, 100, 200, 150)
        assert read_bytes(remote, box) == read_bytes(local, box)
        with processes(2, method) as pool:
            assert set(pool.map(partial(read_bytes, remote), [box] * 6)) == {read_bytes(local, box)}
        assert read_bytes(remote, box) == read_bytes(local, box)


def test_a_remote_slide_survives_pickling(url: str) -> None:
    with open_slide(url) as remote:
        other = pickle.loads(pickle.dumps(remote))
        np.testing.assert_array_equal(other.read(other.box), remote.read(remote.box))
        other.close()
