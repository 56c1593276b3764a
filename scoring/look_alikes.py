"""Do wrong answers name the classic look-alikes of the right one? (CaseScope A2.)"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsigym.errors import InvalidArgumentError

__all__ = ["LookAlikes", "look_alikes"]


@dataclass(frozen=True)
class LookAlikes:
    """`share` of the `wrong` answers, on the `items` that offer a look-alike, that name one; None without any.

    `uniform` is the chance level: the mean over those items of look-alikes / distractors, which is what wrong answers
    drawn uniformly would score.
    """

    share: float | None
    uniform: float | None
    wrong: int
    items: int


def look_alikes(
    contents: npt.NDArray[np.integer],
    rows: npt.NDArray[np.integer],
    keys: npt.NDArray[np.integer],
    is_look_alike: npt.NDArray[np.bool_],
) -> LookAlikes:
    """Look-alikes among the wrong answers: contents (n,) chosen, -1 for none, for the items at `rows` (n,).

    `keys` (m,) and `is_look_alike` (m, options) are of the items. Replies that named no option are left out. Raises
    `InvalidArgumentError` where a key is marked as its own look-alike.
    """
    if is_look_alike[np.arange(len(keys)), keys].any():
        raise InvalidArgumentError("a key is marked as a look-alike of itself; only distractors are.")
    offers = np.asarray(is_look_alike.any(axis=1), dtype=np.bool_)
    wrong = offers[rows] & (contents >= 0) & (contents != keys[rows])
    named = np.asarray(is_look_alike[rows[wrong], contents[wrong]], dtype=np.bool_)
    return LookAlikes(
        share=float(named.mean()) if len(named) else None,
        uniform=float(is_look_alike[offers].sum(axis=1).mean() / (is_look_alike.shape[1] - 1))
        if offers.any()
        else None,
        wrong=len(named),
        items=int(offers.sum()),
    )
