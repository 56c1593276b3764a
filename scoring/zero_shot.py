"""Zero-shot classification of slides by the texts of their classes (PathLang T1).

With x_1..x_N the embeddings of a slide's patches and t that of a text, all of unit length, the slide's score is

    top k %    s_k(t) = mean of the ceil(k N / 100) largest <x_i, t>
    mean       s(t)   = <m / |m|, t>, m the mean of the x_i

and its prediction the class of the highest score, of equal ones the lowest. The paper gives the five aggregations by
name; rounding up is this project's reading. Its tables hold, of each model and dataset, the aggregation of the highest
accuracy: that is chosen with the labels of the slides it is tested on, an upper bound, and above chance for a guesser.

Alignment score and similarity gap are not defined in what is public of the paper. Read here as s(t_y) and
s(t_y) - mean of s(t_c) over the classes c other than the true y, averaged over slides.

Chance: accuracy 1 / C for C classes and a fixed aggregation; alignment has no such level; gap 0.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

__all__ = [
    "AGGREGATIONS",
    "alignment_scores",
    "best_aggregation",
    "predicted_classes",
    "similarity_gaps",
    "slide_scores",
    "unit_vectors",
]

FloatArray = npt.NDArray[np.floating]

_TOP_PERCENT = (1, 5, 10, 50)

AGGREGATIONS = (*(f"top{percent}" for percent in _TOP_PERCENT), "mean")
"""From patches to a slide, in the paper's order."""


def unit_vectors(vectors: FloatArray) -> FloatArray:
    """`vectors` (..., dimensions) at unit length, in float32, or float64 if they are.

    Raises `InvalidArgumentError` where a number is not finite or a vector is 0, which has no direction.
    """
    given = np.asarray(vectors)
    floats = given.astype(np.float64 if given.dtype == np.float64 else np.float32, copy=False)
    # The squares of a float32 may be too large or small for one.
    lengths = np.linalg.norm(floats.astype(np.float64, copy=False), axis=-1, keepdims=True).astype(floats.dtype)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise InvalidArgumentError("an embedding is 0 or not finite; leave out what the encoder could not embed.")
    unit: FloatArray = floats / lengths
    return unit


def slide_scores(patches: FloatArray, texts: FloatArray) -> npt.NDArray[np.float64]:
    """The scores (5, texts) of one slide by each of `AGGREGATIONS`: cosines, in -1..1.

    `patches` (N, dimensions) and `texts` (texts, dimensions) are floats of any length but 0. Give all texts at once,
    those of every prompt and class: the patches are gone through once. Raises `InvalidArgumentError` for no patch, no
    text, other shapes, and as `unit_vectors`, also where the mean of the patches is 0.
    """
    if np.ndim(patches) != 2 or np.ndim(texts) != 2 or patches.shape[1] != texts.shape[1] or 0 in patches.shape:
        raise InvalidArgumentError(
            f"patches of shape {np.shape(patches)} and texts of shape {np.shape(texts)}; needed are (patches, "
            "dimensions) and (texts, dimensions) of one encoder, with a patch at least."
        )
    if not len(texts):
        raise InvalidArgumentError("no text to score the slide by; give one for each class.")
    x, t = unit_vectors(patches), unit_vectors(texts)
    rising = np.sort(t @ x.T, axis=1)
    counts = [math.ceil(percent * len(x) / 100) for percent in _TOP_PERCENT]
    tops = [rising[:, -count:].mean(axis=1, dtype=np.float64) for count in counts]
    return np.stack([*tops, t @ unit_vectors(x.mean(axis=0, dtype=np.float64))])


def predicted_classes(scores: FloatArray) -> npt.NDArray[np.intp]:
    """The class (...) of the highest of `scores` (..., classes); of equal ones the lowest. NaN is an error."""
    if np.ndim(scores) < 1 or not np.shape(scores)[-1] or np.isnan(scores).any():
        raise InvalidArgumentError(f"scores of shape {np.shape(scores)}; each class needs one, and none may be NaN.")
    classes: npt.NDArray[np.intp] = np.argmax(scores, axis=-1)
    return classes


def best_aggregation(scores: FloatArray, labels: npt.NDArray[np.integer]) -> str:
    """Which of `AGGREGATIONS` has the highest accuracy by `scores` (5, slides, classes), the first of equal ones.

    `labels` (slides,) are the true classes from 0. An upper bound: print the accuracy of each beside it. Raises
    `InvalidArgumentError` for other shapes, no slide, a label without a score, and NaN.
    """
    if np.ndim(scores) != 3 or len(scores) != len(AGGREGATIONS):
        raise InvalidArgumentError(f"scores of shape {np.shape(scores)}; needed is (5, slides, classes).")
    _check_labels(scores, labels)
    right = (predicted_classes(scores) == labels).sum(axis=1)
    return AGGREGATIONS[int(right.argmax())]


def alignment_scores(scores: FloatArray, labels: npt.NDArray[np.integer]) -> FloatArray:
    """Of each slide (slides,) the score of its true class; the paper's number is their mean.

    `scores` (slides, classes) are cosines of one aggregation, `labels` (slides,) classes from 0. Raises
    `InvalidArgumentError` for other shapes, no slide, a label without a score, and NaN.
    """
    _check_labels(scores, labels)
    if np.ndim(scores) != 2 or np.isnan(scores).any():
        raise InvalidArgumentError(f"scores of shape {np.shape(scores)}; needed is (slides, classes), without NaN.")
    own: FloatArray = np.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
    return own


def similarity_gaps(scores: FloatArray, labels: npt.NDArray[np.integer]) -> FloatArray:
    """Of each slide (slides,) the score of its true class minus the mean score of the others, in -2..2.

    Arguments and errors as `alignment_scores`, and two classes at least.
    """
    own = alignment_scores(scores, labels)
    if scores.shape[1] < 2:
        raise InvalidArgumentError("one class; a gap needs another to compare with.")
    gaps: FloatArray = own - (scores.sum(axis=1) - own) / (scores.shape[1] - 1)
    return gaps


def _check_labels(scores: FloatArray, labels: npt.NDArray[np.integer]) -> None:
    *_, slides, classes = (0, 0, *np.shape(scores))
    if np.shape(labels) != (slides,) or not slides:
        raise InvalidArgumentError(f"labels of shape {np.shape(labels)} for {slides} slides; each needs one.")
    if not ((labels >= 0) & (labels < classes)).all():
        raise InvalidArgumentError(f"a label is outside 0 to {classes - 1}, the classes that have scores.")
