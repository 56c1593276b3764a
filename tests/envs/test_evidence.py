from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from evidence_builder import SUITE, TASK, build_evidence, item, reference
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import wsigym
from wsigym.cohorts import Cohort
from wsigym.envs.evidence import EvidenceEnv
from wsigym.errors import EpisodeOverError, InvalidArgumentError, SlideReadError, UnknownNameError

ITEMS = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight four-way items with the keys 0, 1, 2, 3, 0 ..."""
    numbers = range(ITEMS)
    return build_evidence(
        tmp_path_factory.mktemp("evidence"), [item(n) for n in numbers], [reference(n) for n in numbers]
    )


@pytest.fixture(scope="module")
def env(folder: Path) -> EvidenceEnv:
    return EvidenceEnv(folder, SUITE, TASK, image_px=64)


@pytest.fixture(scope="module")
def text_env(folder: Path) -> EvidenceEnv:
    return EvidenceEnv(folder, SUITE, TASK, answer="text", image_px=64)


@pytest.fixture
def env_of(tmp_path: Path) -> Callable[..., EvidenceEnv]:
    """An environment of one item with changes, its reference with another answer."""

    def make(key: Any = 0, arguments: dict[str, Any] | None = None, **changes: Any) -> EvidenceEnv:
        build_evidence(tmp_path, [item(0, **changes)], [reference(0, answer=key)], pixels=False)
        return EvidenceEnv(tmp_path, SUITE, TASK, **{"image_px": 64, **(arguments or {})})

    return make


FILE = [{"file": "images/field.png", "magnification": 40}]


def test_it_is_registered() -> None:
    assert wsigym.__version__
    assert gym.spec("wsigym/Evidence-v0").entry_point == "wsigym.envs.evidence:EvidenceEnv"


def test_the_key_scores_1_and_every_other_option_0_in_every_rotation(env: EvidenceEnv) -> None:
    for number in range(ITEMS):
        for rotation in range(4):
            for place in range(4):
                _, info = env.reset(options={"item_id": f"i{number}", "rotation": rotation})
                right = info["options"][place] == item()["options"][number % 4]
                _, reward, terminated, truncated, after = env.step(place)
                assert (reward, terminated, truncated) == (float(right), True, False)
                assert (after["outcome"], after["score"]) == ("scored", reward)


def test_text_is_parsed(text_env: EvidenceEnv) -> None:
    replies = {"B": 1.0, "The answer is **(B)**": 1.0, "sheets": 1.0, "A": 0.0, "A and B": 0.0, "": 0.0, "  ": 0.0}
    for reply, expected in replies.items():
        text_env.reset(options={"item_id": "i1"})
        _, reward, _, _, info = text_env.step(reply)
        assert reward == expected, reply
        assert info["outcome"] == ("unparsed" if reply in ("A and B", "", "  ") else "scored")


@given(text=st.text())
def test_any_text_ends_the_episode(text_env: EvidenceEnv, text: str) -> None:
    text_env.reset(options={"item_id": "i2"})
    _, reward, terminated, _, _ = text_env.step(text)
    assert terminated
    assert reward in (0.0, 1.0)
    if not text.strip():
        assert reward == 0


def test_100_kb_of_text_and_other_scripts_are_taken(text_env: EvidenceEnv) -> None:
    for text in ("x " * 50_000 + "\nAnswer: C", "答案是 C", "Ответ: C"):
        text_env.reset(options={"item_id": "i2"})
        assert text_env.step(text)[1] == 1.0


def test_a_place_without_option_is_invalid(env: EvidenceEnv) -> None:
    env.reset(options={"item_id": "i0"})
    _, reward, terminated, _, info = env.step(4)
    assert (reward, terminated, info["outcome"]) == (0.0, True, "invalid")


@pytest.mark.parametrize("action", ["A", 0.0, None, True, [0]])
def test_an_action_of_another_type_is_the_callers_mistake(env: EvidenceEnv, action: Any) -> None:
    env.reset()
    with pytest.raises(InvalidArgumentError, match="a place from 0"):
        env.step(action)


def test_what_is_seen(env: EvidenceEnv) -> None:
    observation, info = env.reset(options={"item_id": "i3", "rotation": 1})
    assert observation in env.observation_space
    assert observation["image_mask"].tolist() == [1, 1, 1, 0, 0, 0, 0, 0]
    assert observation["option_mask"].tolist() == [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    assert (observation["images"][3:] == 255).all()
    assert info["image_sizes"] == ((64, 59), (64, 48), (64, 43))
    assert (observation["images"][2][43:] == 255).all()
    assert observation["images"][2][:43].std() > 10
    assert info["question"].startswith("The 3 images show")
    assert info["options"] == ("sheets", "mitoses", "necrosis", "crowded glands")
    assert info["metadata"] == {"organ": "colon", "site": "sigmoid colon", "magnification": 10}
    assert observation["answered"] == [0]
    assert env.step(0)[0]["answered"] == [1]


def test_an_image_is_had_at_any_size_but_never_enlarged(env: EvidenceEnv, folder: Path) -> None:
    env.reset(options={"item_id": "i0"})
    whole = env.image("image-2", 500)
    with Image.open(folder / "images" / "field.png") as image:
        assert (whole.image == np.array(image)).all()
    assert whole.size == (90, 60)
    assert env.image("image-2", 45).size == (45, 30)
    region = env.image("image-1", 4000)
    assert region.size == (100, 75)  # 400 x 300 px at 40x, shown at 10x
    assert region.magnification == pytest.approx(10)
    with pytest.raises(InvalidArgumentError, match="image-3"):
        env.image("image-3", 64)


def test_evidence_changes_what_is_shown(folder: Path) -> None:
    env = EvidenceEnv(folder, SUITE, TASK, evidence="highest-power,no-site", image_px=64)
    observation, info = env.reset(options={"item_id": "i0"})
    assert observation["image_mask"].sum() == 1
    assert info["question"] == "The image shows one field.\nWhich of these is seen (0)?"
    with pytest.raises(InvalidArgumentError, match="no evidence at 5x"):
        EvidenceEnv(folder, SUITE, TASK, evidence="5x")


def test_a_mosaic_holds_every_image_with_its_number(folder: Path) -> None:
    env = EvidenceEnv(folder, SUITE, TASK, evidence="mosaic", image_px=256)
    observation, info = env.reset(options={"item_id": "i0"})
    assert observation["image_mask"].sum() == 1
    assert info["image_sizes"] == ((256, 256),)
    image = observation["images"][0]
    separate = EvidenceEnv(folder, SUITE, TASK, image_px=126).reset(options={"item_id": "i0"})[0]["images"]
    corners = [(0, 0), (0, 130), (130, 0)]
    for (y, x), alone in zip(corners, separate, strict=False):
        cell = image[y : y + 126, x : x + 126]
        same = (cell == alone).all(axis=2)
        assert same[30:].all()
        assert not same[:20, :15].all()  # the number
    assert (image[130:, 130:] == 255).all()


def test_other_kinds_of_answers_need_text(env_of: Callable[..., EvidenceEnv]) -> None:
    count = {"answer": {"kind": "number", "words": "A number."}, "images": FILE}
    with pytest.raises(InvalidArgumentError, match="answer='text'"):
        env_of(7, options=[], **count)
    env = env_of(7, {"answer": "text"}, options=[], **count)
    scores = []
    for reply in ("7", "There are 7 mitoses.", "8", "many"):
        env.reset()
        scores.append(env.step(reply)[1])
    assert scores == [1, 1, 0, 0]


def test_more_images_than_fit_are_refused(env_of: Callable[..., EvidenceEnv]) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        env_of(0, {"max_images": 2}, images=FILE * 3)
    assert str(caught.value) == (
        "item 'i0' has 3 images and max_images is 2; raise it with max_images=3 (--env max_images=3)."
    )
    with pytest.raises(InvalidArgumentError, match="has 65 images and max_images is 8; 64 is the most"):
        env_of(0, images=FILE * 65)


def test_the_images_that_fit_all_items_are_told_at_once(tmp_path: Path) -> None:
    counts = (1, 3, 5, 4)
    build_evidence(
        tmp_path,
        [item(n, images=FILE * count) for n, count in enumerate(counts)],
        [reference(n) for n in range(len(counts))],
        pixels=False,
    )
    with pytest.raises(InvalidArgumentError, match=r"item 'i2' has 5 images and max_images is 2.*--env max_images=5"):
        EvidenceEnv(tmp_path, SUITE, TASK, max_images=2)
    assert EvidenceEnv(tmp_path, SUITE, TASK, max_images=5).item_ids == ("i0", "i1", "i2", "i3")


def test_a_broken_image_is_an_error_on_reset(env_of: Callable[..., EvidenceEnv], tmp_path: Path) -> None:
    env = env_of(images=FILE)
    (tmp_path / "images" / "field.png").write_bytes(b"no")
    with pytest.raises(SlideReadError, match="cohort check"):
        env.reset()
    with pytest.raises(EpisodeOverError):
        env.step(0)


def test_what_is_transparent_is_white(env_of: Callable[..., EvidenceEnv], tmp_path: Path) -> None:
    env = env_of(images=FILE)
    hidden = Image.new("RGBA", (40, 40), (200, 0, 0, 0))
    hidden.paste((0, 0, 200, 255), (0, 0, 40, 20))
    hidden.save(tmp_path / "images" / "field.png")
    observation, _ = env.reset()
    assert observation["images"][0, 10, 10].tolist() == [0, 0, 200]
    assert observation["images"][0, 30, 10].tolist() == [255, 255, 255]


def test_features_come_with_coordinates(env_of: Callable[..., EvidenceEnv], tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.ones((3, 4)))
    np.save(tmp_path / "c.npy", np.ones((3, 2)))
    env = env_of(images=FILE, features={"features": "f.npy", "coordinates": "c.npy"})
    env.reset()
    found = env.features()
    assert found is not None
    assert found[0].shape == (3, 4)


def test_options_of_reset_are_checked(env: EvidenceEnv) -> None:
    with pytest.raises(UnknownNameError, match="'i99'"):
        env.reset(options={"item_id": "i99"})
    with pytest.raises(UnknownNameError, match="i1"):
        env.reset(options={"item_id": ["i1"]})
    with pytest.raises(UnknownNameError, match="query_id"):
        env.reset(options={"query_id": "i0"})
    for rotation in (4, -1, 1.5, True):
        with pytest.raises(InvalidArgumentError, match="rotation"):
            env.reset(options={"item_id": "i0", "rotation": rotation})


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"answer": "letter"}, UnknownNameError),
        ({"image_px": 35}, InvalidArgumentError),
        ({"max_images": 0}, InvalidArgumentError),
        ({"evidence": "half"}, InvalidArgumentError),
        ({"render_mode": "human"}, UnknownNameError),
        ({"task": "another"}, UnknownNameError),
        ({"split": "test"}, InvalidArgumentError),
    ],
)
def test_arguments_are_checked(folder: Path, arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        EvidenceEnv(**{"cohort": folder, "suite": SUITE, "task": TASK, **arguments})


def test_no_info_tells_group_set_or_reference(text_env: EvidenceEnv, folder: Path) -> None:
    cohort = Cohort.load(folder)
    assert cohort.sha256
    _, info = text_env.reset(options={"item_id": "i5"})
    after = text_env.step("B")[4]
    for told in (json.dumps(info), json.dumps(after)):
        for hidden in ("set1", "p5", "provenance", "rule", '"s1"'):
            assert hidden not in told


def test_a_policy_without_an_answer_gives_up(env: EvidenceEnv) -> None:
    env.reset(options={"item_id": "i0"})
    info = env.give_up("refused")
    assert (info["outcome"], info["score"], info["answer"]) == ("refused", 0.0, "null")
    with pytest.raises(EpisodeOverError):
        env.give_up("refused")
    with pytest.raises(EpisodeOverError):
        env.step(0)
    env.reset()
    env.step(0)
