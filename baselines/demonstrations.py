"""Demonstrations of pan and zoom as a dataset in Minari's format, written and read episode by episode.

    OUT/data/metadata.json      spaces, the environment's spec, and under "wsigym" what was asked for
    OUT/data/main_data.hdf5     the episodes

`minari.MinariDataset(OUT/data)` takes it, and `recover_environment()` of that makes the environment. An episode's
metadata hold `seed` and `options` for `reset`, `target`, `path` (JSON: the ids of the queries from the tree's root down
to this one), `score`; its infos hold `action_mask`, `optimal`, `detour` and `rois_left`, as `Demonstration` describes.
The target is text and so no part of the observation, but of the metadata.

Needs Minari (extra `rl`).
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import wsigym
from wsigym.cohorts import Cohort
from wsigym.cohorts.writing import new_folder
from wsigym.errors import InvalidArgumentError, UnknownNameError

from .expert_episodes import Demonstration, episodes_to_play, play_expert
from .experts import PanZoomExperts

__all__ = ["IMAGES", "PAN_ZOOM", "Written", "read_demonstrations", "write_demonstrations"]

PAN_ZOOM = "wsigym/LocalizationPanZoom-v0"

IMAGES = ("raw", "jpeg")
"""`raw` is what the environment shows; `jpeg`, Minari's own choice, is a tenth of it, and not the same pixels."""

BATCH_BYTES = 64 * 2**20
"""Episodes are written once they take as much memory: Minari rewrites its metadata, megabytes, each time."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Written:
    """What was written: `detours` are those of the `looks`, `mean_score` is over episodes."""

    path: Path
    episodes: int
    looks: int
    detours: int
    mean_score: float


def write_demonstrations(
    cohort: Cohort,
    out: Path,
    *,
    split: str = "train",
    per_query: int = 1,
    detours: float = 0.2,
    budget: str = "base",
    seed: int = 0,
    view_px: int = 96,
    images: str = "raw",
    progress: Progress | None = None,
) -> Written:
    """Play each query of a split `per_query` times by its expert, and write the episodes to the folder `out`.

    The folder takes its name once it is whole. Two calls with the same arguments write the same episodes.

    Raises like `episodes_to_play`, and `InvalidArgumentError` for other values out of range, an `out` that is there,
    and where Minari is not installed.
    """
    if images not in IMAGES:
        raise UnknownNameError("form of images", images, IMAGES)
    minari = _minari()
    to_play = episodes_to_play(cohort, split=split, per_query=per_query, detours=detours, seed=seed)
    arguments: dict[str, Any] = {"split": split, "budget": budget, "view_px": view_px, "overview_px": view_px}
    env = gym.make(PAN_ZOOM, cohort=cohort, **arguments)
    experts = PanZoomExperts(cohort, split)
    looks = wrong = 0
    about: list[dict[str, Any]] = []
    with new_folder(out) as folder:
        storage = minari.dataset.minari_storage.MinariStorage.new(
            folder / "data",
            env.observation_space,
            env.action_space,
            env_spec=_spec(cohort, arguments),
            jpeg_encoding=images == "jpeg",
        )
        of = {"cohort": cohort.name, "cohort_sha256": cohort.sha256}
        told = {"split": split, "per_query": per_query, "detours": detours, "budget": budget, "seed": seed}
        storage.update_metadata(
            {
                "dataset_id": _dataset_id(out),
                "minari_version": minari.__version__,
                "algorithm_name": "the best reachable answer, by a shortest path",
                "wsigym": {"version": wsigym.__version__, **of, **told},
            }
        )
        batch: list[Demonstration] = []
        for each, reset_seed in to_play:
            played = play_expert(env, experts, each, reset_seed, detours)
            batch.append(played)
            about.append(_about(played))
            looks += len(played) - 1
            wrong += int(played.detours.sum())
            if len(about) == len(to_play) or sum(map(_bytes, batch)) > BATCH_BYTES:
                storage.update_episodes([_buffer(minari, each) for each in batch])
                batch.clear()
            if progress is not None:
                progress(len(about), len(to_play))
        storage.update_episode_metadata(about)
    env.close()
    return Written(out, len(about), looks, wrong, float(np.mean([each["score"] for each in about])))


def read_demonstrations(path: str | Path, *, cohort: Cohort | None = None) -> Iterator[Demonstration]:
    """The episodes of a folder that `write_demonstrations` made, one after another; one is in memory at a time.

    Raises `InvalidArgumentError` where the folder holds no such dataset, one of another cohort than `cohort`, whose
    queries may have the same ids, or Minari is not installed.
    """
    minari = _minari()
    data = Path(path) / "data"
    try:
        storage = minari.dataset.minari_storage.MinariStorage.read(data)
        about, episodes = _asked_for(storage.metadata), storage.metadata.get("total_episodes")
        if not isinstance(episodes, int) or isinstance(episodes, bool) or episodes < 0:
            raise ValueError(f"its number of episodes is {episodes!r}")
    except Exception as error:  # Minari checks nothing of what it reads, so that a damaged file fails in many ways
        raise InvalidArgumentError(
            f"{path} holds no demonstrations ({type(error).__name__}: {error}); `wsigym demos --format minari` writes "
            "them."
        ) from None
    if cohort is not None and about["cohort_sha256"] != cohort.sha256:
        raise InvalidArgumentError(
            f"{path} was played on another cohort ({about['cohort']!r}) than {cohort.name!r} as it is now; "
            f"write it anew: wsigym demos --cohort {cohort.root}."
        )
    return _read(storage, range(episodes), Path(path))


def _asked_for(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The cohort that a dataset was played on. Raises `ValueError` where it is none of `write_demonstrations`."""
    if "wsigym" not in metadata:
        raise ValueError("it was written by another program")
    asked = metadata["wsigym"]
    names = ("cohort", "cohort_sha256")
    if not isinstance(asked, dict) or not all(isinstance(asked.get(name), str) for name in names):
        raise ValueError("it does not say which cohort it was played on")
    return {name: asked[name] for name in names}


def _read(storage: Any, numbers: range, path: Path) -> Iterator[Demonstration]:
    try:
        for episode, about in zip(storage.get_episodes(numbers), storage.get_episode_metadata(numbers), strict=True):
            yield _demonstration(episode, about)
    except (OSError, KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise InvalidArgumentError(f"{path}: the dataset is broken ({error}); write it anew.") from None


def _demonstration(episode: Mapping[str, Any], about: Mapping[str, Any]) -> Demonstration:
    infos = episode["infos"]
    return Demonstration(
        query_id=str(about["options"]["query_id"]),
        target=str(about["target"]),
        path=tuple(json.loads(about["path"])),
        seed=int(about["seed"]),
        score=float(about["score"]),
        observations=episode["observations"],
        actions=episode["actions"],
        rewards=episode["rewards"],
        masks=infos["action_mask"].astype(np.bool_),
        optimal=infos["optimal"],
        detours=infos["detour"][:-1],
        rois_left=infos["rois_left"],
    )


def _buffer(minari: Any, played: Demonstration) -> Any:
    """An episode as Minari takes it; infos have a row for each observation."""
    ends = np.arange(len(played)) == len(played) - 1
    return minari.data_collector.episode_buffer.EpisodeBuffer(
        seed=played.seed,
        options={"query_id": played.query_id},
        observations=dict(played.observations),
        actions=played.actions,
        rewards=played.rewards,
        terminations=ends,
        truncations=np.zeros_like(ends),
        infos={
            "action_mask": played.masks.astype(np.int8),
            "optimal": played.optimal,
            "detour": np.append(played.detours, False),
            "rois_left": played.rois_left,
        },
    )


def _about(played: Demonstration) -> dict[str, Any]:
    return {"target": played.target, "path": json.dumps(played.path), "score": played.score}


def _bytes(played: Demonstration) -> int:
    return sum(part.nbytes for part in played.observations.values())


def _spec(cohort: Cohort, arguments: Mapping[str, Any]) -> gym.envs.registration.EnvSpec:
    """What remakes the environment: with the cohort's folder, where the environment at hand has it loaded."""
    spec = copy.deepcopy(gym.spec(PAN_ZOOM))
    spec.kwargs = {**spec.kwargs, **arguments, "cohort": str(cohort.root.absolute())}
    return spec


def _dataset_id(out: Path) -> str:
    """The folder's name, as Minari spells ids: `minari.load_dataset` finds it where both are the same."""
    name = re.sub(r"[^-\w]+", "-", out.absolute().name).strip("-") or "demos"
    return name if re.search(r"-v\d+$", name) else f"{name}-v0"


def _minari() -> Any:
    try:
        import minari
        import minari.dataset._storages.hdf5_storage
    except ImportError:
        raise InvalidArgumentError(
            "demonstrations in Minari's format need Minari and h5py, which are not installed: pip install 'wsigym[rl]'."
        ) from None
    return minari
