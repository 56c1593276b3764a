"""Networks in files: safetensors with a few words on what they are, no code that could run when a file is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from wsigym.cohorts.tiles import tile_ratios
from wsigym.errors import InvalidArgumentError

__all__ = ["check_finite", "check_trained_on", "load_net", "save_tensors"]

Net = TypeVar("Net", bound=nn.Module)


def save_tensors(path: Path, state: Mapping[str, torch.Tensor], kind: str, words: Mapping[str, Any]) -> None:
    """Write tensors as a file of `kind`, such as "wsigym-tile-scorer/1". The same tensors and words give the same
    bytes."""
    # One entry, as safetensors writes several in any order.
    header = {kind: json.dumps(words)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(save({name: value.contiguous() for name, value in state.items()}, header))


def load_net(make: Callable[[tuple[float, ...]], Net], path: str | Path, kind: str, what: str, command: str) -> Net:
    """The network of a file of `kind`, ready to be asked; `make` gives one for the magnifications that the file names.

    Raises `InvalidArgumentError` where the file is no such network, which calls it a `what` and says that `command`
    makes one.
    """
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no mapping
    except (OSError, SafetensorError) as error:
        raise InvalidArgumentError(f"{what} {path}: not readable as safetensors ({error}).") from None
    if kind not in header:
        raise InvalidArgumentError(
            f"{what} {path}: its header says nothing of the format {kind}; `{command}` makes one."
        )
    try:
        magnifications = json.loads(header[kind])["magnifications"]
        tile_ratios(magnifications)
    except (ValueError, TypeError, KeyError, RecursionError, InvalidArgumentError) as error:
        raise InvalidArgumentError(
            f"{what} {path}: its header does not say for which magnifications it is ({type(error).__name__}: {error}); "
            f"`{command}` makes one."
        ) from None
    net = make(tuple(float(value) for value in magnifications))
    try:
        net.load_state_dict(state)
    except RuntimeError as error:
        raise InvalidArgumentError(
            f"{what} {path}: its network does not fit this version of wsigym ({' '.join(str(error).split())}); train "
            f"again with `{command}`."
        ) from None
    check_finite(net, f"{what} {path}")
    net.eval()
    return net


def check_finite(net: nn.Module, what: str) -> None:
    """Raises `InvalidArgumentError` where a value of a network is no finite number, which every answer would be too."""
    wrong = [name for name, part in net.state_dict().items() if not torch.isfinite(part).all()]
    if wrong:
        raise InvalidArgumentError(
            f"{what}: its network has values that are no numbers, in {', '.join(wrong[:3])}"
            f"{' and others' if len(wrong) > 3 else ''}, as a training that grew without bounds leaves; train again."
        )


def check_trained_on(trained: Sequence[float], asked: Sequence[float], what: str) -> None:
    """Raises `InvalidArgumentError` where a network, called `what`, is asked for a magnification that it never saw."""
    unknown = [value for value in asked if value not in trained]
    if unknown:
        raise InvalidArgumentError(
            f"{what}: asked for {', '.join(f'{value:g}x' for value in unknown)}, trained on "
            f"{', '.join(f'{value:g}x' for value in trained)}; train one for these magnifications."
        )
