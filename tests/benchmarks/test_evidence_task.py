"""Evidence tasks through the runner: what is asked, recorded, replayed and shown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evidence_builder import SUITE, TASK, build_evidence, item, reference

from wsigym.benchmarks import suites
from wsigym.benchmarks.evidence_measures import CIRCULAR, CIRCULAR_CHANCE, CONSISTENT
from wsigym.benchmarks.evidence_table import evidence_tables
from wsigym.benchmarks.evidence_task import EvidenceTask
from wsigym.benchmarks.replay import replay
from wsigym.benchmarks.run_folder import load_run
from wsigym.benchmarks.runner import RunSummary, run
from wsigym.benchmarks.tables import TableOptions
from wsigym.benchmarks.task import choose_items
from wsigym.cohorts import Cohort
from wsigym.envs.policy import Info, NoAnswer, Observation
from wsigym.envs.views import FeatureSource
from wsigym.errors import CohortError, InvalidArgumentError
from wsigym.scoring.chance import is_at_chance
from wsigym.scoring.intervals import Estimate

NAME = f"{SUITE}/{TASK}"
ITEMS = 12
FILES = [{"file": "images/field.png", "magnification": 2.5}, {"file": "images/field.png", "magnification": 10}]


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> dict[str, EvidenceTask]:
    """The task of these tests, straight and circular, among the project's."""
    made = {
        NAME: EvidenceTask(NAME, "a test"),
        f"{SUITE}/circular": EvidenceTask(
            f"{SUITE}/circular",
            "a test",
            circular=True,
            measures=(CIRCULAR, CIRCULAR_CHANCE, CONSISTENT, *EvidenceTask("x/y", "").measures),
            details=lambda item, reference, answer: {"said": None if answer is None else item.options[answer]},
        ),
    }
    monkeypatch.setattr(suites, "TASKS", {**suites.TASKS, **made})
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    numbers = range(ITEMS)
    for task in (TASK, "circular"):
        items = [item(n, images=FILES, task=task, metadata={"magnification": (2.5, 10)[n % 2]}) for n in numbers]
        references = [reference(n, strata={"family": f"f{n % 3}"}) for n in numbers]
        build_evidence(tmp_path / "cohort", items, references, task=task, pixels=False, slides=[{"slide_id": "s1"}])
    manifest = {"format": "wsigym-cohort/1", "name": "c", "slides": []}  # all images are files
    (tmp_path / "cohort" / "cohort.json").write_text(json.dumps(manifest))
    for name in ("nodes.jsonl", "paths.jsonl"):
        (tmp_path / "cohort" / name).unlink()
    return tmp_path / "cohort"


@pytest.fixture
def play(folder: Path, tasks: dict[str, EvidenceTask], tmp_path: Path) -> Callable[..., RunSummary]:
    def call(*policies: str, task: str = NAME, out: str = "run", **arguments: Any) -> RunSummary:
        return run(task, policies=policies, cohort=folder, out=tmp_path / out, **arguments)

    return call


def table(task: EvidenceTask, out: Path, **options: Any) -> list[Any]:
    return evidence_tables(task, load_run(out).records, TableOptions(**options))


def test_the_oracle_is_right_and_every_record_replays(play: Callable[..., RunSummary], tmp_path: Path) -> None:
    assert play("oracle", "random").failed == 0
    records = load_run(tmp_path / "run").records
    assert len(records) == 2 * ITEMS
    oracle = [record for record in records if record.policy == "oracle"]
    assert all(record.score == 1 and record.metrics["right"] for record in oracle)
    assert oracle[0].groups == {
        "patient": "p0", "slide": "s1", "set": "set0", "family": "f0",
        "organ": None, "magnification": 2.5, "split": None,
    }  # fmt: skip
    for place in range(0, 2 * ITEMS, 5):
        assert replay(tmp_path / "run", str(place)).agrees


def test_each_rotation_is_an_episode_and_circular_counts_items(
    play: Callable[..., RunSummary], tasks: dict[str, EvidenceTask], tmp_path: Path
) -> None:
    play("oracle", "random", task=f"{SUITE}/circular")
    records = load_run(tmp_path / "run").records
    assert Counter(record.rotation for record in records) == dict.fromkeys(range(4), 2 * ITEMS)
    oracle = [record for record in records if record.policy == "oracle"]
    assert {record.metrics["letter"] for record in oracle if record.item == "i1"} == {0, 1, 2, 3}
    assert {record.metrics["chosen"] for record in oracle if record.item == "i1"} == {1}
    assert {record.metrics["said"] for record in oracle if record.item == "i1"} == {"sheets"}
    (main,) = table(tasks[f"{SUITE}/circular"], tmp_path / "run")
    rows = {row["policy"]: row for row in main.rows}
    assert rows["oracle"]["circular"].value == rows["oracle"]["consistent"].value == 1
    assert rows["oracle"]["circular"].n == ITEMS
    assert rows["random"]["circular"].value <= rows["random"]["consistent"].value
    assert rows["random"]["circular_chance"] == pytest.approx(4**-4)
    assert rows["random"]["chance"] == 0.25


def test_a_number_of_items_counts_items_not_rotations(play: Callable[..., RunSummary]) -> None:
    assert play("random", task=f"{SUITE}/circular", subset="5").asked == 20
    with pytest.raises(InvalidArgumentError, match="1 to 12"):
        play("random", task=f"{SUITE}/circular", subset="13", out="other")


def test_efficiency_is_measured_on_twenty_questions(tasks: dict[str, EvidenceTask], folder: Path) -> None:
    chosen = choose_items(tasks[f"{SUITE}/circular"], Cohort.load(folder), None, "efficiency")
    assert len(chosen) == 4 * ITEMS, "all rotations; all items where there are no more than twenty"
    many = [replace(chosen[0], item_id=f"i{n}", rotation=rotation) for n in range(50) for rotation in (0, 1)]
    some = tasks[NAME].subset("efficiency", many, Cohort.load(folder), 0)
    assert len(some) == 40
    assert len({item.item_id for item in some}) == 20
    assert some == [item for item in many if item in some], "in the order of the items"


def test_random_is_at_chance_over_seeds(play: Callable[..., RunSummary], tmp_path: Path) -> None:
    play("random", seeds=range(60))
    records = load_run(tmp_path / "run").records
    assert is_at_chance(sum(record.score == 1 for record in records), len(records), 0.25)
    assert len({record.metrics["letter"] for record in records}) == 4


def test_tables_by_magnification_and_by_what_references_add(
    play: Callable[..., RunSummary], tasks: dict[str, EvidenceTask], tmp_path: Path
) -> None:
    play("oracle")
    main, by = table(tasks[NAME], tmp_path / "run", by="family")
    (row,) = main.rows
    accuracy = row["accuracy_2.5x"]
    assert isinstance(accuracy, Estimate)
    assert (accuracy.value, accuracy.n) == (1, ITEMS // 2)
    assert (row["items"], row["units"], row["scored"]) == (ITEMS, 7, ITEMS)
    assert [each["family"] for each in by.rows] == ["f0", "f1", "f2"]
    with pytest.raises(InvalidArgumentError, match="--causes"):
        table(tasks[NAME], tmp_path / "run", causes=True)


def test_evidence_is_the_budget_and_compared_in_pairs(
    play: Callable[..., RunSummary], tasks: dict[str, EvidenceTask], tmp_path: Path
) -> None:
    play("oracle", "random", budgets=["all", "10x,no-site", "2.5x", "10x", "text"])
    _, shown = table(tasks[NAME], tmp_path / "run")
    oracle = [row for row in shown.rows if row["policy"] == "oracle"]
    assert [row["budget"] for row in oracle] == [
        "text", "2.5x", "10x", "10x,no-site", "all", "all - 2.5x (best single)",
    ]  # fmt: skip
    assert all(row["difference"].value == 0 for row in oracle if row["budget"] != "all")
    assert any("against all of the evidence, paired over items" in note for note in shown.notes)
    assert any("best single magnification" in note for note in shown.notes)
    assert oracle[0]["difference"].n == ITEMS


def test_notes_speak_of_what_a_table_has(
    play: Callable[..., RunSummary], tasks: dict[str, EvidenceTask], tmp_path: Path
) -> None:
    play("oracle", budgets=["text"])
    (main, alone) = table(tasks[NAME], tmp_path / "run", budgets=True)
    assert not any("ifference" in note or "single" in note for note in alone.notes)
    said = "In per cent: accuracy, chance, top letter. Top letter: the one answered most often, and its share."
    assert f"{said} Items weigh alike." in main.notes
    play("oracle", budgets=["text", "all"], out="two")
    _, two = table(tasks[NAME], tmp_path / "two")
    assert any("against all of the evidence" in note for note in two.notes)
    assert not any("single" in note for note in two.notes)


def test_a_broken_image_stops_the_run_before_it_begins(
    play: Callable[..., RunSummary], folder: Path, tmp_path: Path
) -> None:
    (folder / "images" / "field.png").write_bytes(b"no image")
    with pytest.raises(CohortError) as caught:
        play("random")
    assert len(caught.value.faults) >= 1
    assert not (tmp_path / "run" / "episodes.jsonl").exists()


def test_frequent_learns_from_the_train_split(folder: Path, tasks: dict[str, EvidenceTask], tmp_path: Path) -> None:
    items = [item(n, images=FILES, split="train" if n < 8 else "test") for n in range(ITEMS)]
    build_evidence(folder, items, [reference(n, answer=3) for n in range(ITEMS)])
    run(NAME, policies=["frequent"], cohort=folder, out=tmp_path / "run", split="test")
    records = load_run(tmp_path / "run").records
    assert [record.score for record in records] == [1] * 4


def test_without_a_train_split_frequent_is_refused(play: Callable[..., RunSummary]) -> None:
    with pytest.raises(InvalidArgumentError, match="'train'"):
        play("frequent")


def test_items_are_loaded_once_for_all(folder: Path, tasks: dict[str, EvidenceTask]) -> None:
    cohort = Cohort.load(folder)
    first, second = (tasks[NAME].items(cohort, None) for _ in range(2))
    assert all(one.question is other.question for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize(
    ("policy", "kind", "able"),
    [
        ("random", "terms", "oracle, and agents"),
        ("random", "text", "frequent, oracle, and agents"),
        ("random", "json", "frequent, oracle, and agents"),
        ("frequent", "terms", "oracle, and agents"),
        ("text-prior", "number", "random, frequent, oracle, and agents"),
    ],
)
def test_a_policy_without_such_an_answer_is_refused_before_the_run(
    folder: Path, tasks: dict[str, EvidenceTask], tmp_path: Path, policy: str, kind: str, able: str
) -> None:
    answer = {"number": 3, "terms": ["gland"], "text": "glands", "json": {"grade": 3}}[kind]
    form = {"kind": kind, "words": "Answer."}
    items = [item(n, images=FILES, answer=form, split="train") for n in range(ITEMS)]
    build_evidence(folder, items, [reference(n, answer=answer) for n in range(ITEMS)])
    (folder / "items" / SUITE / "vocabulary.json").write_text('{"gland": []}')
    with pytest.raises(InvalidArgumentError, match=f"kind {kind}, which {policy} cannot give. .*: {able}"):
        run(NAME, policies=["oracle", policy], cohort=folder, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


class ReadsFeatures:
    """Answers with the option at the place that is the features' mean, or gives up; `seen` is all that it is given."""

    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def see_images(self, source: FeatureSource) -> None:
        self.source = source

    def reset(self, observation: Observation, info: Info) -> None:
        pass

    def act(self, observation: Observation, info: Info) -> str:
        found = self.source.features()
        self.seen += [observation, info, found]
        if found is None:
            raise NoAnswer("refused", "no features")
        features, coordinates = found
        assert coordinates.shape == (len(features), 2)
        return "ABCD"[int(features.mean())]


def test_a_policy_reads_features_in_a_run_and_a_control_without_images_does_not(
    folder: Path, tasks: dict[str, EvidenceTask], tmp_path: Path
) -> None:
    items = []
    for number in range(ITEMS):
        np.save(folder / f"zq{number}.npy", np.full((5, 3), number % 4, np.float32))
        files = {"features": f"zq{number}.npy", "coordinates": "coordinates.npy"}
        items.append(item(number, images=[], evidence=None, features=files, group={"patient": f"zq-patient{number}"}))
    np.save(folder / "coordinates.npy", np.arange(10).reshape(5, 2))
    secret = [
        reference(number, provenance={"rule": "zq-rule"}, strata={"family": "zq-family"}) for number in range(ITEMS)
    ]
    build_evidence(folder, items, secret, pixels=False)
    seen: list[Any] = []
    run(
        NAME,
        policies=["reader"],
        make_policy=lambda name: ReadsFeatures(seen),
        blind=["images", "text"],
        cohort=folder,
        out=tmp_path / "run",
    )
    ended = Counter((record.policy, record.outcome, record.score) for record in load_run(tmp_path / "run").records)
    assert ended == {
        ("reader", "scored", 1): ITEMS,
        ("reader+blind-text", "scored", 1): ITEMS,
        ("reader+blind-images", "refused", 0): ITEMS,
    }
    assert len(seen) == 3 * 3 * ITEMS
    assert "zq" not in repr(seen)
