"""Train, val and test in the ratio 7:1:2, so that nothing that belongs together is parted (PathView-Bench, 3.2.4).

What belongs together are pictures that share a patient, a case, a slide or an image, of whatever source; each such
group is whole in one split. A split that the cohort gives its slides is kept, and holds for all of the group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence

from wsigym.errors import InvalidArgumentError

from .sources import Picture

__all__ = ["split_pictures"]

VAL, TEST = 0.1, 0.2


def split_pictures(pictures: Sequence[Picture], seed: int) -> list[str]:
    """The split of each picture. Within each source the groups not yet placed are in an order drawn with `seed`; the
    first tenth is val, the next fifth test, and from three groups on each split has one.

    Raises `InvalidArgumentError` where a group's slides are given different splits.
    """
    group_of = _groups(pictures)
    split: dict[int, str] = {}
    name: dict[int, str] = {}
    for group, picture in zip(group_of, pictures, strict=True):
        keys = ["\0".join(key) for key in picture.keys]
        name[group] = min(name.get(group, keys[0]), *keys)
        given = picture.given_split
        if given is not None and split.setdefault(group, given) != given:
            raise InvalidArgumentError(
                f"{picture.where}: image {picture.name!r} is in split {given!r}, but shares a patient, case, slide or "
                f"file with images in {split[group]!r}; give them one split in cohort.json."
            )
    for source in sorted({picture.source for picture in pictures}):
        waiting = {
            group
            for group, picture in zip(group_of, pictures, strict=True)
            if picture.source == source and group not in split
        }
        order = sorted(waiting, key=lambda group: hashlib.sha256(f"{seed}\0{name[group]}".encode()).digest())
        least = int(len(order) >= 3)
        vals = max(least, round(VAL * len(order)))
        tests = max(least, round(TEST * len(order)))
        for place, group in enumerate(order):
            split[group] = "val" if place < vals else "test" if place < vals + tests else "train"
    return [split[group] for group in group_of]


def _groups(pictures: Sequence[Picture]) -> list[int]:
    """The number of each picture's group: the connected parts of the graph of pictures and what they share."""
    parent = list(range(len(pictures)))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    first: dict[Hashable, int] = {}
    for place, picture in enumerate(pictures):
        for key in picture.keys:
            parent[root(place)] = root(first.setdefault(key, place))
    return [root(place) for place in range(len(pictures))]
