"""The paper's figures beside ours: as they are printed, and "-" where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from record_builder import patients

from wsigym.benchmarks.evipath.localization_published import published_table
from wsigym.benchmarks.published_facts import PublishedFact, published_facts
from wsigym.benchmarks.records import EpisodeRecord
from wsigym.errors import UnknownNameError


def ours(records: list[EpisodeRecord]) -> dict[str, object]:
    return {str(row["fact"]): row.get("ours") for row in published_table(records).rows}


def test_the_papers_figures_are_as_printed() -> None:
    rows = {row["fact"]: row for row in published_table(patients([0.5])).rows}
    assert {fact: row["paper"] for fact, row in rows.items()} == {
        "slides": "50",
        "ROIs, base budget": "10,7,5",
        "IoU of a hit": "0.3",
        "centre of the search box, mean IoU": "0.25-0.28",
        "best model, mean IoU": "0.09",
        "centre over best model": "3-4x",
        "Patho-R1, mean IoU": "0.0",
        "colorectum, mean IoU": "0.16",
        "seconds": "41.0-221.6",
    }
    assert str(rows["best model, mean IoU"]["note"]).startswith("no VLM exceeds")


def test_what_these_runs_do_not_have_is_missing_and_not_zero() -> None:
    found = ours(patients([0.5, 0.5]))
    assert (found["slides"], found["IoU of a hit"], found["ROIs, base budget"]) == ("2", "0.3", "10,7,5")
    assert [found[fact] for fact in found if "mean IoU" in fact] == [None] * 4
    assert (found["seconds"], found["centre over best model"]) == (None, None)


def test_the_centre_at_10x_and_40x_and_models_at_the_base_budget() -> None:
    centre = patients([0.2], policy="search-centre") + patients([0.3], policy="search-centre", magnification=40.0)
    centre += patients([0.9], policy="search-centre", magnification=2.5)
    models = patients([0.1], policy="agent:localizer", endpoint="m1") + patients([0.05], policy="a", endpoint="m2")
    loose = patients([0.8], policy="agent:localizer", endpoint="m1", budget="loose")
    blind = patients([0.7], policy="agent:localizer+blind-images", endpoint="m1")
    found = ours(centre + models + loose + blind)
    assert found["centre of the search box, mean IoU"] == "0.20-0.30"
    assert found["best model, mean IoU"] == "0.10"
    assert found["centre over best model"] == "2.0-3.0x"
    assert found["seconds"] == "2.0"


def test_a_model_that_finds_nothing_has_no_ratio() -> None:
    centre, model = patients([0.2], policy="search-centre"), patients([0.0], policy="a", endpoint="m")
    assert ours(centre + model)["best model, mean IoU"] == "0.00"
    assert ours(centre + model)["centre over best model"] is None


def test_facts_are_read_with_their_notes() -> None:
    facts = published_facts("evipath_prose_facts")
    assert facts["T3A.max_vlm_iou"] == PublishedFact(0.09, "no VLM exceeds")
    assert facts["T3A.budget"].value == "10,7,5"


def test_the_packaged_facts_are_those_of_the_specification(shared_data: Path) -> None:
    source = shared_data.parent / "spec" / "published" / "evipath_prose_facts.json"
    rows = json.loads(source.read_text())["rows"]
    assert {key: (fact.value, fact.note) for key, fact in published_facts("evipath_prose_facts").items()} == {
        key: (value, note) for key, value, note in rows
    }


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="evipath_prose_facts"):
        published_facts("evipath_prose")
