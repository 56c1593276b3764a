"""What the words of questions tell of their answers: naive Bayes on TF-IDF, for the rules that learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["MAX_LABELS", "told_by", "vectors_of"]

MAX_LABELS = 200
"""The most frequent answers that words are learned of; of rarer ones there is little to learn."""

MAX_WORDS = 20_000


def vectors_of(questions: Sequence[str]) -> Any | None:
    """(n, words) a CSR matrix of words and pairs of words; None where no word tells two questions from others."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(
        sublinear_tf=True, token_pattern=r"\w+", min_df=2, max_df=0.95, max_features=MAX_WORDS, ngram_range=(1, 2)
    )
    try:
        return words.fit_transform(questions)
    except ValueError:
        return None


def told_by(vectors: Any, labels: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """(labels, words) the log of how much likelier each word is under a label, from 0, than in general."""
    from sklearn.naive_bayes import MultinomialNB

    each = MultinomialNB().fit(vectors, labels)
    general = MultinomialNB().fit(vectors, np.zeros(len(labels)))
    found: npt.NDArray[np.float64] = each.feature_log_prob_ - general.feature_log_prob_
    return found
