from __future__ import annotations

from pathlib import Path

import numpy as np
from evidence_builder import SUITE, TASK, build_evidence, item, reference

from wsigym.envs import LocalizationEnv
from wsigym.envs.blind import BlindImages, BlindText
from wsigym.envs.evidence import EvidenceEnv
from wsigym.envs.localization import extract_roi, finish_and_report

LOOK = extract_roi([0.1, 0.1, 0.5, 0.5])
FINISH = finish_and_report([0.1, 0.1, 0.5, 0.5])


def test_blind_text_hides_the_target_in_every_info(tiny_cohort: Path) -> None:
    env = LocalizationEnv(tiny_cohort)
    seen, info_seen = env.reset(seed=3)
    blind = BlindText(LocalizationEnv(tiny_cohort))
    observation, info = blind.reset(seed=3)
    assert info_seen["target"]
    assert info == info_seen | {"target": ""}
    np.testing.assert_array_equal(observation["overview"], seen["overview"])
    for action in (LOOK, FINISH):
        _, reward_seen, over_seen, _, info_seen = env.step(action)
        _, reward, over, _, info = blind.step(action)
        assert info == info_seen | {"target": ""}
        assert (reward, over) == (reward_seen, over_seen)


def test_blind_images_hides_every_image_and_nothing_else(tiny_cohort: Path) -> None:
    env = LocalizationEnv(tiny_cohort, context=[1.25])
    blind = BlindImages(LocalizationEnv(tiny_cohort, context=[1.25]))
    pairs = [(env.reset(seed=3), blind.reset(seed=3))]
    for action in (LOOK, FINISH):
        seen, hidden = env.step(action), blind.step(action)
        assert seen[1:4] == hidden[1:4]
        pairs.append(((seen[0], seen[4]), (hidden[0], hidden[4])))
    for (seen_observation, seen_info), (observation, info) in pairs:
        assert info == seen_info
        assert observation in blind.observation_space
        for name in ("overview", "view", "context"):
            assert (observation[name] == 255).all()
            assert observation[name].shape == seen_observation[name].shape
        for name in (
            "view_box",
            "view_magnification",
            "target_magnification",
            "overview_extent",
            "budget_left",
            "rois_left",
        ):
            np.testing.assert_array_equal(observation[name], seen_observation[name])
    assert (pairs[1][0][0]["view"] != 255).any()


def test_blind_images_hides_features_too(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.ones((3, 4)))
    np.save(tmp_path / "c.npy", np.ones((3, 2)))
    features = {"features": "f.npy", "coordinates": "c.npy"}
    build_evidence(tmp_path, [item(images=[], evidence=None, features=features)], [reference()], pixels=False)
    for wrapper, hidden in ((BlindText, False), (BlindImages, True)):
        env = wrapper(EvidenceEnv(tmp_path, SUITE, TASK, image_px=64))
        env.reset()
        assert (env.get_wrapper_attr("features")() is None) is hidden
