"""The target's text in the observation, for policies that read no text: as a vector."""

from __future__ import annotations

import reprlib
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
        """Numbers of shape (len(sentences), n), n the same at each call; the same for the same text. Tensors of PyTorch
        may be on any device and require a gradient."""


class EmbedTarget(gym.Wrapper[dict[str, Any], Any, dict[str, Any], Any], RecordConstructorArgs):
    """Adds `target`, float32 (n,), to a Dict observation: what `encoder` makes of `info["target"]`.

    Each text is encoded once. The encoder is copied and pickled with the environment. Raises `InvalidArgumentError`
    where the observation is no Dict, the encoder has no `encode` or gives no vectors of one length, or an info has no
    target.
    """

    def __init__(self, env: gym.Env[Any, Any], encoder: TextEncoder) -> None:
        RecordConstructorArgs.__init__(self, encoder=encoder, _disable_deepcopy=True)
        gym.Wrapper.__init__(self, env)
        below = env.observation_space
        if not isinstance(below, spaces.Dict):
            raise InvalidArgumentError(f"EmbedTarget was put on {env}; it needs an environment of Dict observations.")
        # Text has a method of that name, and a class is none of its own encoders.
        if isinstance(encoder, str | type) or not callable(getattr(encoder, "encode", None)):
            raise InvalidArgumentError(
                f"encoder is {encoder!r}; needed is an object with a method encode(list of texts), such as a "
                "SentenceTransformer."
            )
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
            vector = _vector(self._encoder.encode([text]))
            before = next(iter(self._vectors.values()), vector)
            if len(vector) != len(before):
                raise InvalidArgumentError(
                    f"the encoder gave {len(vector)} numbers for {text!r}, and {len(before)} for the text before; "
                    "it must give as many for every text."
                )
            self._vectors[text] = vector
        return self._vectors[text]


def _vector(encoded: Any) -> npt.NDArray[np.float32]:
    try:
        # PyTorch gives numpy no tensor that requires a gradient, is on a GPU, or is of bfloat16.
        array = np.asarray(encoded.detach().tolist() if hasattr(encoded, "detach") else encoded)
    except (TypeError, ValueError, RuntimeError):
        array = np.empty(0, object)
    with np.errstate(over="ignore"):
        numbers = array.astype(np.float32) if array.dtype.kind in "biuf" else None
    if numbers is None:
        found = reprlib.repr(encoded)
    elif numbers.ndim != 2 or len(numbers) != 1 or not numbers.size:
        found = f"an array of shape {numbers.shape}"
    elif not np.isfinite(numbers).all():
        found = "numbers that are not finite in float32"
    else:
        vector: npt.NDArray[np.float32] = numbers[0]
        return vector
    raise InvalidArgumentError(
        f"the encoder gave {found} for one text; finite numbers of shape (1, n), n at least 1, are needed."
    )
