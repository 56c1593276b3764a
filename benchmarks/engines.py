"""What maps the episodes of policies over workers, by name, in one table. A new engine is a file and a line here."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial

from wsigym.errors import InvalidArgumentError, UnknownNameError

from .episodes import Player
from .records import EpisodeKey, EpisodeRecord
from .resources import resources_of
from .workers import play_all

__all__ = ["ENGINES", "PROCESSES", "RAY", "Engine", "make_engine"]

PROCESSES, RAY = "processes", "ray"

ADDRESS_VARIABLE = "RAY_ADDRESS"
"""Ray's own variable for the address that is meant where none is given."""

Engine = Callable[[Player, Sequence[EpisodeKey]], Generator[EpisodeRecord, None, None]]
"""Plays the episodes and yields the record of each as it finishes; closing it ends what it started.

The player is this process's, and holds the run's setup.
"""


def make_engine(
    name: str,
    policies: Sequence[str],
    *,
    jobs: int | None,
    address: str | None,
    resources: Mapping[str, Mapping[str, float]],
) -> Engine:
    """An engine by its name in `ENGINES`, for these policies.

    Raises `UnknownNameError` and `InvalidArgumentError` where the arguments do not go with it or with each other.
    """
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    if jobs is not None and jobs < 1:
        raise InvalidArgumentError(f"jobs is {jobs}; at least 1 process is needed.")
    return ENGINES[name](policies, jobs, address, resources)


def _processes(
    policies: Sequence[str], jobs: int | None, address: str | None, resources: Mapping[str, Mapping[str, float]]
) -> Engine:
    given = {"address": address is not None, "resources": bool(resources)}
    if unused := [name for name, is_given in given.items() if is_given]:
        raise InvalidArgumentError(
            f"{' and '.join(unused)}: processes of this machine take jobs alone; the engine {RAY!r} takes these "
            f"(--engine {RAY})."
        )
    return partial(_play_in_processes, jobs=jobs or 1)


def _play_in_processes(player: Player, keys: Sequence[EpisodeKey], jobs: int) -> Generator[EpisodeRecord, None, None]:
    if jobs == 1 or len(keys) < 2:
        yield from map(player.play, keys)
    else:
        yield from play_all(player.setup, keys, jobs)


def _ray(
    policies: Sequence[str], jobs: int | None, address: str | None, resources: Mapping[str, Mapping[str, float]]
) -> Engine:
    chosen = os.environ.get(ADDRESS_VARIABLE) if address is None else address
    if chosen is not None and (not chosen or "://" in chosen):
        raise InvalidArgumentError(
            f"address {chosen!r}: it is HOST:PORT, auto or local. Call the command on a machine of the cluster, or "
            "with `ray job submit`; it does not play through Ray Client (ray://)."
        )
    needs = resources_of(resources, policies)
    try:
        from .ray_engine import play_on_ray
    except ModuleNotFoundError as error:
        raise InvalidArgumentError(
            f"the engine {RAY!r} needs {error.name}, which is not installed: pip install 'wsigym[ray]'."
        ) from None
    return lambda player, keys: play_on_ray(player.setup, keys, jobs, address, needs)


ENGINES: Mapping[str, Callable[[Sequence[str], int | None, str | None, Mapping[str, Mapping[str, float]]], Engine]] = {
    PROCESSES: _processes,
    RAY: _ray,
}
