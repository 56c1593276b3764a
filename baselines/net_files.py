"""Networks in files: safetensors with a few words on what they are, no code that could run when a file is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from wsigym.errors import InvalidArgumentError

__all__ = ["load_tensors", "save_tensors"]


def save_tensors(path: Path, state: Mapping[str, torch.Tensor], kind: str, words: Mapping[str, Any]) -> None:
    """Write tensors as a file of `kind`, such as "wsigym-tile-scorer/1". The same tensors and words give the same
    bytes."""
    # One entry, as safetensors writes several in any order.
    header = {kind: json.dumps(words)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(save({name: value.contiguous() for name, value in state.items()}, header))


def load_tensors(
    path: str | Path, kind: str, what: str, command: str
) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The tensors and words of a file of `kind`. Raises `InvalidArgumentError`, which calls it a `what` and says that
    `command` makes one."""
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
    return state, json.loads(header[kind])
