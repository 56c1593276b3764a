"""Demonstrations as chats for language models: what the agent `localizer` would see, and what an expert says to it.

    OUT/chats.jsonl     one episode a line, in the form of `wsigym transcripts`, and beside it
                        "path": the ids of the queries from the tree's root down to this one, "detours": their number
    OUT/chats_images/   with images="files", the images as PNG

The agent itself plays, and an expert answers in the model's place: calls of get_image_info, looks on the way to the
answer (see demo_looks.py), finish_and_report with a valid box. Its reasons and conclusions are templates, filled with
the target: they claim nothing but what the annotations and the overview's stain say. The expert reads the reference:
chats are of the train split, or of val to watch the training.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from wsigym.agents.answers import Answer, read_answer
from wsigym.agents.client import Client, ImagesSent, Turn
from wsigym.agents.coordinates import Coordinates
from wsigym.agents.endpoints import Coordinates as Convention
from wsigym.agents.endpoints import Endpoint
from wsigym.agents.messages import OVERVIEW
from wsigym.agents.records import RequestRecord
from wsigym.agents.scripted_search import density_map
from wsigym.agents.tools import EXTRACT_ROI, FINISH_AND_REPORT, GET_IMAGE_INFO
from wsigym.baselines.expert_episodes import TreeQuery, episodes_to_play
from wsigym.cohorts import Cohort
from wsigym.cohorts.writing import new_folder
from wsigym.envs import LocalizationEnv
from wsigym.envs.localization import image_px
from wsigym.errors import InvalidArgumentError, UnknownNameError
from wsigym.slides import Box

from .chat_files import IMAGES, ChatImages, new_file, said
from .demo_looks import Look, planned_looks
from .playing import Progress
from .records import EpisodeKey

__all__ = ["CONFIDENCE", "Chats", "write_chats"]

CONVENTIONS: tuple[Convention, ...] = get_args(Convention)

CONFIDENCE = 0.9
"""What the expert states. It is always right; a model that learns from it is not."""

Call = tuple[str, dict[str, Any]]
"""A tool's name and the arguments of a call."""


@dataclass(frozen=True)
class Chats:
    """What was written; `detours` are those of the `looks`, `mean_score` is over episodes."""

    path: Path
    episodes: int
    looks: int
    detours: int
    images: int
    mean_score: float


def write_chats(
    cohort: Cohort,
    out: Path,
    *,
    split: str = "train",
    per_query: int = 1,
    detours: float = 0.2,
    budget: str = "base",
    seed: int = 0,
    view_px: int = 1024,
    images: str = "refs",
    coordinates: str = "level0",
    progress: Progress | None = None,
) -> Chats:
    """Play each query of a split `per_query` times, and write the chats to the folder `out`, whole or not at all.

    `view_px` is the longest side of an image, `coordinates` how boxes are told and answered, as an endpoint's settings
    say. Two calls with the same arguments write the same chats.

    Raises like `episodes_to_play`, and `InvalidArgumentError` for other values out of range, an `out` that is there,
    and where LangGraph is not installed.
    """
    if images not in IMAGES:
        raise UnknownNameError("form of images", images, IMAGES)
    if coordinates not in CONVENTIONS:
        raise UnknownNameError("coordinates", coordinates, CONVENTIONS)
    endpoint = Endpoint(
        name="expert", model="expert", max_image_px=image_px("view_px", view_px), coordinates=coordinates
    )
    to_play = episodes_to_play(cohort, split=split, per_query=per_query, detours=detours, seed=seed)
    # The agent reads its images itself: of the observation it needs nothing.
    env = LocalizationEnv(cohort, split=split, budget=budget, observe=("budget_left",))
    with new_folder(out) as folder:
        target = folder / "chats.jsonl"
        pictures = ChatImages(cohort, target) if images == "files" else None
        looks = wrong = 0
        scores: list[float] = []

        async def play_all() -> None:
            nonlocal looks, wrong
            player = _Player(env, endpoint, detours)
            with new_file(target) as file:
                for asked, reset_seed in to_play:
                    line, planned = await player.play(asked, reset_seed, split, pictures)
                    file.write(json.dumps(line).encode() + b"\n")
                    looks += len(planned)
                    wrong += line["detours"]
                    scores.append(line["score"])
                    if progress is not None:
                        progress(len(scores), len(to_play))

        asyncio.run(play_all())
    return Chats(
        out / target.name, len(scores), looks, wrong, pictures.written if pictures else 0, float(np.mean(scores))
    )


class _Player:
    """The agent `localizer` with an expert in the model's place."""

    def __init__(self, env: LocalizationEnv, endpoint: Endpoint, detours: float) -> None:
        try:
            from wsigym.agents.localizer import Localizer
        except ModuleNotFoundError as error:
            raise InvalidArgumentError(
                f"chats are made with the agent localizer, which needs {error.name}; it is not installed: "
                "pip install 'wsigym[agents]'."
            ) from None
        self._env, self._detours = env, detours
        self._expert = _Expert(endpoint)
        self._agent = Localizer(self._expert)

    async def play(
        self, asked: TreeQuery, seed: int, split: str, pictures: ChatImages | None
    ) -> tuple[dict[str, Any], list[Look]]:
        """The line of one episode, and the looks that were planned for it."""
        env, agent, expert = self._env, self._agent, self._expert
        query = asked.query
        observation, info = env.reset(seed=seed, options={"query_id": query.query_id})
        overview = env.image(OVERVIEW, expert.endpoint.max_image_px)
        looks, answer = planned_looks(
            query.search_box,
            asked.reference.boxes,
            info["rois_left"],
            overview=density_map(overview.image),
            detours=self._detours,
            rng=np.random.default_rng(seed),
        )
        coordinates = Coordinates(expert.endpoint.coordinates, query.search_box, overview.size)
        expert.begin(_calls(query.target, looks, answer, coordinates))
        agent.see_images(env)
        agent.reset(observation, info)
        terminated = False
        while not terminated:
            observation, _, terminated, _, info = env.step(await agent.act(observation, info))
            assert "error" not in info, info["error"]
        agent.record()
        key = EpisodeKey("evipath", "localization", query.query_id, 0, "expert", None, env.budget.label, seed)
        line = {
            "episode": key._asdict(),
            "outcome": info["outcome"],
            "score": info["iou"],
            "split": split,
            "path": asked.path,
            "detours": sum(look.kind == "detour" for look in looks),
            "messages": [_with_images(message, query.slide_id, pictures) for message in expert.chat],
            "tools": expert.tools,
        }
        return line, looks


class _Expert(Client):
    """Stands where a model's endpoint does, and answers each request with the next of its calls. It asks nobody."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint, self.place = endpoint, "local"

    def begin(self, calls: Sequence[Call]) -> None:
        """Set up the calls of a new episode."""
        self._calls = deque(calls)
        self.chat: list[dict[str, Any]] = []
        self.tools: Sequence[Mapping[str, Any]] | None = None

    async def ask(
        self,
        turn: Turn,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: str | Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        logprobs: bool = False,
        transcript: Sequence[Mapping[str, Any]] = (),
        images: ImagesSent | None = None,
        prompt_sha256: str | None = None,
    ) -> Answer:
        name, arguments = self._calls.popleft()
        function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        call = {"id": f"call-{turn.number}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        raw = {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}
        self.chat += [*map(dict, transcript), said(raw)]
        self.tools = tools
        reading = read_answer(raw)
        record = RequestRecord(
            endpoint=self.endpoint.name,
            turn=turn.number,
            sha256="",
            tokens_in=None,
            tokens_out=None,
            seconds=0,
            finish_reason=reading.finish_reason,
        )
        return Answer(reading.text, reading.tool_calls, None, reading.finish_reason, None, record)


def _calls(target: str, looks: Sequence[Look], answer: Box, coordinates: Coordinates) -> list[Call]:
    """What the expert says. Without a budget, the agent may only report."""
    calls: list[Call] = [(GET_IMAGE_INFO, {})] if looks else []
    for place, look in enumerate(looks):
        x, y, w, h = coordinates.from_box(look.box)
        calls.append((EXTRACT_ROI, {"x": x, "y": y, "w": w, "h": h, "reason": _reason(target, looks[: place + 1])}))
    report = {
        "conclusion": f"This box shows the target: {target}",
        "bbox": coordinates.from_box(answer),
        "confidence": CONFIDENCE,
    }
    return [*calls, (FINISH_AND_REPORT, report)]


def _reason(target: str, looks: Sequence[Look]) -> str:
    """Why the last of some looks is made: nothing that annotations and stain do not say."""
    *before, look = looks
    kinds = [each.kind for each in before]
    if look.kind == "detour":
        why = "More nuclear stain here than in the overview as a whole; is it the target"
    elif look.kind == "wide":
        why = "A part of the overview that may hold the target, as a wide look first"
    elif "wide" in kinds:
        place = "the last look" if kinds[-1] == "wide" else "an earlier look"
        why = f"A part of {place} that may show the target, closer"
    else:
        why = "A part of the overview that may show the target, closer"
    back = "The last look does not show the target: elsewhere. " if kinds and kinds[-1] == "detour" else ""
    return f"{back}{why}: {target}"


def _with_images(message: Mapping[str, Any], slide_id: str, pictures: ChatImages | None) -> dict[str, Any]:
    """A message whose images say of which slide they are, and, where files are written, in which file."""
    content = message["content"]
    if not isinstance(content, list):
        return dict(message)
    parts = []
    for part in content:
        if part["type"] == "image":
            part = {"type": "image", "slide_id": slide_id, **part}
            part = part if pictures is None else part | {"image": pictures.of_box(part)}
        parts.append(part)
    return {**message, "content": parts}
