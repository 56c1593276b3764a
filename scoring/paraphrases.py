"""Does a classifier say the same when its prompts say the same in other words? (PathLang T3)

Predictions (slides, V) are the classes that V wordings of the prompts gave each slide.

Prediction consistency is the share of slides on which all V agree (the published cells exclude pairwise agreement).
The paper does not print the formula of its prompt stability score; read here as the kappa of Fleiss (1971) with
wordings as raters, which gives its published -0.333 and keeps its bounds. With n_ij wordings that say j of slide i,

    P_i = (sum_j n_ij^2 - V) / (V (V - 1))     p_j = sum_i n_ij / (N V)
    kappa = (mean P_i - sum_j p_j^2) / (1 - sum_j p_j^2)

Chance: V wordings that guess among C classes agree on C^(1 - V) of the slides, and have a kappa of 0. Constant
wordings that differ have -1 / (V - 1), its lowest. Kappa is low where nearly all answers are one class, however
consistent (the kappa paradox), so that the two stand side by side.

Ensembles average the embeddings of n wordings. An accuracy for n is a mean over random draws of them; its spread over
draws tells of prompts, and is no statistical error.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

from .intervals import SEED, Estimate, mean_estimate, statistic_estimate
from .zero_shot import unit_vectors

__all__ = [
    "ENSEMBLE_DRAWS",
    "ENSEMBLE_SEED",
    "PromptStability",
    "ensemble_draws",
    "ensemble_texts",
    "prediction_consistency",
    "prompt_stability",
    "relative_changes",
]

ENSEMBLE_DRAWS = 100
"""Random draws of n wordings, as in the paper."""

ENSEMBLE_SEED = 42
"""The paper's; draws of n come from `default_rng([42, n])`, which need not give the paper's draws."""


@dataclass(frozen=True)
class PromptStability:
    """Kappa with its interval. `one_class`: every answer is one class, where kappa is undefined and given as 1."""

    estimate: Estimate
    one_class: bool


def prediction_consistency(
    predictions: npt.NDArray[np.integer], units: Sequence[Hashable], *, seed: int = SEED
) -> Estimate:
    """The share in 0..1 of slides on which all wordings agree, with its 95 % interval, resampling `units` (slides,).

    `predictions` (slides, V) are classes from 0. Draws as `mean_estimate`. Raises `InvalidArgumentError` for other
    shapes, one wording, or a negative class.
    """
    _check(predictions)
    return mean_estimate((predictions == predictions[:, :1]).all(axis=1), units, seed=seed)


def prompt_stability(
    predictions: npt.NDArray[np.integer], units: Sequence[Hashable], *, seed: int = SEED
) -> PromptStability:
    """Kappa in -1 / (V - 1)..1 with its 95 % interval. Arguments, draws, errors as `prediction_consistency`.

    A draw of the bootstrap in which every answer is one class counts as 1 too.
    """
    _check(predictions)
    variants = predictions.shape[1]
    classes = np.unique(predictions)
    counts = np.stack([(predictions == one).sum(axis=1) for one in classes] or [np.zeros(0)], axis=1)
    rows = np.column_stack([np.ones(len(counts)), (counts**2).sum(axis=1), counts]).astype(np.float64)

    def kappa(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        slides, squares, answers = sums[:, 0], sums[:, 1], sums[:, 2:]
        agreed = (squares / slides - variants) / (variants * (variants - 1))
        expected = ((answers / (slides * variants)[:, None]) ** 2).sum(axis=1)
        return np.where(expected < 1, (agreed - expected) / (1 - expected), 1.0)

    return PromptStability(statistic_estimate(rows, units, kappa, seed=seed), len(classes) == 1)


def ensemble_draws(variants: int, size: int, *, draws: int = ENSEMBLE_DRAWS) -> npt.NDArray[np.intp]:
    """Which `size` of `variants` wordings are averaged: rising indices (draws, size), without replacement.

    The same wordings for every class. All of them is one draw (1, variants). Draws from `default_rng([42, size])`, so
    that each size can be drawn alone. Raises `InvalidArgumentError` for a size that there is not, or no draw.
    """
    if not 1 <= size <= variants or draws < 1:
        raise InvalidArgumentError(
            f"{draws} draws of {size} of {variants} wordings; allowed are 1 or more, of 1 to all of them."
        )
    if size == variants:
        return np.arange(variants)[None]
    order = np.tile(np.arange(variants), (draws, 1))
    drawn = np.random.default_rng([ENSEMBLE_SEED, size]).permuted(order, axis=1)[:, :size]
    return np.sort(drawn, axis=1)


def ensemble_texts(texts: npt.NDArray[np.floating], drawn: npt.NDArray[np.integer]) -> npt.NDArray[np.floating]:
    """The texts (draws, classes, dimensions) of unit length that the wordings `drawn` (draws, size) give together.

    `texts` (V, classes, dimensions); each is brought to unit length, those drawn are averaged class by class, and the
    mean is brought to unit length. Raises `InvalidArgumentError` for other shapes, and as `unit_vectors`.
    """
    if np.ndim(texts) != 3 or np.ndim(drawn) != 2 or not ((drawn >= 0) & (drawn < len(texts))).all():
        raise InvalidArgumentError(
            f"texts of shape {np.shape(texts)} and draws of shape {np.shape(drawn)}; needed are (wordings, classes, "
            "dimensions) and (draws, size) of indices of wordings."
        )
    return unit_vectors(unit_vectors(texts)[drawn].mean(axis=1))


def relative_changes(accuracies: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """100 (Acc_n - Acc_1) / Acc_1 in percent (..., n) of `accuracies` (..., n), the gain of n wordings over one.

    NaN where Acc_1 is 0. Raises `InvalidArgumentError` where there is no Acc_1 or a number is not finite.
    """
    numbers = np.asarray(accuracies, dtype=np.float64)
    if numbers.ndim < 1 or not numbers.shape[-1] or not np.isfinite(numbers).all():
        raise InvalidArgumentError(f"accuracies of shape {numbers.shape}; needed are finite ones of n = 1, 2, ...")
    first = numbers[..., :1]
    return 100 * (numbers - first) / np.where(first == 0, np.nan, first)


def _check(predictions: npt.NDArray[np.integer]) -> None:
    if np.ndim(predictions) != 2 or predictions.shape[1] < 2:
        raise InvalidArgumentError(
            f"predictions of shape {np.shape(predictions)}; needed is (slides, wordings), of two wordings at least."
        )
    if (predictions < 0).any():
        raise InvalidArgumentError("a prediction is negative; classes count from 0, and each slide has a prediction.")
