"""What the package offers, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import wsigym.slides

HEAVY = {
    "cv2",
    "openslide",
    "tiffslide",
    "tifffile",
    "skimage",
    "scipy",
    "zarr",
    "fsspec",
    "PIL",
    "aiohttp",
    "simplejpeg",
}


def test_every_public_name_is_there() -> None:
    for name in wsigym.slides.__all__:
        assert getattr(wsigym.slides, name).__module__.startswith("wsigym.slides."), name
    assert set(wsigym.slides.__all__) <= set(dir(wsigym.slides))
    assert not hasattr(wsigym.slides, "no_such_name")


def test_boxes_are_light() -> None:
    """Nothing heavy is imported for the geometry alone."""
    code = "import sys; from wsigym.slides import Box; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "numpy" in loaded
    assert not HEAVY & set(loaded)
