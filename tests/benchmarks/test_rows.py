"""From records to rows: joining runs, units, groups."""

from __future__ import annotations

from pathlib import Path

import pytest
from record_builder import made_run, patients, record, written_run

from wsigym.benchmarks.records import StepRecord
from wsigym.benchmarks.rows import (
    UNKNOWN,
    common_items,
    differing_rows_note,
    group_of,
    interval_note,
    join_runs,
    mean_of,
    row_of,
    scored,
    unit_of,
)
from wsigym.benchmarks.run_folder import ItemsStamp, load_run
from wsigym.errors import RunError, UnknownNameError

OTHER = ItemsStamp(count=3, sha256="other items")


def test_runs_with_the_same_items_are_joined_in_the_order_of_their_policies() -> None:
    first = made_run(patients([0.1, 0.2], policy="b"), "R1", policies=("a", "b"))
    second = made_run(patients([0.3, 0.4], policy="c") + patients([0.5, 0.6], policy="a"), "R2", policies=("c", "a"))
    joined = join_runs([first, second])
    assert [entry.policy for entry in joined] == ["a", "a", "b", "b", "c", "c"]
    assert [entry.score for entry in joined] == [0.5, 0.6, 0.1, 0.2, 0.3, 0.4]


def test_runs_of_different_items_are_refused_by_name_unless_common() -> None:
    first = made_run(patients([0.1, 0.2], policy="a"), "R1")
    second = made_run(patients([0.3, 0.4, 0.5], policy="b"), "R2", items=OTHER, subset="3")
    with pytest.raises(RunError, match=r"R1 \(2 items of subset all\), R2 \(3 items of subset 3\).*--common"):
        join_runs([first, second])
    joined = join_runs([first, second], common=True)
    assert [(entry.policy, entry.item) for entry in joined] == [
        ("a", "s0/10x"),
        ("a", "s1/10x"),
        ("b", "s0/10x"),
        ("b", "s1/10x"),
    ]


def test_an_episode_in_two_runs_is_refused_by_name() -> None:
    runs = [made_run(patients([0.1]), "R1"), made_run(patients([0.2]), "R2")]
    with pytest.raises(RunError, match=r"both R1 and R2: .*item s0/10x.*policy looker, budget base, seed 0"):
        join_runs(runs)
    with pytest.raises(RunError, match="both R1 and R1"):
        join_runs([made_run(patients([0.1]), "R1"), made_run(patients([0.1]), "R1")])
    assert len(join_runs([runs[0], made_run(patients([0.2], seed=1), "R2")])) == 2


def test_changed_references_are_refused() -> None:
    runs = [made_run(patients([0.1]), "R1"), made_run(patients([0.2], seed=1), "R2", references_sha256="changed")]
    with pytest.raises(RunError, match="references of R1, R2 differ"):
        join_runs(runs)


def test_runs_of_different_environments_are_refused_by_argument() -> None:
    first = made_run(patients([0.1]), "R1", env={"target": "tumour", "tile_px": 128})
    same = made_run(patients([0.2], seed=1), "R2", env={"target": "tumour", "tile_px": 128})
    other = made_run(patients([0.3], seed=2), "R3", env={"target": "necrosis", "tile_px": 128})
    assert len(join_runs([first, same])) == 2
    for common in (False, True):
        with pytest.raises(RunError, match=r'R1 and R3 have different environments.*: target is "tumour" and "necr'):
            join_runs([first, same, other], common=common)


def test_two_tasks_are_refused() -> None:
    other = made_run(patients([0.2], task="exploration"), "R2", task="exploration")
    with pytest.raises(RunError, match=r"evipath/localization \(R1\), evipath/exploration \(R2\)"):
        join_runs([made_run(patients([0.1]), "R1"), other])


def test_a_run_without_an_episode_is_refused() -> None:
    with pytest.raises(RunError, match="no episode has finished in R1"):
        join_runs([made_run([], "R1")])


def test_common_items_are_those_with_a_score_in_every_row() -> None:
    tight = patients([0.1, 0.2, None], budget="tight")
    base = patients([0.3, None, 0.5], budget="base") + patients([0.3, 0.6, 0.5], budget="base", seed=1)
    kept = common_items(tight + base)
    # The second seed scores what the first lost at base; at tight the third patient has no score at all.
    assert {entry.item for entry in kept} == {"s0/10x", "s1/10x"}
    assert len(kept) == 6


def test_nothing_in_common_is_refused() -> None:
    with pytest.raises(RunError, match="no item has a score in every row"):
        common_items([record(0.1, slide="a"), record(0.1, slide="b", policy="other")])
    with pytest.raises(RunError, match="no item has a score in every row"):
        common_items([record(None)])


def test_the_unit_is_the_patient_or_else_the_slide() -> None:
    assert unit_of(record(0.1, patient="7", slide="s")) == ("patient", "7")
    assert unit_of(record(0.1, patient=None, slide="7")) == ("slide", "7")


def test_infrastructure_errors_have_no_score_and_zero_has_one() -> None:
    records = [record(0.0), record(None), record(0.4, outcome="scored"), record(0.0, outcome="invalid")]
    assert [entry.score for entry in scored(records)] == [0.0, 0.4, 0.0]
    assert mean_of(records, lambda entry: entry.score).value == pytest.approx(0.4 / 3)


def test_groups_have_names() -> None:
    records = [record(0.1, organ="Lung"), record(0.1, organ=None), record(0.1, magnification=2.5)]
    assert [group_of("organ", records)(entry) for entry in records] == ["Lung", UNKNOWN, "Lung"]
    assert [group_of("magnification", records)(entry) for entry in records] == ["10x", "10x", "2.5x"]


def test_an_unknown_field_gets_a_near_match() -> None:
    with pytest.raises(UnknownNameError, match=r"'orgam'. Did you mean 'organ'\?"):
        group_of("orgam", [record(0.1)])


def test_the_note_says_what_is_resampled_and_how_well() -> None:
    def note(scores: list[float], **fields: object) -> str:
        records = patients(scores, **fields)
        return interval_note(records, [mean_of(records, lambda entry: entry.score)])

    start = "[low, high]: 95 % percentile bootstrap over "
    assert note([0.1] * 20) == f"{start}patients, 2,000 draws, seed 0."
    assert note([0.1] * 19).endswith("; rough where they rest on fewer than 20 of them (the smallest such cell: 19).")
    assert note([0.1] * 4).endswith("; [-] under 5 of them.")
    slides = [record(0.1, patient=None, slide=f"s{i}") for i in range(20)]
    assert interval_note(slides, []).startswith(f"{start}slides (patients unknown), ")
    assert interval_note([*slides, record(0.1)], []).startswith(f"{start}patients and slides, ")


def test_rows_on_different_items_are_noted() -> None:
    same = patients([0.1, 0.2], policy="a") + patients([0.1, 0.2], policy="b")
    assert differing_rows_note(same) == []
    assert "--common" in differing_rows_note([*same, record(0.3, slide="extra", policy="a")])[0]


def test_a_row_is_a_policy_an_endpoint_and_a_budget() -> None:
    assert row_of(record(0.1, policy="agent", endpoint="local", budget="3")) == ("agent", "local", "3")


def test_records_read_without_steps_are_the_same_but_for_them(tmp_path: Path) -> None:
    step = StepRecord(action={"tool": 0}, roi=(1, 2, 3, 4), act_seconds=0.1, step_seconds=0.2)
    written = [record(0.5, steps=(step,) * 3, confidence=0.25), record(None, slide="t", error="broken")]
    folder = written_run(tmp_path / "R", written)
    assert load_run(folder).records == tuple(written)
    without = load_run(folder, steps=False).records
    assert [entry.model_dump() for entry in without] == [entry.model_dump() | {"steps": ()} for entry in written]
