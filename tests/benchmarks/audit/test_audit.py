from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audit_builder import LEAKS, LEAKS_OF_WORDS, SUITE, TASK, Suite, clean_suite, picture
from PIL import Image
from typer.testing import CliRunner

from wsigym.benchmarks.audit import Audit, audit
from wsigym.benchmarks.audit.report import audit_tables
from wsigym.cli import app
from wsigym.cohorts import Cohort
from wsigym.errors import InvalidArgumentError, UnknownNameError

NAME = f"{SUITE}/{TASK}"


def flagged(found: Audit) -> set[str]:
    rules = {guess.rule for guess in found.guesses if guess.flagged}
    return rules | {each.check for each in found.checks if each.findings}


@pytest.mark.parametrize("seed", range(3))
def test_clean_items_are_not_flagged(tmp_path: Path, seed: int) -> None:
    found = audit(Cohort.load(clean_suite(tmp_path, seed).write()))
    assert flagged(found) == set()
    assert found.flagged == 0
    tried = {guess.rule for guess in found.guesses if guess.accuracy is not None}
    assert tried == {"longest", "shortest", "nearest", "position", "prior", "wording"}
    assert {guess.rule: guess.why for guess in found.guesses if guess.rule not in tried} == {
        "negation": "it tells no option from another",
        "question": "it tells no option from another",
    }
    looked = {each.check: each.looked for each in found.checks}
    assert looked == {
        "groups in two splits": 60,
        "same items": 240,
        "same images": 240,
        "images in the corpus": 0,
        "answers beside the question": 240,
    }


@pytest.mark.parametrize("leak", [*LEAKS_OF_WORDS, *LEAKS], ids=lambda leak: leak.__name__)
def test_each_leak_is_found_and_nothing_else(tmp_path: Path, leak: Callable[[Suite], None]) -> None:
    suite = clean_suite(tmp_path, images=leak in LEAKS)
    leak(suite)
    assert flagged(audit(Cohort.load(suite.write()))) == set((LEAKS_OF_WORDS | LEAKS)[leak])


def test_a_corpus_that_has_an_image_is_found(tmp_path: Path) -> None:
    suite = clean_suite(tmp_path / "cohort")
    corpus = tmp_path / "corpus" / "scraped"
    corpus.mkdir(parents=True)
    picture(77777).save(corpus / "another.png")
    with Image.open(suite.image(5)) as image:
        image.transpose(Image.Transpose.FLIP_LEFT_RIGHT).resize((61, 61)).save(corpus / "copy.jpg", quality=50)
    (corpus / "readme.txt").write_text("no image")
    (corpus / "broken.png").write_bytes(b"no image")
    Image.new("RGB", (9, 9), "white").save(corpus / "white.png")
    found = audit(Cohort.load(suite.write()), corpus=corpus.parent)
    assert flagged(found) == {"images in the corpus"}
    (check,) = (each for each in found.checks if each.findings)
    assert [(each.task, each.items, each.what) for each in check.findings] == [
        (SUITE, ("i0005",), "images/0005.png in the corpus as scraped/copy.jpg")
    ]
    assert [line.split(":")[1].split("(")[0].strip() for line in check.not_looked] == [
        "1 blank images",
        "scraped/broken.png",
        "1 files that are no images",
    ]


def test_what_cannot_be_tried_is_said(tmp_path: Path) -> None:
    """Four patients, a broken image, a blank one, numbers as answers."""
    suite = clean_suite(tmp_path)
    suite.items, suite.references = suite.items[:16], suite.references[:16]
    for reference in suite.references:
        reference["answer"] = 1  # one group a patient and right answer: four
    for item in suite.items:
        item["options"] = ["a duct", "a nest", "a cord", "a nerve of size"]
    suite.image(0).write_bytes(b"nothing")
    Image.new("RGB", (30, 30), "white").save(suite.image(1))
    suite.image(2).rename(tmp_path.with_name(f"{tmp_path.name}.png"))
    suite.image(2).symlink_to(tmp_path.with_name(f"{tmp_path.name}.png"))
    for number in range(8):
        suite.items[number] |= {"answer": {"kind": "number", "words": "A number."}, "options": []}
    found = audit(Cohort.load(suite.write()))
    assert found.flagged == 0
    for guess in found.guesses:
        assert guess.why, guess
        assert guess.accuracy is None or guess.accuracy.low is None
    not_looked = {each.check: " | ".join(each.not_looked) for each in found.checks}
    assert "images/0000.png: cannot be read as an image" in not_looked["same images"]
    assert "'images/0002.png' leaves the cohort's folder by a link" in not_looked["same images"]
    assert "1 blank images (images/0001.png)" in not_looked["same images"]
    assert "8 items whose answer is no text" in not_looked["answers beside the question"]


def test_the_option_that_declines_is_no_clue(tmp_path: Path) -> None:
    """Never right beside others, or always right as in a trap: both are by design."""
    suite = clean_suite(tmp_path, images=False)
    for item in suite.items:
        item["options"].append("Insufficient information")
    assert flagged(audit(Cohort.load(suite.write()))) == set()
    for reference in suite.references:
        reference["answer"] = 4
    found = audit(Cohort.load(suite.write()))
    assert flagged(found) == set()
    assert {guess.why for guess in found.guesses if guess.rule == "prior"} == {
        "every right answer is the option that declines"
    }


def test_statements_that_are_true_or_false(tmp_path: Path) -> None:
    """The statements are the options: true ones are longer here, and true is right more often than not."""
    suite = clean_suite(tmp_path, images=False)
    for number, item in enumerate(suite.items):
        truths = [True, number % 2 == 0, True, False]
        lines = [
            f"{place + 1}. {option}{' in part' if true else ''}"
            for place, (option, true) in enumerate(zip(item["options"], truths, strict=True))
        ]
        item |= {
            "question": "\n".join(["Which are true?", *lines]),
            "options": [],
            "answer": {"kind": "json", "words": "JSON."},
        }
        suite.references[number]["answer"] = {"answers": truths}
    found = audit(Cohort.load(suite.write()))
    assert {"longest", "position", "true or false"} <= flagged(found)
    rows = {guess.rule: guess for guess in found.guesses}
    assert rows["longest"].chance == pytest.approx(0.625)
    assert rows["true or false"].accuracy is not None
    assert rows["true or false"].accuracy.value == pytest.approx(0.625)


def test_free_answers_are_held_against_the_commonest(tmp_path: Path) -> None:
    """A word of the question tells the number; without it nothing does."""
    suite = clean_suite(tmp_path, images=False)
    for number, item in enumerate(suite.items):
        item |= {"answer": {"kind": "number", "words": "A number."}, "options": []}
        suite.references[number]["answer"] = suite.references[number]["answer"] + 3
    assert flagged(audit(Cohort.load(suite.write()))) == set()
    for number, item in enumerate(suite.items):
        item["question"] += f" (grid {'abcd'[suite.key(number) - 3] * 3})"
    assert flagged(audit(Cohort.load(suite.write()))) == {"answer"}


def test_suite_and_task_are_chosen_by_name(tmp_path: Path) -> None:
    cohort = Cohort.load(clean_suite(tmp_path, images=False).write())
    assert {guess.task for guess in audit(cohort, SUITE).guesses} == {NAME}
    assert {guess.task for guess in audit(cohort, NAME).guesses} == {NAME}
    with pytest.raises(UnknownNameError, match="test/choise"):
        audit(cohort, "test/choise")
    with pytest.raises(InvalidArgumentError, match="is no folder"):
        audit(cohort, corpus=tmp_path / "none")


def test_command_line(tmp_path: Path) -> None:
    suite = clean_suite(tmp_path, images=False)
    runner = CliRunner()
    done = runner.invoke(app, ["audit", str(suite.write())])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == "nothing is flagged"
    assert "longest: the longest option" in done.output
    assert f"Not tried, as it tells no option from another: {NAME}" in done.output
    suite.items[1]["split"] = "test"
    done = runner.invoke(app, ["audit", str(suite.write()), SUITE])
    assert done.exit_code == 1
    assert "patient p0 is in test (1 items) and train (3 items)" in " ".join(done.output.split())
    done = runner.invoke(app, ["audit", str(tmp_path), "--json"])
    assert done.exit_code == 1
    told: dict[str, Any] = json.loads(done.output)
    assert told["flagged"] == 1
    assert [each["check"] for each in told["checks"] if each["flagged"]] == ["groups in two splits"]


def test_an_audit_changes_nothing_and_says_the_same_twice(tmp_path: Path) -> None:
    suite = clean_suite(tmp_path, images=False)
    cohort = Cohort.load(suite.write())
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    assert audit(cohort) == audit(Cohort.load(tmp_path))
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before


def test_false_alarms_are_shared_among_all_rows(tmp_path: Path) -> None:
    found = audit(Cohort.load(clean_suite(tmp_path, images=False).write()))
    tried = [guess for guess in found.guesses if guess.accuracy is not None and guess.accuracy.low is not None]
    assert found.confidence == pytest.approx(1 - 0.01 / len(tried))
    assert all(np.isfinite([guess.accuracy.low, guess.accuracy.high]).all() for guess in tried if guess.accuracy)


def test_tables_have_a_row_for_each_task_that_was_tried(tmp_path: Path) -> None:
    found = audit(Cohort.load(clean_suite(tmp_path, images=False).write()))
    names = [table.name for table in audit_tables(found)]
    assert names == [
        *(
            f"guess {name}"
            for name in ("longest", "shortest", "negation", "nearest", "position", "prior", "question", "wording")
        ),
        "checks",
    ]
