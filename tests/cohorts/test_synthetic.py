"""The synthetic cohort: same seed same bytes, valid trees, slides that both libraries open, nothing half-made."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import openslide
import pytest
import shapely
import tiffslide
from shapely.geometry import shape

from wsigym.cohorts.cohort import Cohort
from wsigym.cohorts.queries import localization_queries
from wsigym.cohorts.synthetic import build, cached_cohort, default_cohort, make_synthetic_cohort
from wsigym.cohorts.synthetic.entities import CATEGORIES
from wsigym.cohorts.synthetic.findings import Wording
from wsigym.cohorts.synthetic.organs import ORGANS
from wsigym.cohorts.synthetic.slide import Annotations, draw_slide, source_of
from wsigym.errors import InvalidArgumentError, WsigymError
from wsigym.slides import haematoxylin_of

SIZE = 2048


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three small slides, made in this process. Not to be written to."""
    return make_synthetic_cohort(tmp_path_factory.mktemp("synthetic") / "small", slides=3, size_px=SIZE, jobs=1)


@pytest.fixture(scope="module")
def drawn() -> list[Annotations]:
    """What is annotated on 24 slides, without their pixels."""
    return [draw_slide(source_of(3, index), 3, SIZE)[1] for index in range(24)]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def thumbnail(path: Path) -> np.ndarray:
    with openslide.OpenSlide(str(path)) as slide:
        return np.asarray(slide.read_region((0, 0), 2, slide.level_dimensions[2]).convert("RGB"))


# Determinism ---------------------------------------------------------------------------------------------------------


def test_same_seed_gives_the_same_bytes_in_other_processes_and_for_more_slides(small: Path, tmp_path: Path) -> None:
    made = files(make_synthetic_cohort(tmp_path / "more", slides=4, size_px=SIZE, jobs=2))
    for name, content in files(small).items():
        if name.startswith(("slides/", "regions/")):
            assert made[name] == content, name
        elif name in ("nodes.jsonl", "paths.jsonl"):
            assert made[name].startswith(content), name
    few = json.loads((small / "cohort.json").read_text())["slides"]
    assert json.loads(made["cohort.json"])["slides"][:3] == few


def test_another_seed_gives_other_pixels_and_boxes(small: Path, tmp_path: Path) -> None:
    other = make_synthetic_cohort(tmp_path / "other", slides=1, seed=1, size_px=SIZE, jobs=1)
    assert not np.array_equal(thumbnail(other / "slides/S0001.tif"), thumbnail(small / "slides/S0001.tif"))
    first = [node for node in lines(small / "nodes.jsonl") if node["slide_id"] == "S0001"]
    assert [node["box"] for node in lines(other / "nodes.jsonl")] != [node["box"] for node in first]


# Slides --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["openslide", "tiffslide"])
def test_both_libraries_see_resolution_and_levels(small: Path, library: str) -> None:
    path = small / "slides/S0002.tif"
    slide = openslide.OpenSlide(str(path)) if library == "openslide" else tiffslide.TiffSlide(path)
    with slide:
        assert slide.level_dimensions == ((SIZE, SIZE), (SIZE // 4, SIZE // 4), (SIZE // 16, SIZE // 16))
        assert slide.level_downsamples == (1, 4, 16)
        assert float(slide.properties[f"{library}.mpp-x"]) == 0.25
        assert float(slide.properties[f"{library}.mpp-y"]) == 0.25
        assert float(slide.properties[f"{library}.objective-power"]) == 40
        assert "thumbnail" in slide.associated_images
        tiled = [slide.properties[f"{library}.level[{level}].tile-width"] for level in range(3)]
        assert [int(width) for width in tiled] == [256, 256, 256]


def test_both_libraries_read_the_same_pixels(small: Path) -> None:
    path = small / "slides/S0001.tif"
    with openslide.OpenSlide(str(path)) as first, tiffslide.TiffSlide(path) as second:
        one = np.asarray(first.read_region((512, 512), 0, (512, 512)).convert("RGB"))
        other = np.asarray(second.read_region((512, 512), 0, (512, 512)).convert("RGB"))
    np.testing.assert_array_equal(one, other)


def test_levels_show_the_same_tissue(small: Path) -> None:
    with openslide.OpenSlide(str(small / "slides/S0001.tif")) as slide:
        images = [np.asarray(slide.read_region((0, 0), n, slide.level_dimensions[n]).convert("RGB")) for n in range(3)]
    for level, factor in ((1, 4), (2, 16)):
        side = SIZE // factor
        mean = images[0].reshape(side, factor, side, factor, 3).mean((1, 3))
        assert np.abs(mean.mean(2) - images[level].mean(2)).mean() < 5


def test_a_side_that_is_no_multiple_of_a_block(tmp_path: Path) -> None:
    cohort = make_synthetic_cohort(tmp_path / "odd", slides=1, size_px=2304, jobs=1)
    with openslide.OpenSlide(str(cohort / "slides/S0001.tif")) as slide:
        assert slide.level_dimensions == ((2304, 2304), (576, 576), (144, 144))
        assert np.asarray(slide.read_region((2048, 0), 0, (256, 2304)).convert("RGB")).min() > 0


def test_about_half_of_a_slide_is_tissue_on_near_white_glass(small: Path) -> None:
    for path in sorted((small / "slides").iterdir()):
        image = thumbnail(path).astype(int)
        tissue = np.ptp(image, 2) > 20
        assert 0.2 < tissue.mean() < 0.85
        rim = np.concatenate([image[:2].ravel(), image[-2:].ravel(), image[:, :2].ravel(), image[:, -2:].ravel()])
        assert np.median(rim) > 235
        assert (rim > 210).mean() > 0.9  # a pen may reach it


def test_blocks_meet_without_seams(small: Path) -> None:
    """Columns on both sides of a block's edge differ no more than those at a tile's edge inside a block."""
    with openslide.OpenSlide(str(small / "slides/S0001.tif")) as slide:
        strip = np.asarray(slide.read_region((0, 0), 0, (SIZE, SIZE)).convert("RGB")).astype(int)
    steps = np.abs(np.diff(strip, axis=1)).mean((0, 2))
    inside = (steps[255] + steps[511] + steps[767] + steps[1279]) / 4
    assert steps[1023] < 1.5 * inside


def test_evidence_is_denser_in_nuclei_than_the_slide(small: Path) -> None:
    """The signal that a good policy can find: more haematoxylin in 40x boxes than in the tissue at large."""
    gains = []
    for node in lines(small / "nodes.jsonl"):
        if node["magnification"] == 40:
            path = small / f"slides/{node['slide_id']}.tif"
            x, y, width, height = node["box"]
            with openslide.OpenSlide(str(path)) as slide:
                here = np.asarray(slide.read_region((x, y), 0, (width, height)).convert("RGB"))
            whole = thumbnail(path)
            tissue = np.ptp(whole.astype(int), 2) > 20
            gains.append(haematoxylin_of(here).mean() / haematoxylin_of(whole)[tissue].mean())
    assert np.median(gains) > 1.5


# Annotations ---------------------------------------------------------------------------------------------------------


def test_the_loader_finds_no_fault(small: Path) -> None:
    cohort = Cohort.load(small)
    assert cohort.check_slides() == []
    assert len(cohort.slides) == 3
    assert len(list(localization_queries(cohort, None))) > 0


def test_trees_are_nested_and_two_to_four_paths_lead_down(drawn: list[Annotations]) -> None:
    for made in drawn:
        nodes = {node["node_id"]: node for node in made.nodes}
        assert len(nodes) == len(made.nodes)
        for node in nodes.values():
            x, y, width, height = node["box"]
            assert width > 40
            assert height > 40
            assert 0.55 < width / height < 1.75
            parent = nodes.get(node["parent_id"])
            left, top, w, h = parent["box"] if parent else (0, 0, SIZE, SIZE)
            assert left <= x
            assert top <= y
            assert x + width <= left + w
            assert y + height <= top + h
            assert (node["magnification"] == 2.5) == (parent is None)
        assert 2 <= len(made.paths) <= 4
        on_paths = set()
        for path in made.paths:
            low, mid, high = path["node_ids"]
            assert [nodes[i]["magnification"] for i in (low, mid, high)] == [2.5, 10, 40]
            assert nodes[mid]["parent_id"] == low
            assert nodes[high]["parent_id"] == mid
            on_paths.update(path["node_ids"])
            assert path["category"] in CATEGORIES
            assert set(path["details"]) == {"subtype", "invasion", "grade", "marker", "morphology"}
        assert on_paths == set(nodes)
        assert len({path["path_id"] for path in made.paths}) == len(made.paths)


def test_one_sentence_names_one_kind_of_place(drawn: list[Annotations]) -> None:
    """Places of a slide share a sentence only within one search box and diagnosis; some queries have several boxes."""
    several: Counter[float] = Counter()
    for made in drawn:
        by_finding: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for node in made.nodes:
            by_finding[node["finding"]].append(node)
        for same in by_finding.values():
            assert len({(node["magnification"], node["parent_id"]) for node in same}) == 1
            several[same[0]["magnification"]] += len(same) > 1
    assert several[40] >= 3
    assert several[10] >= 1
    assert several[2.5] == 0


def test_wording_never_repeats_itself() -> None:
    wording = Wording(np.random.default_rng(0))
    said = [wording.choose(["Dark nest", "Pale nest"], 400) for _ in range(5)]
    assert set(said[:2]) == {"Dark nest", "Pale nest"}
    assert said[2].endswith("nest, about 100 um wide")  # 400 px of 0.25 um
    assert len(set(said)) == 5


def test_sentences_vary(drawn: list[Annotations]) -> None:
    for magnification in (2.5, 10, 40):
        said = [text for a in drawn for text in {n["finding"] for n in a.nodes if n["magnification"] == magnification}]
        assert len(set(said)) > 0.6 * len(said)


def test_tumour_regions_are_valid_and_hold_the_tumour(drawn: list[Annotations]) -> None:
    benign = 0
    for made in drawn:
        areas = [(shape(f["geometry"]), f["properties"]["classification"]["name"]) for f in made.regions["features"]]
        slide = shapely.box(0, 0, SIZE, SIZE)
        assert all(area.is_valid and area.area > 0 and slide.contains(area) for area, _ in areas)
        tumours = [area for area, name in areas if name == "tumour"]
        assert {name for _, name in areas} <= {"tumour", "lymphoid aggregate"}
        roots = {path["node_ids"][0] for path in made.paths if path["category"] in {"malignant", "in situ"}}
        assert len(tumours) == len(roots)
        benign += not tumours
        for node in made.nodes:
            if node["node_id"] in roots:
                x, y, width, height = node["box"]
                box = shapely.box(x, y, x + width, y + height)
                assert any(box.contains(area) and area.area > 0.5 * box.area for area in tumours)
    assert benign > 0


# Patients ------------------------------------------------------------------------------------------------------------


def test_patients_have_one_to_three_slides_and_one_split() -> None:
    sources = [source_of(0, index) for index in range(120)]
    assert [source.slide_id for source in sources[:2]] == ["S0001", "S0002"]
    slides = Counter(source.patient_id for source in sources)
    assert set(list(slides.values())[:-1]) == {1, 2, 3}
    for field in ("split", "organ"):
        of_patient = defaultdict(set)
        for source in sources:
            of_patient[source.patient_id].add(getattr(source, field))
        assert all(len(values) == 1 for values in of_patient.values())
    splits = {source.patient_id: source.split for source in sources}
    assert set(list(splits.values())[:3]) == {"train", "val", "test"}
    assert Counter(splits.values()).most_common(1)[0][0] == "train"
    assert {source.organ for source in sources} == set(ORGANS)
    assert len({source.organ for source in sources[:12]}) >= 5
    for seed in range(20):
        assert {source_of(seed, index).split for index in range(6)} == {"train", "val", "test"}
    assert {source.category for source in sources} == set(CATEGORIES)


# Making --------------------------------------------------------------------------------------------------------------


def test_progress_counts_slides(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    make_synthetic_cohort(tmp_path / "c", slides=2, size_px=SIZE, jobs=2, progress=lambda *now: seen.append(now))
    assert seen == [(1, 2), (2, 2)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_build_leaves_nothing(tmp_path: Path, jobs: int) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_synthetic_cohort(tmp_path / "c", slides=3, size_px=SIZE, jobs=jobs, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_build_leaves_one_hidden_folder_that_the_next_removes(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from wsigym.cohorts.synthetic import make_synthetic_cohort; "
        f"make_synthetic_cohort(Path({str(tmp_path / 'c')!r}), slides=50, size_px=2048, jobs=1, "
        "progress=lambda d, t: print(d, flush=True))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "1\n"
        with pytest.raises(InvalidArgumentError, match="being built by another process"):
            make_synthetic_cohort(tmp_path / "c", slides=1, size_px=SIZE, jobs=1)
        child.send_signal(signal.SIGKILL)
    assert [path.name for path in tmp_path.iterdir()] == [".c.building"]
    make_synthetic_cohort(tmp_path / "c", slides=1, size_px=SIZE, jobs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_a_worker_ends_when_its_parent_dies(tmp_path: Path) -> None:
    """Slides of a killed build stop being written: the hidden folder no longer grows."""
    code = (
        "from pathlib import Path; from wsigym.cohorts.synthetic import make_synthetic_cohort; "
        f"make_synthetic_cohort(Path({str(tmp_path / 'c')!r}), slides=8, size_px=8192, jobs=2)"
    )
    slides = tmp_path / ".c.building/c/slides"
    with subprocess.Popen([sys.executable, "-c", code]) as child:
        deadline = time.monotonic() + 60
        while not (slides.is_dir() and any(path.stat().st_size for path in slides.iterdir())):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        child.send_signal(signal.SIGKILL)
    before = -1
    while (now := sum(path.stat().st_size for path in slides.iterdir())) != before:
        assert time.monotonic() < deadline + 30
        before = now
        time.sleep(2)
    assert now < 2 * 6_000_000  # two whole slides are about 18 MB


def test_a_worker_that_fails_is_not_the_callers_fault() -> None:
    code = "import sys; input(); sys.exit('no space left on device')"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with child, pytest.raises(WsigymError, match="making slide 7 failed: no space left") as failure:
        build._ask(child, 7)
    assert not failure.value.bad_input


def test_a_script_without_a_main_guard_may_use_processes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\nfrom wsigym.cohorts.synthetic import make_synthetic_cohort\n"
        "print(make_synthetic_cohort(Path('c'), slides=2, size_px=2048, jobs=2))\n"
    )
    done = subprocess.run([sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("c\n", "")


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    assert (make_synthetic_cohort(tmp_path / "c", slides=1, size_px=SIZE, jobs=1) / "cohort.json").is_file()


def test_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(InvalidArgumentError, match="exists and is not an empty folder"):
        make_synthetic_cohort(tmp_path, slides=1, size_px=SIZE)
    with pytest.raises(InvalidArgumentError, match="mine exists"):
        make_synthetic_cohort(tmp_path / "mine", slides=1, size_px=SIZE)
    assert (tmp_path / "mine").read_text() == "precious"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"slides": 0}, "slides=0"),
        ({"slides": 10_000}, "slides=10000"),
        ({"seed": -1}, "seed=-1"),
        ({"size_px": 1024}, "size_px=1024"),
        ({"size_px": 8000}, "multiple of 256"),
        ({"size_px": 1_000_192}, "size_px=1000192"),
        ({"jobs": 0}, "jobs=0"),
    ],
)
def test_bad_numbers(tmp_path: Path, wrong: dict[str, int], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        make_synthetic_cohort(tmp_path / "c", **{"slides": 1, "size_px": SIZE, **wrong})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


# The cache -----------------------------------------------------------------------------------------------------------


def test_folders_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgumentError, match=r"cannot be made .*Name another folder"):
        make_synthetic_cohort(tmp_path / "file" / "cohort", slides=1)
    monkeypatch.setenv("WSIGYM_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(InvalidArgumentError, match=r"file cannot be written .*set WSIGYM_CACHE_DIR"):
        default_cohort()


def test_a_cached_cohort_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSIGYM_CACHE_DIR", str(tmp_path / "cache"))
    first = cached_cohort(slides=1, size_px=SIZE, jobs=1)
    assert first.parent == tmp_path / "cache"
    monkeypatch.setattr(build, "make_synthetic_cohort", None)
    assert cached_cohort(slides=1, size_px=SIZE) == first


def test_parameters_and_generator_name_the_cached_cohort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSIGYM_CACHE_DIR", str(tmp_path))
    made: list[dict[str, Any]] = []

    def make(out: Path, **how: Any) -> None:
        made.append(how)

    monkeypatch.setattr(build, "make_synthetic_cohort", make)
    names = {default_cohort(), cached_cohort(slides=12), cached_cohort(slides=12, seed=1)}
    monkeypatch.setattr(build, "FORMAT_VERSION", build.FORMAT_VERSION + 1)
    names.add(default_cohort())
    assert len(names) == 4
    assert [how["slides"] for how in made] == [6, 12, 12, 6]
    assert made[0]["size_px"] == 8192


def test_processes_that_ask_at_once_get_one_cohort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSIGYM_CACHE_DIR", str(tmp_path))
    code = (
        "from wsigym.cohorts.synthetic import cached_cohort; made = []; "
        "path = cached_cohort(slides=1, size_px=2048, jobs=1, progress=lambda *now: made.append(now)); "
        "print(path, len(made))"
    )
    children = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = sorted(child.communicate()[0].split()[1] for child in children)
    assert said == ["0", "1"]


# Full size -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux' /proc")
def test_a_slide_of_full_size(tmp_path: Path) -> None:
    """Box sides as documented, and the memory limit: at most 400 MB for one slide of 8,192 px."""
    code = (
        "from pathlib import Path; from wsigym.cohorts.synthetic import make_synthetic_cohort; "
        f"make_synthetic_cohort(Path({str(tmp_path / 'c')!r}), slides=1, jobs=1); "
        "print(*Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[:1])"  # kB, of this process alone
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 400_000
    sides = {2.5: (1500, 4200), 10: (600, 1400), 40: (200, 500)}
    for node in lines(tmp_path / "c/nodes.jsonl"):
        low, high = sides[node["magnification"]]
        assert low < min(node["box"][2:])
        assert max(node["box"][2:]) < high
