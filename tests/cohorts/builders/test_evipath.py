from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from cohort_builder import build_cohort

from wsigym.cohorts import Asked, Cohort, load_items
from wsigym.cohorts.builders import BUILDERS, Build, build_items
from wsigym.cohorts.builders.building import Evenly
from wsigym.cohorts.builders.evipath import CATEGORIES, category_of, without_prefix
from wsigym.cohorts.items import letter
from wsigym.errors import InvalidArgumentError, UnknownNameError
from wsigym.scoring.items import score_item

WORDS = ("ash", "birch", "cedar", "dogwood", "elm", "fir", "ginkgo", "hazel")
T1, T2, T4 = "evipath/interpretation", "evipath/verification", "evipath/integration"


def nodes() -> list[dict[str, Any]]:
    """On each of four slides two trees of three nodes; the findings of one magnification share no word."""
    made = []
    for slide in range(4):
        for tree in range(2):
            word, parent = WORDS[2 * slide + tree], None
            for level, magnification in enumerate((2.5, 10, 40)):
                node_id = f"zq{tree}{level}"
                box = [100 + 900 * tree + 10 * level, 100 + 10 * level, 800 - 30 * level, 700 - 30 * level]
                finding = f"{magnification:g}x: {word}{level}"
                made.append(
                    {
                        "slide_id": f"s{slide}",
                        "node_id": node_id,
                        "parent_id": parent,
                        "magnification": magnification,
                        "box": box,
                        "finding": finding,
                    }
                )
                parent = node_id
    return made


def paths() -> Iterable[dict[str, Any]]:
    diagnoses = ("Ductal carcinoma", "Lobular neoplasm in situ", "Benign naevus", "Chronic colitis")
    for slide in range(4):
        for tree in range(2):
            yield {
                "slide_id": f"s{slide}",
                "path_id": f"zqp{tree}",
                "node_ids": [f"zq{tree}{level}" for level in range(3)],
                "diagnosis": diagnoses[(slide + tree) % 4],
                "details": {"subtype": WORDS[(slide + tree) % 4], "grade": "high"},
            }


SLIDES = [{"slide_id": f"s{n}", "patient_id": f"p{n // 2}", "organ": "breast", "split": None} for n in range(4)]


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    folder = build_cohort(
        tmp_path_factory.mktemp("trees"), slides=SLIDES, nodes=nodes(), paths=list(paths()), pixels=True
    )
    loaded = Cohort.load(folder)
    for name in (T1, T2, T4):
        build_items(name, loaded, Build())
    return Cohort.load(folder)


def asked_of(cohort: Cohort, name: str) -> tuple[Asked, ...]:
    return load_items(cohort, *name.split("/"))


def test_every_finding_is_the_key_once_and_all_that_is_built_is_sound(cohort: Cohort) -> None:
    assert [len(asked_of(cohort, name)) for name in (T1, T2, T4)] == [24, 24, 24]
    assert Cohort.faults_of(cohort.root) == []
    for name in (T1, T2):
        keys = [each.reference.provenance["nodes"][each.reference.answer] for each in asked_of(cohort, name)]
        assert len({tuple(key) for key in keys}) == 24


def test_interpretation_asks_an_image_for_its_finding(cohort: Cohort) -> None:
    finding = {(node.slide_id, tuple(node.box.to_list())): node.finding for node in cohort.nodes}
    for item, reference in ((each.item, each.reference) for each in asked_of(cohort, T1)):
        (image,) = item.images
        assert image.box is not None
        shown = finding[str(image.slide_id), tuple(image.box.to_list())]
        assert item.options[reference.answer] == without_prefix(shown)
        assert all("x:" not in option for option in item.options)
        assert image.magnification == item.metadata.magnification
        levels = {option[-1] for option in item.options}
        assert len(levels) == 1  # all of one magnification
        assert item.text.splitlines()[1] == "Organ: breast."


def test_verification_mirrors_it_with_four_images(cohort: Cohort) -> None:
    finding = {(node.slide_id, tuple(node.box.to_list())): without_prefix(node.finding) for node in cohort.nodes}
    first = {each.item.item_id: each for each in asked_of(cohort, T1)}
    for item, reference in ((each.item, each.reference) for each in asked_of(cohort, T2)):
        assert item.options == ("Image 1", "Image 2", "Image 3", "Image 4")
        key = item.images[reference.answer]
        assert key.box is not None
        wanted = finding[str(key.slide_id), tuple(key.box.to_list())]
        assert f'"{wanted}"' in item.question
        paired = first[item.item_id]
        assert paired.item.options[paired.reference.answer] == wanted
        assert paired.item.set_id == item.set_id
        assert paired.item.images[0] == key


def test_integration_asks_three_questions_a_path_in_words_alone(cohort: Cohort) -> None:
    asked = asked_of(cohort, T4)
    assert Counter(each.reference.strata["type"] for each in asked) == {"diagnose": 8, "triage": 8, "refine": 8}
    path_of = {(path.slide_id, path.path_id): path for path in cohort.paths}
    for item, reference in ((each.item, each.reference) for each in asked):
        path = path_of[reference.provenance["slide"], reference.provenance["path"]]
        key = item.options[reference.answer]
        assert item.images == ()
        assert [finding.magnification for finding in item.findings] == [2.5, 10, 40]
        assert not any(finding.text.startswith(("2.5x", "10x", "40x")) for finding in item.findings)
        if reference.strata["type"] == "diagnose":
            assert key == path.diagnosis
        elif reference.strata["type"] == "triage":
            assert set(item.options) == set(CATEGORIES)
            assert key == CATEGORIES[("carcinoma", "situ", "naevus", "colitis").index(path.diagnosis.split()[-1])]
        else:
            assert key == path.details.subtype  # of grade there is one value only


def test_every_item_proves_itself(cohort: Cohort) -> None:
    for name in (T1, T2, T4):
        for each in asked_of(cohort, name):
            options, images = each.item.options, each.item.asks_for_image
            for place in range(4):
                score = score_item("option", letter(place), each.reference.answer, options=options, images=images)
                assert score.value == float(place == each.reference.answer)


def test_the_same_seed_builds_the_same_bytes_and_another_seed_others(cohort: Cohort) -> None:
    files = [cohort.root / "items" / "evipath" / f"{task}.jsonl" for task in ("interpretation", "integration")]
    before = [file.read_bytes() for file in files]
    try:
        for seed in (0, 1):
            build_items(T1, cohort, Build(seed=seed))
            build_items(T4, cohort, Build(seed=seed))
            assert ([file.read_bytes() for file in files] == before) is (seed == 0)
    finally:
        build_items(T1, cohort, Build())
        build_items(T4, cohort, Build())


def test_ids_tell_nothing(cohort: Cohort) -> None:
    for name in (T1, T2, T4):
        for each in asked_of(cohort, name):
            shown = each.item.model_dump_json(exclude={"images", "group"})
            for hidden in ("zq", "zqp", "s0", "s1", "s2", "s3", "p0", "p1"):
                assert f'"{hidden}' not in shown


def test_the_cell_decides_where_distractors_come_from(tmp_path: Path) -> None:
    slides = [
        {**slide, "organ": organ} for slide, organ in zip(SLIDES, ("breast", "lung", "breast", "lung"), strict=True)
    ]
    folder = build_cohort(tmp_path, slides=slides, nodes=nodes(), paths=list(paths()), pixels=False)
    cohort = Cohort.load(folder)
    organ_of = {entry.slide_id: entry.organ for entry in cohort.slides}

    def organs(build: Build) -> set[int]:
        asked = BUILDERS[T1](cohort, build).asked
        assert asked
        return {len({organ_of[slide] for slide, _ in each.reference.provenance["nodes"]}) for each in asked}

    assert organs(Build()) == {1}
    assert organs(Build(cell=("magnification",))) == {2}
    assert all(each.item.metadata.organ is None for each in BUILDERS[T1](cohort, Build(cell=("magnification",))).asked)
    with pytest.raises(UnknownNameError, match="stain"):
        Build(cell=("stain",))


@pytest.mark.parametrize("cell", [("magnification",), ("organ", "magnification")])
def test_no_set_mixes_splits_and_what_is_left_over_is_counted(tmp_path: Path, cell: tuple[str, ...]) -> None:
    """Of two slides each there are four findings a magnification in train and in test; of the fifth slide but two."""
    slides = [
        {**slide, "split": split} for slide, split in zip(SLIDES, ("train", "test", "train", "test"), strict=True)
    ]
    slides = [*({**slide, "patient_id": f"p{n}"} for n, slide in enumerate(slides))]
    slides.append({"slide_id": "s4", "patient_id": "p4", "organ": "breast", "split": "val"})
    more = [{**node, "slide_id": "s4"} for node in nodes() if node["slide_id"] == "s0"]
    moved = [{**path, "slide_id": "s4", "diagnosis": "Fibrosis"} for path in paths() if path["slide_id"] == "s0"]
    folder = build_cohort(tmp_path, slides=slides, nodes=[*nodes(), *more], paths=[*paths(), *moved], pixels=False)
    cohort = Cohort.load(folder)
    split_of = {entry.slide_id: entry.split for entry in cohort.slides}
    for task in (T1, T2):
        built = BUILDERS[task](cohort, Build(cell=cell))
        assert Counter(each.item.split for each in built.asked) == {"train": 12, "test": 12}
        for each in built.asked:
            assert {split_of[slide] for slide, _ in each.reference.provenance["nodes"]} == {each.item.split}
        assert +built.dropped == {"fewer than four findings in its cell and split": 6}
    for each in BUILDERS[T4](cohort, Build(cell=cell)).asked:
        assert "Fibrosis" not in each.item.options


def test_a_diagnosis_is_right_once_in_four_times_that_it_is_offered(tmp_path: Path) -> None:
    """So that no diagnosis is known for a distractor: of six here each stands in the same sets as key and beside it."""
    several = [
        {**path, "diagnosis": f"{WORDS[n % 6]} disease", "details": {"subtype": WORDS[n % 3 + 2 * (n % 2)]}}
        for n, path in enumerate(paths())
    ]
    folder = build_cohort(tmp_path, slides=SLIDES, nodes=nodes(), paths=several, pixels=False)
    built = BUILDERS[T4](Cohort.load(folder), Build(threshold=0.9))
    asked = [each for each in built.asked if each.reference.strata["type"] == "diagnose"]
    assert len(asked) >= 4
    offered = Counter(option for each in asked for option in each.item.options)
    right = Counter(each.item.options[each.reference.answer] for each in asked)
    assert offered == {text: 4 * count for text, count in right.items()}
    assert (
        len(asked) + built.dropped["diagnose: in no set of four diagnoses of the cell that are unlike each other"] == 8
    )


def test_of_paths_that_read_alike_one_is_asked_about_and_none_where_they_disagree(tmp_path: Path) -> None:
    original = list(paths())
    twin = {**original[0], "path_id": "twin"}
    rival = {**original[3], "path_id": "rival", "diagnosis": "Fibrosis"}
    folder = build_cohort(tmp_path, slides=SLIDES, nodes=nodes(), paths=[*original, twin, rival], pixels=False)
    built = BUILDERS[T4](Cohort.load(folder), Build())
    assert built.dropped["paths whose findings read as another's, which is kept"] == 1
    assert built.dropped["paths whose findings read as another's, which is not diagnosed the same"] == 2
    asked = {(each.reference.provenance["slide"], each.reference.provenance["path"]) for each in built.asked}
    assert asked == {(path["slide_id"], path["path_id"]) for path in original} - {("s1", "zqp1")}


def test_wrong_options_are_drawn_as_often_as_they_are_right() -> None:
    evenly, rights = Evenly(), ("a", "b", "a", "c", "d", "b", "e", "d") * 30
    wrong: Counter[str] = Counter()
    for right in rights:
        drawn = evenly.draw(right, [text for text in "fedcba" if text != right], 3)
        assert len(set(drawn)) == 3
        wrong.update(drawn)
    for text, count in Counter(rights).items():
        assert abs(wrong[text] - 3 * count) <= 3
    assert wrong["f"] <= 3  # never right
    assert Evenly().draw("a", ["b"], 3) == ["b"]


def test_too_few_findings_are_said_with_what_to_do(tmp_path: Path) -> None:
    folder = build_cohort(tmp_path, pixels=False, paths=[])
    for name, said in ((T1, "--cell"), (T2, "--cell"), (T4, "paths.jsonl")):
        with pytest.raises(InvalidArgumentError, match=said):
            build_items(name, Cohort.load(folder), Build())
    assert not (tmp_path / "items").exists()
    with pytest.raises(UnknownNameError, match="evipath/interpretation"):
        build_items("evipath/interpretations", Cohort.load(folder), Build())


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        ("40x: mitoses", "mitoses"),
        ("[10x] glands", "glands"),
        ("At 2.5x, a mass", "a mass"),
        ("(40X) - nuclei", "nuclei"),
        ("10x magnification: sheets", "sheets"),
        ("20\u00d7 \u2013 cells", "cells"),
        ("40x objective view of nuclei", "40x objective view of nuclei"),
        ("10xyz: no", "10xyz: no"),
        ("40x:", "40x:"),
        ("Glands at 10x: crowded", "Glands at 10x: crowded"),
    ],
)
def test_magnification_prefixes_are_stripped(finding: str, expected: str) -> None:
    assert without_prefix(finding) == expected


@pytest.mark.parametrize(
    ("diagnosis", "category", "expected"),
    [
        ("Invasive ductal carcinoma", None, 0),
        ("Ductal carcinoma in situ", None, 1),
        ("High-grade dysplasia", None, 1),
        ("Tubular adenoma", None, 2),
        ("Adenocarcinoma of the colon", None, 0),
        ("Intradermal naevus", None, 2),
        ("Granulomatous dermatitis", None, 3),
        ("Chronic inflammation, no evidence of carcinoma", None, 3),
        ("Colitis with carcinoma", None, None),
        ("Unremarkable", None, None),
        ("anything", "malignant", 0),
        ("carcinoma", "in situ", 1),
        ("carcinoma", "inflammatory", 3),
        ("carcinoma", "benign", 2),
    ],
)
def test_categories(diagnosis: str, category: str | None, expected: int | None) -> None:
    assert category_of(diagnosis, category) == expected
