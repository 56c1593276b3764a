"""`ppo:PATH`: a navigator that `wsigym train` made, one move at a time, always the likeliest.

PATH is a policy's file, or a training folder, of which `best.zip` plays. The file is stable-baselines3's, and reading
it runs code that stands in it: play files of people whom you trust. Needs PyTorch and sb3-contrib (extra `rl`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gymnasium import spaces
from sb3_contrib import MaskablePPO

from wsigym.envs.pan_zoom import ACTIONS
from wsigym.envs.policy import Info, Observation
from wsigym.envs.views import ImageSource
from wsigym.errors import InvalidArgumentError

from .learned_scorer import one_thread
from .navigator import VIEW_PX, NavigatorView, channels_first, navigator_space
from .net_files import check_finite

__all__ = ["BEST", "PpoNavigator", "load_model", "px_of"]

BEST = "best.zip"
"""The policy of a training folder that did best on the validation split."""


class PpoNavigator:
    """A policy of `wsigym/Localization-v0`. Raises `InvalidArgumentError` where the file is no navigator's."""

    def __init__(self, path: str | Path) -> None:
        file = Path(path)
        model = load_model(file / BEST if file.is_dir() else file)
        self._policy, self._px = model.policy, px_of(model)

    def see_images(self, source: ImageSource) -> None:
        self._images = source

    def reset(self, observation: Observation, info: Info) -> None:
        self._view = NavigatorView(self._px, self._images, observation, info)

    def act(self, observation: Observation, info: Info) -> dict[str, Any]:
        seen = channels_first(self._view.observation(observation))
        with one_thread():  # so that the last bit does not depend on the machine's cores
            action, _ = self._policy.predict(seen, deterministic=True, action_masks=self._view.action_mask(info))
        return self._view.moved(int(action))


def load_model(path: str | Path) -> MaskablePPO:
    """The model of a file that `wsigym train` wrote, on the CPU.

    Raises `InvalidArgumentError` where there is none, it cannot be read, it was trained on other observations, or its
    network has values that are no numbers.
    """
    try:
        model = MaskablePPO.load(path, device="cpu")
    except FileNotFoundError:
        raise InvalidArgumentError(f"{path}: there is no such policy; `wsigym train` writes them.") from None
    except Exception as error:  # a zip of pickles, which may be cut off or another program's, fails in many ways
        raise InvalidArgumentError(
            f"{path} is no policy that can be read ({type(error).__name__}: {error}); `wsigym train` writes them."
        ) from None
    _check_spaces(Path(path), model)
    check_finite(model.policy, str(path))
    return model


def _check_spaces(path: Path, model: MaskablePPO) -> None:
    found = model.observation_space
    parts = dict(found.spaces) if isinstance(found, spaces.Dict) else {}
    wanted = navigator_space(px_of(model), channels_first=True).spaces
    differing = [name for name in {**wanted, **parts} if parts.get(name) != wanted.get(name)]
    actions = spaces.Discrete(len(ACTIONS))
    if differing or model.action_space != actions:
        faults = [f"its observations differ in {', '.join(differing)}"] if differing else []
        if model.action_space != actions:
            faults.insert(0, f"its actions are {model.action_space} and not {actions}")
        raise InvalidArgumentError(
            f"{path} was trained in another environment: {', and '.join(faults)}. A navigator's environment is made by "
            "wsigym.baselines.navigator.navigator_env; `wsigym train` trains in it."
        )


def px_of(model: MaskablePPO) -> int:
    """The side of the images that a navigator sees."""
    space = model.observation_space
    overview = space.spaces.get("overview") if isinstance(space, spaces.Dict) else None
    return overview.shape[-1] if isinstance(overview, spaces.Box) and len(overview.shape) == 3 else VIEW_PX
