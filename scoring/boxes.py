"""How well a set of boxes covers another: the Dice coefficient of their unions (PathView-Bench OGD and LGD).

With A the union of the predicted boxes and B the union of the target's, Dice = 2 |A and B| / (|A| + |B|), exact from
the corners. In the form of unions a box stated twice, or split in two, changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

__all__ = ["union_dice"]


def union_dice(predicted: Sequence[Sequence[float]], target: Sequence[Sequence[float]]) -> float:
    """Dice of the unions of two sets of boxes (x1, y1, x2, y2) in one unit, in 0..1; 0 for no prediction.

    Boxes without an area add nothing. Chance: what random boxes score depends on the target's size, so a task
    measures it by its random policy. Raises `InvalidArgumentError` where the target covers nothing or a corner is not
    finite.
    """
    corners = np.array([*predicted, *target], dtype=np.float64).reshape(-1, 4)
    if not np.isfinite(corners).all():
        raise InvalidArgumentError("a box has a corner that is not finite; boxes are x1, y1, x2, y2.")
    xs, ys = np.unique(corners[:, ::2]), np.unique(corners[:, 1::2])
    areas = np.diff(xs)[:, None] * np.diff(ys)
    left, top, right, bottom = (np.searchsorted(sides, corners[:, side]) for side, sides in enumerate((xs, ys, xs, ys)))
    cells = np.stack([left, top, right, bottom], axis=1)
    first = _covered(cells[: len(predicted)], areas.shape)
    second = _covered(cells[len(predicted) :], areas.shape)
    total = float(areas[first].sum() + areas[second].sum())
    if not second.any():
        raise InvalidArgumentError(f"the {len(target)} target boxes cover nothing; a target needs an area.")
    return 2 * float(areas[first & second].sum()) / total


def _covered(cells: npt.NDArray[np.intp], shape: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Which cells of the grid between all corners lie in a box."""
    covered = np.zeros(shape, dtype=np.bool_)
    for left, top, right, bottom in cells.tolist():
        covered[left:right, top:bottom] = True
    return covered
