"""Demonstrations: the expert's episodes with detours, and the dataset that Minari reads and the environment replays."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import gymnasium as gym
import h5py
import minari
import numpy as np
import pytest
from cohort_builder import build_cohort

from wsigym.baselines import demonstrations
from wsigym.baselines.demonstrations import PAN_ZOOM, read_demonstrations, write_demonstrations
from wsigym.baselines.expert_episodes import DETOUR_COST, Demonstration, episode_seed, play_expert, tree_queries
from wsigym.baselines.experts import PanZoomExperts
from wsigym.cohorts import Cohort
from wsigym.envs.pan_zoom import ACTIONS, FINISH
from wsigym.errors import CohortError, InvalidArgumentError, UnknownNameError

SPLITS = ("train", "val", "test")


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    slides = [{"slide_id": split, "split": split} for split in SPLITS]
    return Cohort.load(build_cohort(tmp_path_factory.mktemp("splits"), slides=slides))


@pytest.fixture(scope="module")
def dataset(cohort: Cohort, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demos") / "pan-zoom-v3"
    done = write_demonstrations(cohort, out, per_query=3, detours=0.5, budget="loose", seed=5, view_px=36)
    assert (done.episodes, done.path) == (15, out)
    assert done.detours > 0
    return out


def played(cohort: Cohort, rate: float, budget: str = "loose", episodes: int = 8) -> Iterable[Demonstration]:
    env = gym.make(PAN_ZOOM, cohort=cohort, split="train", budget=budget, view_px=36, overview_px=36)
    experts = PanZoomExperts(cohort, "train")
    for each in tree_queries(cohort, "train"):
        for seed in range(episodes):
            yield play_expert(env, experts, each, seed, rate)


# -- episodes ---------------------------------------------------------------------------------------------------------


def test_queries_go_from_roots_to_leaves(cohort: Cohort) -> None:
    asked = tree_queries(cohort, "train")
    targets = {each.query.query_id: each.query.target for each in asked}
    paths = [[targets[query_id] for query_id in each.path] for each in asked]
    assert paths == [
        ["crowded"],
        ["crowded", "glands"],
        ["crowded", "glands", "mitosis"],
        ["necrosis"],
        ["necrosis", "debris"],
    ]
    assert all(each.path[-1] == each.query.query_id for each in asked)
    assert {each.query.slide_id for each in asked} == {"train"}


def test_without_detours_it_is_the_expert(cohort: Cohort) -> None:
    for episode in played(cohort, rate=0):
        assert not episode.detours.any()
        assert episode.optimal[np.arange(len(episode)), episode.actions].all()
        assert not episode.optimal[-1].any()
        assert episode.actions[-1] == FINISH
        assert episode.score == episode.rewards[-1]


def test_equal_moves_are_drawn(cohort: Cohort) -> None:
    """An expert that always takes the first of equal moves shows a learner one way of many."""
    by_query: dict[str, set[tuple[int, ...]]] = {}
    for episode in played(cohort, rate=0):
        by_query.setdefault(episode.query_id, set()).add(tuple(episode.actions.tolist()))
    assert sum(map(len, by_query.values())) > 2 * len(by_query)


@pytest.mark.parametrize("budget", ["tight", "base", "loose"])
def test_detours_leave_the_best_way_and_come_back(cohort: Cohort, budget: str) -> None:
    best = {episode.query_id: episode.score for episode in played(cohort, 0, budget, 1)}
    detours = moves = 0
    for episode in played(cohort, rate=0.5, budget=budget):
        taken = episode.optimal[np.arange(len(episode)), episode.actions]
        assert (taken != episode.detours).all()
        assert set(episode.actions[episode.detours].tolist()) <= {0, 1, 2, 3, 4}
        assert episode.masks[np.arange(len(episode)), episode.actions].all()
        assert episode.rois_left[-1] >= 0
        assert episode.actions[-1] == FINISH
        assert best[episode.query_id] >= episode.score >= best[episode.query_id] - DETOUR_COST
        detours, moves = detours + episode.detours.sum(), moves + len(episode) - 1
    if budget == "loose":  # there nearly every move can be afforded
        assert 0.35 < detours / moves < 0.65
    assert detours > 0


def test_detours_go_where_there_is_stain(tmp_path: Path) -> None:
    """Stain in the upper half, the answer in the lower: going up is drawn more often than sideways."""
    from slides_builder import write_slide

    image = np.full((2048, 2048, 3), (235, 170, 200), np.uint8)
    image[:900] = (80, 50, 130)
    node = {"node_id": "a", "parent_id": None, "magnification": 10, "box": [960, 1100, 128, 128], "finding": "x"}
    write_slide(tmp_path / "s.svs", image, tile_px=256, compression="jpeg", aperio="|AppMag = 40|MPP = 0.25")
    slides = [{"slide_id": "s", "split": "train"}]
    built = Cohort.load(build_cohort(tmp_path, slides=slides, nodes=[node], paths=[], pixels=False))
    first: list[str] = []
    for episode in played(built, rate=1, episodes=40):
        first.append(ACTIONS[episode.actions[np.flatnonzero(episode.detours)[0]]])
    assert first.count("pan_up") > first.count("pan_left") + first.count("pan_right")


def test_a_seed_is_of_the_query_and_the_number() -> None:
    seeds = {episode_seed(seed, query, number) for seed in (0, 1) for query in ("a", "b") for number in (0, 1)}
    assert len(seeds) == 8
    assert all(0 <= seed < 2**31 for seed in seeds)


# -- the dataset ------------------------------------------------------------------------------------------------------


def test_minari_reads_it_and_its_environment_replays_it(dataset: Path) -> None:
    found = minari.MinariDataset(dataset / "data")
    assert found.id == "pan-zoom-v3"
    assert found.total_episodes == 15
    env = found.recover_environment()
    assert (env.observation_space, env.action_space) == (found.observation_space, found.action_space)
    about = found.storage.get_episode_metadata(range(15))
    steps = 0
    for episode, known in zip(found, about, strict=True):
        observation, info = env.reset(seed=known["seed"], options=known["options"])
        assert info["target"] == known["target"]
        for step in range(len(episode) + 1):
            assert observation.keys() == episode.observations.keys()
            assert all((observation[name] == part[step]).all() for name, part in episode.observations.items())
            assert (info["action_mask"] == episode.infos["action_mask"][step]).all()
            assert info["rois_left"] == episode.infos["rois_left"][step]
            if step < len(episode):
                observation, *outcome, info = env.step(episode.actions[step])
                assert outcome == [episode.rewards[step], episode.terminations[step], episode.truncations[step]]
                steps += 1
        assert info["iou"] == known["score"]
    assert steps == found.total_steps


def test_minari_finds_it_by_its_name(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(dataset.parent))
    assert minari.load_dataset("pan-zoom-v3").total_episodes == 15
    assert list(minari.list_local_datasets()) == ["pan-zoom-v3"]


def test_read_as_it_was_played(dataset: Path, cohort: Cohort) -> None:
    env = gym.make(PAN_ZOOM, cohort=cohort, split="train", budget="loose", view_px=36, overview_px=36)
    experts = PanZoomExperts(cohort, "train")
    asked = tree_queries(cohort, "train")
    read = list(read_demonstrations(dataset))
    assert len(read) == 15
    for place, found in enumerate(read):
        each, number = asked[place % 5], place // 5
        again = play_expert(env, experts, each, episode_seed(5, each.query.query_id, number), 0.5)
        for name in ("query_id", "target", "path", "seed", "score"):
            assert getattr(found, name) == getattr(again, name)
        for name in ("actions", "rewards", "masks", "optimal", "detours", "rois_left"):
            one, other = getattr(found, name), getattr(again, name)
            assert one.dtype == other.dtype
            assert (one == other).all()
        assert found.observations.keys() == again.observations.keys()
        for name, part in found.observations.items():
            assert part.dtype == again.observations[name].dtype
            assert (part == again.observations[name]).all()
        pairs = list(found.pairs())
        assert [action for _, action in pairs] == found.actions.tolist()
        assert all((pairs[-1][0][name] == part[-2]).all() for name, part in found.observations.items())


def test_batches_change_nothing(dataset: Path, cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demonstrations, "BATCH_BYTES", 0)
    told: list[tuple[int, int]] = []
    write_demonstrations(
        cohort,
        tmp_path / "d",
        per_query=3,
        detours=0.5,
        budget="loose",
        seed=5,
        view_px=36,
        progress=lambda *each: told.append(each),
    )
    assert told == [(done, 15) for done in range(1, 16)]
    for one, other in zip(read_demonstrations(dataset), read_demonstrations(tmp_path / "d"), strict=True):
        assert (one.query_id, one.seed, one.actions.tolist()) == (other.query_id, other.seed, other.actions.tolist())
        assert all((part == other.observations[name]).all() for name, part in one.observations.items())


def test_jpeg_is_near_and_smaller(cohort: Cohort, tmp_path: Path) -> None:
    for images in demonstrations.IMAGES:
        write_demonstrations(cohort, tmp_path / images, split="val", view_px=96, images=images)
    for one, other in zip(read_demonstrations(tmp_path / "raw"), read_demonstrations(tmp_path / "jpeg"), strict=True):
        for name, part in one.observations.items():
            assert part.shape == other.observations[name].shape
            assert abs(part.astype(float) - other.observations[name]).mean() < 40  # the cohort is noise
    raw, jpeg = ((tmp_path / images / "data/main_data.hdf5").stat().st_size for images in demonstrations.IMAGES)
    assert jpeg < 0.6 * raw


def test_what_was_asked_for_is_kept(dataset: Path) -> None:
    about = json.loads((dataset / "data/metadata.json").read_text())
    assert about["wsigym"] | {"version": "", "cohort": "", "cohort_sha256": ""} == {
        "version": "",
        "cohort": "",
        "cohort_sha256": "",
        "split": "train",
        "per_query": 3,
        "detours": 0.5,
        "budget": "loose",
        "seed": 5,
    }


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"split": "test"}, UnknownNameError, "test is there to test with"),
        ({"split": None}, UnknownNameError, "Known: train, val"),
        ({"detours": 1.01}, InvalidArgumentError, r"rate of detours is 1.01; allowed is 0"),
        ({"detours": -0.1}, InvalidArgumentError, "rate of detours"),
        ({"detours": float("nan")}, InvalidArgumentError, "rate of detours"),
        ({"per_query": 0}, InvalidArgumentError, "per_query is 0"),
        ({"seed": -1}, InvalidArgumentError, "seed is -1"),
        ({"view_px": 35}, InvalidArgumentError, "view_px is 35; allowed are whole numbers from 36"),
        ({"budget": "big"}, UnknownNameError, "unknown budget"),
        ({"images": "png"}, UnknownNameError, "Known: raw, jpeg"),
    ],
)
def test_bad_arguments(cohort: Cohort, tmp_path: Path, arguments: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        write_demonstrations(cohort, tmp_path / "out", **arguments)
    assert not list(tmp_path.iterdir())


def test_a_split_without_queries(tmp_path: Path) -> None:
    built = build_cohort(tmp_path, slides=[{"slide_id": "s1", "split": "train"}], nodes=[], paths=[])
    with pytest.raises(InvalidArgumentError, match="needs nodes"):
        write_demonstrations(Cohort.load(built), tmp_path / "out")
    with pytest.raises(InvalidArgumentError, match="no slide in split 'val'"):
        write_demonstrations(Cohort.load(built), tmp_path / "out", split="val")


def test_every_fault_of_the_slides_comes_first(tmp_path: Path) -> None:
    slides = [{"slide_id": name, "split": "train"} for name in ("s1", "s2")]
    built = Cohort.load(build_cohort(tmp_path / "c", slides=slides))
    for name in ("s1", "s2"):
        (tmp_path / "c" / f"{name}.svs").unlink()
    with pytest.raises(CohortError) as caught:
        write_demonstrations(built, tmp_path / "out")
    assert len(caught.value.faults) == 2
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_there_stays(cohort: Cohort, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("x")
    with pytest.raises(InvalidArgumentError, match="exists and is not an empty folder"):
        write_demonstrations(cohort, tmp_path / "out", view_px=36)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_nothing_half_is_left(cohort: Cohort, tmp_path: Path) -> None:
    def fail(done: int, asked: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_demonstrations(cohort, tmp_path / "out", view_px=36, progress=fail)
    assert not list(tmp_path.iterdir())


def test_without_minari(cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(InvalidArgumentError, match=r"pip install 'wsigym\[rl\]'"):
        write_demonstrations(cohort, tmp_path / "out")
    with pytest.raises(InvalidArgumentError, match=r"pip install 'wsigym\[rl\]'"):
        read_demonstrations(tmp_path / "out")


def test_what_is_no_dataset(tmp_path: Path, dataset: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="holds no demonstrations"):
        read_demonstrations(tmp_path / "nothing")
    (tmp_path / "other/data").mkdir(parents=True)
    metadata = json.loads((dataset / "data/metadata.json").read_text())
    del metadata["wsigym"]
    (tmp_path / "other/data/metadata.json").write_text(json.dumps(metadata))
    (tmp_path / "other/data/main_data.hdf5").write_bytes(b"")
    with pytest.raises(InvalidArgumentError, match="written by another program"):
        read_demonstrations(tmp_path / "other")
    (tmp_path / "other/data/metadata.json").write_text("{")
    with pytest.raises(InvalidArgumentError, match="holds no demonstrations"):
        read_demonstrations(tmp_path / "other")


def test_of_another_cohort_whose_queries_have_the_same_ids(cohort: Cohort, dataset: Path, tmp_path: Path) -> None:
    slides = [{"slide_id": split, "split": split, "organ": "lung"} for split in SPLITS]
    other = Cohort.load(build_cohort(tmp_path / "other", slides=slides))
    assert len(list(read_demonstrations(dataset, cohort=cohort))) == 15
    with pytest.raises(InvalidArgumentError, match="was played on another cohort"):
        read_demonstrations(dataset, cohort=other)


def test_a_broken_dataset(tmp_path: Path, dataset: Path) -> None:
    (tmp_path / "d/data").mkdir(parents=True)
    (tmp_path / "d/data/metadata.json").write_bytes((dataset / "data/metadata.json").read_bytes())
    whole = (dataset / "data/main_data.hdf5").read_bytes()
    target = tmp_path / "d/data/main_data.hdf5"
    target.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidArgumentError, match="the dataset is broken"):
        list(read_demonstrations(tmp_path / "d"))
    target.write_bytes(whole)
    with h5py.File(target, "a") as file:
        del file["episode_7/infos/optimal"]
    read = read_demonstrations(tmp_path / "d")
    with pytest.raises(InvalidArgumentError, match="optimal"):
        list(read)


@pytest.mark.parametrize(
    "damaged",
    [
        {"wsigym": 3},
        {"wsigym": {}},
        {"wsigym": None},
        {"total_episodes": None},
        {"total_episodes": "many"},
        {"total_episodes": -1},
        {"total_episodes": True},
        {"data_format": "none"},
        {"data_format": []},
        {"observation_space": "{"},
        {"observation_space": "3"},
        {"observation_space": 3},
        {"action_space": "{}"},
        {"author": 3},
    ],
)
def test_damaged_metadata(cohort: Cohort, dataset: Path, tmp_path: Path, damaged: dict[str, Any]) -> None:
    shutil.copytree(dataset, tmp_path / "d")
    file = tmp_path / "d/data/metadata.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | damaged))
    with pytest.raises(InvalidArgumentError, match=r"d holds no demonstrations .*`wsigym demos"):
        list(read_demonstrations(tmp_path / "d", cohort=cohort))


@pytest.mark.parametrize("name", ["total_episodes", "wsigym", "data_format"])
def test_metadata_that_lacks_something(cohort: Cohort, dataset: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(dataset, tmp_path / "d")
    file = tmp_path / "d/data/metadata.json"
    metadata = json.loads(file.read_text())
    del metadata[name]
    file.write_text(json.dumps(metadata))
    with pytest.raises(InvalidArgumentError, match="holds no demonstrations"):
        list(read_demonstrations(tmp_path / "d", cohort=cohort))


@pytest.mark.parametrize("text", ["[1]", "3", "null", "", "nonsense"])
def test_metadata_of_another_form(dataset: Path, tmp_path: Path, text: str) -> None:
    shutil.copytree(dataset, tmp_path / "d")
    (tmp_path / "d/data/metadata.json").write_text(text)
    with pytest.raises(InvalidArgumentError, match="holds no demonstrations"):
        read_demonstrations(tmp_path / "d")


def test_episodes_whose_words_are_damaged(dataset: Path, tmp_path: Path) -> None:
    for name, value in (("path", "{"), ("path", "3"), ("score", "high"), ("seed", "none")):
        shutil.rmtree(tmp_path / "d", ignore_errors=True)
        shutil.copytree(dataset, tmp_path / "d")
        with h5py.File(tmp_path / "d/data/main_data.hdf5", "a") as file:
            attributes = file["episode_2"].attrs
            assert name in attributes
            attributes[name] = value
        with pytest.raises(InvalidArgumentError, match="the dataset is broken"):
            list(read_demonstrations(tmp_path / "d"))


def test_a_budget_that_no_expert_could_play(cohort: Cohort, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="0 to 10,000"):
        write_demonstrations(cohort, tmp_path / "out", budget="100000000000000000000")
