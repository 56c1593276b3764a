"""The network of a navigator, as a feature extractor for stable-baselines3.

    overview ---- ConvMaps ---- target maps ---- where each map points, from the cursor's centre
    3 views ----- ConvMaps ---- target maps ---- where each map points, from the view's centre; what is seen there
    target, magnification, cursor, budget

The text and the magnification scale and shift the convolutions' channels (FiLM, Perez et al. 2018). A map points to the
mean place of its softmax (spatial softmax, Levine et al. 2016), so that few numbers say where to go and a
navigator learns from some hundred slides. The first map of the overview is what cloning teaches where the target is;
its highest place is pointed to as well, as the mean of two candidates is neither.

Needs PyTorch and stable-baselines3 (extra `rl`).
"""

from __future__ import annotations

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn
from torch.nn import functional

from wsigym.envs.concentric_views import SHARES

__all__ = ["NOWHERE", "NavigatorFeatures"]

NOWHERE = -1e4
"""The logit of a place in the overview's padding."""

MAPS, VIEW_MAPS = 4, 2
"""Target maps of the overview, and of each view."""

WIDTH, VIEW_WIDTH, GROUPS = 24, 16, 4
TEXT_WIDTH = 32

Observations = dict[str, torch.Tensor]


class ConvMaps(nn.Module):
    """Images to channels at a quarter of their size (`stride` 1) or an eighth (2), and to target maps of them.

    Normalized by groups, as batches of a learner and single looks have to give the same.
    """

    def __init__(self, maps: int, asked: int, width: int, stride: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 6, 4, 1)
        self.layers = nn.ModuleList(
            [nn.Conv2d(16, width, 3, stride, 1), nn.Conv2d(width, width, 3, 1, 1), nn.Conv2d(width, width, 3, 1, 2, 2)]
        )
        self.norms = nn.ModuleList([nn.GroupNorm(GROUPS, channels) for channels in (16, width, width, width)])
        self.films = nn.ModuleList([nn.Linear(asked, 2 * width) for _ in range(2)])
        self.maps = nn.Conv2d(width, maps, 1)

    def forward(self, images: torch.Tensor, asked: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """float32 (n, width, rows, columns) channels and (n, maps, rows, columns) logits of float32 (n, 3, px, px) in
        0..1 and (n, `asked`)."""
        x = functional.relu(self.norms[0](self.patches(3 * (images - 0.8))))
        x = functional.relu(self.norms[1](self.layers[0](x)))
        for layer, norm, film in zip(self.layers[1:], self.norms[2:], self.films, strict=True):
            scale, shift = film(asked)[:, :, None, None].chunk(2, dim=1)
            x = functional.relu(norm(layer(x)) * (1 + scale) + shift)
        return x, self.maps(x)


class NavigatorFeatures(BaseFeaturesExtractor):
    """Features, float32 (n, features_dim), of a navigator's observations, as stable-baselines3 prepares them: images
    float32 (n, 3, px, px) in 0..1."""

    def __init__(self, observation_space: spaces.Dict) -> None:
        words = observation_space["target"].shape[0]  # type: ignore[index]  # a vector has a shape
        numbers = 4 + 1 + 3
        views = len(SHARES) * (3 * VIEW_MAPS + VIEW_WIDTH * (VIEW_MAPS + 1))
        super().__init__(observation_space, 4 * (MAPS + 1) + MAPS + views + numbers + TEXT_WIDTH)
        asked = TEXT_WIDTH + 1
        self.text = nn.Sequential(nn.Linear(words, TEXT_WIDTH), nn.ReLU())
        self.overview = ConvMaps(MAPS, asked, WIDTH, stride=1)
        self.views = nn.ModuleList([ConvMaps(VIEW_MAPS, asked, VIEW_WIDTH, stride=2) for _ in SHARES])

    def forward(self, observations: Observations) -> torch.Tensor:
        return self.features_and_target_map(observations)[0]

    def target_map(self, observations: Observations) -> torch.Tensor:
        """float32 (n, rows, columns): logits of where in the overview the target lies; hardly any in its padding."""
        return self._overview_maps(observations, self._asked(observations)[1])[:, 0]

    def features_and_target_map(self, observations: Observations) -> tuple[torch.Tensor, torch.Tensor]:
        """Both, for little more than one."""
        text, asked = self._asked(observations)
        cursor = _cursor(observations["view_box"])
        centre, side = cursor[:, :2] + cursor[:, 2:] / 2, cursor[:, 2:]
        target_maps = self._overview_maps(observations, asked)
        places, peaks = _pointed(target_maps)
        places = torch.cat([places, _peak(target_maps[:, 0])[:, None]], dim=1)
        away = places / observations["overview_extent"][:, None] - centre[:, None]
        parts = [away.flatten(1), (away / side[:, None]).clamp(-2, 2).flatten(1), peaks]
        for name, view in zip(SHARES, self.views, strict=True):
            channels, maps = view(observations[name], asked)
            places, peaks = _pointed(maps)
            seen = torch.einsum("nmij,ncij->nmc", _shares(maps), channels)
            parts += [2 * places.flatten(1) - 1, peaks, seen.flatten(1), channels.mean(dim=(2, 3))]
        rois = observations["rois_left"]
        looked = (observations["view_box"][:, 2:3] > 0).float()
        parts += [centre, side.log2() / 4, looked, rois.clamp(max=10) / 5, (rois < 0.5).float(), asked[:, -1:], text]
        return torch.cat(parts, dim=1), target_maps[:, 0]

    def _asked(self, observations: Observations) -> tuple[torch.Tensor, torch.Tensor]:
        text: torch.Tensor = self.text(observations["target"])
        magnification = torch.log2(observations["target_magnification"].clamp(min=0.1) / 10) / 4
        return text, torch.cat([text, magnification], dim=1)

    def _overview_maps(self, observations: Observations, asked: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.overview(observations["overview"], asked)[1]
        extent = observations["overview_extent"]
        columns, rows = ((torch.arange(count) + 0.5) / count for count in (maps.shape[3], maps.shape[2]))
        inside = (columns[None, None] < extent[:, :1, None]) & (rows[None, :, None] < extent[:, 1:, None])
        return maps.masked_fill(~inside[:, None], NOWHERE)


def _cursor(view_box: torch.Tensor) -> torch.Tensor:
    """float32 (n, 4): the last look, or the whole search box before the first."""
    whole = torch.tensor([0.0, 0.0, 1.0, 1.0])
    return torch.where(view_box[:, 2:3] > 0, view_box, whole)


def _shares(maps: torch.Tensor) -> torch.Tensor:
    """The softmax of each map over its places."""
    return maps.flatten(2).softmax(dim=2).view_as(maps)


def _peak(target_map: torch.Tensor) -> torch.Tensor:
    """float32 (n, 2): x and y, 0..1 of the map, of where the softmax, blurred by 3 x 3 cells, is highest."""
    shares = functional.avg_pool2d(_shares(target_map[:, None]), 3, 1, 1)
    rows, columns = target_map.shape[1:]
    place = shares.flatten(1).argmax(dim=1)
    return torch.stack([(place % columns + 0.5) / columns, (place // columns + 0.5) / rows], dim=1)


def _pointed(maps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """float32 (n, maps, 2): x and y, 0..1 of the map, of each softmax's mean; and (n, maps): what its peak holds."""
    shares = _shares(maps)
    xs, ys = ((torch.arange(count) + 0.5) / count for count in (maps.shape[3], maps.shape[2]))
    places = torch.stack([(shares * xs).sum(dim=(2, 3)), (shares * ys[:, None]).sum(dim=(2, 3))], dim=2)
    return places, shares.amax(dim=(2, 3))
