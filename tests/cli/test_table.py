"""`wsigym table`: what is printed, for people and for machines, and one clear line for bad input."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from record_builder import agent_record, patients, record, request, written_run

from wsigym.benchmarks.run_folder import ItemsStamp
from wsigym.cli import main

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """`wsigym table ARGUMENTS`: the exit code, and what was printed on stdout and stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["wsigym", "table", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """Six patients, two budgets, one infrastructure error."""
    scores = [0.1, 0.2, 0.5, 0.4, 0.0, 0.6]
    tight = patients(scores, budget="tight", confidence=0.5)
    base = patients([*(score + 0.2 for score in scores[:5]), None], budget="base")
    return written_run(tmp_path / "R", tight + base)


def test_the_table_for_people(call: Call, run_folder: Path) -> None:
    code, printed, err = call(run_folder)
    assert (code, err) == (0, "")
    lines = [line.strip() for line in printed.splitlines()]
    assert "looker  tight   0.300 [0.13, 0.47]  0.300 [0.13, 0.47]" in lines
    assert any(line.startswith("looker  base - tight  +0.200 [0.200, 0.200]*") for line in lines)
    assert "[low, high]: 95 % percentile bootstrap over patients, 2,000 draws, seed 0; rough" in printed
    assert max(map(len, printed.splitlines())) <= 120


def test_all_of_it(call: Call, run_folder: Path) -> None:
    code, printed, _ = call(run_folder, "--causes", "--confidence", "--budgets", "--published", "--by", "organ")
    assert code == 0
    for heading in ("by organ", "What became of", "stated confidence", "against the budget", "The paper beside"):
        assert heading in printed
    assert max(map(len, printed.splitlines())) <= 120


def test_json(call: Call, run_folder: Path) -> None:
    code, printed, _ = call(run_folder, "--json", "--causes")
    tables = {table["name"]: table for table in json.loads(printed)["tables"]}
    assert (code, list(tables)) == (0, ["localization", "paired", "causes"])
    base = tables["localization"]["rows"][1]
    assert (base["budget"], base["infrastructure_error"]) == ("base", 1)
    assert base["iou"]["value"] == pytest.approx(0.44)


def test_csv_is_one_table(call: Call, run_folder: Path) -> None:
    code, printed, _ = call(run_folder, "--csv")
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert (code, [row["budget"] for row in rows]) == (0, ["tight", "base"])
    assert float(rows[0]["iou"]) == pytest.approx(0.3)
    _, printed, _ = call(run_folder, "--csv", "--confidence")
    assert next(csv.DictReader(io.StringIO(printed)))["stated"] == "6"
    _, printed, _ = call(run_folder, "--csv", "--by", "organ")
    assert next(csv.DictReader(io.StringIO(printed)))["organ"] == "Lung"


def test_csv_of_the_evidence_shown_is_that_of_budgets(call: Call, tmp_path: Path) -> None:
    few = [record(1.0, task="integration", budget="all", metrics={"options": 4}, patient=f"p{i}") for i in range(6)]
    folder = written_run(tmp_path / "E", few, task="integration")
    code, printed, _ = call(folder, "--csv", "--budgets")
    (row,) = csv.DictReader(io.StringIO(printed))
    assert (code, row["budget"], row["accuracy"]) == (0, "all", "1.0")
    assert "difference" in row


def test_what_agents_took_stands_below_and_is_a_table_of_its_own(call: Call, tmp_path: Path) -> None:
    records = [agent_record(0.5, request(), patient=f"p{i}", slide=f"s{i}") for i in range(3)]
    folder = written_run(tmp_path / "A", [*records, *patients([0.1, 0.2, 0.3])])
    code, printed, _ = call(folder, "--deployment", "--json")
    names = [table["name"] for table in json.loads(printed)["tables"]]
    assert (code, names) == (0, ["localization", "cost", "deployment"])
    code, printed, _ = call(folder, "--csv", "--cost")
    (row,) = csv.DictReader(io.StringIO(printed))
    assert (code, row["policy"], row["usd_total"], row["tokens_cached_mean"]) == (0, "agent:localizer", "0.03", "")
    code, printed, _ = call(folder, "--deployment")
    assert (code, "What the agents took" in printed, "Set-ups side by side" in printed) == (0, True, True)
    assert max(map(len, printed.splitlines())) <= 120


def test_two_runs_are_joined(call: Call, run_folder: Path, tmp_path: Path) -> None:
    other = written_run(tmp_path / "S", patients([0.9] * 6, policy="other"))
    code, printed, _ = call(run_folder, other, "--json")
    rows = json.loads(printed)["tables"][0]["rows"]
    assert (code, [row["policy"] for row in rows]) == (0, ["looker", "looker", "other"])


def test_common_keeps_what_all_have(call: Call, run_folder: Path, tmp_path: Path) -> None:
    items = ItemsStamp(count=2, sha256="fewer")
    other = written_run(tmp_path / "S", patients([0.9, 0.9], policy="other"), items=items)
    code, _, err = call(run_folder, other)
    assert (code, len(err.splitlines())) == (2, 1)
    assert "the runs ask different items" in err
    code, printed, _ = call(run_folder, other, "--common", "--json")
    assert [row["queries"] for row in json.loads(printed)["tables"][0]["rows"]] == [2, 2, 2]


def test_one_policy_against_another_on_some_groups(call: Call, run_folder: Path, tmp_path: Path) -> None:
    records = [*patients([0.1] * 6), *patients([0.4] * 6, policy="other")]
    folder = written_run(tmp_path / "two", records)
    arguments = (folder, "--against", records[0].policy, "--where", "magnification=10")
    code, printed, _ = call(*arguments)
    assert (code, "+0.300" in printed) == (0, True)
    _, printed, _ = call(*arguments, "--csv")
    (row,) = csv.DictReader(io.StringIO(printed))
    assert (row["policy"], float(row["difference"])) == ("other", pytest.approx(0.3))


@pytest.fixture
def tasks(tmp_path: Path) -> dict[str, Path]:
    """Runs of a search and of an evidence task: six patients, of two organs, and two policies."""
    tiles = {"positives_10x": 10, "reached_10x": 5, "tiles_viewed": 50, "tile_px": 128, "skip_empty": True}
    search, evidence = (
        [
            record(
                0.5,
                task=task,
                policy=policy,
                budget=budget,
                item=f"i{number}",
                patient=f"p{number}",
                slide=f"s{number}",
                organ="colon" if number else "head and neck",
                metrics={**tiles, "retained_10x": kept, "correct": True, "options": 4},
            )
            for policy, kept in (("random", 1), ("other", 3))
            for number in range(6)
        ]
        for task, budget in (("exploration", "K=6,3,2"), ("interpretation", "all"))
    )
    return {
        "exploration": written_run(tmp_path / "search", search, task="exploration"),
        "interpretation": written_run(tmp_path / "evidence", evidence, task="interpretation"),
    }


def test_one_policy_against_another_in_exploration(call: Call, tasks: dict[str, Path]) -> None:
    code, printed, _ = call(tasks["exploration"], "--against", "random")
    assert code == 0
    assert "Minus random at the same budget: difference of hit rates on the same slides" in printed
    assert "other   K=6,3,2  +20.00 [20.00, 20.00]*" in printed
    assert "other   K=6,3,2  +40.00 [40.00, 40.00]*" in printed
    assert max(map(len, printed.splitlines())) <= 120
    _, printed, _ = call(tasks["exploration"], "--against", "random", "--csv")
    (row,) = csv.DictReader(io.StringIO(printed))
    assert (row["policy"], float(row["difference_conditional_10x"])) == ("other", pytest.approx(0.4))


@pytest.mark.parametrize(("task", "counted"), [("exploration", "slides"), ("interpretation", "items")])
def test_some_groups_of_any_task(call: Call, tasks: dict[str, Path], task: str, counted: str) -> None:
    for where, left in (("organ=colon", 5), ("organ = colon, head and neck", 6), ("slide=s0,s3", 2)):
        code, printed, _ = call(tasks[task], "--where", where, "--json")
        assert code == 0
        assert [row[counted] for row in json.loads(printed)["tables"][0]["rows"]] == [left, left]
    _, printed, _ = call(tasks[task], "--where", "organ=colon", "--where", "slide=s3,s0", "--json")
    assert [row[counted] for row in json.loads(printed)["tables"][0]["rows"]] == [1, 1]
    code, _, err = call(tasks[task], "--where", "organ=colon", "--where", "slide=s0")
    assert (code, err) == (2, "wsigym: no episode is in all of --where organ=colon --where slide=s0; name fewer.\n")
    code, _, err = call(tasks[task], "--where", "organ=colon", "--where", "organ = head and neck")
    assert (code, err) == (2, "wsigym: --where names organ twice; give it once: organ=colon,head and neck.\n")
    for where, said in (
        ("organ=colom", "unknown organ 'colom'. Did you mean 'colon'? Known: head and neck, colon."),
        ("slide=s0,s9", "unknown slide 's9'"),
        ("organs=colon", "unknown field 'organs'. Did you mean 'organ'? Known: magnification, organ, patient"),
        ("organ", "--where organ: allowed is FIELD=NAME or FIELD=NAME,NAME"),
    ):
        code, _, err = call(tasks[task], "--where", where)
        assert (code, len(err.splitlines())) == (2, 1)
        assert said in err


def test_the_plot_is_a_png(call: Call, run_folder: Path, tmp_path: Path) -> None:
    code, _, _ = call(run_folder, "--plot", tmp_path / "curve.png")
    assert code == 0
    with Image.open(tmp_path / "curve.png") as picture:
        assert picture.format == "PNG"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{missing}"], "is not a run folder: it has no run.json"),
        (["{run}", "{run}"], "one episode is in both"),
        (["{run}", "--by", "organs"], "Did you mean 'organ'?"),
        (["{run}", "--against", "nobody"], "unknown policy to hold others against 'nobody'"),
        (["{run}", "--where", "organ=Skin"], "unknown organ 'Skin'"),
        (["{run}", "--where", "organ="], "unknown organ ''"),
        (["{run}", "--against", "looker"], "nothing to hold against looker: it played at tight, base, other policies"),
        (["{run}", "--csv", "--json"], "--csv prints one table"),
        (["{run}", "--csv", "--causes", "--budgets"], "asked for beside --causes, --budgets"),
        (["{run}", "--plot", "{missing}/x.png"], "the picture cannot be written"),
        (["{run}", "--cost"], "no agent played"),
        (["{run}", "--deployment"], "no agent played"),
        (["{empty}"], "no episode has finished in"),
        (["{unknown}"], "unknown task 'evipath/other'"),
    ],
)
def test_bad_input_is_one_clear_line(
    call: Call, run_folder: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    folders = {
        "run": run_folder,
        "missing": tmp_path / "missing",
        "empty": written_run(tmp_path / "empty", []),
        "unknown": written_run(tmp_path / "unknown", [record(0.1, task="other")], task="other"),
    }
    code, _, err = call(*(argument.format(**folders) for argument in arguments))
    assert (code, len(err.splitlines())) == (2, 1)
    assert said in err


def test_without_a_run_it_says_how_to_call_it(call: Call) -> None:
    code, _, err = call()
    assert code == 2
    assert "Missing argument 'RUN'" in err
