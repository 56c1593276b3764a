"""Learning curves of navigators: what each checkpoint of trainings is worth on the validation split."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from wsigym.baselines.training_curve import CURVE, VALIDATION, read_curve
from wsigym.errors import InvalidArgumentError
from wsigym.scoring.intervals import Estimate

from .curves import Curve, curves_picture
from .tables import Block, Cell, Column, Table

__all__ = ["learning_picture", "learning_table"]

Row = dict[str, Any]


def learning_table(folders: Sequence[Path]) -> Table:
    """A row a checkpoint: steps, minutes, the environments' share of the time, return, and mean IoU on val.

    Raises `InvalidArgumentError` where a folder holds no training.
    """
    rows: list[dict[str, Cell]] = []
    for name, found in _trainings(folders).items():
        for row in found:
            rows.append({**row, "training": name, "minutes": row["seconds"] / 60})
    scales = dict.fromkeys(name for row in rows for name in row if name.startswith(VALIDATION))
    columns = (
        Column("minutes", "minutes", digits=1),
        Column("environment_share", "environments'\nshare, %", digits=0, scale=100),
        Column("train_return", "return"),
        *(Column(name, name.removeprefix(VALIDATION)) for name in scales),
    )
    notes = (
        "2.5x ... all: mean IoU on the validation split, of the likeliest moves, at the training's first budget.",
        "Return: of the shaped reward, the moves drawn, over the last 100 episodes, of all its budgets.",
    )
    keys = (Column("training", "training"), Column("steps", "steps"))
    return Table("learning", "Learning curves", keys, (Block("", columns),), tuple(rows), notes)


def learning_picture(folders: Sequence[Path]) -> Image.Image:
    """An RGB picture: mean IoU on val against thousands of steps, a line a training, a panel a magnification and one
    for all. Raises like `learning_table`."""
    found = _trainings(folders)
    scales = dict.fromkeys(
        name for rows in found.values() for row in rows for name in row if name.startswith(VALIDATION)
    )
    panels = []
    for scale in scales:
        curves: dict[str, Curve] = {
            name: [(row["steps"] / 1000, Estimate(row.get(scale), None, None, 1, 1)) for row in rows]
            for name, rows in found.items()
        }
        panels.append((scale.removeprefix(VALIDATION), curves))
    note = "mean IoU on the validation split, of the likeliest moves"
    return curves_picture("Learning curves", "thousand steps", panels, note=note)


def _trainings(folders: Sequence[Path]) -> dict[str, list[Row]]:
    """The rows of each training by its folder's name, or by its path where two have one name."""
    given = {folder.resolve(): folder for folder in folders}
    names = [path.name for path in given]
    return {path.name if names.count(path.name) == 1 else str(path): _rows(folder) for path, folder in given.items()}


def _rows(folder: Path) -> list[Row]:
    try:
        rows = read_curve(folder / CURVE)
        if not rows:
            raise ValueError(f"{CURVE} is empty")
    except (OSError, ValueError, TypeError) as error:
        raise InvalidArgumentError(
            f"{folder} holds no training ({error}); `wsigym train --out {folder}` makes one."
        ) from None
    return rows
