"""Pictures that are there twice: in two splits, under two names in one, and in a corpus that models may have seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from wsigym.cohorts import ImageSpec

from ..hashing import alike
from ..pictures import Pictures, plain
from ..results import Checked, Finding
from .check import Audited, named

__all__ = ["corpus_images", "same_images"]

Shown = Mapping[ImageSpec, Mapping[str, Sequence[str]]]
"""By picture and split, the items that show it."""


def same_images(audited: Audited) -> Checked:
    """Pictures in two splits of a suite, and different pictures that show the same.

    One picture that several items of a split show, or one box of a slide at two magnifications, is no duplicate.
    """
    groups = [[key for key in keys if isinstance(key, ImageSpec)] for keys in audited.pictures.same]
    together = {key for keys in groups for key in keys}
    alone = [[key] for key in audited.pictures.keys if isinstance(key, ImageSpec) and key not in together]
    findings = [
        Finding(suite, *told)
        for suite, shown in _shown(audited).items()
        for keys in groups + alone
        if (told := _duplicate([key for key in keys if key in shown], shown))
    ]
    return Checked("same images", len(audited.pictures.keys), "images", tuple(findings), _not_looked(audited.pictures))


def corpus_images(audited: Audited) -> Checked:
    """Pictures of items that the corpus has too. Nothing is looked at where no corpus is given."""
    if audited.corpus is None:
        return Checked("images in the corpus", 0, "images", (), ("no --corpus was given",))
    ours, theirs = audited.pictures, audited.corpus
    # The corpus first, so that of each group the first is the corpus's where it has one.
    groups: dict[int, list[int]] = defaultdict(list)
    for first, other in alike(np.concatenate([theirs.grey, ours.grey])):
        groups[first].append(other)
    count, findings = len(theirs.keys), []
    shown = _shown(audited)
    for first, others in groups.items():
        keys = [ours.keys[place - count] for place in others if place >= count]
        if first >= count or not keys:
            continue
        for suite, of_suite in shown.items():
            found = [key for key in keys if key in of_suite]
            if found:
                what = f"{named([_name(key) for key in found])} in the corpus as {theirs.keys[first]}"
                findings.append(Finding(suite, _items(found, of_suite), what))
    not_looked = [*_not_looked(ours), *(f"corpus: {line}" for line in _not_looked(theirs))]
    if audited.not_in_corpus:
        not_looked.append(
            f"corpus: {len(audited.not_in_corpus):,} files that are no images ({named(audited.not_in_corpus)})"
        )
    return Checked("images in the corpus", len(ours.keys), "images", tuple(findings), tuple(not_looked))


def _shown(audited: Audited) -> dict[str, dict[ImageSpec, dict[str, list[str]]]]:
    found: dict[str, dict[ImageSpec, dict[str, list[str]]]] = {}
    for suite, asked in audited.suites().items():
        shown: dict[ImageSpec, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for item in (each.item for each in asked):
            for part in {plain(part) for image in item.images for part in image.parts}:
                shown[part][item.split or "no split"].append(item.item_id)
        found[suite] = dict(shown)
    return found


def _duplicate(keys: Sequence[ImageSpec], shown: Shown) -> tuple[tuple[str, ...], str] | None:
    splits = sorted({split for key in keys for split in shown[key]})
    different = {(key.file, key.slide_id, key.box) for key in keys}
    if len(splits) > 1:
        return _items(keys, shown), f"{named([_name(key) for key in keys])} in {' and '.join(splits)}"
    if len(different) > 1:
        return _items(keys, shown), f"{named([_name(key) for key in keys])} show the same, within {splits[0]}"
    return None


def _items(keys: Sequence[ImageSpec], shown: Shown) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for key in keys for items in shown[key].values() for item in items))


def _name(key: object) -> str:
    if not isinstance(key, ImageSpec) or key.file is not None:
        return str(key.file if isinstance(key, ImageSpec) else key)
    assert key.box is not None
    return f"{key.slide_id} {key.box.to_list()}"


def _not_looked(pictures: Pictures) -> tuple[str, ...]:
    return tuple(_lines(pictures))


def _lines(pictures: Pictures) -> Iterator[str]:
    if pictures.blank:
        yield f"{len(pictures.blank):,} blank images ({named([_name(key) for key in pictures.blank])})"
    for key, why in pictures.unreadable.items():
        yield f"{_name(key)}: {why}"
