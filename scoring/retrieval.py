"""Does what is relevant to a query come first? R@K, MRR@K and nDCG@K (PathLang T2 and T4).

Of one query, with r the rank of its first relevant candidate and g_p 1 where that at rank p is relevant, else 0,

    R@K     1 if r <= K, else 0 (the share of queries with a hit, not of the relevant that are found)
    MRR@K   1 / r if r <= K, else 0
    nDCG@K  sum over p <= K of g_p / log2(1 + p), over the same sum with all the relevant first
            (Järvelin and Kekäläinen 2002); 1 / log2(1 + r) with one relevant candidate

The paper averages them over queries; K of its MRR and nDCG is not public, and 10 here. Candidates of one score are in
no order: each number is its mean over all orders of them, so that equal scores for everything give the chance level.
scikit-learn's `ndcg_score` has the same rule for ties, but only gives the mean over queries.

Chance: R@K = K / M for one relevant of M candidates, `chance_recall` in general.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

__all__ = ["CUTOFF", "Retrieval", "chance_recall", "leave_one_out", "retrieval"]

FloatArray = npt.NDArray[np.float64]

CUTOFF = 10
"""K of MRR@K and nDCG@K, and the highest of R@K."""

_ENTRIES_AT_ONCE = 4_000_000
"""So that ten thousand slides among themselves need no more memory than their scores."""


@dataclass(frozen=True)
class Retrieval:
    """One number a query, in 0..1 but `rank`; all NaN for a query to which nothing is relevant.

    `recall` (queries, K) is R@1 to R@K, `reciprocal_rank` and `ndcg` (queries,) are at K, `rank` (queries,) is the
    expected rank of the first relevant candidate, from 1, however far down.
    """

    recall: FloatArray
    reciprocal_rank: FloatArray
    ndcg: FloatArray
    rank: FloatArray

    @property
    def mean_recall(self) -> FloatArray:
        """Of each query (queries,) the mean of R@1 to R@K, which PathLang prints as "Mean"."""
        mean: FloatArray = self.recall.mean(axis=1)
        return mean


def retrieval(scores: npt.NDArray[np.floating], relevant: npt.NDArray[np.bool_], *, cutoff: int = CUTOFF) -> Retrieval:
    """Every query's numbers from `scores` (queries, candidates), higher is nearer, and what is `relevant` (the same).

    A score of -inf leaves a candidate out of this query, such as the query itself. Give a text that stands in a pool
    twice once. Draws nothing. Raises `InvalidArgumentError` for other shapes, no candidate, `relevant` that is not
    bool, NaN and inf, a cutoff below 1, and a relevant candidate that is left out.
    """
    if np.ndim(scores) != 2 or np.shape(scores) != np.shape(relevant) or not np.shape(scores)[1]:
        raise InvalidArgumentError(
            f"scores of shape {np.shape(scores)} and relevance of shape {np.shape(relevant)}; needed is (queries, "
            "candidates) of both, with a candidate at least."
        )
    if relevant.dtype != np.bool_ or cutoff < 1:
        raise InvalidArgumentError(f"relevance of {relevant.dtype}, cutoff {cutoff}; needed are bool and 1 or more.")
    if not (scores < np.inf).all():
        raise InvalidArgumentError("a score is NaN or inf; allowed are finite ones, and -inf to leave a candidate out.")
    if (relevant & (scores == -np.inf)).any():
        raise InvalidArgumentError("a candidate that is left out (-inf) is relevant; it would never be found.")
    rows = max(1, _ENTRIES_AT_ONCE // scores.shape[1])
    starts = range(0, max(1, len(scores)), rows)
    blocks = [_some_queries(scores[start : start + rows], relevant[start : start + rows], cutoff) for start in starts]
    return Retrieval(*(np.concatenate(numbers) for numbers in zip(*blocks, strict=True)))


def leave_one_out(
    similarities: npt.NDArray[np.floating], labels: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.bool_]]:
    """`scores` and `relevant` (slides, slides) for `retrieval`, where each slide is a query among the others (I2I).

    Relevant are those of its label, of `labels` (slides,). `similarities` (slides, slides) are left as they are.
    """
    if np.ndim(labels) != 1 or np.shape(similarities) != (len(labels), len(labels)):
        raise InvalidArgumentError(
            f"similarities of shape {np.shape(similarities)}, labels of shape {np.shape(labels)}; needed are (slides, "
            "slides) and (slides,)."
        )
    scores, relevant = similarities.copy(), labels[:, None] == labels
    np.fill_diagonal(scores, -np.inf)
    np.fill_diagonal(relevant, False)
    return scores, relevant


def chance_recall(candidates: int, *, relevant: int = 1, cutoff: int = CUTOFF) -> FloatArray:
    """R@1 to R@K (cutoff,) of a random order of `candidates`, of which `relevant` are: K / candidates for one."""
    if not 1 <= relevant <= candidates or cutoff < 1:
        raise InvalidArgumentError(
            f"{relevant} relevant of {candidates} candidates, cutoff {cutoff}; allowed are 1 to all, and 1 or more."
        )
    none = np.zeros(1, dtype=np.intp)
    found: FloatArray = 1 - _missed(none, none + candidates, none + relevant, cutoff)[0]
    return found


def _some_queries(
    scores: npt.NDArray[np.floating], relevant: npt.NDArray[np.bool_], cutoff: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    number = relevant.sum(axis=1)
    best = np.where(relevant, scores, -np.inf).max(axis=1, keepdims=True)
    above, tied, both = (part.sum(axis=1) for part in (scores > best, scores == best, relevant & (scores == best)))
    missed = _missed(above, tied, both, cutoff)
    first_here = -np.diff(missed, axis=1, prepend=1.0)
    # The first of `both` among `tied` in random order stands at (tied + 1) / (both + 1) on average.
    rank = above + (tied + 1) / (both + 1)

    places = np.arange(1, cutoff + 1)
    discounts = 1 / np.log2(1 + places)
    gains = np.zeros((len(scores), cutoff))
    for place, value in enumerate(np.sort(scores, axis=1)[:, : -cutoff - 1 : -1].T):
        equal = scores == value[:, None]
        gains[:, place] = (relevant & equal).sum(axis=1) / equal.sum(axis=1)
    ideal = np.cumsum(discounts)[np.clip(number, 1, cutoff) - 1]

    some = np.where(number > 0, 1.0, np.nan)
    return (1 - missed) * some[:, None], first_here @ (1 / places) * some, gains @ discounts / ideal * some, rank * some


def _missed(
    above: npt.NDArray[np.integer], tied: npt.NDArray[np.integer], both: npt.NDArray[np.integer], cutoff: int
) -> FloatArray:
    """The chance (queries, cutoff) that nothing relevant is among the first 1 to K, with `above` candidates before
    those of the first relevant's score, which are `tied` in random order, `both` of them relevant."""
    left = tied[:, None] - (np.arange(cutoff) - above[:, None])
    # 0 where only relevant ones are left, and whatever comes after it, as chances are multiplied.
    missed = (left - both[:, None]) / np.maximum(left, 1)
    missed[left > tied[:, None]] = 1
    chances: FloatArray = missed.cumprod(axis=1)
    return chances
