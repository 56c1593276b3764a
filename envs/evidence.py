"""Evidence: one item of a static task, answered in one step.

The items lie in a cohort (`items/<suite>/<task>.jsonl`). Reset shows one, step takes the answer, the episode ends.

Action
    answer="option"   Discrete(10)   the place of the option, from 0 for A; see option_mask
    answer="text"     Text           any string, also longer or with other characters than the space samples: the
                                     answer is parsed from it (`wsigym.scoring.answers`)
A place without an option is an invalid answer. An action of another type is the caller's mistake and raises
`InvalidArgumentError`.

Observation (Dict)
    images        uint8 (max_images, image_px, image_px, 3)   the item's, from the lowest to the highest power; white
                                                              where there is none
    image_mask    int8 (max_images,)       1 where there is an image
    option_mask   int8 (10,)               1 where there is an option; with answer="option" only
    answered      float32 (1,)             0, then 1
Images keep their aspect, are never enlarged, and are padded with white on the right and below. The text is in the info.
Features, of any number, are not in the observation: `features()` gives them, to policies in a run through `see_images`.

Info (what a model may know)
    item_id, question (all that is read before the options), options (as shown), answer_kind, answer_words (how to
    answer; read after the options), metadata (of what is known: organ, site, magnification), image_sizes ((width,
    height) of each image without padding), rotation. Once answered: outcome, score, answer (what was understood, as
    JSON; "null" where nothing was).

Reward
    the item's own score, 0 to 1 (`wsigym.scoring.items`); the metrics of a corpus are not means of it

Ends (`terminated`; never `truncated`) after one step. Outcome "scored"; "unparsed" where no answer can be read,
"refused", "invalid" for a place without an option: score 0.

Registered: wsigym/Evidence-v0. Version history: v0, first release.
"""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from wsigym.cohorts import Asked, Cohort, EvidenceItem, EvidenceReference, load_items
from wsigym.cohorts.feature_files import Numbers, load_features
from wsigym.cohorts.item_files import load_entities, load_vocabulary
from wsigym.cohorts.items import MAX_OPTIONS, letter
from wsigym.cohorts.synthetic import default_cohort
from wsigym.errors import EpisodeOverError, InvalidArgumentError, UnknownNameError
from wsigym.scoring.answers import Vocabulary
from wsigym.scoring.diagnosis import DiagnosisTable, Entity
from wsigym.scoring.items import ItemScore, score_item

from .item_images import WHITE, item_image
from .item_transforms import Evidence, rotated, rotated_reference
from .policy import NoAnswerOutcome
from .views import View, check_image

__all__ = ["ANSWERS", "EvidenceEnv", "score_answer", "vocabulary_of"]

ANSWERS = ("option", "text")
MAX_TEXT = 100_000
"""Characters of a sampled text at most; longer answers are taken too."""

MAX_IMAGES = 64

MIN_IMAGE_PX, MAX_IMAGE_PX = 36, 8192
"""As of the other environments: below 36 px the usual convolutional encoders fail."""


class EvidenceEnv(gym.Env[dict[str, Any], Any]):
    """One item an episode; the module's docstring is the card of actions, observations, reward and ends.

    Args:
        cohort: folder or loaded cohort; None makes a small synthetic one once in the user's cache.
        suite, task: which items of the cohort.
        answer: "option" or "text"; "option" for tasks whose every item has options to choose from.
        split: "train", "val", "test", or None for all items.
        max_images: images of an observation; no item may have more.
        image_px: side of the square images, 36 to 8,192.
        evidence: how much of each item is shown, such as "highest-power" (`wsigym.envs.item_transforms`).
        render_mode: "rgb_array" or None.

    `reset(options={"item_id": ..., "rotation": r})` picks an item and shifts its options left by `r`; otherwise the
    environment's seeded RNG picks one, unrotated. Raises `SlideError` on reset where an image cannot be read.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 1}  # noqa: RUF012  # gymnasium's own form

    def __init__(
        self,
        cohort: str | Path | Cohort | None = None,
        suite: str = "evipath",
        task: str = "interpretation",
        answer: str = "option",
        split: str | None = None,
        max_images: int = 8,
        image_px: int = 224,
        evidence: str = "all",
        render_mode: str | None = None,
    ) -> None:
        if answer not in ANSWERS:
            raise UnknownNameError("answer", str(answer), ANSWERS)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise UnknownNameError("render_mode", str(render_mode), self.metadata["render_modes"])
        self.image_px = _whole("image_px", image_px, MIN_IMAGE_PX, MAX_IMAGE_PX)
        self.max_images = _whole("max_images", max_images, 1, MAX_IMAGES)
        self.answer, self.render_mode = answer, render_mode
        self.evidence = Evidence.of(evidence)
        self.cohort = cohort if isinstance(cohort, Cohort) else Cohort.load(cohort or default_cohort())
        asked = load_items(self.cohort, suite, task, split)
        self._asked = {each.item.item_id: self._checked(each) for each in asked}
        self._check_fit()
        self._item_ids = tuple(self._asked)
        self._vocabulary = vocabulary_of(self.cohort, suite, asked)
        self._over = True

        shape = (self.max_images, self.image_px, self.image_px, 3)
        observation: dict[str, spaces.Space[Any]] = {
            "images": spaces.Box(0, 255, shape, np.uint8),
            "image_mask": spaces.Box(0, 1, (self.max_images,), np.int8),
            "answered": spaces.Box(0, 1, (1,), np.float32),
        }
        if answer == "option":
            observation["option_mask"] = spaces.Box(0, 1, (MAX_OPTIONS,), np.int8)
        self.observation_space = spaces.Dict(observation)
        self.action_space: spaces.Space[Any] = (
            spaces.Discrete(MAX_OPTIONS)
            if answer == "option"
            else spaces.Text(MAX_TEXT, min_length=0, charset=string.printable)
        )

    def _checked(self, asked: Asked) -> Asked:
        """The item as it is shown. Raises `InvalidArgumentError` where this environment cannot show or take it."""
        shown = self.evidence.of_item(asked.item)
        if self.answer == "option" and shown.answer.kind != "option":
            raise InvalidArgumentError(
                f"item {shown.item_id!r} is answered with {shown.answer.kind}; make the environment with answer='text'."
            )
        return Asked(shown, asked.reference)

    def _check_fit(self) -> None:
        """Raises `InvalidArgumentError` for the item with the most images, where they are too many."""
        most = max((each.item for each in self._asked.values()), key=lambda item: len(item.images))
        count = len(most.images)
        if count > self.max_images:
            raise InvalidArgumentError(
                f"item {most.item_id!r} has {count} images and max_images is {self.max_images}; "
                + (
                    f"raise it with max_images={count} (--env max_images={count})."
                    if count <= MAX_IMAGES
                    else f"{MAX_IMAGES} is the most: put images together, or leave some out."
                )
            )

    @property
    def item_ids(self) -> tuple[str, ...]:
        """Every item that `reset(options={"item_id": ...})` takes."""
        return self._item_ids

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self._over = True  # until all of the next episode is there
        asked, self._rotation = self._choose(options or {})
        self._item = rotated(asked.item, self._rotation)
        self._reference = rotated_reference(asked.reference, asked.item, self._rotation)
        self._views = [item_image(self.cohort, spec, self.image_px) for spec in self._item.images]
        self._over = False
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        if self._over:
            raise EpisodeOverError("step() was called on an episode that is over or never began; call reset() first.")
        text = self._text(action)
        if text is None:
            end: dict[str, Any] = {"outcome": "invalid", "score": 0.0, "answer": "null"}
        else:
            result = score_answer(self._item, self._reference, text, self._vocabulary)
            end = {"outcome": result.outcome, "score": result.value, "answer": json.dumps(result.answer)}
        self._over = True
        return self._observation(), end["score"], True, False, self._info() | end

    def _text(self, action: Any) -> str | None:
        """The action in words; None for a place without an option."""
        if self.answer == "text":
            if not isinstance(action, str):
                raise InvalidArgumentError(f"the action is {action!r:.80}; with answer='text' it is a string.")
            return action
        if not isinstance(action, int | np.integer) or isinstance(action, bool):
            raise InvalidArgumentError(f"the action is {action!r:.80}; with answer='option' it is a place from 0.")
        return letter(int(action)) if 0 <= action < len(self._item.options) else None

    def give_up(self, outcome: NoAnswerOutcome) -> dict[str, Any]:
        """End the episode without an answer, for a policy that raised `NoAnswer`: score 0. The last info."""
        if self._over:
            raise EpisodeOverError("give_up() was called on an episode that is over or never began.")
        self._over = True
        return self._info() | {"outcome": outcome, "score": 0.0, "answer": "null"}

    # -- what is shown -------------------------------------------------------------------------------------------

    def image(self, name: str, side_px: int) -> View:
        """An image of the item (see `wsigym.envs.views.ImageSource`): "image-0", "image-1" ... in order."""
        if not hasattr(self, "_item"):
            raise EpisodeOverError("image() was called before reset(); call reset() first.")
        specs = {f"image-{place}": spec for place, spec in enumerate(self._item.images)}
        check_image(name, side_px, specs)
        return item_image(self.cohort, specs[name], side_px)

    def features(self) -> tuple[Numbers, Numbers] | None:
        """The item's features (n, d) and the level-0 coordinates (n, 2) of each; None where it has none.

        Read anew at each call. Raises `InvalidArgumentError` where a file does not hold them.
        """
        if not hasattr(self, "_item"):
            raise EpisodeOverError("features() was called before reset(); call reset() first.")
        return None if self._item.features is None else load_features(self.cohort, self._item.features)

    def _observation(self) -> dict[str, Any]:
        shape = (self.max_images, self.image_px, self.image_px, 3)
        images = np.full(shape, WHITE[0], np.uint8)
        for place, view in enumerate(self._views):
            width, height = view.size
            images[place, :height, :width] = view.image
        shown: dict[str, Any] = {
            "images": images,
            "image_mask": _mask(len(self._views), self.max_images),
            "answered": np.array([self._over], np.float32),
        }
        if self.answer == "option":
            shown["option_mask"] = _mask(len(self._item.options), MAX_OPTIONS)
        return shown

    def _info(self) -> dict[str, Any]:
        item = self._item
        return {
            "item_id": item.item_id,
            "question": item.text,
            "options": item.options,
            "answer_kind": item.answer.kind,
            "answer_words": item.answer.words,
            "metadata": item.metadata.model_dump(exclude_none=True),
            "image_sizes": tuple(view.size for view in self._views),
            "rotation": self._rotation,
        }

    def render(self) -> npt.NDArray[np.uint8] | None:
        """uint8 (image_px, max_images * image_px, 3): the images side by side; None without a render mode."""
        if self.render_mode is None:
            return None
        if not hasattr(self, "_item"):
            raise EpisodeOverError("render() was called before reset(); call reset() first.")
        return np.concatenate(list(self._observation()["images"]), axis=1)

    # -- which item ----------------------------------------------------------------------------------------------

    def _choose(self, options: Mapping[str, Any]) -> tuple[Asked, int]:
        for name in options:
            if name not in ("item_id", "rotation"):
                raise UnknownNameError("reset option", str(name), ("item_id", "rotation"))
        if "item_id" in options:
            item_id = options["item_id"]
            if not isinstance(item_id, str) or item_id not in self._asked:
                raise UnknownNameError("item", str(item_id), self._item_ids)
        else:
            item_id = self._item_ids[self.np_random.integers(len(self._item_ids))]
        return self._asked[item_id], _whole("rotation", options.get("rotation", 0), 0, MAX_OPTIONS - 1)


def score_answer(
    item: EvidenceItem,
    reference: EvidenceReference,
    text: str,
    vocabulary: Vocabulary | DiagnosisTable | None = None,
) -> ItemScore:
    """The score of a model's text as the answer to an item; both as they were shown, rotated alike."""
    return score_item(
        item.answer.kind,
        text,
        reference.answer,
        accepted=reference.accepted,
        half=reference.half,
        options=item.options,
        images=item.asks_for_image,
        vocabulary=vocabulary,
    )


def vocabulary_of(cohort: Cohort, suite: str, asked: tuple[Asked, ...]) -> Vocabulary | DiagnosisTable | None:
    """The suite's standard terms, or its entities, where an item is answered with terms or a diagnosis."""
    kinds = {each.item.answer.kind for each in asked}
    if "diagnosis" in kinds:
        return DiagnosisTable(
            Entity(each.entity, each.behaviour, each.lineage, each.family, each.synonyms, each.parent)
            for each in load_entities(cohort, suite)
        )
    if "terms" not in kinds:
        return None
    terms = load_vocabulary(cohort, suite)
    return Vocabulary(tuple(terms), {alias: term for term, aliases in terms.items() for alias in aliases})


def _mask(count: int, of: int) -> npt.NDArray[np.int8]:
    return (np.arange(of) < count).astype(np.int8)


def _whole(name: str, value: object, low: int, high: int) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidArgumentError(f"{name} is {value!r}; allowed are whole numbers from {low} to {high}.")
    return int(value)
