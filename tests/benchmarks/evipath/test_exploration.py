"""The task evipath/exploration, from a run to its tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shapely import box
from stub_policies import ScoresThenGivesUp
from tumour_builder import build_tumour_cohort, write_regions, write_tumour_slide

from wsigym.baselines.tile_calibration import Calibration
from wsigym.benchmarks.evipath.exploration import Exploration, tile_metrics
from wsigym.benchmarks.evipath.exploration_table import exploration_curve, exploration_tables
from wsigym.benchmarks.published_facts import published_facts
from wsigym.benchmarks.records import EpisodeRecord
from wsigym.benchmarks.replay import episode_names, replay
from wsigym.benchmarks.run_folder import load_run
from wsigym.benchmarks.runner import run
from wsigym.benchmarks.tables import TableOptions
from wsigym.benchmarks.task import choose_items
from wsigym.cohorts import Cohort
from wsigym.cohorts.exploration import ExplorationReference, exploration_references
from wsigym.cohorts.tiles import TileGrid
from wsigym.envs.exploration import ViewedTile
from wsigym.errors import CohortError, InvalidArgumentError, RunError, UnknownNameError
from wsigym.scoring.hit_rates import carried_over
from wsigym.scoring.intervals import Estimate

SMALL = {"tile_px": 32, "view_px": 36, "overview_px": 64}
POLICIES = ("random", "oracle", "best-first:oracle", "stain-density", "beam:stain-density")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tumour_cohort(tmp_path_factory.mktemp("tumours"))


@pytest.fixture(scope="module")
def played(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "run"
    summary = run("evipath/exploration", policies=POLICIES, out=out, cohort=folder, env_arguments=SMALL)
    assert (summary.played, summary.failed) == (10, 0)
    return out


def record_of(folder: Path, policy: str, item: str) -> EpisodeRecord:
    return next(record for record in load_run(folder).records if (record.policy, record.item) == (policy, item))


def test_the_oracles_record(played: Path) -> None:
    record = record_of(played, "oracle", "positive")
    metrics = record.metrics
    counts = [
        [metrics[f"{name}_{scale}"] for name in ("positives", "reached", "retained")] for scale in ("2.5x", "10x")
    ]
    assert counts == [[2, 2, 2], [17, 17, 6]]
    assert metrics["retained_40x"] == 12
    # Seventeen positives under two parents, of which three each are kept: the rest were a Yes, but outranked.
    assert [metrics[f"{name}_10x"] for name in ("said_no", "outranked", "not_shown", "pruned_2.5x")] == [0, 11, 0, 0]
    assert metrics["pruned_10x_40x"] == metrics["positives_40x"] - metrics["reached_40x"]
    assert metrics["auroc_10x"] == 1
    assert (metrics["best_k_10x"], metrics["best_k_of_10x"]) == (6, 17)
    # Tissue ends at x = 1400: of the second parent's tiles (x 1024-1536) three columns of four are shown.
    assert metrics["tiles_viewed"] == 12 + (16 + 12) + 6 * 16
    assert record.budget == "K=6,3,2"
    assert record.score == pytest.approx(np.mean([1, 6 / 17, 12 / metrics["positives_40x"]]))
    assert metrics["skip_empty"] is True


def test_a_negative_slide_has_no_rate_but_counts_elsewhere(played: Path) -> None:
    record = record_of(played, "oracle", "negative")
    assert record.score == 0
    assert record.metrics["positives_2.5x"] == 0
    assert record.metrics["auroc_2.5x"] is None
    assert record.metrics["tiles_viewed"] == 12


def test_searches_get_the_tiles_that_the_cascade_viewed_with_the_same_scorer(played: Path) -> None:
    for search, scorer in (("best-first:oracle", "oracle"), ("beam:stain-density", "stain-density")):
        for item in ("positive", "negative"):
            record, cascade = record_of(played, search, item), record_of(played, scorer, item)
            assert record.budget == "tiles=6,3,2"
            assert record.metrics["tiles_allowed"] == cascade.metrics["tiles_viewed"]
            assert record.metrics["tiles_viewed"] <= cascade.metrics["tiles_viewed"]
            assert record.options == {"slide_id": item, "tiles": cascade.metrics["tiles_viewed"]}
    # The oracle says No to most tiles, so that its cascade views few: no tile by a slide's size, as a bound would.
    assert record_of(played, "best-first:oracle", "positive").metrics["tiles_viewed"] == 12 + (16 + 12) + 6 * 16
    assert record_of(played, "best-first:oracle", "negative").metrics["tiles_viewed"] == 12
    assert record_of(played, "best-first:oracle", "positive").metrics["retained_40x"] == 36


def test_a_search_without_a_cascade_of_its_own_needs_a_number(folder: Path, tmp_path: Path) -> None:
    class Search:
        def reset(self, observation: Any, info: Any) -> None:
            pass

        def act(self, observation: Any, info: Any) -> dict[str, Any]:
            return {"scores": np.zeros(16), "next": 63}

    arguments: dict[str, Any] = {"cohort": folder, "env_arguments": SMALL, "make_policy": lambda name: Search()}
    summary = run("evipath/exploration", policies=["best-first:mine"], out=tmp_path / "a", **arguments)
    assert summary.failed == 2
    assert "no `in_cascade`" in str(summary.first_error)
    numbered = run(
        "evipath/exploration", policies=["best-first:mine"], budgets=["tiles=50"], out=tmp_path / "b", **arguments
    )
    assert (numbered.played, numbered.failed) == (2, 0)


def test_a_search_keeps_36_whatever_the_budget(folder: Path, tmp_path: Path) -> None:
    budgets = ["loose", "tiles=150", "tiles=all"]
    run(
        "evipath/exploration",
        policies=["best-first:stain-density"],
        budgets=budgets,
        out=tmp_path / "run",
        cohort=folder,
        env_arguments=SMALL,
    )
    kept = {
        record.budget: len([box for box in record.steps[-1].kept or () if box[2] == 32])
        for record in load_run(tmp_path / "run").records
        if record.item == "positive"
    }
    assert kept == {"tiles=10,5,3": 36, "tiles=150": 36, "tiles=all": 36}


def test_each_step_records_verdict_and_score_of_its_tiles(played: Path) -> None:
    record = record_of(played, "oracle", "positive")
    first = record.steps[0]
    assert first.view_magnification == 2.5
    assert first.tiles is not None
    assert [tile.box for tile in first.tiles][:2] == [(0, 0, 512, 512), (512, 0, 512, 512)]
    # 320 x 200 px of the first tile's 512 x 512 are tumour; none of the second's.
    assert (first.tiles[0].yes, first.tiles[0].score) == (True, round(320 * 200 / 512**2, 6))
    assert (first.tiles[1].yes, first.tiles[1].score) == (False, 0)
    scored = [tile.box for step in record.steps for tile in step.tiles or ()]
    assert len(scored) == len(set(scored)) == record.metrics["tiles_viewed"]
    assert [step.kept is not None for step in record.steps] == [False] * (len(record.steps) - 1) + [True]
    assert len(record.steps[-1].kept or ()) == 2 + 6 + 12
    assert record.steps[-1].view_magnification == 40


def test_metrics_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 x 2 tiles of 20 px, each of 2 x 2 of 10; tumour in the top left tile and in one child of the bottom right."""
    grid = TileGrid((40, 40), (20.0, 40.0), (2,), (20, 10))
    area = box(0, 0, 20, 10) | box(30, 30, 40, 40)
    reference = ExplorationReference("s", area.wkb_hex)
    viewed = [
        ViewedTile(0, 0, 0, 0.9, True),
        ViewedTile(0, 0, 1, 0.6, True),
        ViewedTile(0, 1, 0, 0.2, False),
        ViewedTile(0, 1, 1, 0.4, False),
        ViewedTile(1, 0, 0, 0.3, False),
        ViewedTile(1, 0, 1, 0.8, True),
        ViewedTile(1, 1, 0, 0.7, True),
    ]
    metrics = tile_metrics(reference, grid, viewed)
    assert [metrics[f"{name}_20x"] for name in ("positives", "retained", "said_no", "auroc")] == [2, 1, 1, 0.75]
    names = ("positives", "reached", "retained", "viewed", "said_no", "outranked", "not_shown", "pruned_20x")
    assert [metrics[f"{name}_40x"] for name in names] == [3, 2, 1, 3, 1, 0, 0, 1]
    # The best two of the one parent that was looked into are 0.8 and 0.7, of which the first is positive.
    assert (metrics["best_k_40x"], metrics["best_k_of_40x"]) == (1, 2)
    found = []
    for kept in (1, 2, 3):
        monkeypatch.setattr("wsigym.benchmarks.evipath.exploration.KEPT_AT_THE_END", kept)
        found.append(tile_metrics(reference, grid, viewed)["best_viewed"])
    assert found == [1, 1, 2]


def test_replay_agrees(played: Path) -> None:
    for record in load_run(played).records:
        assert replay(played, episode_names(record)[-1]).differences == ()


def test_tables(played: Path) -> None:
    records = load_run(played).records
    options = TableOptions(causes=True, budgets=True, published=True)
    main, searches, causes, budgets, published = exploration_tables(records, options)
    oracle = next(row for row in main.rows if row["policy"] == "oracle")
    assert _value(oracle["unconditional_2.5x"]) == _value(oracle["conditional_2.5x"]) == 1
    assert _value(oracle["unconditional_10x"]) == pytest.approx(6 / 17)
    assert oracle["slides"] == 2
    assert [row["policy"] for row in searches.rows] == ["best-first:oracle", "beam:stain-density"]
    assert (_value(searches.rows[0]["difference"]) or 0) > 0
    # The oracle's cascade viewed more than 36 positives: keeping the best of those is as good as searching.
    assert _value(searches.rows[0]["order"]) == 0
    row = next(row for row in causes.rows if (row["policy"], row["magnification"]) == ("oracle", "40x"))
    assert sum(
        float(row[name]) for name in ("retained", "said_no", "outranked", "not_shown", "pruned_2.5x", "pruned_10x")
    ) == pytest.approx(1)  # type: ignore[arg-type]
    # At the first magnification the cascade scores every tile with tissue, below it those that the scorer picked.
    top, below = (
        next(row for row in causes.rows if (row["policy"], row["magnification"]) == ("stain-density", scale))
        for scale in ("2.5x", "10x")
    )
    assert (top["scored"], below["scored"] < 1) == (1, True)  # type: ignore[operator]
    assert (_value(top["auroc"]) or 0) > 0.5
    assert "auroc" not in below
    assert "recall_at_k" not in below
    assert any("--budget K=all" in note for note in causes.notes)
    assert len(budgets.rows) == len(POLICIES)
    assert [row["paper"] for row in published.rows][:2] == ["30.7", "52.2,18.5,2.02"]
    assert [row["left"] for row in published.rows][:3] == [None, "35.4 %, 10.9 %", "36.3 %, 11.3 %"]
    assert any("tiles without tissue are not shown" in note for note in main.notes)
    by = exploration_tables(records, TableOptions(by="slide"))[0]
    negative = next(row for row in by.rows if (row["policy"], row["slide"]) == ("oracle", "negative"))
    assert _value(negative["unconditional_2.5x"]) is None
    with pytest.raises(InvalidArgumentError, match="--causes"):
        exploration_tables(records, TableOptions(confidence=True))
    with pytest.raises(UnknownNameError):
        exploration_tables(records, TableOptions(by="magnification"))
    assert exploration_curve(records).width > 100


def test_what_a_slides_score_is_stands_over_its_column(played: Path) -> None:
    """Of searches it is the last magnification's rate; a slide without tumour has none."""
    records = load_run(played).records
    labels = []
    for policies in (("oracle",), ("best-first:oracle",), ("oracle", "best-first:oracle")):
        table = exploration_tables([record for record in records if record.policy in policies], TableOptions())[0]
        labels.append(next(column.label for column in table.columns if column.key == "score"))
        assert _value(table.rows[0]["score"]) == record_of(played, policies[0], "positive").score
    assert labels == ["mean rate, %", "rate at 40x, %", "mean rate, %\nsearches: rate at 40x, %"]


def test_an_adaptive_search_is_held_against_its_own_scorer(folder: Path, tmp_path: Path) -> None:
    """Its name says a file; the cascade that gave it its budget on every slide is that of its scorer."""
    curves = {scale: ([0.5, 1.0], [0.0, 1.0]) for scale in ("2.5", "10", "40")}
    Calibration("stain-density", curves, 0.0).save(tmp_path / "calibration.json")
    adaptive = f"adaptive:{tmp_path / 'calibration.json'}"
    policies = ["oracle", "stain-density", "random", adaptive]
    run("evipath/exploration", policies=policies, out=tmp_path / "run", cohort=folder, env_arguments=SMALL)
    searches = exploration_tables(load_run(tmp_path / "run").records, TableOptions())[1]
    assert [(row["policy"], row["against"]) for row in searches.rows] == [(adaptive, "stain-density at K=6,3,2")]


def test_ranking_is_free_of_the_cascade_where_all_is_kept(folder: Path, tmp_path: Path) -> None:
    run(
        "evipath/exploration",
        policies=["stain-density"],
        budgets=["K=all"],
        out=tmp_path / "run",
        cohort=folder,
        env_arguments=SMALL,
    )
    causes = exploration_tables(load_run(tmp_path / "run").records, TableOptions(causes=True))[-1]
    assert [row["scored"] for row in causes.rows] == [1, 1, 1]
    assert all((_value(row["auroc"]) or 0) > 0.9 for row in causes.rows)
    assert all(0 < (_value(row["recall_at_k"]) or 0) <= 1 for row in causes.rows)


def test_what_the_paper_keeps_from_one_magnification_to_the_next() -> None:
    """Check 53: of its 2.5x rate the best model has 35.4 % left at 10x, of that 10.9 % at 40x; and what K brings."""
    facts = {key: fact.value for key, fact in published_facts("evipath_prose_facts").items()}

    def left(key: str) -> list[float]:
        found = carried_over([float(rate) for rate in str(facts[key]).split(",")])
        return [round(100 * share, 1) for share in found if share is not None]

    assert left("T3B.full.Gemini.uncond") == [35.4, 10.9]
    assert left("T3B.sweep.Gemini.uncond.6-3-2") == [36.3, 11.3]
    qwen = float(str(facts["T3B.sweep.Qwen.uncond.6-3-2"]).split(",")[-1])
    for small, large, ratio in (
        (qwen, facts["T3B.sweep.Qwen.40x.10-5-3"], 3.03),
        (facts["T3B.oracle.40x.6-3-2"], facts["T3B.oracle.40x.10-5-3"], 2.74),
    ):
        (grown,) = carried_over([float(small), float(large)])
        assert grown == pytest.approx(ratio, abs=0.005)


def test_another_class_can_be_asked_for(tmp_path: Path) -> None:
    cohort = build_tumour_cohort(tmp_path / "cohort", [{"slide_id": "s"}])
    write_tumour_slide(cohort / "s.tiff")
    write_regions(cohort, "s", [box(100, 100, 420, 300)], name="necrosis")
    arguments: dict[str, Any] = {"policies": ["oracle"], "cohort": cohort, "out": tmp_path / "run"}
    with pytest.raises(UnknownNameError, match=r"'tumour'.*Known: necrosis"):
        run("evipath/exploration", **arguments, env_arguments=SMALL)
    run("evipath/exploration", **arguments, env_arguments={**SMALL, "target": "necrosis"})
    stored = load_run(tmp_path / "run")
    assert stored.config.env["target"] == "necrosis"
    assert stored.records[0].metrics["positives_2.5x"] == 1
    assert (stored.records[0].score or 0) > 0.1
    assert replay(tmp_path / "run", 0).differences == ()
    write_regions(cohort, "s", [box(100, 100, 420, 300)], name="tumour")
    with pytest.raises(RunError, match="holds another run"):
        run("evipath/exploration", **arguments, env_arguments=SMALL)


def _value(cell: Any) -> float | None:
    assert isinstance(cell, Estimate)
    return cell.value


def test_run_json_says_how_tiles_were_cut(folder: Path, played: Path, tmp_path: Path) -> None:
    content = json.loads((played / "run.json").read_text(encoding="utf-8"))
    assert content["env"]["tile_px"] == 32
    assert content["budgets"] == ["K=6,3,2", "tiles=6,3,2"]
    # A slide of 2,048 px has one tile of 1,024 px at 2.5x, and one of 128 px: small tiles are taken.
    task = Exploration()
    assert task.settled(task.env_arguments, Cohort.load(folder), None)["tile_px"] == 128
    assert task.settled({**task.env_arguments, "tile_px": 64}, Cohort.load(folder), None)["tile_px"] == 64
    with pytest.raises(InvalidArgumentError, match="tile_px is 0"):
        task.settled({**task.env_arguments, "tile_px": 0}, Cohort.load(folder), None)


def test_budgets_suit_their_policies(folder: Path, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"out": tmp_path / "run", "cohort": folder, "env_arguments": SMALL}
    with pytest.raises(InvalidArgumentError, match="random keeps the best K"):
        run("evipath/exploration", policies=["random"], budgets=["tiles=5"], **arguments)
    with pytest.raises(UnknownNameError, match="Did you mean 'oracle'"):
        run("evipath/exploration", policies=["oracel"], **arguments)
    assert not (tmp_path / "run").exists()
    assert Exploration().budget_label("K=all", "beam:random") == "tiles=all"
    assert Exploration().budget_label("loose", "random") == "K=10,5,3"


def test_every_fault_is_told_before_the_first_episode(tmp_path: Path) -> None:
    cohort = build_tumour_cohort(tmp_path / "cohort", [{"slide_id": "a"}, {"slide_id": "b"}])
    write_tumour_slide(cohort / "a.tiff", mpp=0.5)
    write_tumour_slide(cohort / "b.tiff")
    write_regions(cohort, "b", [box(9000, 0, 9100, 100)])
    with pytest.raises(CohortError) as caught:
        run("evipath/exploration", policies=["random"], out=tmp_path / "run", cohort=cohort)
    assert [fault.file for fault in caught.value.faults] == ["cohort.json", "regions/b.geojson"]
    assert "scanned at 20x" in str(caught.value)


def test_references_do_not_depend_on_the_order_of_regions(tmp_path: Path) -> None:
    cohort = build_tumour_cohort(tmp_path, [{"slide_id": "s"}])
    found = []
    areas = [box(0, 0, 10, 10), box(5, 5, 20, 20), box(50, 50, 60, 60)]
    for order in (areas, areas[::-1]):
        write_regions(tmp_path, "s", order)
        found.append(exploration_references(Cohort.load(cohort))["s"].area)
    assert found[0].equals(found[1])
    assert found[0].area == 100 + 225 - 25 + 100


def test_efficiency_is_measured_on_five_slides(tmp_path: Path) -> None:
    slides = [{"slide_id": f"s{n}", "organ": "a" if n < 6 else "b"} for n in range(10)]
    cohort = Cohort.load(build_tumour_cohort(tmp_path, slides))
    chosen = choose_items(Exploration(), cohort, None, "efficiency")
    assert [item.groups["organ"] for item in chosen] == ["a", "a", "a", "b", "b"]


@pytest.mark.parametrize("pages", [0, 1])
def test_a_slide_without_an_answer_counts_against_the_rates(folder: Path, tmp_path: Path, pages: int) -> None:
    arguments = {"tile_px": 32, "page_size": 16}
    give_up = {"make_policy": lambda name: ScoresThenGivesUp(pages), "policies": ["agent:scores"]}
    run("evipath/exploration", cohort=folder, out=tmp_path / "run", env_arguments=arguments, **give_up)
    for number, record in enumerate(load_run(tmp_path / "run").records):
        assert (record.outcome, record.score, len(record.steps)) == ("refused", 0, pages)
        positives = [record.metrics[f"positives_{scale}x"] for scale in ("2.5", "10", "40")]
        assert all(positives) is (record.item == "positive")
        assert [record.metrics[f"retained_{scale}x"] for scale in ("2.5", "10", "40")] == [0, 0, 0]
        assert (record.metrics["tiles_viewed"] > 0) is (pages > 0)
        assert replay(tmp_path / "run", number).differences == ()
