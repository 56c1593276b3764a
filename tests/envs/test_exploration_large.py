"""A slide of 60,000 px a side, and a real one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
import tifffile
from shapely import Polygon, box
from tumour_builder import build_tumour_cohort, write_regions

from wsigym.benchmarks.run_folder import load_run
from wsigym.benchmarks.runner import run

SIDE_PX = 60_000
TILE_PX = 256

PLAY = """
import json, re, sys
import numpy as np
from collections import Counter
from wsigym.baselines import make_policy
from wsigym.envs.exploration import ExplorationEnv
from wsigym.slides import Slide

read = Counter()
original = Slide.read
def counting(self, box, size=None):
    read[tuple(box.to_list()), size] += 1
    return original(self, box, size)
Slide.read = counting

policy = make_policy("stain-density", "wsigym/Exploration-v0")
with ExplorationEnv(sys.argv[1], tile_px=1024) as env:
    observation, info = env.reset(seed=0)
    policy.reset(observation, info)
    over = False
    while not over:
        observation, _, over, _, info = env.step(policy.act(observation, info))
tiles = Counter({box: count for (box, size), count in read.items() if size == (1024, 1024)})
print(json.dumps({
    "kept": [len(level) for level in info["retained"]],
    "viewed": info["tiles_viewed"],
    "tiles_read": len(tiles),
    "most_reads": max(tiles.values()),
    # Not ru_maxrss: a process started from a larger one inherits that one's peak.
    "peak_mib": int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024,
}))
"""


def write_large_slide(path: Path) -> None:
    """Purple texture in the middle half, white around it; five encoded tiles, written again and again."""
    rng = np.random.default_rng(0)

    def encoded(colour: tuple[int, int, int], noise: int) -> bytes:
        pixels = np.full((TILE_PX, TILE_PX, 3), colour, np.int16)
        pixels += (
            rng.integers(-noise, noise + 1, (TILE_PX // 8, TILE_PX // 8, 1), dtype=np.int16).repeat(8, 0).repeat(8, 1)
        )
        return bytes(imagecodecs.jpeg_encode(np.clip(pixels, 0, 255).astype(np.uint8), level=80, subsampling="420"))

    white, kinds = encoded((255, 255, 255), 0), [encoded((200 - 20 * i, 120, 180), 10 + 5 * i) for i in range(4)]

    def tiles(side: int) -> Iterator[bytes]:
        count = -(-side // TILE_PX)
        for row in range(count):
            for column in range(count):
                tissue = count // 4 <= row < count * 3 // 4 and count // 4 <= column < count * 3 // 4
                yield kinds[(row * 7 + column * 3) % 4] if tissue else white

    with tifffile.TiffWriter(path, bigtiff=True) as tiff:
        for number, downsample in enumerate((1, 4, 16)):
            side = SIDE_PX // downsample
            tiff.write(
                tiles(side),
                shape=(side, side, 3),
                dtype=np.uint8,
                tile=(TILE_PX, TILE_PX),
                photometric="ycbcr",
                subsampling=(2, 2),
                compression="jpeg",
                subfiletype=0 if number == 0 else 1,
                resolution=(1e4 / 0.25, 1e4 / 0.25),
                resolutionunit="centimeter",
                metadata=None,
            )


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux, where a process tells its own peak")
def test_a_whole_episode_on_a_large_slide_stays_small_and_reads_each_tile_once(tmp_path: Path) -> None:
    build_tumour_cohort(tmp_path, [{"slide_id": "large"}])
    write_large_slide(tmp_path / "large.tiff")
    write_regions(tmp_path, "large", [box(20_000, 20_000, 30_000, 30_000)])
    done = subprocess.run([sys.executable, "-c", PLAY, str(tmp_path)], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["kept"] == [6, 18, 36]  # of 4 x 4 tiles of 16,384 px at 2.5x, 3 x 3 touch tissue
    assert found["most_reads"] == 1
    assert found["tiles_read"] == found["viewed"]
    assert found["peak_mib"] < 1024


@pytest.mark.realdata
def test_a_run_on_a_real_slide(shared_data: Path, tmp_path: Path) -> None:
    """CMU-1-Small-Region, scanned at 20x; the region is drawn here, around a gland."""
    cohort = tmp_path / "cohort"
    build_tumour_cohort(cohort, [{"slide_id": "cmu", "path": "cmu.svs"}])
    source = next((shared_data / "cmu-1-small-region").rglob("*.svs"), shared_data / "openslide_small.svs")
    (cohort / "cmu.svs").symlink_to(source)
    write_regions(cohort, "cmu", [Polygon([(300, 400), (900, 380), (1000, 900), (600, 1100), (280, 800)])])
    arguments = {"magnifications": [2.5, 10, 20], "tile_px": 128}
    policies = ("random", "stain-density", "oracle", "best-first:stain-density")
    summary = run(
        "evipath/exploration",
        policies=policies,
        out=tmp_path / "run",
        cohort=cohort,
        env_arguments=arguments,
        allow_outside=True,
    )
    assert (summary.played, summary.failed) == (4, 0)
    oracle = next(record for record in load_run(tmp_path / "run").records if record.policy == "oracle")
    assert oracle.metrics["retained_2.5x"] == oracle.metrics["positives_2.5x"] == 1
    assert oracle.metrics["retained_10x"] == 3
    assert oracle.metrics["retained_20x"] == 5  # of one parent only one child is positive
    assert oracle.score is not None
    assert oracle.score > 0.3
