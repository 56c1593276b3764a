"""The target's text in the observation, for policies that read no text: as a vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from wsigym.errors import InvalidArgumentError

__all__ = ["EmbedTarget", "TextEncoder"]


class TextEncoder(Protocol):
    """What turns texts into vectors, such as a `SentenceTransformer`."""

    def encode(self, sentences: list[str], /) -> Any:
        """Numbers of shape (len(sentences), n), n the same at each call; the same for the same text."""


class EmbedTarget(gym.Wrapper[dict[str, Any], Any, dict[str, Any], Any], RecordConstructorArgs):
    """Adds `target`, float32 (n,), to a Dict observation: what `encoder` makes of `info["target"]`.

    Each text is encoded once. The encoder is copied and pickled with the environment. Raises `InvalidArgumentError`
    where the observation is no Dict, the encoder gives no vectors, or an info has no target.
    """

    def __init__(self, env: gym.Env[Any, Any], encoder: TextEncoder) -> None:
        RecordConstructorArgs.__init__(self, encoder=encoder, _disable_deepcopy=True)
        gym.Wrapper.__init__(self, env)
        below = env.observation_space
        if not isinstance(below, spaces.Dict):
            raise InvalidArgumentError(f"EmbedTarget was put on {env}; it needs an environment of Dict observations.")
        self._encoder = encoder
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}
        shape = self._encoded("target").shape
        self.observation_space = spaces.Dict({**below.spaces, "target": spaces.Box(-np.inf, np.inf, shape, np.float32)})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        if not isinstance(info.get("target"), str):
            raise InvalidArgumentError(f"EmbedTarget was put on {self.env}; its info has no text under 'target'.")
        self._target = self._encoded(info["target"])
        return self._with_target(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._with_target(observation), reward, terminated, truncated, info

    def _with_target(self, observation: dict[str, Any]) -> dict[str, Any]:
        return {**observation, "target": self._target.copy()}

    def _encoded(self, text: str) -> npt.NDArray[np.float32]:
        if text not in self._vectors:
            self._vectors[text] = _vector(self._encoder.encode([text]))
        return self._vectors[text]


def _vector(encoded: Sequence[Any]) -> npt.NDArray[np.float32]:
    array = np.asarray(encoded, np.float32)
    if array.ndim != 2 or len(array) != 1 or not np.isfinite(array).all():
        raise InvalidArgumentError(
            f"the encoder gave an array of shape {array.shape} for one text; finite numbers of shape (1, n) are needed."
        )
    vector: npt.NDArray[np.float32] = array[0]
    return vector
