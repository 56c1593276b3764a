"""Training the order of a search by reinforcement: maskable PPO on Exploration's free schedule.

    train_chooser(cohort, Path("chooser.safetensors"), split="train")

The return is the environment's own, the hit rate at the end of an episode. It is paid as it comes about: the reward is
shaped by the potential "hit rate if the search ended now", 0 at the end, which leaves returns as they are. Episodes are
of slides that have something to find, with budgets drawn from a range, so that one network serves all of them. One
thread: the numbers do not depend on the machine's cores. Needs PyTorch, stable-baselines3 and sb3-contrib (extra `rl`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableMultiInputActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from torch import nn

from wsigym.cohorts import Cohort
from wsigym.cohorts.exploration import TUMOUR, exploration_references
from wsigym.cohorts.tiles import WHOLE_SLIDE, TileGrid
from wsigym.envs.exploration import MAGNIFICATIONS, ExplorationEnv
from wsigym.envs.free_choice import FreeChoice
from wsigym.envs.tile_budgets import KEPT_AT_THE_END
from wsigym.envs.tile_search import TileTree
from wsigym.errors import InvalidArgumentError
from wsigym.slides import tissue_mask

from .checks import check_seed, new_file
from .learned_scorer import one_thread
from .tile_chooser import WIDTH, ChooserNet, Standardized, save_chooser
from .tile_scorers import StainDensity

__all__ = ["STEPS", "TILES", "TrainedChooser", "train_chooser"]

Positives = npt.NDArray[np.bool_]

STEPS = 16_384
"""Choices that training makes."""

TILES = (64, 320)
"""Budgets that training draws from, evenly by their logarithm: from the fewest that show a page or two of the last
magnification to more than the paper's cascade views on a synthetic slide."""

ROLLOUT, BATCH, EPOCHS, LEARNING_RATE, ENTROPY = 1024, 128, 5, 2e-3, 0.003
MEASURED_STEPS = 200
"""Random choices from which the inputs' means and deviations are taken."""


@dataclass(frozen=True)
class TrainedChooser:
    """What a training saw: slides with something to find, choices, episodes; and the mean return of its first and its
    last tenth of episodes, the hit rate at the last magnification."""

    slides: int
    steps: int
    episodes: int
    first_return: float
    last_return: float


def train_chooser(
    cohort: Cohort,
    out: Path,
    *,
    split: str | None = "train",
    target: str = TUMOUR,
    magnifications: Sequence[float] = MAGNIFICATIONS,
    tile_px: int = 128,
    tiles: Sequence[float] = TILES,
    steps: int = STEPS,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> TrainedChooser:
    """Train a `ChooserNet` on the slides of a split that have positive tiles, and write it to the new file `out`.

    `tiles` are the least and the largest budget of an episode; `steps` choices are made, rounded up to whole rollouts
    of 1,024. `progress(done, total)` counts them. The file depends on the cohort, the arguments and the libraries'
    versions. Raises `InvalidArgumentError` for `tiles`, `steps` and a `seed` that are none, for an `out` that is there
    or cannot be written, and where a split has no positive tile, `tiles` do not reach the last magnification or no
    episode ends within `steps`.
    """
    least, most = _checked_tiles(tiles)
    if steps < 1:
        raise InvalidArgumentError(f"steps is {steps}; a whole number of 1 or more is needed.")
    check_seed(seed)
    with new_file(out) as file, one_thread(), _env(cohort, split, target, magnifications, tile_px) as env:
        positives = _slides_to_find(cohort, split, target, env)
        _check_reach(env, positives, least, most)
        episodes = _Episodes(FreeChoice(env, StainDensity()), positives, least, most)
        model = MaskablePPO(
            _Policy,
            episodes,
            learning_rate=LEARNING_RATE,
            n_steps=ROLLOUT,
            batch_size=BATCH,
            n_epochs=EPOCHS,
            gamma=1.0,
            ent_coef=ENTROPY,
            policy_kwargs={"magnifications": tuple(magnifications), "ortho_init": False},
            seed=seed,
            device="cpu",
        )
        networks = model.policy.mlp_extractor
        assert isinstance(networks, _ActorCritic)
        networks.fit(*_observed(episodes, seed))
        watcher = _Watcher(progress, steps)
        model.learn(steps, callback=watcher)
        returns = watcher.returns
        if not returns:
            raise InvalidArgumentError(
                f"no episode ended within {model.num_timesteps} steps, so that nothing was learned; give more steps "
                f"or budgets below {most} tiles."
            )
        words = {"cohort": cohort.name, "cohort_sha256": cohort.sha256, "split": split or "all", "target": target}
        words |= {"tile_px": str(tile_px), "tiles": f"{least} to {most}", "steps": str(model.num_timesteps)}
        save_chooser(networks.chooser, file, words | {"seed": str(seed)})
    tenth = max(1, len(returns) // 10)
    first, last = (float(np.mean(part)) for part in (returns[:tenth], returns[-tenth:]))
    return TrainedChooser(len(positives), model.num_timesteps, len(returns), first, last)


def _env(
    cohort: Cohort, split: str | None, target: str, magnifications: Sequence[float], tile_px: int
) -> ExplorationEnv:
    return ExplorationEnv(cohort, split, target, "tiles=all", "free", magnifications, tile_px, overview_px=36)


def _slides_to_find(cohort: Cohort, split: str | None, target: str, env: ExplorationEnv) -> dict[str, Positives]:
    """The positive tiles of the last magnification, of the slides that have any: the others teach nothing."""
    found = {}
    for slide_id, reference in exploration_references(cohort, split, target).items():
        grid = TileGrid.of(cohort.open(slide_id), env.magnifications, env.tile_px)
        positives = reference.positives(grid)[-1]
        if positives.any():
            found[slide_id] = positives
    if not found:
        raise InvalidArgumentError(
            f"cohort {cohort.name!r}, split {split or 'any'}: no tile is positive, so that there is nothing to find; "
            f"regions of class {target!r} are needed."
        )
    return found


def _checked_tiles(tiles: Sequence[float]) -> tuple[int, int]:
    if len(tiles) != 2 or not 1 <= tiles[0] <= tiles[1] < float("inf") or any(each != int(each) for each in tiles):
        raise InvalidArgumentError(
            f"tiles is {list(tiles)}; needed are two whole numbers, the least and the most, such as 64 and 320."
        )
    return int(tiles[0]), int(tiles[1])


def _check_reach(env: ExplorationEnv, slide_ids: Iterable[str], least: int, most: int) -> None:
    """Raises `InvalidArgumentError` where no search of at most `most` tiles sees the last magnification."""
    if most > env.page_size * (len(env.magnifications) - 1):  # a tile with tissue has children with tissue
        return
    fewest = min(_fewest_tiles(env, slide_id) for slide_id in slide_ids)
    if fewest == math.inf:
        raise InvalidArgumentError(
            "no slide with a positive tile has tissue that a search is shown: look at where the regions lie."
        )
    if most < fewest:
        raise InvalidArgumentError(
            f"tiles is {least} to {most}, and a search of these slides has viewed {fewest} or more with its first at "
            f"{env.magnifications[-1]:g}x, so that nothing would be found or learned; give more, such as 64 and 320."
        )


def _fewest_tiles(env: ExplorationEnv, slide_id: str) -> float:
    """Of a slide, the tiles that a search views at least, with its first of the last magnification; inf where it is
    shown no tissue."""
    slide = env.cohort.open(slide_id)
    tree = TileTree.with_tissue(TileGrid.of(slide, env.magnifications, env.tile_px), tissue_mask(slide))
    seen = {WHOLE_SLIDE: 0}  # of each tile of a magnification, what is viewed once its page is
    for _ in env.magnifications[:-1]:
        families = [(viewed, tree.children(tile)) for tile, viewed in seen.items()]
        seen = {
            child: viewed + min(len(children), (place // env.page_size + 1) * env.page_size)
            for viewed, children in families
            for place, child in enumerate(children)
        }
    return 1 + min((viewed for tile, viewed in seen.items() if tree.children(tile)), default=math.inf)


class _Episodes(gym.Wrapper[Any, Any, Any, Any]):
    """Draws an episode's slide and budget, slides alike and budgets by their logarithm; and shapes the reward.

    `positives` are, by slide, bool (rows, columns): the positive tiles of the last magnification.
    """

    def __init__(self, env: FreeChoice, positives: Mapping[str, Positives], least: int, most: int) -> None:
        super().__init__(env)
        self._positives, self._slide_ids = positives, tuple(positives)
        self._range = np.log(least), np.log(most)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        drawn = {
            "slide_id": self._slide_ids[int(self._rng.integers(len(self._slide_ids)))],
            "tiles": round(float(np.exp(self._rng.uniform(*self._range)))),
        }
        self._leaves: list[tuple[float, bool]] = []  # suspicion and truth of each viewed tile of the last magnification
        self._potential = 0.0
        return self.env.reset(seed=seed, options=drawn)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        before, self._potential = self._potential, 0.0 if terminated else self._rate_now(info)
        return observation, float(reward) + self._potential - before, terminated, truncated, info

    def _rate_now(self, info: dict[str, Any]) -> float:
        """The hit rate, were the search over now, with the page that was just scored."""
        positives, deepest = self._positives[info["slide_id"]], self.unwrapped.magnifications[-1]  # type: ignore[attr-defined]
        for magnification, (x, y, width, height), suspicion in info["scored"]:
            if magnification == deepest:
                self._leaves.append((suspicion, bool(positives[y // height, x // width])))
        self._leaves.sort(key=lambda leaf: -leaf[0])
        return sum(positive for _, positive in self._leaves[:KEPT_AT_THE_END]) / int(positives.sum())

    def action_masks(self) -> Any:
        return self.env.action_masks()  # type: ignore[attr-defined]  # it is a FreeChoice


def _observed(env: gym.Env[Any, Any], seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Candidates and states of random choices."""
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    seen = []
    for _ in range(MEASURED_STEPS):
        seen.append(observation)
        observation, _, over, _, info = env.step(rng.choice(np.flatnonzero(info["action_mask"])))
        if over:
            observation, info = env.reset()
    candidates, states = (np.stack([each[name] for each in seen]) for name in ("candidates", "state"))
    return torch.from_numpy(candidates), torch.from_numpy(states)


class _ActorCritic(nn.Module):
    """The chooser, and a critic of its own that sees the candidates' mean and maximum; in the form that
    stable-baselines3 asks for."""

    def __init__(self, magnifications: Sequence[float], shape: tuple[int, int]) -> None:
        super().__init__()
        self._shape = shape
        self.chooser = ChooserNet(magnifications)
        self.inputs = Standardized(len(magnifications))
        size = self.inputs.size
        self.each = nn.Sequential(nn.Linear(size, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh())
        self.all = nn.Sequential(nn.Linear(2 * WIDTH, WIDTH), nn.Tanh())
        self.latent_dim_pi, self.latent_dim_vf = shape[0], WIDTH

    def fit(self, candidates: torch.Tensor, state: torch.Tensor) -> None:
        self.inputs.fit(candidates, state)
        self.chooser.inputs.fit(candidates, state)

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: torch.Tensor) -> torch.Tensor:
        worth: torch.Tensor = self.chooser(*self._parts(features))
        return worth

    def forward_critic(self, features: torch.Tensor) -> torch.Tensor:
        candidates, state = self._parts(features)
        filled = candidates.any(dim=2, keepdim=True)
        each = self.each(self.inputs(candidates, state)) * filled
        mean = each.sum(dim=1) / filled.sum(dim=1).clamp(min=1)
        latent: torch.Tensor = self.all(torch.cat([mean, each.amax(dim=1)], dim=1))
        return latent

    def _parts(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        slots, size = self._shape
        return features[:, : slots * size].reshape(-1, slots, size), features[:, slots * size :]


class _Policy(MaskableMultiInputActorCriticPolicy):
    """stable-baselines3's policy with these networks; a candidate's worth is its logit."""

    def __init__(self, *args: Any, magnifications: Sequence[float], **kwargs: Any) -> None:
        self._magnifications = magnifications
        super().__init__(*args, **kwargs)

    def _build_mlp_extractor(self) -> None:
        shape = self.observation_space["candidates"].shape  # type: ignore[index]
        self.mlp_extractor = _ActorCritic(self._magnifications, shape)  # type: ignore[assignment]  # has its methods

    def _get_action_dist_from_latent(self, latent_pi: torch.Tensor) -> Any:
        return self.action_dist.proba_distribution(action_logits=latent_pi)


class _Watcher(BaseCallback):
    """Collects the returns of episodes, and reports how far training is."""

    def __init__(self, progress: Callable[[int, int], None] | None, steps: int) -> None:
        super().__init__()
        self._report, self._steps = progress, steps
        self.returns: list[float] = []

    def _on_step(self) -> bool:
        self.returns += [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
        if self._report:
            self._report(min(self.num_timesteps, self._steps), self._steps)
        return True
