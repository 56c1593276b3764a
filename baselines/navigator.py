"""What a learned navigator sees, the same in training and in a run, and `ppo:PATH`, which plays it.

A navigator pans and zooms (`wsigym/LocalizationPanZoom-v0`) and reads the target as a vector: `navigator_env` makes
what it is trained in. In a run it gets the observations of `wsigym/Localization-v0`, as every policy does, and makes
its own of them: `NavigatorView`. The two are equal, pixel for pixel.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from wsigym.envs.budgets import MAX_ROIS
from wsigym.envs.concentric_views import SHARES
from wsigym.envs.embed_target import EmbedTarget
from wsigym.envs.localization import MAX_MAGNIFICATION
from wsigym.envs.pan_zoom import FINISH, Cursor, action_mask, smallest_side, structured_action
from wsigym.envs.policy import Info, Observation
from wsigym.envs.ready_made import localization_pan_zoom
from wsigym.envs.views import Image, ImageSource, padded

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import HashingVectorizer

__all__ = ["VIEW_PX", "HashedWords", "NavigatorView", "channels_first", "navigator_env", "navigator_space"]

VIEW_PX = 96

WORDS = 64
"""Places that words are hashed to: the findings of a cohort have some hundred words, a target has ten."""


class HashedWords:
    """A text encoder without a model: which words a text has, hashed to 64 places, of length 1.

    It knows no synonyms. Needs no training, so that a saved policy needs no file beside it.
    """

    def encode(self, sentences: list[str]) -> npt.NDArray[np.float32]:
        """float32 (len(sentences), 64), 0 to 1; a text without words is zeros."""
        dense: npt.NDArray[np.float32] = self._hashing.transform(sentences).toarray().astype(np.float32)
        return dense

    @cached_property
    def _hashing(self) -> HashingVectorizer:
        from sklearn.feature_extraction.text import HashingVectorizer

        return HashingVectorizer(n_features=WORDS, alternate_sign=False, norm="l2")


def navigator_env(*, px: int = VIEW_PX, **localization: Any) -> gym.Env[Any, Any]:
    """The environment that a navigator is trained in: `wsigym/LocalizationPanZoom-v0` with the target as `target`,
    float32 (64,). `px` is the side of all images, the other arguments are those of `LocalizationEnv`."""
    return EmbedTarget(localization_pan_zoom(view_px=px, overview_px=px, **localization), HashedWords())


def navigator_space(px: int = VIEW_PX, *, channels_first: bool = False) -> spaces.Dict:
    """The observation space of `navigator_env`; `channels_first`: as stable-baselines3 has it, images (3, px, px)."""
    image = spaces.Box(0, 255, (3, px, px) if channels_first else (px, px, 3), np.uint8)
    numbers = {
        "view_box": spaces.Box(0, 1, (4,), np.float32),
        "target_magnification": spaces.Box(0, MAX_MAGNIFICATION, (1,), np.float32),
        "overview_extent": spaces.Box(0, 1, (2,), np.float32),
        "budget_left": spaces.Box(0, 1, (1,), np.float32),
        "rois_left": spaces.Box(0, MAX_ROIS, (1,), np.float32),
        "target": spaces.Box(-np.inf, np.inf, (WORDS,), np.float32),
    }
    return spaces.Dict({**dict.fromkeys(("overview", *SHARES), image), **numbers})


def channels_first(observation: Observation) -> dict[str, npt.NDArray[Any]]:
    """A navigator's observation as stable-baselines3 has it: images (3, px, px)."""
    return {name: part.transpose(2, 0, 1) if part.ndim == 3 else part for name, part in observation.items()}


class NavigatorView:
    """One episode of `wsigym/Localization-v0` as `navigator_env` would show it.

    `px` is the side of the navigator's images, `images` where the episode's are, `observation` and `info` what `reset`
    returned.
    """

    def __init__(self, px: int, images: ImageSource, observation: Observation, info: Info) -> None:
        self._px, self._images = px, images
        self._smallest_side = smallest_side(info, self._px)
        self._target = HashedWords().encode([info["target"]])[0]
        overview = images.image("overview", self._px)
        red, green, blue = observation["view"][0, 0].tolist()  # background, as nothing has been looked at
        self._fixed = {
            "overview": padded(overview.image, self._px, (red, green, blue)),
            "overview_extent": np.array(overview.size, np.float32) / np.float32(self._px),
        }
        self.cursor = Cursor()

    def observation(self, observation: Observation) -> dict[str, npt.NDArray[Any]]:
        """What the navigator sees where the environment shows `observation`."""
        views: dict[str, Image] = {name: self._images.surroundings(share, self._px) for name, share in SHARES.items()}
        passed = ("view_box", "target_magnification", "budget_left", "rois_left")
        return {**views, **self._fixed, **{name: observation[name] for name in passed}, "target": self._target}

    def action_mask(self, info: Info) -> npt.NDArray[np.bool_]:
        """bool (7,): which actions are possible."""
        return action_mask(self.cursor, self._smallest_side, info["rois_left"])

    def moved(self, action: int) -> dict[str, Any]:
        """The structured action that a possible action is; the cursor moves."""
        structured = structured_action(action, self.cursor)
        if action != FINISH:
            self.cursor = self.cursor.moved(action)
        return structured
