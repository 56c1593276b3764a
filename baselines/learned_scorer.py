"""`tile-scorer:PATH`: a small convolutional network that was trained to tell tumour tiles from others.

`TileNet` sees a tile shrunk to 64 px and the magnification; its output is the probability that the tile is positive.
Files are safetensors: tensors and a few words on what they were trained on, no code. Needs PyTorch (extra `rl`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from wsigym.envs.policy import Info

from .net_files import check_trained_on, load_net, save_tensors
from .tile_scorers import Scores, Tiles, TileScorer

__all__ = ["INPUT_PX", "LearnedScorer", "TileNet", "as_input", "one_thread", "save_net"]

INPUT_PX = 64
FORMAT = "wsigym-tile-scorer/1"


class TileNet(nn.Module):
    """Four convolutions, their mean and maximum over the tile, and one layer that also gets the magnification."""

    def __init__(self, magnifications: tuple[float, ...]) -> None:
        super().__init__()
        self.magnifications = magnifications
        layers: list[nn.Module] = []
        channels = 3
        for width in (16, 32, 64, 96):
            layers += [nn.Conv2d(channels, width, 3, stride=2, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Linear(2 * channels + len(magnifications), 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, tiles: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        """float32 (n,) logits of float32 (n, 3, 64, 64) in 0..1 and int64 (n,), the magnification's place."""
        features = self.features(1 - tiles)  # white glass is 0, as the padding is
        pooled = torch.cat([features.mean(dim=(2, 3)), features.amax(dim=(2, 3))], dim=1)
        one_hot = nn.functional.one_hot(level, len(self.magnifications)).float()
        logits: torch.Tensor = self.head(torch.cat([pooled, one_hot], dim=1))[:, 0]
        return logits


def as_input(tiles: Tiles) -> npt.NDArray[np.uint8]:
    """uint8 (n, 3, 64, 64) of uint8 (n, height, width, 3): shrunk by area means, channels first."""
    shrunk = [cv2.resize(tile, (INPUT_PX, INPUT_PX), interpolation=cv2.INTER_AREA) for tile in tiles]
    return np.stack(shrunk).astype(np.uint8).transpose(0, 3, 1, 2)


def save_net(net: TileNet, path: Path, trained_on: Mapping[str, str]) -> None:
    """Write the network; `trained_on` are words for people. The same network and words give the same bytes."""
    save_tensors(path, net.state_dict(), FORMAT, {"magnifications": net.magnifications, **trained_on})


class LearnedScorer(TileScorer):
    """The network of a file. Its suspicion is a probability, so that 0.5 and more is a Yes.

    Raises `InvalidArgumentError` if the file is none, or a magnification is asked for that it was not trained on.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._net = load_net(TileNet, path, FORMAT, "tile scorer", "wsigym tiles train")

    def check_magnifications(self, magnifications: Sequence[float]) -> None:
        check_trained_on(self._net.magnifications, magnifications, f"tile scorer {self._path}")

    def suspicions(self, tiles: Tiles, info: Info) -> Scores:
        self.check_magnifications([info["magnification"]])
        level = self._net.magnifications.index(info["magnification"])
        with torch.inference_mode(), one_thread():
            pixels = torch.from_numpy(as_input(tiles)).float() / 255
            logits = self._net(pixels, torch.full((len(tiles),), level))
            suspicions: Scores = logits.sigmoid().double().numpy()
        return suspicions


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch on one thread inside the block.

    Its threads wait for one another by spinning, hundreds of times a batch. Where another process has one of the cores,
    each wait lasts until the system gives it back: measured on two busy cores, ten times as long as one thread alone
    takes. One thread also adds up in one order, so that a network does not depend on the machine's number of cores.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
