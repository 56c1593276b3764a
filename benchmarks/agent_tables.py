"""Tables of what agents took: tokens, money and time, and what left the machine in each set-up.

Rows are of agents alone. Means and medians are over episodes with a score; sums are over all. A request that a resumed
run took from its log counts as it did when it was made, and so do its seconds. What a server does not count, and what
has no price, is missing, and so is every sum and mean that it would be part of.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from statistics import median
from typing import get_args

import numpy as np

from wsigym.agents.records import AgentRecord, Disclosure, RequestRecord
from wsigym.envs.budgets import PRESETS
from wsigym.errors import InvalidArgumentError

from .records import EpisodeRecord, Outcome
from .rows import Row, group_by, row_cells, row_of, scored
from .tables import MISSING, Block, Cell, Column, Table

__all__ = ["cost_table", "deployment_table", "has_agents"]

Value = Callable[[EpisodeRecord], float | None]

PLACES = ("local", "hybrid", "external")

KEYS = (Column("policy", "policy"), Column("endpoint", "endpoint"), Column("budget", "budget"))

HOUR = 3600.0


def has_agents(records: Iterable[EpisodeRecord]) -> bool:
    """Whether any of the episodes was an agent's."""
    return any(record.agent is not None for record in records)


# -- an episode's figures --------------------------------------------------------------------------------------------


def requests_of(record: EpisodeRecord) -> tuple[RequestRecord, ...]:
    """Every request of the episode, in order."""
    return () if record.agent is None else record.agent.requests


def seconds_of(record: EpisodeRecord) -> float:
    """From the first look to the end, as if no answer had come from the log."""
    return record.seconds + sum(request.seconds for request in requests_of(record) if request.replayed)


def _sum_of(field: str) -> Value:
    """The sum of a field over an episode's requests; None where one of them lacks it."""

    def value(record: EpisodeRecord) -> float | None:
        return _total(getattr(request, field) for request in requests_of(record))

    return value


def _total(values: Iterable[float | None]) -> float | None:
    """The sum; None where a value is missing."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return sum(known) if len(known) == len(listed) else None


COST = _sum_of("cost_usd")


# -- cost ------------------------------------------------------------------------------------------------------------


def cost_table(records: Sequence[EpisodeRecord]) -> Table:
    """Seconds, USD, tokens and requests of an episode, overall and by magnification, and how the episodes ended.

    Raises `InvalidArgumentError` where no agent played.
    """
    rows: list[dict[str, Cell]] = []
    for row, episodes in _agent_rows(records):
        cells: dict[str, Cell] = row_cells(row)
        for suffix, group in _by_magnification(episodes):
            valued = scored(group)
            cells |= _averages(f"seconds{suffix}", valued, seconds_of) | _averages(f"usd{suffix}", valued, COST)
        valued = scored(episodes)
        for field in ("tokens_in", "tokens_out", "tokens_cached"):
            cells |= _averages(field, valued, _sum_of(field))
        cells |= _averages("requests", valued, lambda record: len(requests_of(record)))
        cells["images"] = _averages("images", valued, _sum_of("image_count"))["images_mean"]
        cells["usd_total"] = _total(map(COST, episodes))
        for name in ("retries", "forced"):
            cells[name] = sum(int(getattr(request, name)) for record in episodes for request in requests_of(record))
        cells["episodes"] = len(valued)
        outcomes = Counter(record.outcome for record in episodes)
        rows.append(cells | {outcome: outcomes[outcome] for outcome in get_args(Outcome)})
    scales = [suffix for suffix, _ in _by_magnification(records) if suffix]
    return Table(
        "cost",
        "What the agents took: mean and median of an episode",
        KEYS,
        (
            Block("Seconds", _average_columns("seconds", scales, digits=2)),
            Block("USD", (*_average_columns("usd", scales, digits=4), Column("usd_total", "in all", digits=2))),
            Block(
                "Tokens in and out, requests",
                (
                    *_average_columns("tokens_in", [], digits=0, label="in"),
                    *_average_columns("tokens_out", [], digits=0, label="out"),
                    Column("tokens_cached_mean", "cached,\nmean", digits=0, always=False),
                    *_average_columns("requests", [], digits=1, label="requests"),
                    Column("images", "images,\nmean", digits=1),
                    Column("retries", "retries,\nin all", always=False),
                    Column("forced", "forced,\nin all", always=False),
                ),
            ),
            Block(
                "How the episodes ended; endings that never occurred are left out",
                (
                    Column("episodes", "episodes"),
                    *(
                        Column(outcome, outcome.replace("_", "\n"), always=outcome == "scored")
                        for outcome in get_args(Outcome)
                    ),
                ),
            ),
        ),
        tuple(rows),
        (
            f"Seconds are as the run had them, with its concurrency. {MISSING}: the server counts no tokens, or the "
            "endpoint has no price.",
        ),
    )


def _averages(key: str, records: Sequence[EpisodeRecord], value: Value) -> dict[str, Cell]:
    values = [value(record) for record in records]
    known = [number for number in values if number is not None]
    if not known or len(known) < len(values):
        return {f"{key}_mean": None, f"{key}_median": None}
    return {f"{key}_mean": float(np.mean(known)), f"{key}_median": float(median(known))}


def _average_columns(key: str, scales: Sequence[str], *, digits: int, label: str = "") -> tuple[Column, ...]:
    """Mean and median over all, then of each magnification."""
    return tuple(
        Column(f"{key}{suffix}_{what}", f"{suffix.removeprefix('_') or label or 'all'},\n{what}", digits)
        for suffix in ("", *scales)
        for what in ("mean", "median")
    )


def _by_magnification(records: Sequence[EpisodeRecord]) -> list[tuple[str, list[EpisodeRecord]]]:
    """(suffix of the key, episodes): all of them, then those of each magnification where queries have one."""
    groups = group_by(records, lambda record: record.groups.get("magnification"))
    scales = sorted(scale for scale in groups if isinstance(scale, int | float))
    return [("", list(records)), *((f"_{scale:g}x", groups[scale]) for scale in scales)]


# -- deployment ------------------------------------------------------------------------------------------------------


def deployment_table(records: Sequence[EpisodeRecord]) -> Table:
    """Set-ups side by side, local ones first: how long, how much, and what of the slides left the machine.

    Raises `InvalidArgumentError` where no agent played.
    """
    found = [(_place(episodes), row, episodes) for row, episodes in _agent_rows(records)]
    found.sort(key=lambda each: PLACES.index(each[0]))
    labels = sorted({label for _, _, episodes in found for label in _labels(episodes)}, key=float)
    rows: list[dict[str, Cell]] = []
    for place, row, episodes in found:
        slides = len({(record.groups.get("slide", record.item), record.seed) for record in episodes})
        hours = _busy_seconds(episodes) / HOUR
        requests = [request.seconds for record in episodes for request in requests_of(record)]
        whole = [seconds_of(record) for record in scored(episodes)]
        cost = _total(map(COST, episodes))
        cells: dict[str, Cell] = row_cells(row) | {"place": place, "slides": slides}
        for name, values in (("request", requests), ("episode", whole)):
            for percent in (50, 95):
                cells[f"{name}_p{percent}"] = float(np.percentile(values, percent)) if values else None
        cells["slides_an_hour"] = slides / hours if hours else None
        cells["usd_a_slide"] = None if cost is None else cost / slides
        cells["mb_out"] = sum(_bytes_out(record) for record in episodes) / 1e6 / slides
        for label in labels:
            cells[f"tissue_{label}x"] = _mean_share(episodes, label)
        fields = sorted({field for record in episodes for each in _disclosed(record) for field in each.metadata})
        cells["metadata"] = ", ".join(fields) or "none"
        rows.append(cells)
    return Table(
        "deployment",
        "Set-ups side by side: where the models are, what they take, what leaves",
        (Column("place", "set-up"), *KEYS),
        (
            Block(
                "Latency in seconds, throughput and price",
                (
                    Column("request_p50", "request,\np50", digits=2),
                    Column("request_p95", "request,\np95", digits=2),
                    Column("episode_p50", "episode,\np50", digits=2),
                    Column("episode_p95", "episode,\np95", digits=2),
                    Column("slides_an_hour", "slides\nan hour", digits=1),
                    Column("usd_a_slide", "USD a\nslide", digits=4),
                    Column("slides", "slides"),
                ),
            ),
            Block(
                "Sent to external endpoints: the share of tissue at each magnification, %; images; fields",
                (
                    *(Column(f"tissue_{label}x", f"{label}x", digits=1, scale=100) for label in labels),
                    Column("mb_out", "MB of images\na slide", digits=2),
                    Column("metadata", "fields"),
                ),
            ),
        ),
        tuple(rows),
        (
            "Slides an hour: as run, with its concurrency, beside the run's other rows; pauses between calls do not "
            "count.",
            "Tissue: mean over episodes of the share of the search box's tissue that was sent. Nothing of a local "
            f"set-up leaves. {MISSING}: not known, or no price.",
        ),
    )


def _place(episodes: Sequence[EpisodeRecord]) -> str:
    """Where a set-up's models are: all here, all outside, or some of each."""
    places = {place for record in episodes if record.agent for place in record.agent.endpoints.values()}
    return "hybrid" if len(places) > 1 else next(iter(places), "local")


def _external(agent: AgentRecord) -> set[str]:
    return {name for name, place in agent.endpoints.items() if place == "external"}


def _disclosed(record: EpisodeRecord) -> list[Disclosure]:
    """What each external endpoint was shown in the episode."""
    if record.agent is None:
        return []
    return [record.agent.disclosure.get(name, Disclosure()) for name in _external(record.agent)]


def _labels(episodes: Sequence[EpisodeRecord]) -> set[str]:
    """Every magnification at which something was shown to anyone, so that what stayed here shows as 0."""
    agents = [record.agent for record in episodes if record.agent is not None]
    return {label for agent in agents for each in agent.disclosure.values() for label in each.tissue_share}


def _mean_share(episodes: Sequence[EpisodeRecord], label: str) -> float | None:
    shares = [_share(record, label) for record in episodes if record.agent is not None]
    return None if None in shares else float(np.mean([share for share in shares if share is not None]))


def _share(record: EpisodeRecord, label: str) -> float | None:
    """The tissue share that left: of several external endpoints the largest; None where images left unmeasured."""
    shown = _disclosed(record)
    if _bytes_out(record) and not any(each.tissue_share for each in shown):
        return None
    return max((each.tissue_share.get(label, 0.0) for each in shown), default=0.0)


def _bytes_out(record: EpisodeRecord) -> int:
    """Bytes of images sent to external endpoints."""
    if record.agent is None:
        return 0
    external = _external(record.agent)
    return sum(request.image_bytes for request in requests_of(record) if request.endpoint in external)


def _busy_seconds(episodes: Sequence[EpisodeRecord]) -> float:
    """How long at least one of the episodes was under way."""
    spans = sorted(
        (began := datetime.fromisoformat(each.started).timestamp(), began + each.seconds) for each in episodes
    )
    busy, until = 0.0, -math.inf
    for began, ended in spans:
        busy += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return busy


# -- rows ------------------------------------------------------------------------------------------------------------


def _agent_rows(records: Sequence[EpisodeRecord]) -> list[tuple[Row, list[EpisodeRecord]]]:
    """Agents in order of appearance, each endpoint's budgets together, presets from tight to loose."""
    agents = {record.policy for record in records if record.agent is not None}
    if not agents:
        raise InvalidArgumentError("no agent played in these runs, so that no model was asked; `wsigym run --agent`.")
    groups = group_by((record for record in records if record.policy in agents), row_of)
    policies = list(dict.fromkeys(policy for policy, _, _ in groups))
    presets = list(PRESETS)

    def place(row: Row) -> tuple[int, str, int, str]:
        policy, endpoint, budget = row
        preset = presets.index(budget) if budget in presets else len(presets)
        return policies.index(policy), endpoint or "", preset, budget

    return [(row, groups[row]) for row in sorted(groups, key=place)]
