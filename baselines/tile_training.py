"""Training the tile scorer on a cohort's regions. It reads references: it makes a policy, and is none.

    train_tile_scorer(cohort, Path("scorer.safetensors"), split="train")

Needs PyTorch (extra `rl`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from wsigym.cohorts import Cohort
from wsigym.cohorts.exploration import TUMOUR, ExplorationReference, exploration_references
from wsigym.cohorts.tiles import Tile, TileGrid
from wsigym.envs.exploration import MAGNIFICATIONS
from wsigym.envs.tile_search import TileTree
from wsigym.errors import InvalidArgumentError
from wsigym.slides import Slide, tissue_mask

from .checks import check_seed, new_file
from .learned_scorer import TileNet, as_input, one_thread, save_net

__all__ = ["Trained", "train_tile_scorer"]

TILES_A_LEVEL = 160
"""Tiles of one slide and magnification that training sees at most, of each kind (positive and negative)."""

EPOCHS, BATCH, LEARNING_RATE = 12, 128, 3e-3

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Trained:
    """What a training saw, and the mean loss of its last epoch."""

    slides: int
    tiles: int
    positives: int
    loss: float


def train_tile_scorer(
    cohort: Cohort,
    out: Path,
    *,
    split: str | None = "train",
    target: str = TUMOUR,
    magnifications: Sequence[float] = MAGNIFICATIONS,
    tile_px: int = 128,
    seed: int = 0,
    epochs: int = EPOCHS,
    progress: Progress | None = None,
) -> Trained:
    """Train a `TileNet` on the tiles with tissue of a split, and write it to the new file `out`.

    Up to 160 positive and 160 negative tiles of each slide and magnification are drawn with `seed`; each kind has the
    same weight at each magnification. The file depends on the cohort, the arguments and PyTorch's version, not on the
    number of cores, of which one is used. `target` is the class of the regions to find. `progress(done, total)` counts
    slides read, then epochs. Raises `InvalidArgumentError` where a split has no positive tile, for a `seed` that is
    not 0 to 2^32 - 1, and for an `out` that is there or cannot be written.
    """
    check_seed(seed)
    rng = np.random.default_rng(seed)
    with new_file(out) as file, one_thread():
        references = exploration_references(cohort, split, target)
        steps = len(references) + epochs
        report = progress or (lambda done, total: None)
        images, places, truth = _samples(
            cohort, references, magnifications, tile_px, rng, lambda done: report(done, steps)
        )
        positives = int(truth.sum())
        if not positives:
            raise InvalidArgumentError(
                f"cohort {cohort.name!r}, split {split or 'any'}: no tile is positive, so that there is nothing to "
                f"learn; regions of class {target!r} are needed."
            )
        torch.manual_seed(seed)
        net = TileNet(tuple(float(value) for value in magnifications))
        loss = _trained(net, images, places, truth, epochs, rng, lambda epoch: report(len(references) + epoch, steps))
        words = {"cohort": cohort.name, "cohort_sha256": cohort.sha256, "split": split or "all"}
        save_net(net, file, words | {"target": target, "tile_px": str(tile_px)})
    return Trained(len(references), len(truth), positives, loss)


def _samples(
    cohort: Cohort,
    references: Mapping[str, ExplorationReference],
    magnifications: Sequence[float],
    tile_px: int,
    rng: np.random.Generator,
    read: Callable[[int], None],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Tiles drawn of each slide: uint8 (n, 3, 64, 64), their magnifications' places (n,) and labels (n,) of 0 or 1.

    Calls `read` with the number of slides read.
    """
    pixels, levels, labels = [], [], []
    for done, (slide_id, reference) in enumerate(references.items(), 1):
        slide = cohort.open(slide_id)
        grid = TileGrid.of(slide, magnifications, tile_px)
        for level, row, column, positive in _drawn(slide, grid, reference.positives(grid), rng):
            tile = slide.read(grid.box(Tile(level, row, column)), (tile_px, tile_px))
            pixels.append(as_input(tile[None])[0])
            levels.append(level)
            labels.append(positive)
        slide.close()
        read(done)
    return torch.from_numpy(np.array(pixels, np.uint8)), torch.tensor(levels), torch.tensor(labels, dtype=torch.float32)


def _trained(
    net: TileNet,
    images: torch.Tensor,
    places: torch.Tensor,
    truth: torch.Tensor,
    epochs: int,
    rng: np.random.Generator,
    done: Callable[[int], None],
) -> float:
    """Train on uint8 images (n, 3, 64, 64), their magnifications' places (n,) and labels (n,) of 0 or 1, in place.

    Calls `done` after each epoch; returns the mean loss of the last.
    """
    weights = _balanced(places.numpy(), truth.numpy() > 0)
    optimizer = torch.optim.AdamW(net.parameters(), LEARNING_RATE, weight_decay=1e-3)
    batches = -(-len(truth) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=epochs * batches)
    loss_of = nn.BCEWithLogitsLoss(reduction="none")
    mean_loss = 0.0
    for epoch in range(1, epochs + 1):
        total = 0.0
        for chosen in np.array_split(rng.permutation(len(truth)), batches):
            batch = torch.from_numpy(chosen)
            logits = net(_varied(images[batch].float() / 255, rng), places[batch])
            loss = (loss_of(logits, truth[batch]) * weights[batch]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(chosen)
        mean_loss = total / len(truth)
        done(epoch)
    return mean_loss


def _drawn(
    slide: Slide, grid: TileGrid, positives: Sequence[npt.NDArray[np.bool_]], rng: np.random.Generator
) -> list[tuple[int, int, int, bool]]:
    """(level, row, column, positive) of the tiles that training sees of a slide."""
    found = []
    shown = TileTree.with_tissue(grid, tissue_mask(slide)).shown
    for level in range(grid.levels):
        for positive in (True, False):
            places = np.argwhere(shown[level] & (positives[level] == positive))
            for row, column in rng.permutation(places)[:TILES_A_LEVEL].tolist():
                found.append((level, row, column, positive))
    return found


def _balanced(levels: npt.NDArray[np.int64], labels: npt.NDArray[np.bool_]) -> torch.Tensor:
    """float32 (n,) with mean 1: at each magnification both kinds weigh the same, as do the magnifications."""
    groups = levels * 2 + labels
    counts = np.bincount(groups)
    weights = len(groups) / (np.count_nonzero(counts) * counts[groups])
    return torch.from_numpy(weights.astype(np.float32))


def _varied(images: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """The images turned and mirrored (all of a batch alike), each with its own stain strength by channel."""
    images = torch.rot90(images, int(rng.integers(4)), (2, 3))
    if rng.integers(2):
        images = images.flip(3)
    strength = torch.from_numpy(rng.uniform(0.8, 1.2, (len(images), 3, 1, 1)).astype(np.float32))
    return 1 - (1 - images) * strength
