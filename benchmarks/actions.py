"""Actions as JSON and back, exactly: a replay takes what was taken."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["decoded", "encoded"]

FLOAT = "float"
"""`{"float": "nan"}`, "inf" or "-inf": a number that JSON lacks."""


def encoded(action: Any) -> Any:
    """An action as JSON values. Raises `TypeError` for what is not made of numbers, text, lists, mappings, arrays."""
    if isinstance(action, Mapping):
        return {str(name): encoded(value) for name, value in action.items()}
    if isinstance(action, np.ndarray | np.generic):
        return encoded(action.tolist())
    if isinstance(action, list | tuple):
        return [encoded(value) for value in action]
    if isinstance(action, float) and not math.isfinite(action):
        return {FLOAT: str(action)}
    if action is None or isinstance(action, str | bool | int | float):
        return action
    raise TypeError(f"an action holds numbers, text, lists, mappings and arrays; found {type(action).__name__}")


def decoded(action: Any) -> Any:
    """The action that `encoded` wrote, lists of numbers as arrays; of float64, so that nothing is rounded."""
    if isinstance(action, dict):
        if action.keys() == {FLOAT}:
            return float(action[FLOAT])
        return {name: decoded(value) for name, value in action.items()}
    if isinstance(action, list):
        values = [decoded(value) for value in action]
        return np.array(values) if all(isinstance(value, int | float | np.ndarray) for value in values) else values
    return action
