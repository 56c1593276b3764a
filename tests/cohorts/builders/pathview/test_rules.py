"""What is asked of a picture, and what is the answer: known by hand for a few boxes each."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pathview_builder import boxes, build_sources, source

from wsigym.cohorts import Asked, Cohort, load_items
from wsigym.cohorts.builders.pathview import TASKS, PathViewBuilt, build_pathview
from wsigym.cohorts.builders.pathview.questions import INSUFFICIENT
from wsigym.envs.evidence import score_answer, vocabulary_of
from wsigym.errors import UnknownNameError

Row = tuple[str, str, float, float, float, float]


def built(folder: Path, *rows: Row, **more: Any) -> tuple[PathViewBuilt, Cohort]:
    build_sources(folder, source(**more), {"boxes.csv": boxes(*rows)})
    done = build_pathview(Cohort.load(folder))
    return done, Cohort.load(folder)


def one(cohort: Cohort, task: str) -> Asked:
    (asked,) = load_items(cohort, "pathview", task)
    return asked


def right(asked: Asked) -> Any:
    answer = asked.reference.answer
    return asked.item.options[answer] if asked.item.options else answer


def dropped(cohort: Cohort) -> list[tuple[str, str]]:
    with (cohort.root / "references/pathview/dropped.csv").open() as file:
        return [(row["task"], row["reason"]) for row in csv.DictReader(file)]


ROWS: tuple[Row, ...] = (
    ("a", "T", 10, 10, 30, 30),
    ("a", "T", 50, 20, 70, 40),
    ("a", "T", 20, 150, 40, 170),
    ("a", "L", 150, 150, 160, 160),
)
"""On 200 px: three tumour cells, two of them top left, and a lymphocyte bottom right."""


def test_region_tasks(tmp_path: Path) -> None:
    done, cohort = built(tmp_path, *ROWS)
    assert Cohort.faults_of(tmp_path) == []
    target = one(cohort, "object-counting").reference.strata["target"]
    counts = {"tumour cell": 3, "lymphocyte": 1}
    assert right(one(cohort, "object-counting")) == counts[str(target)]
    assert right(one(cohort, "region-classification")) == "tumour cell"
    assert right(one(cohort, "region-description")) == ["tumour cell", "lymphocyte"]
    grounding = one(cohort, "object-grounding")
    expected = {
        "tumour cell": [[50, 50, 150, 150], [250, 100, 350, 200], [100, 750, 200, 850]],
        "lymphocyte": [[750, 750, 800, 800]],
    }
    assert right(grounding) == expected[str(grounding.reference.strata["target"])]
    density = one(cohort, "density-localization")
    quadrants = {"tumour cell": "Top-left quadrant", "lymphocyte": "Bottom-right quadrant"}
    assert right(density) == quadrants[str(density.reference.strata["target"])]
    assert density.item.options[-1] == INSUFFICIENT
    given = one(cohort, "object-classification")
    box = given.reference.provenance["asked_box"]
    assert right(given) == ("lymphocyte" if box == [750, 750, 800, 800] else "tumour cell")
    assert str(box) in given.item.question
    assert done.items["region-trap"] == 0  # no other organ to offer
    assert ("region-trap", "there is no other option") in dropped(cohort)


def test_each_of_a_pictures_labels_is_asked_about_somewhere(tmp_path: Path) -> None:
    names = [f"i{number}" for number in range(20)]
    build_sources(
        tmp_path, source(), {"boxes.csv": boxes(*((name, *row[1:]) for name in names for row in ROWS))}, images=names
    )
    build_pathview(Cohort.load(tmp_path))
    asked = load_items(Cohort.load(tmp_path), "pathview", "object-counting")
    assert {each.reference.strata["target"] for each in asked} == {"tumour cell", "lymphocyte"}
    keys = [each.reference.answer for each in load_items(Cohort.load(tmp_path), "pathview", "region-classification")]
    assert len(set(keys)) >= 4  # the right letter moves


@pytest.mark.parametrize("task", ["object-classification", "spatial-relation"])
def test_the_commonest_category_is_neither_right_nor_wrong_more_often_than_others(tmp_path: Path, task: str) -> None:
    """In each of 60 pictures 20 tumour cells, and two cells of one of three other kinds."""
    names = [f"i{number}" for number in range(60)]
    rows = [
        (name, "T" if place < 20 else "LHG"[number % 3], x, y, x + 8, y + 8)
        for number, name in enumerate(names)
        for place in range(22)
        for x, y in [(10 + 17 * (place % 10), 10 + 60 * (place // 10))]
    ]
    build_sources(tmp_path, source(), {"boxes.csv": boxes(*rows)}, images=names)
    build_pathview(Cohort.load(tmp_path))
    asked = load_items(Cohort.load(tmp_path), "pathview", task)
    assert len(asked) == 60
    rights = Counter(map(right, asked))
    assert set(rights) == {"tumour cell", "lymphocyte", "hepatocyte", "gland"}
    assert max(rights.values()) <= 20
    offered = Counter(option for each in asked for option in each.item.options if option != INSUFFICIENT)
    for text, count in rights.items():
        assert abs(offered[text] - 4 * count) <= 16


A_CELL: Row = ("a", "T", 0, 0, 20, 20)
NOT_UNIQUE = "not unique: the count of several quadrants is the largest"
DROPPED = "annotations of the target were dropped"
MIXED = "every object shares its box with another category"


@pytest.mark.parametrize(
    ("rows", "answer"),
    [
        ((A_CELL, ("a", "L", 30, 10, 40, 20)), {"tumour cell": "lymphocyte"}),
        ((A_CELL, ("a", "T", 32, 10, 40, 30), ("a", "L", 90, 90, 99, 99)), {"lymphocyte": "tumour cell"}),
    ],
)
def test_the_nearest_category_is_edge_to_edge(tmp_path: Path, rows: tuple[Row, ...], answer: dict[str, str]) -> None:
    _, cohort = built(tmp_path, *rows)
    asked = one(cohort, "spatial-relation")
    given, (nearest,) = asked.reference.provenance["asked_box"], asked.reference.provenance["boxes"]
    assert str(given) in asked.item.question
    of = {(row[2] * 5, row[3] * 5, row[4] * 5, row[5] * 5): row[1] for row in rows}
    names = {"T": "tumour cell", "L": "lymphocyte"}
    assert names[of[tuple(nearest)]] == right(asked)
    gap = min(
        max(row[2] * 5 - given[2], given[0] - row[4] * 5, row[3] * 5 - given[3], given[1] - row[5] * 5, 0) / 5
        for row in rows
        if [row[2] * 5, row[3] * 5, row[4] * 5, row[5] * 5] != given
    )
    assert asked.reference.provenance["distance_px"] >= gap
    said = answer.get(names[of[tuple(given)]])
    assert said is None or said == right(asked)


def test_two_categories_as_near_are_not_asked(tmp_path: Path) -> None:
    rows: tuple[Row, ...] = (("a", "T", 50, 50, 60, 60), ("a", "L", 70, 50, 80, 60), ("a", "H", 30, 50, 40, 60))
    _, cohort = built(tmp_path, *rows)
    asked = load_items(cohort, "pathview", "object-counting")
    assert asked
    # From L or H the tumour cell is nearest; from it, both are 10 px away, so that it is never the given box.
    box = one(cohort, "spatial-relation").reference.provenance["asked_box"]
    assert box != [250, 250, 300, 300]
    assert right(one(cohort, "spatial-relation")) == "tumour cell"


def test_distances_that_differ_by_less_than_annotations_can_are_ties(tmp_path: Path) -> None:
    rows: tuple[Row, ...] = (("a", "T", 50, 50, 60, 60), ("a", "L", 70, 50, 80, 60), ("a", "H", 30, 50, 39.7, 60))
    for place in range(8):  # whatever the lot draws
        _, cohort = built(tmp_path / str(place), *rows)
        assert one(cohort, "spatial-relation").reference.provenance["asked_box"] != [250, 250, 300, 300]
        build_pathview(cohort, ["spatial-relation"], seed=place)
        again = one(Cohort.load(tmp_path / str(place)), "spatial-relation")
        assert again.reference.provenance["asked_box"] != [250, 250, 300, 300]


@pytest.mark.parametrize(
    ("rows", "task", "reason"),
    [
        ((A_CELL, ("a", "L", 50, 50, 60, 60)), "region-classification", "borderline: no category is dominant"),
        ((A_CELL, ("a", "T", 150, 0, 170, 20)), "density-localization", NOT_UNIQUE),
        ((A_CELL, ("a", "T", 250, 0, 270, 20)), "object-counting", DROPPED),
        ((A_CELL, ("a", "T", 250, 0, 270, 20)), "object-grounding", DROPPED),
        ((A_CELL,), "spatial-relation", "there are not two categories"),
        ((("a", "H", 0, 0, 20, 20),), "region-trap", "it shows what is typical of an organ"),
        ((("a", "T", 10, 10, 20, 20), ("a", "L", 10, 10, 19, 19)), "object-classification", MIXED),
    ],
)
def test_what_is_not_asked_says_why(tmp_path: Path, rows: tuple[Row, ...], task: str, reason: str) -> None:
    _, cohort = built(tmp_path, *rows)
    assert (task, reason) in dropped(cohort)
    assert not (tmp_path / f"items/pathview/{task}.jsonl").exists()


def test_a_box_within_another_category_is_not_the_given_one(tmp_path: Path) -> None:
    _, cohort = built(tmp_path, ("a", "T", 10, 10, 20, 20), ("a", "L", 5, 5, 25, 25))
    assert right(one(cohort, "object-classification")) == "lymphocyte"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("a", "T", 10, 10, float("nan"), 20), "its box is not finite"),
        (("a", "T", 10, 10, 10, 20), "its box has no area"),
        (("a", "T", 30, 10, 10, 20), "its box has a negative side"),
        (("a", "T", 150, 10, 203, 20), "its box is out of bounds"),
        (("a", "T", -3, 10, 20, 20), "its box is out of bounds"),
        (("a", "T", 10, 10, 10.5, 20), "not observable: narrower than 4 thousandths of the view"),
        (("a", "glass", 10, 10, 20, 20), "background"),
        (("a", "T", 100, 100, 150.5, 150), "overlaps another of its label too much"),
        (("a", "L", 100, 100, 150.5, 150), "overlaps another label too much"),
        (("b", "T", 10, 10, 20, 20), "no image of the source has this name"),
    ],
)
def test_annotations_that_are_dropped_are_logged_with_their_reason(tmp_path: Path, row: Row, reason: str) -> None:
    done, cohort = built(tmp_path, ("a", "T", 100, 100, 150, 150), ("a", "L", 160, 160, 180, 180), row)
    assert ("", reason) in dropped(cohort)
    assert done.dropped[""] == {reason: 2 if reason.endswith("another label too much") else 1}


def test_a_box_a_pixel_beyond_the_edge_is_clipped(tmp_path: Path) -> None:
    _, cohort = built(tmp_path, ("a", "T", 150, 150, 200.9, 200.9))
    assert right(one(cohort, "object-grounding")) == [[750, 750, 1000, 1000]]


def test_the_region_trap_is_right_with_insufficiency_alone(tmp_path: Path) -> None:
    text = source("s", organ="liver") + source(
        "t", organ="lung", images="pathview/b*.png", annotations="pathview/more.csv"
    )
    files = {"boxes.csv": boxes(("a", "T", 1, 1, 20, 20)), "more.csv": boxes(("b", "L", 1, 1, 20, 20))}
    build_sources(tmp_path, text.replace("pathview/*.png", "pathview/a*.png"), files, images=("a", "b"))
    build_pathview(Cohort.load(tmp_path))
    asked = load_items(Cohort.load(tmp_path), "pathview", "region-trap")
    assert len(asked) == 2
    for each in asked:
        assert right(each) == INSUFFICIENT
        assert set(each.item.options) == {"liver", "lung", INSUFFICIENT}
        assert each.item.metadata.organ is None
        for words in ("Insufficient information", "There is insufficient information to tell."):
            assert score_answer(each.item, each.reference, words).value == 1
        assert score_answer(each.item, each.reference, "liver").value == 0


def test_a_label_of_the_whole_image_decides_its_class(tmp_path: Path) -> None:
    files = {"images.csv": "image,file,label\na,pathview/a.png,G\nb,pathview/b.png,T\n"}
    text = source(form="labels", annotations=None, images="pathview/images.csv")
    build_sources(tmp_path, text, files, images=("a", "b"))
    done = build_pathview(Cohort.load(tmp_path))
    asked = load_items(Cohort.load(tmp_path), "pathview", "region-classification")
    assert sorted(map(right, asked)) == ["gland", "tumour cell"]
    assert {task for task, count in done.items.items() if count} == {"region-classification"}


def test_one_task_alone_leaves_the_others(tmp_path: Path) -> None:
    _, cohort = built(tmp_path, *ROWS)
    before = (tmp_path / "items/pathview/object-grounding.jsonl").read_bytes()
    done = build_pathview(cohort, ["object-counting"], seed=5)
    assert list(done.items) == ["object-counting"]
    assert (tmp_path / "items/pathview/object-grounding.jsonl").read_bytes() == before
    with pytest.raises(UnknownNameError, match="Did you mean"):
        build_pathview(cohort, ["object-countin"])


def test_the_same_seed_builds_the_same_bytes(tmp_path: Path) -> None:
    def files(name: str, seed: int) -> dict[str, bytes]:
        build_sources(tmp_path / name, source(), {"boxes.csv": boxes(*ROWS)})
        build_pathview(Cohort.load(tmp_path / name), seed=seed)
        root = tmp_path / name
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*.jsonl")}

    assert files("x", 1) == files("y", 1) != files("z", 2)


def test_every_item_proves_itself(tmp_path: Path) -> None:
    from wsigym.baselines.evidence_policies import in_words

    _, cohort = built(tmp_path, *ROWS)
    proved = 0
    for rule in TASKS:
        if not (tmp_path / f"items/pathview/{rule.name}.jsonl").exists():
            continue
        asked = load_items(cohort, "pathview", rule.name)
        vocabulary = vocabulary_of(cohort, "pathview", asked)
        for each in asked:
            answer = each.reference.answer
            said = in_words(each.item.answer.kind, answer)
            assert score_answer(each.item, each.reference, said, vocabulary).value == 1
            wrong = {
                "option": chr(65 + (answer + 1) % 5) if isinstance(answer, int) else "",
                "boxes": "[[990, 990, 999, 999]]",
                "number": "77",
                "terms": "hepatocyte",
            }[each.item.answer.kind]
            assert score_answer(each.item, each.reference, wrong, vocabulary).value == 0
            assert score_answer(each.item, each.reference, "", vocabulary).value == 0
            proved += 1
    assert proved >= 7
