"""`wsigym bench scoring`: replies scored one by one, metrics over all of them, and the bootstrap.

Replies are of the kinds and lengths that models give: letters, sentences, a page that ends with its answer, refusals,
boxes, counts, terms, statements. The bootstrap stands beside `scipy.stats.bootstrap`, which draws items alone; ours
draws units (cases), and is given as many units as items.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wsigym.scoring.answers import Vocabulary
from wsigym.scoring.circular import rotation_scores
from wsigym.scoring.intervals import DRAWS, mean_estimate
from wsigym.scoring.items import score_item
from wsigym.scoring.macro_f1 import macro_f1

from .speed_timing import Ratio, interleaved, ratio

__all__ = ["ScoringReport", "ScoringSizes", "bench_scoring"]

SEED = 20261203
OPTIONS = (
    *("Squamous cell carcinoma", "Squamous cell carcinoma in situ", "Adenocarcinoma", "B-cell lymphoma", "Melanoma"),
    *("Leiomyoma", "Schwannoma", "Lipoma", "Granuloma", "Insufficient information"),
)
PAGE = "The field shows nests of atypical cells with keratin pearls in a desmoplastic stroma. " * 12
VOCABULARY = Vocabulary([f"structure {number}" for number in range(44)])
REPLIES: tuple[tuple[str, str, Any], ...] = (
    ("option", "B", 1),
    ("option", "The answer is (C).", 2),
    ("option", f"{PAGE}\n\nAnswer: D", 3),
    ("option", "This is a melanoma.", 4),
    ("option", "I'm sorry, but I cannot help with that.", 4),
    ("boxes", "[[10, 20, 300, 400], [500, 500, 600, 900]]", [[0, 0, 300, 300], [480, 500, 600, 880]]),
    ("number", "There are 12 nuclei.", 12),
    ("terms", "structure 1, structure 4, structure 9", ["structure 1", "structure 2"]),
    ("json", '{"answers": [true, false, true, false]}', {"answers": [True, False, True, True]}),
)


@dataclass(frozen=True, slots=True)
class ScoringSizes:
    """Replies to score, and items of the bootstrap."""

    replies: int = 300_000
    items: int = 20_000
    repeats: int = 3

    @classmethod
    def quick(cls) -> ScoringSizes:
        return cls(3_000, 500, 1)


@dataclass(frozen=True, slots=True)
class ScoringReport:
    """Seconds of processor time; `against_scipy` is how many times longer its bootstrap takes than ours."""

    replies: int
    score_s: float
    metrics_s: float
    items: int
    bootstrap_s: float
    against_scipy: Ratio

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"against_scipy": self.against_scipy._asdict()}


def bench_scoring(sizes: ScoringSizes, progress: Callable[[int, int], None] | None = None) -> ScoringReport:
    """Measure; `progress` is told of parts done and parts in all."""
    tell = progress or (lambda done, asked: None)
    began = time.process_time()
    for number in range(sizes.replies):
        kind, reply, reference = REPLIES[number % len(REPLIES)]
        score_item(kind, reply, reference, options=OPTIONS, vocabulary=VOCABULARY)
    score_s = time.process_time() - began
    tell(1, 3)
    metrics_s = _metrics(sizes.replies)
    tell(2, 3)
    rng = np.random.default_rng(SEED)
    values, cases = rng.random(sizes.items), [f"case {number}" for number in range(sizes.items)]
    taken = interleaved(
        {"ours": lambda _: mean_estimate(values, cases), "scipy": lambda _: _by_scipy(values)}, sizes.repeats
    )
    tell(3, 3)
    seconds = {name: [one.cpu for one in turns] for name, turns in taken.items()}
    return ScoringReport(
        replies=sizes.replies,
        score_s=score_s,
        metrics_s=metrics_s,
        items=sizes.items,
        bootstrap_s=float(np.median(seconds["ours"])),
        against_scipy=ratio(seconds["scipy"], seconds["ours"]),
    )


def _metrics(replies: int) -> float:
    """Rotation scores, their intervals over cases, and macro-F1, of `replies` ten-way answers."""
    rng = np.random.default_rng(SEED)
    items = np.arange(replies) // 10
    keys, contents = items % 10, rng.integers(-1, 10, size=replies)
    names = [f"item {number}" for number in items]
    began = time.process_time()
    scores = rotation_scores(contents, keys, names, np.arange(replies) % 10, 10)
    for values in (scores.circular, scores.vanilla, scores.consistent):
        mean_estimate(values.astype(np.float64), scores.items)
    macro_f1(keys, contents)
    return time.process_time() - began


def _by_scipy(values: np.ndarray[Any, np.dtype[np.float64]]) -> object:
    from scipy.stats import bootstrap

    return bootstrap((values,), np.mean, n_resamples=DRAWS, method="percentile", batch=100, rng=SEED)
