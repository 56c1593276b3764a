"""Is the right option the one whose words are nearest to the question's?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..choices import Choices
from .rule import Rule

__all__ = ["NEAREST", "nearness"]


def nearness(choices: Choices) -> npt.NDArray[np.float64]:
    """(rows,) the cosine of each option's words with its question's, as TF-IDF."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+|[^\w\s]", dtype=np.float64)
    vectors = words.fit_transform([*choices.texts, *choices.questions])
    rows = len(choices.texts)
    near: npt.NDArray[np.float64] = np.asarray(
        vectors[:rows].multiply(vectors[rows:][choices.item_of]).sum(axis=1), np.float64
    ).ravel()
    return near


NEAREST = Rule("nearest", "the option with the question's words, by TF-IDF", nearness)
