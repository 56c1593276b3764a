"""What a scorer's suspicions are worth: the probability that a tile is positive, learned on validation slides.

    calibrate("stain-density", make_scorer("stain-density"), cohort, split="val").save(Path("calibration.json"))

Isotonic regression at each magnification (Zadrozny and Elkan, KDD 2002): the best fit that never falls as the score
rises. Calibrated numbers can be held against each other across magnifications, raw ones can not. Reads references: it
makes a policy, and is none.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wsigym.cohorts import Cohort
from wsigym.cohorts.exploration import TUMOUR, exploration_references
from wsigym.envs.exploration import MAGNIFICATIONS, ExplorationEnv
from wsigym.errors import InvalidArgumentError

from .tile_policies import ScoreTiles
from .tile_scorers import TileScorer

__all__ = ["MISSED", "Calibration", "calibrate"]

FORMAT = "wsigym-tile-calibration/2"

MISSED = 0.05
"""The threshold of a search is the probability below which this share of the positive tiles above the last
magnification lies: what it leaves unopened when it stops costs about as much."""


@dataclass(frozen=True)
class Calibration:
    """Of one scorer, by its name. `curves` has for each magnification (as text) the corners of a rising line: scores,
    probabilities. `threshold` is the probability of the best open node at which a search stops.

    The file of a scorer such as tile-scorer:PATH is written relative to the calibration's own, so that both can be
    moved together, and with its sha256, so that no calibration is used for another network.
    """

    scorer: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    threshold: float

    def probability(self, scores: npt.NDArray[np.float64], magnification: float) -> npt.NDArray[np.float64]:
        """float64 (n,): how likely tiles of these scores (n,) are positive."""
        key = f"{magnification:g}"
        if key not in self.curves:
            raise InvalidArgumentError(
                f"the calibration of {self.scorer} knows {', '.join(self.curves)}x, and was asked for {key}x."
            )
        return np.interp(scores, *self.curves[key])

    def _check(self) -> None:
        """Raises `ValueError` or `TypeError` for contents that no calibration has."""
        if not self.curves or not self.scorer.strip():
            raise ValueError("it has no scorer or no curves")
        if not 0 <= self.threshold <= 1:  # written so that NaN is wrong too
            raise ValueError(f"its threshold is {self.threshold}; it is a probability")
        for key, (scores, chances) in self.curves.items():
            x, y = np.asarray(scores), np.asarray(chances)
            if not (x.shape == y.shape and x.ndim == 1 and len(x) and {x.dtype.kind, y.dtype.kind} <= set("if")):
                raise ValueError(f"its curve at {key}x is no pair of lists of numbers, as long as each other")
            rising = (np.diff(x) >= 0).all() and (np.diff(y) >= 0).all()
            if not (rising and np.isfinite(x).all() and y[0] >= 0 and y[-1] <= 1):
                raise ValueError(f"its curve at {key}x does not rise from one score and probability to the next")

    def save(self, path: Path) -> None:
        content = {"format": FORMAT, **asdict(self), "sha256": None}
        head, colon, file = self.scorer.partition(":")
        path.parent.mkdir(parents=True, exist_ok=True)
        if colon:
            content["scorer"] = f"{head}:{Path(os.path.relpath(file, path.parent)).as_posix()}"
            content["sha256"] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Raises `InvalidArgumentError` where the file is none, or its scorer's file is missing or another one."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            if content.pop("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            digest = content.pop("sha256")
            calibration = cls(**content)
            calibration._check()
            head, colon, file = calibration.scorer.partition(":")
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidArgumentError(
                f"calibration {path}: not readable ({error}); `wsigym tiles calibrate` makes one."
            ) from None
        if not colon:
            return calibration
        scorer = Path(path).parent / file
        try:
            found = hashlib.sha256(scorer.read_bytes()).hexdigest()
        except OSError as error:
            raise InvalidArgumentError(
                f"calibration {path} is of the scorer in {scorer}, which cannot be read ({error.strerror}); put that "
                "file there, or calibrate again."
            ) from None
        if found != digest:
            raise InvalidArgumentError(
                f"calibration {path} is of another scorer than that in {scorer} now (sha256 {digest}, found {found}); "
                "calibrate again."
            )
        return replace(calibration, scorer=f"{head}:{scorer}")


def calibrate(
    name: str,
    scorer: TileScorer,
    cohort: Cohort,
    *,
    split: str | None = "val",
    target: str = TUMOUR,
    magnifications: Sequence[float] = MAGNIFICATIONS,
    tile_px: int = 128,
    progress: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Score every tile with tissue of a split with the scorer called `name`, and fit its probabilities.

    `target` is the class of the regions to find. Raises `InvalidArgumentError` where no tile above the last
    magnification is positive.
    """
    from sklearn.isotonic import IsotonicRegression

    references = exploration_references(cohort, split, target)
    scores: list[list[float]] = [[] for _ in magnifications]
    labels: list[list[bool]] = [[] for _ in magnifications]
    with ExplorationEnv(
        cohort, split, target, budget="K=all", magnifications=magnifications, tile_px=tile_px, page_size=256
    ) as env:
        for done, (slide_id, reference) in enumerate(references.items(), 1):
            policy = ScoreTiles(scorer)
            observation, info = env.reset(seed=0, options={"slide_id": slide_id})
            policy.seed(0)
            policy.reset(observation, info)
            if policy.reads_reference:
                policy.see_reference(reference)
            over = False
            while not over:
                observation, _, over, _, info = env.step(policy.act(observation, info))
            positives = reference.positives(info["grid"])
            for level, row, column, suspicion, _ in info["viewed"]:
                scores[level].append(suspicion)
                labels[level].append(bool(positives[level][row, column]))
            if progress:
                progress(done, len(references))
    if not any(map(any, labels[:-1])):
        raise InvalidArgumentError(
            f"cohort {cohort.name!r}, split {split or 'any'}: no tile above {magnifications[-1]:g}x is positive, "
            "so that there is nothing to calibrate on."
        )
    curves: dict[str, tuple[list[float], list[float]]] = {}
    chances: list[float] = []
    for level, magnification in enumerate(magnifications):
        fit = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(scores[level], labels[level])
        curves[f"{magnification:g}"] = fit.X_thresholds_.tolist(), fit.y_thresholds_.tolist()
        if level < len(magnifications) - 1:
            chances += fit.predict(scores[level])[np.array(labels[level], bool)].tolist()
    return Calibration(name, curves, float(np.quantile(chances, MISSED)))
