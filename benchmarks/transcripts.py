"""What agents and models said to each other, as chats for supervised fine-tuning: JSONL, one episode a line.

    {"episode": the key's fields, "outcome", "score", "split",
     "messages": [...],             OpenAI's form: role, content, tool_calls, tool_call_id
     "tools": [...]}                the tools that were offered; null where none were

An agent that asks separate questions in one episode, such as of each tile, has "conversations", a list of such
messages and tools, in place of the two. An image is a part of its message's content:

    {"type": "image", "slide_id", "name", "box": [x, y, w, h] in level-0 pixels, "magnification", "size": [w, h],
     "image": a PNG file beside the JSONL, where files were asked for}

Only what a model saw and said is in it, and the score to choose by. An image stands where it was first shown; that
later requests of a long episode left it out (`keep_images`) is not told. A reasoning model's thoughts are left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from wsigym.agents.records import RequestRecord
from wsigym.agents.request_log import REQUESTS
from wsigym.cohorts import Cohort
from wsigym.errors import InvalidArgumentError, RunError, UnknownNameError

from .chat_files import IMAGES, ChatImages, new_file, said
from .episodes import BLIND_MARK
from .records import EpisodeRecord
from .replay import cohort_of
from .run_folder import Run, load_run
from .suites import find_task

__all__ = ["TRAIN", "Exported", "export_transcripts"]

TRAIN = "train"

Conversation = dict[str, Any]


@dataclass(frozen=True)
class Exported:
    """What was written, and how many episodes were left out for which reason."""

    path: Path
    episodes: int
    images: int
    left_out: Mapping[str, int]


def export_transcripts(
    run: str | Path,
    out: str | Path,
    *,
    images: str = "refs",
    min_score: float | None = None,
    all_splits: bool = False,
    cohort: str | Path | None = None,
    allow_outside: bool = False,
) -> Exported:
    """Write the chats of a run's agents to `out`, and image files into a folder beside it, NAME_images for NAME.jsonl.

    Slides of `val` and `test`, and slides of no split, are not to be trained on: their episodes are written with
    `all_splits` alone. `min_score` keeps episodes that scored as much. With image files the cohort is read, where the
    run found it unless `cohort` says where it lies now.

    Raises `UnknownNameError`, `InvalidArgumentError` where nothing is left to write or `out` exists, and `RunError`
    where the run's folder or cohort is not what it was.
    """
    if images not in IMAGES:
        raise UnknownNameError("images", images, IMAGES)
    target = Path(out)
    if target.exists():
        raise InvalidArgumentError(f"{target} exists; remove it, or choose another --out.")
    loaded = load_run(run, steps=False)
    left_out: Counter[str] = Counter()
    chosen: list[EpisodeRecord] = []
    for record in loaded.records:
        reason = _left_out(record, min_score, all_splits=all_splits)
        if reason is None:
            chosen.append(record)
        else:
            left_out[reason] += 1
    if not chosen:
        listed = "; ".join(f"{count} {reason}" for reason, count in left_out.items()) or "it holds none"
        raise InvalidArgumentError(f"{loaded.folder}: no episode to write: {listed}.")
    pictures = None
    if images == "files":
        pictures = _Pictures(loaded, cohort_of(loaded, cohort, allow_outside=allow_outside), target)
    with _Log(loaded.folder / REQUESTS, chosen) as log, new_file(target) as file:
        for record in chosen:
            file.write(json.dumps(_line(record, log, pictures)).encode() + b"\n")
    return Exported(target, len(chosen), pictures.written if pictures else 0, dict(left_out))


def _left_out(record: EpisodeRecord, min_score: float | None, *, all_splits: bool) -> str | None:
    """Why an episode is not written; None where it is."""
    split = record.groups.get("split")
    if record.agent is None or not record.agent.requests:
        return "asked no model"
    if record.score is None:
        return "ended in an infrastructure error"
    if BLIND_MARK in record.policy:
        return "are controls that did not see all"
    if split != TRAIN and not all_splits:
        return f"are of split {split} (--all-splits)" if split else "are of slides without a split (--all-splits)"
    if min_score is not None and record.score < min_score:
        return f"scored less than {min_score:g}"
    return None


def _line(record: EpisodeRecord, log: _Log, pictures: _Pictures | None) -> dict[str, Any]:
    conversations: list[Conversation] = []
    for line in log.of(record):
        new = line.get("transcript") or []
        if not conversations or (new and new[0].get("role") == "system"):
            conversations.append({"messages": [], "tools": None})
        conversation = conversations[-1]
        conversation["messages"] += [_message(message, record, pictures) for message in new]
        conversation["messages"].append(said(line["answer"]))
        conversation["tools"] = conversation["tools"] or line.get("tools")
    content = conversations[0] if len(conversations) == 1 else {"conversations": conversations}
    about = {"episode": record.key._asdict(), "outcome": record.outcome, "score": record.score}
    return about | {"split": record.groups.get("split")} | content


def _message(message: Mapping[str, Any], record: EpisodeRecord, pictures: _Pictures | None) -> dict[str, Any]:
    content = message.get("content")
    if not isinstance(content, list):
        return dict(message)
    parts = [_part(part, record, pictures) if part.get("type") == "image" else part for part in content]
    return {**message, "content": parts}


def _part(part: Mapping[str, Any], record: EpisodeRecord, pictures: _Pictures | None) -> dict[str, Any]:
    image = {"type": "image", "slide_id": record.groups.get("slide"), **part}
    return image if pictures is None else image | {"image": pictures.file_of(image, record)}


class _Log:
    """The lines of a request log that some records rest on, found by their offsets."""

    def __init__(self, path: Path, records: Sequence[EpisodeRecord]) -> None:
        self.path = path
        wanted = {(record.key.text, request.sha256) for record in records for request in _requests(record)}
        self._offsets: dict[tuple[str, int, str], int] = {}
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise RunError(f"{path} cannot be read ({error.strerror}); without it no chat can be told.") from None
        offset = 0
        for line in self._file:
            if line.endswith(b"\n"):
                content = json.loads(line)
                if (content["episode"], content["sha256"]) in wanted:
                    self._offsets[content["episode"], content["turn"], content["sha256"]] = offset
            offset += len(line)

    def __enter__(self) -> _Log:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def of(self, record: EpisodeRecord) -> Iterator[dict[str, Any]]:
        """The lines of an episode, turn by turn. Raises `RunError` where one is missing."""
        for request in _requests(record):
            offset = self._offsets.get((record.key.text, request.turn, request.sha256))
            if offset is None:
                raise RunError(f"{self.path} lacks request {request.turn} of {record.key.text}; the file was changed.")
            self._file.seek(offset)
            yield json.loads(self._file.readline())


def _requests(record: EpisodeRecord) -> Sequence[RequestRecord]:
    return record.agent.requests if record.agent is not None else ()


class _Pictures:
    """The images of a run's chats as files."""

    def __init__(self, run: Run, cohort: Cohort, target: Path) -> None:
        self._files, self._run, self._cohort = ChatImages(cohort, target), run, cohort
        self._task = find_task(f"{run.config.suite}/{run.config.task}")

    @property
    def written(self) -> int:
        return self._files.written

    def file_of(self, image: Mapping[str, Any], record: EpisodeRecord) -> str:
        """The file of an image, relative to the JSONL; written where it is not there yet."""
        if image.get("box"):
            return self._files.of_box(image)
        shown = [record.item, record.rotation, record.budget, image["name"]]
        return self._files.file(shown, image["size"], lambda: self._asked(image, record))

    def _asked(self, image: Mapping[str, Any], record: EpisodeRecord) -> Any:
        """The pixels of an image of no slide's box, from the environment that showed it."""
        config = self._run.config
        env = self._task.make_env(self._cohort, config.split, record.budget, config.env)
        items = self._task.items(self._cohort, config.split, config.env)
        item = next(item for item in items if (item.item_id, item.rotation) == (record.item, record.rotation))
        env.reset(seed=record.seed_used, options=record.options or self._task.reset_options(item))
        return env.get_wrapper_attr("image")(image["name"], max(image["size"])).image
