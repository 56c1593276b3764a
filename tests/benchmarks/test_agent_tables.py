"""What agents took and what left the machine, from records whose figures are known."""

from __future__ import annotations

from typing import Any

import pytest
from record_builder import agent_record, record, request

from wsigym.benchmarks.agent_tables import cost_table, deployment_table
from wsigym.errors import InvalidArgumentError


def cells(table: Any, number: int = 0) -> dict[str, Any]:
    return dict(table.rows[number])


def test_cost_of_each_magnification_and_of_all() -> None:
    records = [
        agent_record(0.5, request(), request(tokens_in=300, cost_usd=0.03), magnification=2.5, seconds=4.0),
        agent_record(0.5, request(), magnification=10.0, seconds=1.0),
        agent_record(0.1, request(tokens_out=40), magnification=10.0, seconds=10.0, slide="t"),
        record(0.5, policy="random"),
    ]
    table = cost_table(records)
    assert len(table.rows) == 1
    row = cells(table)
    assert (row["policy"], row["endpoint"], row["budget"]) == ("agent:localizer", "e", "base")
    assert (row["seconds_mean"], row["seconds_median"]) == (5.0, 4.0)
    assert (row["seconds_2.5x_mean"], row["seconds_10x_median"]) == (4.0, 5.5)
    assert row["usd_mean"] == pytest.approx(0.02)
    assert row["usd_median"] == pytest.approx(0.01)
    assert row["usd_total"] == pytest.approx(0.06)
    assert row["usd_2.5x_mean"] == pytest.approx(0.04)
    assert (row["tokens_in_mean"], row["tokens_in_median"]) == (200.0, 100.0)
    assert (row["tokens_out_mean"], row["requests_mean"], row["images"]) == (pytest.approx(70 / 3), 4 / 3, 4 / 3)
    assert (row["episodes"], row["scored"], row["refused"]) == (3, 3, 0)


def test_a_replayed_request_counts_as_the_first_time() -> None:
    row = cells(cost_table([agent_record(0.5, request(seconds=7.0, replayed=True), request(), seconds=2.0)]))
    assert row["seconds_mean"] == 9.0
    assert row["usd_total"] == pytest.approx(0.02)


def test_what_is_not_known_is_missing_and_never_0() -> None:
    records = [agent_record(0.5, request()), agent_record(0.5, request(tokens_in=None, cost_usd=None), slide="t")]
    row = cells(cost_table(records))
    for name in ("tokens_in_mean", "tokens_in_median", "usd_mean", "usd_median", "usd_total", "tokens_cached_mean"):
        assert row[name] is None, name
    assert row["tokens_out_mean"] == 10
    assert cells(deployment_table(records))["usd_a_slide"] is None


def test_outcomes_are_counted_and_failures_are_in_no_mean_but_in_the_total() -> None:
    records = [
        agent_record(0.5, request(), seconds=2.0),
        agent_record(0.0, request(), seconds=2.0, outcome="unparsed", slide="t"),
        agent_record(0.0, request(), seconds=2.0, outcome="refused", slide="u"),
        agent_record(None, request(cost_usd=0.5), seconds=99.0, slide="v"),
    ]
    row = cells(cost_table(records))
    assert (row["scored"], row["unparsed"], row["refused"], row["infrastructure_error"]) == (1, 1, 1, 1)
    assert (row["episodes"], row["seconds_mean"]) == (3, 2.0)
    assert row["usd_total"] == pytest.approx(0.53)


def test_rows_stand_in_order() -> None:
    one = [agent_record(0.5, request(), budget=budget) for budget in ("7", "loose", "tight", "base")]
    other = [agent_record(0.5, request(endpoint="a"), budget="base"), agent_record(0.5, request(), policy="agent:b")]
    rows = [(row["policy"], row["endpoint"], row["budget"]) for row in cost_table([*one, *other]).rows]
    assert rows == [
        ("agent:localizer", "a", "base"),
        ("agent:localizer", "e", "tight"),
        ("agent:localizer", "e", "base"),
        ("agent:localizer", "e", "loose"),
        ("agent:localizer", "e", "7"),
        ("agent:b", "e", "base"),
    ]


def at(second: float) -> str:
    return f"2025-01-01T00:{int(second) // 60:02}:{int(second) % 60:02}.000+00:00"


def test_latency_throughput_and_price() -> None:
    records = [
        # Two side by side for 30 s on one slide; then, after a pause, one on another for 30 s.
        agent_record(0.5, *[request(seconds=float(n)) for n in range(1, 5)], started=at(0), seconds=20.0),
        agent_record(0.5, request(seconds=5.0), magnification=2.5, started=at(10), seconds=20.0),
        agent_record(0.5, started=at(600), seconds=30.0, slide="t", places={"e": "local"}),
    ]
    row = cells(deployment_table(records))
    assert (row["place"], row["slides"]) == ("local", 2)
    assert (row["request_p50"], row["request_p95"]) == (3.0, pytest.approx(4.8))
    assert (row["episode_p50"], row["episode_p95"]) == (20.0, 29.0)
    assert row["slides_an_hour"] == pytest.approx(2 * 60)
    assert row["usd_a_slide"] == pytest.approx(0.025)


def test_what_left_is_what_external_endpoints_were_shown() -> None:
    local, external = {"e": "local"}, {"e": "external"}
    hybrid = {"e": "local", "far": "external"}
    shown = {"e": {"2.5": 0.5, "10": 0.2}}
    both = {"e": {"2.5": 0.9, "10": 0.9}, "far": {"10": 0.1}}
    records = [
        agent_record(0.5, request(), places=external, shares=shown, endpoint="x"),
        agent_record(0.5, request(), places=external, shares={"e": {"2.5": 0.1}}, endpoint="x", slide="t"),
        agent_record(0.5, request(), request(endpoint="far"), places=hybrid, shares=both),
        agent_record(0.5, request(), places=local, shares=shown),
    ]
    here, mixed, away = (dict(row) for row in deployment_table(records).rows)
    assert (here["place"], mixed["place"], away["place"]) == ("local", "hybrid", "external")
    assert (here["tissue_2.5x"], here["tissue_10x"], here["mb_out"], here["metadata"]) == (0, 0, 0, "none")
    assert (mixed["tissue_2.5x"], mixed["tissue_10x"], mixed["mb_out"], mixed["metadata"]) == (0, 0.1, 1, "target")
    assert (away["tissue_2.5x"], away["tissue_10x"], away["mb_out"]) == (pytest.approx(0.3), pytest.approx(0.1), 1)


def test_images_that_left_unmeasured_are_not_0() -> None:
    records = [
        agent_record(0.5, request(), places={"e": "external"}, shares={"e": {}}),
        agent_record(0.5, request(), endpoint="here", shares={"e": {"2.5": 0.5}}),
    ]
    here, away = (dict(row) for row in deployment_table(records).rows)
    assert (here["tissue_2.5x"], away["tissue_2.5x"], away["mb_out"]) == (0, None, 1)


@pytest.mark.parametrize("table", [cost_table, deployment_table])
def test_without_agents_there_is_no_table(table: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="no agent played"):
        table([record(0.5)])


@pytest.mark.parametrize("table", [cost_table, deployment_table])
def test_tables_fit_into_120_characters(table: Any) -> None:
    from rich.console import Console

    records = [
        agent_record(0.5, request(), magnification=scale, slide=f"s{scale}", budget=budget, endpoint="Qwen3-VL-8B")
        for scale in (2.5, 10.0, 40.0)
        for budget in ("tight", "base", "loose")
    ]
    console = Console(width=120, record=True)
    console.print(table(records).to_rich(120))
    assert max(map(len, console.export_text().splitlines())) <= 120
