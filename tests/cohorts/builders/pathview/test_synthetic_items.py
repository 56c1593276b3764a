"""The synthetic cohort's fields and items: the nuclei lie where they are said to lie, and every task has items."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from wsigym.cohorts import Cohort, load_items
from wsigym.cohorts.builders.pathview import TASKS, build_pathview
from wsigym.cohorts.synthetic import make_synthetic_cohort
from wsigym.slides import Box, haematoxylin_of

SLIDES = 3


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three slides of three patients. Not to be written to."""
    return make_synthetic_cohort(tmp_path_factory.mktemp("synthetic") / "c", slides=SLIDES, size_px=2048, jobs=1)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_every_task_has_items_of_known_splits(small: Path) -> None:
    cohort = Cohort.load(small)
    split_of = {entry.slide_id: entry.split for entry in cohort.slides}
    for rule in TASKS:
        asked = load_items(cohort, "pathview", rule.name)
        assert asked
        assert all(each.item.split == split_of[each.item.group["slide"]] for each in asked)
    assert Cohort.faults_of(small) == []


def test_nuclei_are_darker_than_what_lies_around_them(small: Path) -> None:
    cohort = Cohort.load(small)
    inside, around = [], []
    for entry in cohort.slides:
        slide = cohort.open(entry.slide_id)
        whole = haematoxylin_of(slide.read(slide.box, (slide.width, slide.height)))
        found = np.zeros(whole.shape, bool)
        for row in rows(small / "pathview" / "nuclei" / f"{entry.slide_id}.csv"):
            x, y, width, height = (int(row[side]) for side in ("x", "y", "width", "height"))
            assert slide.box.contains(Box(x, y, width, height))
            found[y : y + height, x : x + width] = True
        for row in rows(small / "pathview" / "fields" / f"{entry.slide_id}.csv"):
            x, y = int(row["x"]), int(row["y"])
            part = (slice(y, y + 512), slice(x, x + 512))
            inside.append(whole[part][found[part]])
            around.append(whole[part][~found[part]])
    assert np.concatenate(inside).mean() > 2 * np.concatenate(around).mean()


def test_fields_do_not_overlap(small: Path) -> None:
    for path in (small / "pathview" / "fields").iterdir():
        corners = [(int(row["x"]), int(row["y"])) for row in rows(path)]
        assert len(corners) >= 3
        for place, (x, y) in enumerate(corners):
            assert all(max(abs(x - left), abs(y - top)) >= 512 for left, top in corners[:place])


def test_items_are_those_of_the_command(small: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in (small / "items" / "pathview").iterdir()}
    build_pathview(Cohort.load(small))
    assert {path.name: path.read_bytes() for path in (small / "items" / "pathview").iterdir()} == before


BIG = """
import re, sys
from pathlib import Path
from wsigym.cohorts import Cohort
from wsigym.cohorts.builders.pathview import build_pathview
def peak_kb():  # of this process alone: ru_maxrss begins with what its parent had reached
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

cohort = Cohort.load(sys.argv[1])
build_pathview(Cohort.load(sys.argv[2]))  # what is loaded once
before = peak_kb()
built = build_pathview(cohort)
print(built.annotations, sum(built.items.values()), peak_kb() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
def test_many_annotations_take_little_memory(tmp_path: Path) -> None:
    """60,000 boxes on 500 images, 3,500 items: the columns take 2 MB, and nothing else may grow with them."""
    from pathview_builder import boxes, build_sources, source

    rng = np.random.default_rng(0)
    for name, images in (("big", 500), ("warm", 2)):
        corners = rng.integers(0, 170, (images * 120, 2)).tolist()
        cells = [(f"i{n // 120}", "TL"[n % 3 // 2], x, y, x + 9, y + 9) for n, (x, y) in enumerate(corners)]
        table = "image,file,patient\n" + "".join(f"i{n},pathview/a.png,p{n}\n" for n in range(images))
        files = {"images.csv": table, "boxes.csv": boxes(*cells)}
        build_sources(tmp_path / name, source(images="pathview/images.csv"), files)
    command = [sys.executable, "-c", BIG, str(tmp_path / "big"), str(tmp_path / "warm")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    annotations, items, grown_kb = map(int, done.stdout.split())
    assert annotations == 60_000
    assert items > 3000
    assert grown_kb < 30_000
