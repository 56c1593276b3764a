"""`choose:PATH`: a search whose order of looking was learned by reinforcement.

`ChooserNet` gives each open tile a worth; the policy opens the one that is worth most. It sees what
`wsigym.envs.free_choice` shows, and scores tiles by `stain-density`, so that it differs from `best-first:stain-density`
by its order alone. Files are safetensors, from `wsigym tiles train-search`. Needs PyTorch (extra `rl`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from wsigym.envs.free_choice import OpenTiles, choice_space, described, is_choice, page_images, slots_mask
from wsigym.envs.policy import Info, Observation
from wsigym.envs.tile_search import STOP

from .learned_scorer import one_thread
from .net_files import check_trained_on, load_net, save_tensors
from .tile_policies import FreeTilePolicy
from .tile_scorers import StainDensity

__all__ = ["ChooseTiles", "ChooserNet", "save_chooser"]

KIND = "wsigym-tile-chooser/1"
WIDTH = 32

LEANING = 3.0
"""What a standard deviation of suspicion is worth, in the logits of a policy in training: enough to lean to best-first,
and little enough to try others."""

Numbers = Mapping[str, torch.Tensor]


class Standardized(nn.Module):
    """Each candidate with the state beside it, each number less its mean, divided by its standard deviation."""

    mean: torch.Tensor
    deviation: torch.Tensor

    def __init__(self, magnifications: int) -> None:
        super().__init__()
        space = choice_space(magnifications)
        self.size = space["candidates"].shape[1] + space["state"].shape[0]  # type: ignore[index]  # both are boxes
        self.register_buffer("mean", torch.zeros(self.size))
        self.register_buffer("deviation", torch.ones(self.size))

    def fit(self, candidates: torch.Tensor, state: torch.Tensor) -> None:
        """Take mean and deviation from observations (n, 64, c) and (n, s); empty slots do not count."""
        both, filled = beside(candidates, state), candidates.any(dim=2)
        self.mean.copy_(both[filled].mean(dim=0))
        self.deviation.copy_(both[filled].std(dim=0).clamp(min=1e-3))

    def forward(self, candidates: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """float32 (n, 64, c + s)."""
        return (beside(candidates, state) - self.mean) / self.deviation


def beside(candidates: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
    """float32 (n, 64, c + s): each of the candidates (n, 64, c) with the state (n, s)."""
    return torch.cat([candidates, state[:, None, :].expand(-1, candidates.shape[1], -1)], dim=2)


class ChooserNet(nn.Module):
    """The worth of each open tile: its suspicion, as best-first has it, and what one small network adds, that all of
    them go through. It adds nothing at first, so that training starts from best-first."""

    def __init__(self, magnifications: Sequence[float]) -> None:
        super().__init__()
        self.magnifications = tuple(float(value) for value in magnifications)
        self.inputs = Standardized(len(self.magnifications))
        self.added = nn.Sequential(
            nn.Linear(self.inputs.size, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1)
        )
        last = self.added[-1]
        assert isinstance(last, nn.Linear)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def forward(self, candidates: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """float32 (n, 64) of float32 (n, 64, c) and (n, s), the observation of a `FreeChoice`."""
        inputs = self.inputs(candidates, state)
        worth: torch.Tensor = LEANING * inputs[..., len(self.magnifications) - 1] + self.added(inputs)[..., 0]
        return worth


def save_chooser(net: ChooserNet, path: Path, trained_on: Mapping[str, str]) -> None:
    """Write the network; `trained_on` are words for people."""
    save_tensors(path, net.state_dict(), KIND, {"magnifications": net.magnifications, **trained_on})


class ChooseTiles(FreeTilePolicy):
    """The network of a file.

    Raises `InvalidArgumentError` if the file is none, and on reset where a slide is looked at in magnifications that it
    was not trained on.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(StainDensity())
        self._path = path
        self._net = load_net(ChooserNet, path, KIND, "tile chooser", "wsigym tiles train-search")
        self._tiles = OpenTiles(self._net.magnifications)

    def check_magnifications(self, magnifications: Sequence[float]) -> None:
        super().check_magnifications(magnifications)
        check_trained_on(self._net.magnifications, magnifications, f"tile chooser {self._path}")

    def reset(self, observation: Observation, info: Info) -> None:
        self._tiles.reset()

    def act(self, observation: Observation, info: Info) -> dict[str, Any]:
        scores = self._page(observation, info)
        if not info["tiles"]:
            return {"scores": scores, "next": STOP}
        self.check_magnifications([info["magnification"]])
        self._tiles.add(described(page_images(observation, info), scores[: len(info["tiles"])]), info)
        slot = self._best(info) if is_choice(info) else STOP
        self._tiles.open(info["frontier"][slot])
        return {"scores": scores, "next": slot}

    def _best(self, info: Info) -> int:
        numbers = {name: torch.from_numpy(part)[None] for name, part in self._tiles.numbers(info).items()}
        with torch.inference_mode(), one_thread():
            worth: npt.NDArray[np.float32] = self._net(**numbers)[0].numpy()
        return int(np.where(slots_mask(info["frontier"]), worth, -np.inf).argmax())
