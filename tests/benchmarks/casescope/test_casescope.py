"""CaseScope's tasks through the runner: policies whose figures are known, tables, judges, two collections."""

from __future__ import annotations

import csv
import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from casescope_builder import build_casescope, case, statements

from wsigym.baselines import make_policy as make_baseline
from wsigym.baselines.registry import EVIDENCE
from wsigym.benchmarks.casescope.judging import Sheet, agreement_tables, judge_sheet, read_grades
from wsigym.benchmarks.casescope.sources import sources_table
from wsigym.benchmarks.casescope.tasks import A1, A2, R1, TASKS, B, C
from wsigym.benchmarks.evidence_table import evidence_tables
from wsigym.benchmarks.evidence_task import EvidenceTask
from wsigym.benchmarks.records import EpisodeRecord
from wsigym.benchmarks.run_folder import Run, load_run
from wsigym.benchmarks.runner import run
from wsigym.benchmarks.tables import Table, TableOptions
from wsigym.cohorts import Cohort
from wsigym.cohorts.builders import Build, build_items
from wsigym.cohorts.items import letter
from wsigym.errors import CohortError, InvalidArgumentError, RunError
from wsigym.scoring.chance import is_at_chance
from wsigym.scoring.intervals import Estimate

Grades = dict[str, dict[str, str]]
ENTITIES = ("Key", "Situ", "F2", "Debated", "Key", "Far")
CASES = 12


class Says:
    """Answers by a function from the info to a reply."""

    def __init__(self, reply: Callable[[dict[str, Any]], str]) -> None:
        self._reply = reply

    def reset(self, observation: object, info: dict[str, Any]) -> None:
        pass

    def act(self, observation: object, info: dict[str, Any]) -> str:
        return self._reply(info)


REPLIES: dict[str, Callable[[dict[str, Any]], str]] = {
    "letter-b": lambda info: "B",
    "content": lambda info: letter(info["options"].index(min(info["options"]))),
    "twin": lambda info: letter(info["options"].index("Twin")) if "Twin" in info["options"] else "A",
    "mute": lambda info: "",
    "alarmist": lambda info: letter([option[:9] for option in info["options"]].index("Malignant")),
    "soother": lambda info: letter([option[:9] for option in info["options"]].index("Benign ne")),
    "two": lambda info: letter(info["options"].index("Two")),
    "all-true": lambda info: json.dumps({"answers": [True] * 4}),
    "key": lambda info: json.dumps({"diagnosis": "F1", "differential": ["Key", "Far"], "confidence": 60}),
    "sometimes": lambda info: REPLIES["key"](info) if int(info["item_id"], 16) % 3 else "I cannot tell.",
    "unheard": lambda info: json.dumps({"diagnosis": "unheard of"}),
}


def make(name: str) -> Any:
    return Says(REPLIES[name]) if name in REPLIES else make_baseline(name, EVIDENCE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cases = [case(number, count=(2, 3, 7)[number % 3], entity=ENTITIES[number % 6]) for number in range(CASES)]
    for each in cases:
        if each["entity"] == "Debated":
            each["level"] = "Three"
    told = [line for number in range(CASES) for line in statements(f"zqcase{number}", ("low", "high")[number % 2])]
    built = build_casescope(tmp_path_factory.mktemp("cases") / "cohort", cases=cases, told=told)
    for task in TASKS:
        build_items(task.name, Cohort.load(built), Build())
    return built


@pytest.fixture
def play(folder: Path, tmp_path: Path) -> Callable[..., list[EpisodeRecord]]:
    def call(task: EvidenceTask, *policies: str, out: str = "run", **arguments: Any) -> list[EpisodeRecord]:
        summary = run(task.name, policies=policies, cohort=folder, out=tmp_path / out, make_policy=make, **arguments)
        assert summary.failed == 0
        return list(load_run(tmp_path / out).records)

    return call


def rows(tables: Sequence[Table], name: str = "evidence", key: str = "policy") -> dict[Any, Any]:
    """Rows by their key, with estimates as values."""
    table = next(each for each in tables if each.name == name)
    return {
        row[key]: {name: cell.value if isinstance(cell, Estimate) else cell for name, cell in row.items()}
        for row in table.rows
    }


def table(task: EvidenceTask, records: Sequence[EpisodeRecord], **options: Any) -> list[Table]:
    return evidence_tables(task, list(records), TableOptions(**options))


def test_the_oracle_is_right_everywhere_and_random_is_at_chance(play: Callable[..., Any], folder: Path) -> None:
    chances = {"a2": 0.1, "b": 0.25, "r1": None, "c": 1 / 3, "g1": None}
    for task in TASKS:
        short = task.name.partition("/")[2]
        oracle = play(task, "oracle", out=f"oracle-{short}")
        assert {record.score for record in oracle} == {1}
        if short == "a1":
            continue
        records = play(task, "random", out=f"random-{short}", seeds=range(4))
        if short == "r1":
            right = sum(round(4 * float(record.score or 0)) for record in records)
            assert is_at_chance(right, 4 * len(records), 0.5)
            assert is_at_chance(sum(record.score == 1 for record in records), len(records), 0.5**4)
            continue
        first = [record for record in records if record.rotation == 0]  # rotations of one item are one trial's
        for count in {record.metrics["options"] for record in first}:
            some = [record for record in first if record.metrics["options"] == count]
            assert is_at_chance(sum(record.score == 1 for record in some), len(some), 1 / int(count))  # type: ignore[arg-type]
        assert chances[short] in (None, pytest.approx(rows(table(task, records))["random"]["chance"]))
    with pytest.raises(InvalidArgumentError, match="no random answer of kind diagnosis"):
        make("random").act({}, {"answer_kind": "diagnosis", "options": (), "answer_words": ""})


def test_fixed_guessers_score_what_they_must(play: Callable[..., Any]) -> None:
    """A letter: vanilla exactly 1/n, circular 0. A content: circular = vanilla = its hit rate, always consistent."""
    shown = rows(table(A2, play(A2, "letter-b", "content", "mute")))
    assert (shown["letter-b"]["accuracy"], shown["letter-b"]["circular"]) == (pytest.approx(0.1), 0)
    assert shown["letter-b"]["consistent"] == 0
    content = shown["content"]
    assert content["circular"] == content["accuracy"]
    assert (content["consistent"], content["retention"], content["coverage"]) == (
        1,
        1 if content["accuracy"] else None,
        1,
    )
    assert [shown["mute"][key] for key in ("circular", "accuracy", "consistent", "coverage")] == [0, 0, 0, 0]
    assert shown["mute"]["retention"] is None
    assert shown["content"]["circular_chance"] == pytest.approx(1e-10)


def test_retention_is_averaged_over_models_not_over_their_items(play: Callable[..., Any]) -> None:
    """CaseScope's: per model, then the mean. Models without a ratio, controls and baselines have no part in it."""
    of_policy = {name: play(A2, name, out=f"mean-{name}") for name in ("oracle", "letter-b", "mute")}
    asked = [
        record.model_copy(update={"policy": policy, "endpoint": endpoint})
        for name, policy, endpoint in (
            ("oracle", "agent:answerer", "one"),
            ("letter-b", "agent:answerer", "two"),
            ("mute", "agent:answerer", "three"),
            ("oracle", "agent:answerer+blind-images", "one"),
        )
        for record in of_policy[name]
    ]
    (full,) = table(A2, [*asked, *of_policy["oracle"]])
    told = [note for note in full.notes if "mean over" in note and "models" in note]
    assert told == ["circular / vanilla, the mean over 2 models with a value (evidence all): 50.0."]
    (alone,) = table(A2, of_policy["oracle"])
    assert not any("models" in note for note in alone.notes)


def test_look_alikes_among_wrong_answers(play: Callable[..., Any]) -> None:
    records = play(A2, "twin", "letter-b", "oracle")
    shown = rows(table(A2, records))
    assert (shown["twin"]["look_alikes"], shown["twin"]["look_alikes_chance"]) == (1, pytest.approx(1 / 9))
    # Over ten rotations B names each of the nine distractors once.
    assert shown["letter-b"]["look_alikes"] == pytest.approx(1 / 9)
    assert shown["oracle"]["look_alikes"] is None
    assert {record.metrics["look_alikes"] for record in records if record.groups["behaviour"] == "benign"} == {0}


def test_a_miss_stands_beside_its_price(play: Callable[..., Any]) -> None:
    shown = rows(table(B, play(B, "alarmist", "soother", "mute")))
    assert (shown["alarmist"]["miss"], shown["alarmist"]["over_call"]) == (0, 1)
    assert (shown["soother"]["miss"], shown["soother"]["over_call"]) == (1, 0)
    assert [shown["mute"][key] for key in ("miss", "over_call", "coverage")] == [0, 0, 0]
    by = rows(table(B, play(B, "alarmist", out="by"), by="behaviour"), "by", "behaviour")
    assert {name: row["miss"] for name, row in by.items()} == {
        "benign": None, "intermediate": 0, "malignant": 0, "non-neoplastic": None,
    }  # fmt: skip
    assert {name: row["over_call"] for name, row in by.items()} == {
        "benign": 1, "intermediate": None, "malignant": None, "non-neoplastic": 1,
    }  # fmt: skip


def test_kappa_is_over_levels_and_leaves_out_what_is_not_parsed(play: Callable[..., Any]) -> None:
    records = play(C, "oracle", "two", "mute")
    shown = rows(table(C, records))
    assert (shown["oracle"]["kappa"], shown["two"]["kappa"], shown["mute"]["kappa"]) == (1, 0, None)
    assert shown["two"]["circular"] == shown["two"]["accuracy"] == pytest.approx(4 / 6)
    assert {record.metrics["level"] for record in records} == {1, 2}


def test_statements_count_alone_and_a_mute_has_all_wrong(play: Callable[..., Any]) -> None:
    shown = rows(table(R1, play(R1, "all-true", "mute")))
    assert (shown["all-true"]["statements"], shown["all-true"]["accuracy"]) == (0.5, 0)
    assert (shown["mute"]["statements"], shown["mute"]["coverage"]) == (0, 0)
    assert (shown["mute"]["statement_chance"], shown["mute"]["item_chance"]) == (0.5, 0.0625)


def test_free_diagnoses_fall_into_six_classes(play: Callable[..., Any]) -> None:
    records = play(A1, "key", "unheard", "mute", "oracle")
    shown = rows(table(A1, records))
    for row in shown.values():
        parts = [row[f"error_{name}"] for name in "FLWBN"]
        assert row["top1"] + sum(parts) == pytest.approx(1)
        assert row["hds"] == pytest.approx(row["top1"] + row["error_F"] / 2)
    # F1 is malignant and of the family of Key, Situ, F2 and Debated; Far is of another lineage.
    assert [shown["key"][f"error_{name}"] for name in "FLWBN"] == pytest.approx([4 / 12, 0, 0, 8 / 12, 0])
    assert shown["key"]["top3"] == pytest.approx(6 / 12)
    assert (shown["unheard"]["error_W"], shown["unheard"]["unmapped"]) == (1, 1)
    assert (shown["mute"]["error_N"], shown["mute"]["coverage"], shown["mute"]["unmapped"]) == (1, 0, 0)
    assert {record.confidence for record in records if record.policy == "key"} == {0.6}


@pytest.mark.parametrize("field", ["fields", "same_family", "he", "behaviour", "system", "source"])
def test_every_breakdown_has_its_rows(play: Callable[..., Any], field: str) -> None:
    shown = rows(table(A2, play(A2, "oracle"), by=field), "by", field)
    wanted = {
        "fields": {"2", "3-5", "6+"},
        "same_family": {"3-5", "6-9"},
        "he": {"Y"},
        "behaviour": {"benign", "intermediate", "malignant"},
        "system": {"skin"},
        "source": {"teaching", "atlas"},
    }
    assert set(shown) == wanted[field]
    assert {row["circular"] for row in shown.values()} == {1}


def test_ablations_are_paired_by_what_the_task_is_read_by(play: Callable[..., Any]) -> None:
    records = play(A2, "oracle", "random", budgets=["all", "highest-power", "no-site"])
    tables = table(A2, records)
    _, shown, part = tables
    assert (shown.title, part.title) == (
        "casescope/a2: evidence shown",
        "casescope/a2: evidence shown, cases of three fields or more",
    )
    oracle = [row for row in part.rows if row["policy"] == "oracle"]
    assert {row["budget"] for row in oracle} == {"all", "highest-power", "no-site"}
    for row in oracle:
        assert row["items"] == sum(number % 3 > 0 and number % 6 != 5 for number in range(CASES))
        for key in ("difference", "difference_accuracy"):
            cell = row.get(key)
            assert cell is None if row["budget"] == "all" else isinstance(cell, Estimate) and cell.value == 0
    full = next(each for each in table(A2, records, published=True) if each.name == "published")
    ours = next(row for row in full.rows if (row["model"], row["source"]) == ("oracle", "atlas"))
    shown_here = {key: cell.value for key, cell in ours.items() if isinstance(cell, Estimate)}
    wanted = {"circular_highest-power": 1, "difference_no-site": 0, "he_Y": 1, "fields_3-5": 1}
    assert {key: shown_here[key] for key in wanted} == wanted
    paper = next(row for row in full.rows if (row["model"], row["source"]) == ("Qwen2.5-VL-3B", "atlas"))
    assert [paper[key] for key in ("circular_no-site", "difference_highest-power", "he_P", "behaviour_benign")] == (
        pytest.approx([0.078, -0.036, 0.243, 0.204])
    )
    assert "retention.open.teaching 24" in full.notes[-1]
    text = table(R1, play(R1, "random", budgets=["all", "text"], out="text"), published=True)
    shown_text = next(each for each in text if each.name == "evidence_shown")
    main = {row["budget"]: row["statements"] for row in text[0].rows}
    assert {row["budget"]: row["score"] for row in shown_text.rows} == main
    assert 0 < main["all"].value < 1  # type: ignore[operator, union-attr]
    delta = next(row["difference"] for row in shown_text.rows if row["budget"] == "text")
    published = next(each for each in text if each.name == "published")
    ours = [row for row in published.rows if row["group"] == "these runs"]
    both = [row["delta_img"] for row in ours]
    assert isinstance(delta, Estimate)
    assert delta.value is not None
    weighted = [(cell.value or 0) * cell.n for cell in both if isinstance(cell, Estimate)]
    assert sum(weighted) / CASES == pytest.approx(-delta.value)


def test_published_figures_stand_beside_ours(play: Callable[..., Any]) -> None:
    for task in TASKS:
        name = task.name.partition("/")[2]
        (published,) = [
            each for each in table(task, play(task, "oracle", out=name), published=True) if each.name == "published"
        ]
        ours = [row for row in published.rows if row["group"] == "these runs"]
        assert {row["source"] for row in ours} <= {"teaching", "atlas"}
        claude = next(row for row in published.rows if row["model"] == "Claude Sonnet 5.5")
        key, figure = {
            "a1": ("hds", 64.2), "a2": ("circular", 61.7), "b": ("miss", 11.4), "c": ("circular", 79.5),
            "r1": ("statements", 93.2), "g1": ("circular", 61.5),
        }[name]  # fmt: skip
        assert claude[key] == pytest.approx(figure / 100)
        if name == "c":
            assert claude["kappa"] == 0.81
        if name in ("a1", "a2"):
            attending = next(row for row in published.rows if row["model"] == "Attendings")
            assert attending[{"a1": "top1", "a2": "accuracy"}[name]] == pytest.approx({"a1": 0.775, "a2": 0.863}[name])
        models = {row["model"] for row in published.rows} - {row["model"] for row in ours}
        assert len(models) == {"a1": 32 + 4, "a2": 33 + 4, "c": 33, "r1": 32, "b": 33, "g1": 33}[name]
        published.to_rich()


def test_parts_of_the_cases_are_ours_too(play: Callable[..., Any]) -> None:
    records = [record for record in play(A2, "twin") if record.groups["source"] == "teaching"]
    published = next(each for each in table(A2, records, published=True) if each.name == "published")
    ours = published.rows[0]
    by = rows(table(A2, records, by="behaviour"), "by", "behaviour")
    for name in ("benign", "malignant"):
        cell = ours[f"behaviour_{name}"]
        assert isinstance(cell, Estimate)
        assert (cell.value, cell.n) == (by[name]["accuracy"], by[name]["items"])
        assert cell.n < len({record.item for record in records})
    assert ours["he_N"] is None


def test_tasks_pickle_by_their_name() -> None:
    for task in TASKS:
        assert pickle.loads(pickle.dumps(task)) is task


def test_two_collections_are_compared_by_rank(play: Callable[..., Any], published: Callable[[str], Any]) -> None:
    records = play(A2, "oracle", "content", "letter-b", "random")
    shown = sources_table(A2, records)
    assert shown.title == "casescope/a2: teaching beside atlas"
    assert [row["policy"] for row in shown.rows] == ["oracle", "content", "letter-b", "random", "mean", "Spearman"]
    rho = shown.rows[-1]["accuracy_rho"]
    assert isinstance(rho, Estimate)
    assert rho.n == 4
    blind = [record.model_copy(update={"policy": "blind", "budget": "text"}) for record in records]
    assert sources_table(A2, [*records, *blind]).rows == shown.rows
    one_teaching = [record for record in records if record.groups["source"] == "teaching"]
    with pytest.raises(RunError, match="cases are of teaching"):
        sources_table(A2, one_teaching)
    against = sources_table(A2, one_teaching, one_teaching)
    assert against.rows[-1]["accuracy_rho"].value == pytest.approx(1)  # type: ignore[union-attr]
    with pytest.raises(RunError, match="no policy has episodes"):
        sources_table(A2, one_teaching, [record for record in records if record.policy == "nobody"])
    # The paper's own rho comes out of its rounded figures (checks.md, 11).
    from wsigym.scoring.ranks import spearman

    models = published("casescope_tableS9_rotation_consistency")
    sides = [np.array([row[f"{first}_circular"] for row in models]) for first in "TA"]
    assert spearman(*sides) == pytest.approx(0.8282, abs=5e-5)


# -- judges ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def judged(play: Callable[..., Any], folder: Path, tmp_path: Path) -> tuple[Run, Cohort]:
    play(A1, "key", "oracle", "mute")
    return load_run(tmp_path / "run"), Cohort.load(folder)


def test_a_sheet_tells_the_case_and_not_who_answered(judged: tuple[Run, Cohort], tmp_path: Path) -> None:
    played, cohort = judged
    made = judge_sheet([played], cohort)
    assert (made.answers, made.without) == (2 * CASES, CASES)
    lines = list(csv.DictReader(made.sheet.splitlines()))
    assert [line["code"] for line in lines] == sorted(line["code"] for line in lines)
    assert {line["grade"] for line in lines} == {""}
    for hidden in ("oracle", "key,", "zq", *(record.item for record in played.records)):
        assert hidden not in made.sheet
    line = next(each for each in lines if each["reference"] == "Key" and each["diagnosis"] == "F1")
    assert (line["site"], line["synonyms"], line["behaviour"], line["differential"]) == (
        "left knee", "Keyword tumour", "malignant", "Key | Far",
    )  # fmt: skip
    assert "F2 (benign)" in line["family"]
    assert made == judge_sheet([played], cohort)
    assert made.key != judge_sheet([played], cohort, seed=1).key
    keys = list(csv.DictReader(made.key.splitlines()))
    unanswered = [line for line in keys if line["answered"] == "no"]
    assert [line["policy"] for line in unanswered] == ["mute"] * CASES
    assert {line["code"] for line in keys} - {line["code"] for line in unanswered} == {line["code"] for line in lines}


def graded(made: Sheet, folder: Path, grade: Callable[[dict[str, str], int], str]) -> tuple[Grades, Grades]:
    """The sheet with grades made of a line and the ontology's grade, and the key, as they are read."""
    (folder / "key.csv").write_text(made.key)
    key = read_grades(folder / "key.csv")
    lines = list(csv.DictReader(made.sheet.splitlines()))
    with (folder / "graded.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(line | {"grade": grade(line, int(key[line["code"]]["grade"]))} for line in lines)
    return read_grades(folder / "graded.csv"), key


def test_grades_give_agreement_and_the_papers_hds(judged: tuple[Run, Cohort], tmp_path: Path) -> None:
    """A judge who gives one grade more wherever F1 was said."""
    made = judge_sheet([judged[0]], judged[1])
    first, key = graded(made, tmp_path, lambda line, onto: str(min(2, onto + (line["diagnosis"] == "F1"))))
    agreement, models = agreement_tables(first, key, key)
    (row,) = agreement.rows
    alike = sum(line["grade"] == key[code]["grade"] for code, line in first.items())
    assert (row["answers"], row["coverage"]) == (2 * CASES, 1)
    assert row["exact"] == pytest.approx(alike / len(first))
    shown = rows([models], "judged")
    assert shown["oracle"]["hds"] == shown["oracle"]["onto"] == 1
    assert shown["key"]["hds"] == shown["key"]["judge"] == pytest.approx(shown["key"]["onto"] + 0.5)
    assert {shown["mute"][name] for name in ("judge", "onto", "hds")} == {0}
    assert {row["items"] for row in shown.values()} == {CASES}


def test_an_item_without_an_answer_counts(play: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    """HDS is over all items: where the judge adds nothing, it is the main table's, and all right with two unanswered
    is not 100."""
    records = play(A1, "sometimes", "mute", "oracle")
    main = rows(table(A1, records))
    silent = sum(record.score == 0 and record.outcome != "scored" for record in records if record.policy == "sometimes")
    assert 0 < silent < CASES
    made = judge_sheet([load_run(tmp_path / "run")], Cohort.load(folder))
    assert (made.answers, made.without) == (2 * CASES - silent, CASES + silent)
    for grade in (lambda _, onto: str(onto), lambda _, onto: "0"):
        first, key = graded(made, tmp_path, grade)
        shown = rows(agreement_tables(first, key, key), "judged")
        assert {policy: row["hds"] for policy, row in shown.items()} == pytest.approx(
            {policy: row["hds"] for policy, row in main.items()}
        )
        assert {policy: row["onto"] for policy, row in shown.items()} == pytest.approx(
            {policy: row["hds"] for policy, row in main.items()}
        )
    first, key = graded(made, tmp_path, lambda _, onto: "2")
    agreement, models = agreement_tables(first, key, key)
    shown = rows([models], "judged")
    assert shown["sometimes"]["hds"] == shown["sometimes"]["judge"] == pytest.approx((CASES - silent) / CASES)
    assert [shown["sometimes"][name] for name in ("items", "unanswered", "ungraded")] == [CASES, silent, 0]
    assert agreement.rows[0]["answers"] == 2 * CASES - silent


def test_an_answer_without_a_grade_has_the_ontologys(judged: tuple[Run, Cohort], tmp_path: Path) -> None:
    made = judge_sheet([judged[0]], judged[1])
    skipped = next(line["code"] for line in csv.DictReader(made.sheet.splitlines()) if line["diagnosis"] == "F1")
    first, key = graded(made, tmp_path, lambda line, onto: "" if line["code"] == skipped else "2")
    agreement, models = agreement_tables(first, key, key)
    assert agreement.rows[0]["coverage"] == pytest.approx((2 * CASES - 1) / (2 * CASES))
    row = rows([models], "judged")["key"]
    onto = int(key[skipped]["grade"]) / 2
    assert (row["ungraded"], row["judge"], row["hds"]) == (1, None, pytest.approx((CASES - 1 + onto) / CASES))


def test_nothing_graded_yet_says_what_to_do(judged: tuple[Run, Cohort], tmp_path: Path) -> None:
    made = judge_sheet([judged[0]], judged[1])
    (tmp_path / "sheet.csv").write_text(made.sheet)
    with pytest.raises(InvalidArgumentError, match=r"sheet\.csv: none of its 24 answers has a grade yet; write 0 \("):
        read_grades(tmp_path / "sheet.csv")
    first, key = graded(made, tmp_path, lambda line, onto: str(onto))
    other = {f"x{code}": line for code, line in first.items()}
    with pytest.raises(InvalidArgumentError, match="no answer has a grade in both"):
        agreement_tables(first, other)
    with pytest.raises(InvalidArgumentError, match=r"24 of the graded answers, such as 'x\w+', are not in the key"):
        agreement_tables(other, other, key)
    with pytest.raises(InvalidArgumentError, match="key has no column policy"):
        agreement_tables(first, first, first)


def test_faulty_grades_are_all_told(tmp_path: Path) -> None:
    file = tmp_path / "sheet.csv"
    file.write_text("code,grade\na,2\nb,3\na,x\n")
    with pytest.raises(CohortError) as caught:
        read_grades(file)
    assert [fault.line for fault in caught.value.faults] == [3, 4, 4]
    file.write_text("code,mark\na,2\n")
    with pytest.raises(CohortError, match="no column grade"):
        read_grades(file)
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        read_grades(tmp_path / "none.csv")


def test_a_sheet_is_of_a1_on_its_own_cohort(play: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    play(B, "oracle", out="b")
    with pytest.raises(RunError, match="judges grade casescope/a1"):
        judge_sheet([load_run(tmp_path / "b")], Cohort.load(folder))
    play(A1, "mute", out="mute")
    with pytest.raises(RunError, match="nothing to judge"):
        judge_sheet([load_run(tmp_path / "mute")], Cohort.load(folder))
    other = build_casescope(tmp_path / "other", told=[])
    build_items("casescope/a1", Cohort.load(other), Build())
    with pytest.raises(RunError, match="another cohort"):
        judge_sheet([load_run(tmp_path / "mute")], Cohort.load(other))
