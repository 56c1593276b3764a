"""Do the options' own words, and their nearness to the question, tell which is right? (logistic regression)"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import numpy.typing as npt

from ..choices import Choices
from .nearest import nearness
from .rule import Rule

__all__ = ["WORDING"]

MAX_WORDS = 20_000


def _by_wording(choices: Choices) -> npt.NDArray[np.float64]:
    from scipy.sparse import csr_matrix, hstack
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    lengths = np.log1p([len(text) for text in choices.texts])
    mean = np.add.reduceat(lengths, choices.starts) / choices.sizes
    columns = [csr_matrix(np.stack([nearness(choices), lengths - mean[choices.item_of]], axis=1))]
    words = TfidfVectorizer(
        sublinear_tf=True, token_pattern=r"\w+", min_df=2, max_features=MAX_WORDS, ngram_range=(1, 2)
    )
    with suppress(ValueError):  # raised where no word stands in two options
        columns.append(words.fit_transform(choices.texts))
    features = hstack(columns, format="csr")
    scores = np.zeros(len(choices.item_of))
    for learned, tried in choices.held_out():
        seen, rows = learned[choices.item_of], tried[choices.item_of]
        model = LogisticRegression(solver="liblinear").fit(features[seen], choices.is_right[seen])
        scores[rows] = model.decision_function(features[rows])
    return scores


WORDING = Rule("wording", "the option whose words were right elsewhere, by a classifier", _by_wording, True)
