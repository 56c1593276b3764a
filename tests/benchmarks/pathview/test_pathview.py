"""The suite through the runner: what is right, what chance is, tables, refusals, matched slides."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pathview_builder import boxes, build_sources, source
from record_builder import made_run, record

from wsigym.benchmarks.evidence_table import evidence_tables
from wsigym.benchmarks.pathview.matched import External, matched_table, read_external
from wsigym.benchmarks.pathview.measures import F1, F1_CHANCE, F1_TRUTH, MAE, MAE_PARSED, OVER, SAFE
from wsigym.benchmarks.pathview.refusals import refusals_table
from wsigym.benchmarks.pathview.tasks import COLUMNS, TASKS, TRAPS
from wsigym.benchmarks.records import EpisodeRecord
from wsigym.benchmarks.replay import replay
from wsigym.benchmarks.run_folder import load_run
from wsigym.benchmarks.runner import run
from wsigym.benchmarks.suites import find_task
from wsigym.benchmarks.tables import TableOptions
from wsigym.cohorts import Cohort
from wsigym.cohorts.builders.pathview import TASKS as RULES
from wsigym.cohorts.builders.pathview import build_pathview
from wsigym.errors import CohortError, InvalidArgumentError, RunError
from wsigym.scoring.chance import is_at_chance
from wsigym.scoring.intervals import Estimate

IMAGES = 20


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fields of twenty patients with all labels, and macro views with lesions, of two organs."""
    folder = tmp_path_factory.mktemp("pathview") / "c"
    names = [f"i{number:02d}" for number in range(IMAGES)]
    cells = []
    for number, name in enumerate(names):
        x, y = 100 * (number % 2), 100 * (number // 2 % 2)
        cells += [
            (name, label, x + 10 * k, y + 10 * k, x + 10 * k + 9, y + 10 * k + 9) for k, label in enumerate("TTTTL")
        ]
        cells.append((name, "G", 150 - x, 150 - y, 190 - x, 190 - y))
    lesions = [(name, "lesion", 10 + place, 10, 60, 60) for place, name in enumerate(names)]
    tables = {
        "images.csv": "image,file,patient,organ,slide\n"
        + "".join(f"{name},pathview/{name}.png,p{n},{('liver', 'lung')[n % 2]},w{n}\n" for n, name in enumerate(names)),
        "boxes.csv": boxes(*cells),
        "lesions.csv": boxes(*lesions),
    }
    text = source("fields", images="pathview/images.csv", organ=None) + source(
        "slides", "slide", images="pathview/images.csv", annotations="pathview/lesions.csv", organ=None
    )
    build_sources(folder, text, tables, images=names)
    build_pathview(Cohort.load(folder))
    return folder


@pytest.fixture(scope="module")
def play(cohort: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    def call(task: str, *policies: str, **more: Any) -> Path:
        out = tmp_path_factory.mktemp("runs") / "run"
        run(f"pathview/{task}", policies=policies, cohort=cohort, out=out, **more)
        return out

    return call


def test_the_table_of_tasks_is_the_builders(published: Callable[[str], list[dict[str, Any]]]) -> None:
    assert [task.name for task in TASKS] == [f"pathview/{rule.name}" for rule in RULES]
    assert len(TASKS) == 14
    columns = [name for name in published("pathview_table3_main")[0] if name[:2] in ("R_", "S_")]
    assert [column for column in COLUMNS.values() if column is not None] == columns
    codes = {f"pathview/{rule.name}": f"{rule.view[0].upper()}_{rule.code}" for rule in RULES}
    assert {name: column for name, column in COLUMNS.items() if column} == {
        name: code for name, code in codes.items() if name not in TRAPS
    }


@pytest.mark.parametrize("rule", [rule.name for rule in RULES if rule.name not in ("area-estimation",)])
def test_the_oracle_is_right_and_replays(play: Callable[..., Path], rule: str) -> None:
    out = play(rule, "oracle")
    records = load_run(out).records
    assert len(records) >= IMAGES / 2
    assert all(record.score == 1 and record.outcome == "scored" for record in records)
    assert replay(out, "0").agrees


@pytest.mark.parametrize(
    ("rule", "options"),
    [("region-classification", 5), ("organ-classification", 3), ("region-trap", 3), ("slide-trap", 5)],
)
def test_random_is_at_chance(play: Callable[..., Path], rule: str, options: int) -> None:
    records = load_run(play(rule, "random", seeds=range(15))).records
    kept = [record for record in records if record.metrics["options"] == options]
    assert len(kept) >= 100
    assert is_at_chance(sum(record.score == 1 for record in kept), len(kept), 1 / options)


def test_random_f1_is_near_its_chance(play: Callable[..., Path]) -> None:
    records = load_run(play("density-localization", "random", seeds=range(60))).records
    value = F1.of(records)
    assert isinstance(value, Estimate)
    chance = F1_CHANCE.of(records)
    assert isinstance(chance, float)
    assert value.value == pytest.approx(chance, abs=0.03)
    assert chance == pytest.approx(0.1778, abs=0.02)  # of a balanced truth


def test_frequent_gives_what_was_right_in_training(play: Callable[..., Path]) -> None:
    out = play("object-counting", "frequent", split="test")
    answers = {record.metrics["answered"] for record in load_run(out).records}
    assert len(answers) == 1
    assert answers <= {4, 1}


@pytest.mark.parametrize("policy", ["random", "frequent", "text-prior"])
def test_control_policies_describe_nothing(play: Callable[..., Path], policy: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"pathview/region-description asks .* which {policy} cannot give"):
        play("region-description", policy, split="test")


@pytest.mark.parametrize("name", [task.name for task in TASKS if task.name != "pathview/area-estimation"])
def test_tables_of_every_task(play: Callable[..., Path], name: str) -> None:
    out = play(name.partition("/")[2], "oracle")
    task = find_task(name)
    records = load_run(out).records
    first = evidence_tables(task, records, TableOptions())[0]
    best = first.rows[0][task.measures[0].key]
    assert isinstance(best, Estimate)
    assert best.value == (0 if "counting" in name else 1)
    table = evidence_tables(task, records, TableOptions(published=True))[1]
    if name in TRAPS:
        paper, ours = table.rows
        assert paper["paper"] == pytest.approx({"pathview/region-trap": 0.309, "pathview/slide-trap": 0.736}[name])
        assert (ours["model"], ours["ours"]) == ("oracle", best)
        assert "prints no safe refusal by model" in table.notes[0]
        assert "--refusals" in table.notes[0]
        return
    rows = {(row["model"], row.get("params"), row["group"]): row for row in table.rows}
    assert len(rows) == 22  # 21 of the paper, and the oracle
    ours = rows["oracle", None, "these runs"]["ours"]
    assert isinstance(ours, Estimate)
    assert ours.value == best.value
    assert (
        rows["Qwen3-VL", "8B", "PathView-tuned baseline"]["paper"]
        != rows["Qwen3-VL", "8B", "General-purpose MLLMs"]["paper"]
    )


def of(task: str, number: int, **metrics: Any) -> EpisodeRecord:
    """A record of an item about slide `number`; `score` and `outcome` are given among the metrics."""
    changes = {key: metrics.pop(key) for key in ("outcome", "policy") if key in metrics}
    given = record(metrics.pop("score", 0.0), suite="pathview", task=task, item=f"i{number}", budget="all", **changes)
    return given.model_copy(update={"metrics": {"options": 5, **metrics}, "groups": {"slide": f"s{number}"}})


def test_measures_by_hand() -> None:
    records = [
        of("object-counting", 0, truth=10, answered=12),
        of("object-counting", 1, truth=4, answered=None, outcome="unparsed", score=0.0),
        of("object-counting", 2, truth=3, answered=3, score=1.0),
    ]
    mae = MAE.of(records)
    assert isinstance(mae, Estimate)
    assert mae.value == pytest.approx((2 + 4 + 0) / 3)
    assert MAE_PARSED.of(records) == 1
    quadrants = [of("density-localization", k, truth=k, answered=4, insufficient=True) for k in range(4)]
    assert F1.of(quadrants).value == F1_TRUTH.of(quadrants) == 0  # type: ignore[union-attr]
    over = OVER.of([*quadrants[:1], of("density-localization", 9, outcome="refused", score=0.0), *records[2:]])
    assert isinstance(over, Estimate)
    assert over.value == pytest.approx(2 / 3)
    safe = SAFE.of([of("slide-trap", 0, insufficient=True), of("slide-trap", 1, outcome="refused", score=0.0)])
    assert isinstance(safe, Estimate)
    assert safe.value == 0.5


class Says:
    """Gives every item the same reply."""

    def __init__(self, reply: str) -> None:
        self._reply = reply

    def reset(self, observation: Any, info: Any) -> None:
        pass

    def act(self, observation: Any, info: Any) -> str:
        return self._reply


@pytest.mark.parametrize(
    ("reply", "safe", "over"),
    [
        ("Insufficient information", 1, 1),
        ("I cannot determine this from the image.", 1, 1),  # a phrase for it is read as the option
        ("I'm sorry, but I can't help with medical images.", 0, 1),
        ("It is a nice picture.", 0, 0),
    ],
)
def test_insufficiency_is_said_by_option_or_phrase(play: Callable[..., Path], reply: str, safe: int, over: int) -> None:
    runs = [
        load_run(play(task, "model", make_policy=lambda name: Says(reply)))
        for task in ("region-trap", "region-classification", "object-counting")
    ]
    trap = runs[0]
    assert [record.score == 1 for record in trap.records] == [bool(safe)] * len(trap.records)
    row = refusals_table(runs).rows[0]
    assert row["safe"] == safe
    assert row["over"] == over
    estimate = SAFE.of(trap.records)
    assert isinstance(estimate, Estimate)
    assert estimate.value == safe


def test_refusals_of_several_tasks(play: Callable[..., Path], tmp_path: Path) -> None:
    runs = [
        load_run(play(task, "oracle")) for task in ("region-trap", "slide-trap", "object-counting", "spatial-relation")
    ]
    table = refusals_table(runs)
    oracle, paper = table.rows
    assert (oracle["safe"], oracle["over"]) == (1, 0)
    assert oracle["pathview/slide-trap"] == 1
    assert paper["over"] == pytest.approx(0.124)
    assert paper["pathview/slide-trap"] == pytest.approx(0.736)
    assert [column.key for block in table.blocks for column in block.columns][2:] == [
        "pathview/region-trap", "pathview/slide-trap", "pathview/object-counting", "pathview/spatial-relation",
    ]  # fmt: skip


def test_matched_slides(play: Callable[..., Path], tmp_path: Path) -> None:
    out = play("lesion-grounding", "oracle", "random")
    rows = [
        {"policy": policy, "slide": f"w{n}", "correct": n < 5} for policy in ("oracle", "random") for n in range(10)
    ]
    rows.append({"policy": "oracle", "slide": "w9", "correct": True})  # another question on a slide
    rows.append({"policy": "random", "slide": "w0", "correct": False})
    path = tmp_path / "external.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    table = matched_table([load_run(out)], read_external(path))
    oracle, other, paper = table.rows  # controls are in no mean over models
    assert (oracle["slides"], oracle["kept"], other["kept"]) == (10, 6, 5)
    assert isinstance(oracle["matched"], Estimate)
    assert isinstance(other["matched"], Estimate)
    assert oracle["matched"].value == 1
    assert paper["matched"] == 0.274
    with pytest.raises(InvalidArgumentError, match="object-counting is no task of pathview on slides"):
        matched_table([load_run(play("object-counting", "oracle"))], read_external(path))


def lesions(policy: str, score: float, **fields: Any) -> list[EpisodeRecord]:
    given = [of("lesion-grounding", number, score=score, policy=policy, named=1) for number in range(6)]
    return [record.model_copy(update=fields) for record in given]


def external(*policies: tuple[str, str | None]) -> External:
    return {(policy, endpoint, f"s{number}"): number < 5 for policy, endpoint in policies for number in range(6)}


def test_the_mean_of_matched_slides_is_over_models_and_not_over_controls() -> None:
    players = [("agent:answerer", "a", 0.2), ("agent:answerer", "b", 0.6), ("agent:answerer+blind-images", "a", 0.0),
               ("random", None, 0.1), ("frequent", None, 0.1), ("oracle", None, 1.0), ("mine", None, 0.7)]  # fmt: skip
    records = [each for policy, endpoint, score in players for each in lesions(policy, score, endpoint=endpoint)]
    run = made_run(records, suite="pathview", task="lesion-grounding")
    table = matched_table([run], external(*((policy, endpoint) for policy, endpoint, _ in players)))
    assert len(table.rows) == len(players) + 2
    mean = table.rows[-2]
    assert (mean["policy"], mean["matched"]) == ("mean over 3 models", pytest.approx((0.2 + 0.6 + 0.7) / 3))
    assert any("controls are in no mean over models" in note for note in table.notes)
    assert "of no episode" not in " ".join(table.notes)


def test_external_answers_of_other_names_are_told_beside_those_of_the_runs() -> None:
    run = made_run(lesions("mine", 0.5), suite="pathview", task="lesion-grounding")
    with pytest.raises(InvalidArgumentError) as caught:
        matched_table([run], external(("mien", "m")))
    said = str(caught.value)
    assert "the file has policy mien; endpoint m; slide s0, s1, s2, s3, s4 and 1 more" in said
    assert "the runs have policy mine; no endpoint; slide s0, s1, s2, s3, s4 and 1 more" in said
    found = matched_table([run], external(("mine", None), ("mien", None)))
    assert any(
        "6 external answers are of no episode of the runs: policy mien; no endpoint" in note for note in found.notes
    )


def test_items_that_tell_no_slide_cannot_be_matched() -> None:
    run = made_run(lesions("mine", 0.5, groups={"patient": "p"}), suite="pathview", task="lesion-grounding")
    with pytest.raises(InvalidArgumentError, match=r"tell no slide.*column `slide`"):
        matched_table([run], {("mine", None, "None"): True})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no answer"),
        ("{", r"external.jsonl:1: not JSON"),
        ("[]", "found a list"),
        ('{"policy": "p", "slide": "s", "correct": 1}', r"external.jsonl:1: correct: found 1; true or false"),
        ('\n{"policy": 3, "slide": "s", "correct": true}', r"external.jsonl:2: policy: found 3; text"),
    ],
)
def test_external_answers_that_are_none(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "external.jsonl"
    path.write_text(text)
    with pytest.raises(CohortError, match=words):
        read_external(path)


def test_refusals_are_pathviews(tmp_path: Path) -> None:
    from types import SimpleNamespace

    other = SimpleNamespace(name="r", config=SimpleNamespace(suite="evipath", task="integration"))
    with pytest.raises(RunError, match="r is a run of evipath/integration"):
        refusals_table([other])  # type: ignore[list-item]
