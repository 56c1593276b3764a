"""Files into a cohort: matching by name, all or nothing, nothing overwritten, and the way back to QuPath."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from annotation_writer import BOW_TIE, HOLE, SQUARE, asap, asap_shapes, coco, geojson_features
from cohort_builder import build_cohort
from slides_builder import noise, write_slide

from wsigym.cohorts import Cohort
from wsigym.cohorts.export import export_qupath
from wsigym.cohorts.importers import import_annotations
from wsigym.cohorts.writing import box_feature
from wsigym.errors import AnnotationError, CohortError, InvalidArgumentError, UnknownNameError
from wsigym.slides import Box

GOOD = asap([(SQUARE, [HOLE])])


@pytest.fixture
def slides(tmp_path: Path) -> Path:
    """Three slides of 512 x 512 px, one of them in a folder below."""
    for name in ("tumor_001.tif", "normal_001.tif", "more/tumor_002.ome.tif"):
        path = tmp_path / "slides" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_slide(path, noise(512, 512, 0), downsamples=(1,))
    return tmp_path / "slides"


def write(folder: Path, **files: str) -> list[Path]:
    """Files by stem; the ending is xml."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{stem}.xml" for stem in files]
    for path, text in zip(paths, files.values(), strict=True):
        path.write_text(text)
    return paths


def test_a_cohort_is_made_of_the_slides_that_have_a_file(tmp_path: Path, slides: Path) -> None:
    files = write(tmp_path / "xml", tumor_002=GOOD, Tumor_001=GOOD, tumor_009=GOOD)
    report = import_annotations(files, "asap", tmp_path / "c", slides=slides)
    assert [(one.slide_id, one.count) for one in report.imports] == [("tumor_002", 1), ("tumor_001", 1)]
    assert report.unmatched == (str(files[2]),)
    assert report.without_file == ("normal_001",)
    assert set(report.added) == set(report.outside) == {"tumor_001", "tumor_002"}
    cohort = Cohort.load(tmp_path / "c", allow_outside=True)
    assert cohort.name == "c"
    assert [(region.name, region.area.area) for region in cohort.regions("tumor_001")] == [("tumour", 30000)]
    assert cohort.check_slides() == []
    assert sorted(path.name for path in (tmp_path / "c").rglob("*")) == [
        "cohort.json",
        "regions",
        "tumor_001.geojson",
        "tumor_002.geojson",
    ]


def test_slides_inside_the_cohort_have_relative_paths(tmp_path: Path, slides: Path) -> None:
    files = write(tmp_path / "xml", tumor_002=GOOD)
    report = import_annotations(files, "asap", tmp_path, slides=slides)
    assert report.outside == ()
    assert Cohort.load(tmp_path).slide("tumor_002").path == "slides/more/tumor_002.ome.tif"
    later = write(tmp_path / "xml", normal_001=asap([]))
    report = import_annotations(later, "asap", tmp_path, slides=slides)
    assert (report.added, report.without_file) == (("normal_001",), ("tumor_002", "tumor_001"))
    cohort = Cohort.load(tmp_path)
    assert [entry.slide_id for entry in cohort.slides] == ["tumor_002", "normal_001"]
    assert cohort.regions("normal_001") == []


def test_into_a_cohort_that_stands(tmp_path: Path) -> None:
    root = build_cohort(tmp_path / "c")
    manifest = (root / "cohort.json").read_bytes()
    report = import_annotations(
        write(tmp_path / "xml", s2=GOOD), "asap", root / "cohort.json", classes={"_0": "cancer"}
    )
    assert (report.added, report.without_file, report.warnings) == ((), ("s1",), ())
    assert [region.name for region in Cohort.load(root).regions("s2")] == ["cancer"]
    assert (root / "cohort.json").read_bytes() == manifest


def test_a_slide_of_the_cohort_under_another_id_is_not_added_again(tmp_path: Path) -> None:
    root = build_cohort(tmp_path / "c", slides=[{"slide_id": "case", "path": "./tumor_001.svs"}], nodes=(), paths=())
    (tmp_path / "link").symlink_to(root)
    report = import_annotations(write(tmp_path / "xml", tumor_001=GOOD), "asap", root, slides=tmp_path / "link")
    assert ([one.slide_id for one in report.imports], report.added) == (["case"], ())
    assert len(Cohort.load(root).slides) == 1


def test_slides_that_are_links_to_elsewhere_lie_outside(tmp_path: Path, slides: Path) -> None:
    """As with a folder of links to a disk of slides, in the cohort's folder."""
    disk = tmp_path / "c" / "slides"
    disk.mkdir(parents=True)
    for path in slides.rglob("*.*"):
        (disk / path.name).symlink_to(path.resolve())
    report = import_annotations(write(tmp_path / "xml", tumor_001=GOOD), "asap", tmp_path / "c", slides=disk)
    assert report.added == report.outside == ("tumor_001",)
    with pytest.raises(CohortError, match="by a link"):
        Cohort.load(tmp_path / "c")
    assert Cohort.load(tmp_path / "c", allow_outside=True).slides[0].path.startswith("slides/")


def test_nothing_is_overwritten_unless_asked(tmp_path: Path) -> None:
    root = build_cohort(tmp_path / "c")
    import_annotations(write(tmp_path / "xml", s2=GOOD), "asap", root)
    before = (root / "regions/s2.geojson").read_bytes()
    again = write(tmp_path / "xml", s1=GOOD, s2=asap([]))
    with pytest.raises(InvalidArgumentError, match=r"regions/s2\.geojson already"):
        import_annotations(again, "asap", root)
    assert (root / "regions/s2.geojson").read_bytes() == before
    assert not (root / "regions/s1.geojson").exists()
    import_annotations(again, "asap", root, replace=True)
    assert Cohort.load(root).regions("s2") == []


def test_one_broken_file_and_nothing_is_written(tmp_path: Path, slides: Path) -> None:
    files = write(tmp_path / "xml", tumor_001=GOOD, tumor_002=GOOD[:90], normal_001="<foo/>")
    with pytest.raises(AnnotationError) as caught:
        import_annotations(files, "asap", tmp_path / "c", slides=slides)
    assert all(str(path) in str(caught.value) for path in files[1:])
    assert not (tmp_path / "c").exists()


def test_areas_are_clipped_to_their_slide_and_warnings_reported(tmp_path: Path, slides: Path) -> None:
    beyond = [(x + 400, y) for x, y in SQUARE]
    text = asap_shapes([("Polygon", "a", beyond), ("Polygon", "a", BOW_TIE), ("Dot", "a", SQUARE[:1])])
    seen: list[tuple[int, int]] = []
    report = import_annotations(
        write(tmp_path / "xml", tumor_001=text),
        "asap",
        tmp_path,
        slides=slides,
        progress=lambda done, asked: seen.append((done, asked)),
    )
    assert (report.imports[0].clipped, report.imports[0].left_out) == (1, {"Dot": 1})
    assert [region.area.area for region in Cohort.load(tmp_path).regions("tumor_001")] == [12 * 200, 20000]
    assert len(report.warnings) == 1
    assert seen == [(1, 1)]


def test_a_slide_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    root = build_cohort(tmp_path / "c", pixels=False)
    report = import_annotations(write(tmp_path / "xml", s1=GOOD), "asap", root)
    assert "s1: its size is not known" in report.warnings[0]


def test_coco_files_hold_many_slides(tmp_path: Path) -> None:
    root = build_cohort(tmp_path / "c")
    path = tmp_path / "all.json"
    path.write_text(coco([{"bbox": [1, 2, 3, 4], "image_id": 1}], ["s1.png", "s2.png", "s3.png"]))
    report = import_annotations([path], "coco", root)
    assert [(one.slide_id, one.count) for one in report.imports] == [("s1", 0), ("s2", 1)]
    assert report.unmatched == (f"{path} (s3)",)


def test_a_class_that_no_file_has(tmp_path: Path) -> None:
    root = build_cohort(tmp_path / "c")
    with pytest.raises(UnknownNameError, match=r"'_1'.*Known: _0, _2"):
        import_annotations(write(tmp_path / "xml", s1=GOOD), "asap", root, classes={"_1": "x"})
    with pytest.raises(InvalidArgumentError, match="mapped to nothing"):
        import_annotations(write(tmp_path / "xml", s1=GOOD), "asap", root, classes={"_0": " "})


def test_matching_that_cannot_be_decided(tmp_path: Path, slides: Path) -> None:
    write_slide(slides / "tumor_001.svs", noise(512, 512, 0), downsamples=(1,))
    files = write(tmp_path / "xml", tumor_001=GOOD)
    with pytest.raises(InvalidArgumentError, match="could be any of"):
        import_annotations(files, "asap", tmp_path / "c", slides=slides)
    named = tmp_path / "xml/tumor_001.svs.xml"
    named.write_text(GOOD)
    assert import_annotations([named], "asap", tmp_path / "c", slides=slides).imports[0].slide_id == "tumor_001"


def test_two_files_for_one_slide(tmp_path: Path) -> None:
    root = build_cohort(tmp_path / "c")
    files = write(tmp_path / "a", s1=GOOD) + write(tmp_path / "b", s1=GOOD)
    with pytest.raises(InvalidArgumentError, match="both for slide 's1'"):
        import_annotations(files, "asap", root)


@pytest.mark.parametrize("missing", ["slides", "match", "cohort"])
def test_nothing_to_import_into(tmp_path: Path, slides: Path, missing: str) -> None:
    files = write(tmp_path / "xml", other=GOOD)
    asked = {"slides": tmp_path / "xml", "match": slides, "cohort": None}[missing]
    message = {"slides": "holds no slide", "match": "no file matches", "cohort": "has no cohort.json"}[missing]
    with pytest.raises(InvalidArgumentError, match=message):
        import_annotations(files, "asap", tmp_path / "c", slides=asked)


class TestExport:
    def test_regions_come_back_the_same(self, tmp_path: Path) -> None:
        root = build_cohort(tmp_path / "c", nodes=(), paths=())
        import_annotations(write(tmp_path / "xml", s1=GOOD, s2=asap([])), "asap", root)
        before = Cohort.load(root).regions("s1")
        written = export_qupath(Cohort.load(root), tmp_path / "out")
        assert [path.relative_to(tmp_path / "out").as_posix() for path in written] == ["regions/s1.geojson"]
        import_annotations(written, "geojson", root, replace=True)
        assert Cohort.load(root).regions("s1") == before

    def test_rois(self, tmp_path: Path) -> None:
        cohort = Cohort.load(build_cohort(tmp_path / "c", nodes=(), paths=(), pixels=False))
        roi = box_feature(Box(1, 2, 3, 4), name="look", class_name="ROI", metadata={"step": "1"})
        (path,) = export_qupath(cohort, tmp_path / "out", rois={"s2": [roi]})
        (feature,) = json.loads(path.read_text())["features"]
        assert feature["geometry"]["coordinates"] == [[[1, 2], [4, 2], [4, 6], [1, 6], [1, 2]]]
        assert feature["properties"] == {
            "objectType": "annotation",
            "name": "look",
            "classification": {"name": "ROI"},
            "metadata": {"step": "1"},
        }
        with pytest.raises(UnknownNameError, match="s3"):
            export_qupath(cohort, tmp_path / "out2", rois={"s3": [roi]})

    def test_never_into_a_folder_that_holds_something(self, tmp_path: Path) -> None:
        cohort = Cohort.load(build_cohort(tmp_path / "c", pixels=False))
        export_qupath(cohort, tmp_path / "out")
        with pytest.raises(InvalidArgumentError, match="not empty"):
            export_qupath(cohort, tmp_path / "out")


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    from wsigym.cohorts.writing import write_text

    path = tmp_path / "a.json"
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "new \ud800")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("a.json", "old")]


def test_geojson_of_a_slide_named_with_its_ending(tmp_path: Path) -> None:
    root = build_cohort(tmp_path / "c")
    path = tmp_path / "s1.svs.geojson"
    path.write_text(geojson_features([{"type": "Polygon", "coordinates": [[*SQUARE, SQUARE[0]]]}]))
    assert import_annotations([path], "geojson", root).imports[0].slide_id == "s1"
