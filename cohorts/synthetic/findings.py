"""What a pathologist would write of a lesion, a nest, a focus: candidate sentences, all of them true of the pixels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from .entities import BESIDE, CYTOLOGY, FOCI, HOSTS, NESTS, WITHIN, Entity
from .lesions import Focus, Lesion, Nest

__all__ = ["Wording", "high", "kind_of", "low", "mid"]


class Wording:
    """Gives findings out, so that unlike places of one slide never share a sentence."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._used: set[str] = set()

    def choose(self, candidates: list[str], width_px: float) -> str:
        """One of the sentences that is still free; if none is, one with the structure's true width added."""
        order = [candidates[i] for i in self._rng.permutation(len(candidates))]
        free = [text for text in order if text not in self._used]
        text = free[0] if free else f"{order[0]}, about {round(width_px / 4)} um wide"
        while text in self._used:
            text += ", yet another"
        self._used.add(text)
        return text


def low(organ: str, lesion: Lesion) -> list[str]:
    """Candidate sentences for 2.5x, most of them with the true extent."""
    left, top, right, bottom = lesion.region.bounds
    mm = f"{max(right - left, bottom - top) / 4000:.2f}".rstrip("0")
    nests = sum(nest.annotated for nest in lesion.nests)
    dense = "a denser spot" if nests == 1 else f"{_spelled(nests)} denser spots"
    seen = lesion.entity.low[0].upper() + lesion.entity.low[1:]
    return [
        f"{seen}, about {mm} mm across, with {dense}",
        *(f"{seen}, replacing {host} over {mm} mm" for host in HOSTS[organ]),
    ]


def mid(entity: Entity, nest: Nest) -> list[str]:
    """Candidate sentences for 10x; what else lies in the nest is added if there is something."""
    plain = [text.format(cytology=cytology) for text in NESTS[nest.name] for cytology in CYTOLOGY[entity.kind]]
    there = {focus.name for focus in nest.foci}
    beside = [text for name, text in BESIDE.items() if name in there]
    return [f"{text}, {also}" for text in plain for also in beside] or plain


def high(nest: Nest, focus: Focus) -> list[str]:
    """Candidate sentences for 40x, half of them with what lies around."""
    plain = [text.format(count=_spelled(focus.count)) for text in FOCI[focus.name]]
    plain = [text[0].upper() + text[1:] for text in plain]
    return plain + [f"{text}, {WITHIN[nest.name]}" for text in plain]


def kind_of(finding: str, told: Mapping[str, Sequence[str]]) -> str:
    """The kind of nest or focus that a finding is of: the one with whose sentence in `NESTS` or `FOCI` it begins."""
    for kind, texts in told.items():
        for text in texts:
            if re.match(re.sub(r"\\{\w+\\}", ".+?", re.escape(text)), finding, re.IGNORECASE):
                return kind
    raise ValueError(finding)


def _spelled(count: int) -> str:
    words = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[count] if count < len(words) else str(count)
