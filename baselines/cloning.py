"""Behaviour cloning: a navigator that imitates demonstrations, and the warm start of `wsigym train`.

Two losses. Moves: cross-entropy with the expert's moves from each place, which detours are not. Places: cross-entropy
of the overview's first target map with the centre of the valid box that the demonstration ends on, a Gaussian of
`SPREAD` cells; it is learned alone first, on what is seen before the first look. Images are mirrored and turned with
their moves, and stained anew.

Needs PyTorch and stable-baselines3 (extra `rl`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch.nn import functional

from wsigym.cohorts import Cohort, LocalizationQuery, LocalizationReference, localization_queries
from wsigym.envs.concentric_views import SHARES
from wsigym.errors import InvalidArgumentError

from .expert_episodes import Demonstration
from .learned_scorer import one_thread
from .navigator import HashedWords
from .navigator_net import NOWHERE, NavigatorFeatures

__all__ = ["MOVE_BATCHES", "PLACE_BATCHES", "Cloned", "Moves", "clone"]

PLACE_BATCHES, MOVE_BATCHES = 2_400, 800
PLACE_BATCH, MOVE_BATCH = 32, 128
LEARNING_RATE, WEIGHT_DECAY = 2e-3, 1e-2
PLACE_WEIGHT = 0.3
"""The weight of the places' loss while moves are learned."""

SPREAD = 1.2
"""In cells of the target map, 4 px of the overview each."""

MIRRORED = (1, 0, 2, 3, 4, 5, 6)
FLIPPED = (0, 1, 3, 2, 4, 5, 6)
TRANSPOSED = (2, 3, 0, 1, 4, 5, 6)
"""Which move a move becomes when left and right, up and down, or the two axes change places."""

IMAGES = ("overview", *SHARES)

Arrays = dict[str, npt.NDArray[Any]]
Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Moves:
    """What is imitated: n steps of demonstrations.

    Attributes:
        observations: by part (n, ...), images uint8 (n, px, px, 3).
        masks: bool (n, 7), the moves possible.
        optimal: float32 (n, 7), the expert's moves as shares of 1.
        places: float32 (n, 2), x and y in 0..1 of the search box: the centre of the valid box that the demonstration
            ends nearest to.
    """

    observations: Arrays
    masks: npt.NDArray[np.bool_]
    optimal: npt.NDArray[np.float32]
    places: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.masks)

    @classmethod
    def of(cls, demonstrations: Iterable[Demonstration], cohort: Cohort) -> Moves:
        """Every step of demonstrations of the cohort's split train.

        Raises `InvalidArgumentError` where there is none, or one is of another split or cohort.
        """
        centres_of = {
            query.query_id: _centres(query, reference) for query, reference in localization_queries(cohort, "train")
        }
        steps: list[Arrays] = []
        encoder = HashedWords()
        for played in demonstrations:
            count = len(played)
            if played.query_id not in centres_of:
                raise InvalidArgumentError(
                    f"a demonstration is of query {played.query_id!r}, which the split train of cohort {cohort.name!r} "
                    "does not ask; write demonstrations of that split with `wsigym demos`."
                )
            last = played.observations["view_box"][-1]
            end = last[:2] + last[2:] / 2 if last[2] > 0 else np.array([0.5, 0.5])
            centres = centres_of[played.query_id]
            place = centres[np.argmin(((centres - end) ** 2).sum(axis=1))]
            optimal = played.optimal[:count].astype(np.float32)
            seen = {name: part[:count] for name, part in played.observations.items()}
            seen["target"] = np.repeat(encoder.encode([played.target]), count, axis=0)
            steps.append(
                seen
                | {
                    "mask": played.masks[:count],
                    "optimal": optimal / optimal.sum(axis=1, keepdims=True),
                    "place": np.repeat(place[None].astype(np.float32), count, axis=0),
                }
            )
        if not steps:
            raise InvalidArgumentError("there is no demonstration to clone; `wsigym demos` writes some.")
        joined = {name: np.concatenate([each.pop(name) for each in steps]) for name in list(steps[0])}
        masks, optimal, places = (joined.pop(name) for name in ("mask", "optimal", "place"))
        return cls(joined, masks, optimal, places)


def _centres(query: LocalizationQuery, reference: LocalizationReference) -> npt.NDArray[np.float32]:
    """float32 (boxes, 2): the centres of the valid boxes, in 0..1 of the search box."""
    searched = query.search_box
    centres = np.array([box.centre for box in reference.boxes]) - (searched.x, searched.y)
    return (centres / (searched.width, searched.height)).astype(np.float32)


@dataclass(frozen=True)
class Cloned:
    """How many steps a cloning saw, and the mean losses of its last tenth."""

    steps: int
    move_loss: float
    place_loss: float


def clone(
    policy: MaskableActorCriticPolicy,
    moves: Moves,
    *,
    place_batches: int = PLACE_BATCHES,
    move_batches: int = MOVE_BATCHES,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Cloned:
    """Teach `policy`, made with `NavigatorFeatures`, the moves, in place. Its value function learns nothing.

    Batches, and how their images are changed, are drawn with `seed`: the same arguments and version of PyTorch give the
    same policy. One thread. `progress(done, total)` counts batches.
    """
    with one_thread():
        return _cloned(policy, moves, place_batches, move_batches, seed, progress or (lambda done, asked: None))


def _cloned(
    policy: MaskableActorCriticPolicy,
    moves: Moves,
    place_batches: int,
    move_batches: int,
    seed: int,
    progress: Callable[[int, int], None],
) -> Cloned:
    network = policy.features_extractor
    assert isinstance(network, NavigatorFeatures)
    rng = np.random.default_rng(seed)
    starts = np.flatnonzero(moves.observations["view_box"][:, 2] == 0)
    total, losses = place_batches + move_batches, []
    policy.set_training_mode(True)
    for stage, batches, size in (("places", place_batches, PLACE_BATCH), ("moves", move_batches, MOVE_BATCH)):
        optimizer = torch.optim.AdamW(policy.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=max(1, batches))
        for _ in range(batches):
            rows = rng.choice(starts, size) if stage == "places" else rng.integers(0, len(moves), size)
            batch = _varied(_batch(moves, rows), rng)
            if stage == "places":
                place_loss = _place_loss(network.target_map(batch), batch)
                move_loss, loss = torch.zeros(()), place_loss
            else:
                features, target_map = network.features_and_target_map(batch)
                place_loss, move_loss = _place_loss(target_map, batch), _move_loss(policy, features, batch)
                loss = move_loss + PLACE_WEIGHT * place_loss
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # PyTorch's own
            optimizer.step()
            schedule.step()
            losses.append((move_loss.item(), place_loss.item()))
            progress(len(losses), total)
    policy.set_training_mode(False)
    last = np.mean(losses[-max(1, len(losses) // 10) :], axis=0) if losses else (0.0, 0.0)
    return Cloned(len(moves), float(last[0]), float(last[1]))


def _batch(moves: Moves, rows: npt.NDArray[np.int64]) -> Tensors:
    """The chosen steps as stable-baselines3 prepares observations, and "mask", "optimal", "place"."""
    batch = {}
    for name, part in moves.observations.items():
        chosen = torch.from_numpy(part[rows])
        batch[name] = chosen.permute(0, 3, 1, 2).float() / 255 if name in IMAGES else chosen.float()
    others = {"mask": moves.masks, "optimal": moves.optimal, "place": moves.places}
    return batch | {name: torch.from_numpy(part[rows]) for name, part in others.items()}


def _move_loss(policy: MaskableActorCriticPolicy, features: torch.Tensor, batch: Tensors) -> torch.Tensor:
    latent = policy.mlp_extractor.forward_actor(features)
    logits = policy.action_net(latent).masked_fill(~batch["mask"], -1e8)
    return functional.cross_entropy(logits, batch["optimal"])


def _place_loss(logits: torch.Tensor, batch: Tensors) -> torch.Tensor:
    rows, columns = logits.shape[1:]
    place = batch["place"] * batch["overview_extent"]
    across = (torch.arange(columns) + 0.5 - place[:, :1] * columns) / SPREAD
    down = (torch.arange(rows) + 0.5 - place[:, 1:] * rows) / SPREAD
    near = (-(down[:, :, None] ** 2 + across[:, None, :] ** 2) / 2).masked_fill(logits <= NOWHERE, NOWHERE)
    return functional.cross_entropy(logits.flatten(1), near.flatten(1).softmax(dim=1))


def _varied(batch: Tensors, rng: np.random.Generator) -> Tensors:
    """The batch mirrored and turned at random, all alike, each image with its own stain strength by channel."""
    batch = dict(batch)
    if rng.integers(2):
        batch = _mirrored(batch, axis=0)
    if rng.integers(2):
        batch = _mirrored(batch, axis=1)
    if rng.integers(2):
        batch = _transposed(batch)
    strength = torch.from_numpy(rng.uniform(0.85, 1.15, (len(batch["place"]), 3, 1, 1)).astype(np.float32))
    return batch | {name: (1 - (1 - batch[name]) * strength).clamp(0, 1) for name in IMAGES}


def _mirrored(batch: Tensors, axis: int) -> Tensors:
    """x (axis 0) or y (1) reversed. The overview's padding stays on its right and below."""
    side = 3 - axis
    changed = {name: batch[name].flip(side) for name in IMAGES}
    px = changed["overview"].shape[side]
    padding = (px * (1 - batch["overview_extent"][:, axis])).round().long()
    source = (torch.arange(px)[None] + padding[:, None]) % px
    shape = (-1, 1, 1, px) if side == 3 else (-1, 1, px, 1)
    changed["overview"] = changed["overview"].gather(side, source.view(shape).expand_as(changed["overview"]))
    box, place = batch["view_box"].clone(), batch["place"].clone()
    box[:, axis] = torch.where(box[:, 2] > 0, 1 - box[:, axis] - box[:, 2 + axis], box[:, axis])
    place[:, axis] = 1 - place[:, axis]
    return batch | changed | {"view_box": box, "place": place} | _renamed(batch, (MIRRORED, FLIPPED)[axis])


def _transposed(batch: Tensors) -> Tensors:
    changed = {name: batch[name].transpose(2, 3) for name in IMAGES}
    swapped = {"view_box": (1, 0, 3, 2), "place": (1, 0), "overview_extent": (1, 0)}
    return (
        batch | changed | {name: batch[name][:, order] for name, order in swapped.items()} | _renamed(batch, TRANSPOSED)
    )


def _renamed(batch: Tensors, moves: tuple[int, ...]) -> Tensors:
    return {name: batch[name][:, moves] for name in ("mask", "optimal")}
