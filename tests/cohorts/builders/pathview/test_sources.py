"""Sources, labels and splits: what may be wrong is told with file and line, all of it; nothing is parted."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from cohort_builder import APERIO_40X, build_cohort
from hypothesis import given
from hypothesis import strategies as st
from pathview_builder import LABELS, boxes, build_sources, source
from PIL import Image
from slides_builder import write_slide

from wsigym.cohorts import Cohort, ImageSpec, load_items
from wsigym.cohorts.builders.pathview import build_pathview
from wsigym.cohorts.builders.pathview.sources import Picture
from wsigym.cohorts.builders.pathview.splits import split_pictures
from wsigym.cohorts.feature_files import load_features
from wsigym.errors import CohortError, InvalidArgumentError, WsigymError


def test_all_labels_without_a_standard_are_listed_and_nothing_is_written(tmp_path: Path) -> None:
    text = source("s") + source("t", annotations="pathview/more.csv")
    files = {
        "boxes.csv": boxes(("a", "T", 1, 1, 9, 9), ("a", "X", 1, 1, 9, 9), ("a", "Y", 5, 5, 5, 5)),
        "more.csv": boxes(("a", "Z", 1, 1, 9, 9), ("a", "X", 1, 1, 9, 9)),
    }
    build_sources(tmp_path, text, files)
    with pytest.raises(CohortError) as caught:
        build_pathview(Cohort.load(tmp_path))
    assert [fault.message.split(" is in")[0] for fault in caught.value.faults] == [
        "raw label 'X' of source s, t", "raw label 'Y' of source s", "raw label 'Z' of source t",
    ]  # fmt: skip
    assert {fault.file for fault in caught.value.faults} == {"pathview/labels.toml"}
    assert Cohort.faults_of(tmp_path) == list(caught.value.faults)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.parent.name != "pathview"] == [
        tmp_path / "cohort.json"
    ]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("", "standard: is missing"),
        ("[standard]\n", "at least one standard label"),
        (LABELS + '[standard.x]\nkind = "organ"\n', "standard.x.kind"),
        (LABELS + '[standard.x]\nkind = "cell"\nraw = ["T"]\n', r"toml:\d+: standard.x.raw: 'T' is mapped to 'tumour"),
        (LABELS + '[standard.x]\nkind = "cell"\naliases = ["Lymphocyte"]\n', "'Lymphocyte' is a word for 'lymphocyte'"),
        (LABELS + "[standard.x\n", "not TOML"),
        (LABELS + '[standard.x]\nkind = "cell"\ncolour = "red"\n', "standard.x.colour: no such field"),
    ],
)  # fmt: skip
def test_faults_of_labels(tmp_path: Path, labels: str, words: str) -> None:
    build_sources(tmp_path, source(), {"boxes.csv": boxes()}, labels=labels)
    with pytest.raises(CohortError, match=words):
        build_pathview(Cohort.load(tmp_path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (source(form="yolo"), r"source.0.format"),
        (source(view="cell"), r"source.0.view"),
        (source(annotations=None), "annotations: is missing; format 'csv' needs it"),
        (source(images=None), "a source of regions says which they are"),
        (source() + source(), "'s' is the name of an earlier source"),
        (source(annotations="pathview/none*.csv"), "no file matches annotations 'pathview/none"),
        (source(images="pathview/none*.png"), "no file matches images"),
        (source(images="../*.png"), "stays inside"),
        (source(colour="red"), "source.0.colour: no such field"),
    ],
)
def test_faults_of_sources(tmp_path: Path, text: str, words: str) -> None:
    build_sources(tmp_path, text, {"boxes.csv": boxes(("a", "T", 1, 1, 9, 9))})
    with pytest.raises(CohortError, match=words):
        build_pathview(Cohort.load(tmp_path))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("image,where\na,b\n", "images.csv:1: has the columns image, where"),
        ("file\npathview/a.png\n", "images.csv:1: .*'image' is needed"),
        (
            "image,file\na,pathview/none.png\n",
            "images.csv:2: file: 'pathview/none.png' cannot be read as an image .No such file",
        ),
        ("image,file\na\n", "images.csv:2: has another number of cells"),
        ("image,file,magnification\na,pathview/a.png,fast\n", "images.csv:2: magnification: is 'fast'"),
        ("image,file,magnification\na,pathview/a.png,999\n", "images.csv:2: magnification: is 999; above 0 to 200"),
        ("image,file,magnification\na,pathview/a.png,0\n", "images.csv:2: magnification: is 0; above 0 to 200"),
        ("image,file,magnification\na,pathview/a.png,nan\n", "images.csv:2: magnification: is 'nan'"),
        ("image,file\na,pathview/a.png\na,pathview/a.png\n", "images.csv:3: image: 'a' is the name of another image"),
        ("image,file\n,pathview/a.png\n", "images.csv:2: image: the image has no name"),
        ("image,organ\na,liver\n", "images.csv:2: file: the image has neither a file nor a slide_id"),
        ("image,slide_id\na,s9\n", "images.csv:2: slide_id: unknown slide 's9'"),
        ("image,file\na,../a.png\n", "images.csv:2: file: .*stays inside"),
        (
            "image,file\na,pathview/broken.png\n",
            "images.csv:2: file: 'pathview/broken.png' cannot be read as an image .of no known",
        ),
    ],
)
def test_faults_of_tables_of_images(tmp_path: Path, table: str, words: str) -> None:
    files = {"boxes.csv": boxes(("a", "T", 1, 1, 9, 9)), "images.csv": table, "broken.png": "no image"}
    build_sources(tmp_path, source(images="pathview/images.csv"), files)
    with pytest.raises(CohortError, match=words):
        build_pathview(Cohort.load(tmp_path))


def test_an_image_that_is_a_link_to_elsewhere_is_not_read(tmp_path: Path) -> None:
    files = {"boxes.csv": boxes(("a", "T", 1, 1, 9, 9)), "images.csv": "image,file\na,pathview/a.png\n"}
    folder = tmp_path / "cohort"
    build_sources(folder, source(images="pathview/images.csv"), files)
    (folder / "pathview/a.png").rename(tmp_path / "a.png")
    (folder / "pathview/a.png").symlink_to(tmp_path / "a.png")
    (fault,) = Cohort.faults_of(folder)
    assert (fault.file, fault.line, fault.field) == ("pathview/images.csv", 2, "file")
    assert "leaves the cohort's folder by a link" in fault.message
    assert Cohort.faults_of(folder, allow_outside=True) == []


def test_every_faulty_row_of_a_table_of_images_is_listed(tmp_path: Path) -> None:
    table = "image,file\na\na,pathview/a.png\nb,c,d\ne,pathview/none.png\n"
    build_sources(tmp_path, source(images="pathview/images.csv"), {"images.csv": table, "boxes.csv": boxes()})
    found = [fault.line for fault in Cohort.faults_of(tmp_path) if fault.file == "pathview/images.csv"]
    assert sorted(found, key=lambda line: line or 0) == [2, 4, 5]


def test_a_check_lists_the_faults_of_every_file(tmp_path: Path) -> None:
    text = source("s", images="pathview/images.csv") + source("t", annotations="pathview/more.csv")
    files = {
        "boxes.csv": "image,label,x1,y1,x2,y2\na,T,1,2,drei,4\n",
        "images.csv": "image,file\na,pathview/none.png\n",
        "more.csv": boxes(("a", "X", 1, 1, 9, 9)),
    }
    build_sources(tmp_path, text, files)
    told = [str(fault) for fault in Cohort.faults_of(tmp_path)]
    assert len(told) == 3
    assert told[0].startswith("pathview/images.csv:2: file: ")
    assert told[1] == "pathview/boxes.csv:2: x2: is 'drei'; a number is needed"
    assert told[2].startswith("pathview/labels.toml: standard: raw label 'X' of source t is")
    assert told[2].endswith("; first at pathview/more.csv:2")


def test_feature_files_go_with_the_item(tmp_path: Path) -> None:
    (tmp_path / "pathview").mkdir()
    np.save(tmp_path / "pathview" / "f.npy", np.ones((3, 4), np.float32))
    np.save(tmp_path / "pathview" / "xy.npy", np.ones((3, 2)))
    table = "image,file,features,coordinates\na,pathview/a.png,pathview/f.npy,pathview/xy.npy\n"
    files = {"boxes.csv": boxes(("a", "T", 1, 1, 9, 9)), "images.csv": table}
    build_sources(tmp_path, source(images="pathview/images.csv"), files)
    build_pathview(Cohort.load(tmp_path))
    cohort = Cohort.load(tmp_path)
    (asked,) = load_items(cohort, "pathview", "object-counting")
    assert asked.item.features is not None
    assert [array.shape for array in load_features(cohort, asked.item.features)] == [(3, 4), (3, 2)]


def test_without_sources_it_says_what_is_needed(tmp_path: Path) -> None:
    build_cohort(tmp_path, pixels=False)
    with pytest.raises(InvalidArgumentError, match=r"no pathview/sources.toml"):
        build_pathview(Cohort.load(tmp_path))


def test_parts_of_slides_and_macro_views(tmp_path: Path) -> None:
    build_cohort(
        tmp_path, slides=[{"slide_id": "s1", "patient_id": "p", "organ": "liver", "split": "val"}, {"slide_id": "s2"}]
    )
    table = "image,slide_id,x,y,width,height,magnification\nf,s1,100,100,400,200,20\n"
    text = source("f", images="pathview/images.csv") + source(
        "w", "slide", "csv", images=None, annotations="pathview/lesions.csv"
    )
    files = {
        "images.csv": table,
        "boxes.csv": boxes(
            ("s1", "T", 140, 120, 180, 140), ("s1", "L", 900, 900, 950, 950), ("s1", "T", 60, 110, 120, 190)
        ),
        "lesions.csv": boxes(("s1", "lesion", 0, 0, 512, 1024), ("s1", "T", 5, 5, 900, 900)),
    }
    build_sources(tmp_path, text, files)
    done = build_pathview(Cohort.load(tmp_path))
    cohort = Cohort.load(tmp_path)
    (asked,) = load_items(cohort, "pathview", "object-grounding")
    assert asked.reference.answer == [[100, 100, 200, 200]]  # of the two others one lies elsewhere, one mostly outside
    assert asked.item.split == "val"
    assert asked.item.group == {"patient": "p", "slide": "s1", "source": "f"}
    (lesion,) = load_items(cohort, "pathview", "lesion-grounding")
    assert lesion.reference.answer == [[0, 0, 250, 500]]
    assert lesion.item.images[0].magnification == 2.5
    assert done.dropped[""] == {
        "more than half of it is outside of the view": 1, "a cell is not observable on a macro view": 1,
    }  # fmt: skip
    trap = load_items(cohort, "pathview", "slide-trap")
    assert {each.item.options[each.reference.answer] for each in trap} == {"Insufficient information"}


def pink(folder: Path) -> None:
    """A cohort with a slide that is all tissue but its lower quarter."""
    build_cohort(folder, slides=[{"slide_id": "s1"}], pixels=False)
    pixels = np.full((2048, 2048, 3), (220, 120, 170), np.uint8)
    pixels[1536:] = 255
    write_slide(folder / "s1.svs", pixels, tile_px=256, aperio=APERIO_40X)


def test_area_is_a_share_of_tissue(tmp_path: Path) -> None:
    """A polygon over the left 40 %, with a hole over half of its tissue, leaves 20 %."""
    pink(tmp_path)
    rings = [
        [[0, 0], [819, 0], [819, 2048], [0, 2048], [0, 0]],
        [[200, 0], [610, 0], [610, 1536], [200, 1536], [200, 0]],
    ]
    geometry = {"type": "Polygon", "coordinates": rings}
    feature = {"type": "Feature", "geometry": geometry, "properties": {"classification": {"name": "lesion"}}}
    files = {"s1.geojson": json.dumps({"type": "FeatureCollection", "features": [feature]})}
    build_sources(tmp_path, source("w", "slide", "geojson", images=None, annotations="pathview/*.geojson"), files)
    build_pathview(Cohort.load(tmp_path))
    (asked,) = load_items(Cohort.load(tmp_path), "pathview", "area-estimation")
    assert asked.reference.provenance["fraction"] == pytest.approx(0.2, abs=0.01)
    assert asked.item.options[asked.reference.answer] == "0%-25%"


def test_what_is_transparent_is_no_tissue(tmp_path: Path) -> None:
    """A view whose right half is pink under alpha 0; the lesion is on half of what is left."""
    build_cohort(tmp_path, slides=[], pixels=False)
    pixels = np.full((256, 256, 4), (220, 120, 170, 255), np.uint8)
    pixels[:, 128:, 3] = 0
    pixels[192:] = 255
    mask = np.zeros((256, 256), np.uint8)
    mask[:150, :128] = 1
    text = source("w", "slide", "semantic", annotations="pathview/*.npy", classes={"1": "lesion"})
    build_sources(tmp_path, text, images=())
    np.save(tmp_path / "pathview" / "a.npy", mask)
    Image.fromarray(pixels).save(tmp_path / "pathview" / "a.png")
    build_pathview(Cohort.load(tmp_path), ["area-estimation"])
    (asked,) = load_items(Cohort.load(tmp_path), "pathview", "area-estimation")
    assert asked.reference.provenance["fraction"] == pytest.approx(150 / 192, abs=0.01)


@pytest.mark.parametrize(("right", "asked"), [(512 + 30, False), (512 - 30, False), (700, True)])
def test_a_borderline_area_is_not_asked(tmp_path: Path, right: int, asked: bool) -> None:
    pink(tmp_path)
    (tmp_path / "pathview").mkdir()
    mask = np.zeros((256, 256), np.uint8)
    mask[:, : right // 8] = 1
    np.save(tmp_path / "pathview" / "s1.npy", mask)
    text = source("w", "slide", "semantic", images=None, annotations="pathview/*.npy", classes={"1": "lesion"})
    build_sources(tmp_path, text)
    done = build_pathview(Cohort.load(tmp_path))
    assert bool(done.items["area-estimation"]) == asked
    assert any("borderline" in reason for reason in done.dropped["area-estimation"]) != asked


def test_count_and_area_have_to_agree(tmp_path: Path) -> None:
    build_cohort(tmp_path, slides=[{"slide_id": "s1"}])
    rows = [
        ("s1", "lesion", 0, 0, 100, 100),
        ("s1", "lesion", 200, 200, 300, 300),
        ("s1", "lesion", 1100, 1100, 1900, 1900),
    ]
    build_sources(tmp_path, source("w", "slide", images=None), {"boxes.csv": boxes(*rows)})
    done = build_pathview(Cohort.load(tmp_path))
    assert done.dropped["slide-density-localization"] == {"not unique: count and area name different quadrants": 1}


def test_two_splits_of_one_patient_are_refused(tmp_path: Path) -> None:
    slides = [
        {"slide_id": "s1", "patient_id": "p", "split": "val"},
        {"slide_id": "s2", "patient_id": "p", "split": "test"},
    ]
    build_cohort(tmp_path, slides=slides)
    build_sources(tmp_path, source("w", "slide", images=None), {"boxes.csv": boxes(("s1", "lesion", 0, 0, 99, 99))})
    with pytest.raises(WsigymError, match="'s2' is in split 'test', but shares a patient"):
        build_pathview(Cohort.load(tmp_path))


PICTURES = st.lists(
    st.tuples(
        st.sampled_from("xy"),
        st.integers(0, 30),
        st.sampled_from([None, *"abcdefgh"]),
        st.sampled_from([None, *"ABCDEFGH"]),
    ),
    max_size=40,
)


@given(PICTURES, st.integers(0, 3))
def test_nothing_that_belongs_together_is_parted(
    rows: list[tuple[str, int, str | None, str | None]], seed: int
) -> None:
    pictures = [
        Picture(
            name=str(number),
            source=name,
            view="region",
            image=ImageSpec(file=f"{file}.png"),
            box=(0, 0, 1, 1),
            frame=(1, 1),
            annotated_as=("",),
            groups={kind: value for kind, value in (("patient", patient), ("slide", slide)) if value is not None},
        )
        for number, (name, file, patient, slide) in enumerate(rows)
    ]
    splits = split_pictures(pictures, seed)
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for picture, split in zip(pictures, splits, strict=True):
        for key in picture.keys:
            found[key].add(split)
    assert all(len(names) == 1 for names in found.values())
    # The order of rows decides nothing.
    assert split_pictures(pictures[::-1], seed) == splits[::-1]


@pytest.mark.parametrize(("count", "expected"), [(100, (70, 10, 20)), (10, (7, 1, 2)), (3, (1, 1, 1)), (1, (1, 0, 0))])
def test_seven_one_two(count: int, expected: tuple[int, int, int]) -> None:
    pictures = [
        Picture(str(n), "s", "region", ImageSpec(file=f"{n}.png"), (0, 0, 1, 1), (1, 1), ("",), {"patient": str(n)})
        for n in range(count)
    ]
    counts = Counter(split_pictures(pictures, 0))
    assert (counts["train"], counts["val"], counts["test"]) == expected
