"""What a worker of a policy needs of its machine, where a cluster has several kinds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from wsigym.errors import InvalidArgumentError, UnknownNameError

__all__ = ["Resources", "resources_of"]


@dataclass(frozen=True)
class Resources:
    """Of one worker, in Ray's words: logical CPUs and GPUs, of which a number below 1 is a share."""

    num_cpus: float = 1
    num_gpus: float = 0

    def __str__(self) -> str:
        return " and ".join(f"{field.name} {getattr(self, field.name):g}" for field in fields(self))


def resources_of(given: Mapping[str, Mapping[str, float]], policies: Iterable[str]) -> dict[str, Resources]:
    """The resources that are given by the name of a policy. Raises `UnknownNameError`, `InvalidArgumentError`."""
    names = [field.name for field in fields(Resources)]
    for policy, wanted in given.items():
        if policy not in (known := list(policies)):
            raise UnknownNameError("policy of resources", policy, known)
        for name, number in wanted.items():
            if name not in names:
                raise UnknownNameError(f"resource of {policy}", name, names)
            least = 0 if name == "num_gpus" else 0.001
            if not math.isfinite(number) or number < least or (number > 1 and number != int(number)):
                raise InvalidArgumentError(
                    f"resources of {policy}: {name} is {number:g}; allowed are shares from {least:g} to 1, and whole "
                    "numbers above."
                )
    return {policy: Resources(**wanted) for policy, wanted in given.items()}
