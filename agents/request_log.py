"""The log of a run's requests: an answer that was paid for is never paid for again.

`requests.jsonl` in the run folder holds one line for each answer, written the moment it arrives and before anyone acts
on it:

    {"episode": canonical JSON of the key, "turn": n, "sha256": of the request's body, "answer": the server's JSON,
     "request": RequestRecord, "tools": the tools offered or null, "transcript": [the turn's new messages, images by
     reference]}

An answer is found again by episode, turn and sha256 together: two episodes, and so two seeds, never share one. Only the
process that holds the run folder's lock writes. A key never comes near it: bodies and answers have none.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from pydantic import ValidationError

from wsigym.errors import RunError, RunWriteError

from .records import RequestRecord

__all__ = ["REQUESTS", "RequestLog", "read_requests"]

REQUESTS = "requests.jsonl"

_FIELDS = ("episode", "turn", "sha256", "answer", "request")


class RequestLog:
    """A log held open for reading and appending: a context manager. Safe to use from several threads.

    In memory stay 16 bytes and an offset for each line. Opening cuts off a last line that was never finished, and
    raises `RunError` where another line is no request's.

    `cost_usd`, `tokens_in` and `tokens_out` are sums over all lines, those of earlier runs into the folder included.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.cost_usd, self.tokens_in, self.tokens_out = 0.0, 0, 0
        self._offsets: dict[bytes, int] = {}
        self._file: BinaryIO | None = None
        self._end = 0
        self._lock = threading.Lock()

    def __enter__(self) -> RequestLog:
        try:
            # Unbuffered, so that a line that was written outlives this process however it ends.
            self._file = self.path.open("a+b", buffering=0)
            self._index()
            os.truncate(self.path, self._end)
        except OSError as error:
            self._close()
            raise RunError(f"{self.path} cannot be opened ({error.strerror}); choose another --out.") from None
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def __len__(self) -> int:
        return len(self._offsets)

    def find(self, episode: str, turn: int, sha256: str) -> tuple[dict[str, Any], RequestRecord] | None:
        """The server's answer to that request and its record, marked `replayed`; None where there was no answer."""
        offset = self._offsets.get(_key(episode, turn, sha256))
        if offset is None:
            return None
        with self.path.open("rb") as file:
            file.seek(offset)
            line = json.loads(file.readline())
        return line["answer"], RequestRecord.model_validate(line["request"] | {"replayed": True})

    def append(
        self,
        episode: str,
        turn: int,
        sha256: str,
        *,
        answer: Mapping[str, Any],
        request: RequestRecord,
        tools: Sequence[Mapping[str, Any]] | None = None,
        transcript: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Keep an answer. When this returns, it is kept; `RunWriteError` where it cannot be, such as on a full disk."""
        content = {
            "episode": episode,
            "turn": turn,
            "sha256": sha256,
            "answer": answer,
            "request": request.model_dump(mode="json"),
            "tools": tools,
            "transcript": transcript,
        }
        line = json.dumps(content).encode() + b"\n"
        with self._lock:
            if self._file is None:
                raise RunWriteError(f"{self.path} is closed; answers are kept inside the with statement only.")
            try:
                rest = memoryview(line)
                while rest:  # a disk that is nearly full takes a part, and refuses the rest
                    rest = rest[self._file.write(rest) :]
            except OSError as error:
                self._cut()
                raise RunWriteError(
                    f"{self.path} cannot be written ({error.strerror}). Answers up to here are kept; the same command "
                    "goes on from there."
                ) from None
            self._offsets[_key(episode, turn, sha256)] = self._end
            self._end += len(line)
            self._count(request)

    def _index(self) -> None:
        for number, (offset, line) in enumerate(_lines(self.path), start=1):
            content = _parsed(self.path, number, line)
            try:
                request = RequestRecord.model_validate(content["request"])
            except ValidationError as error:
                problem = error.errors(include_url=False)[0]
                raise RunError(f"{self.path}:{number}: request: {problem['loc']}: {problem['msg']}.") from None
            self._offsets[_key(content["episode"], content["turn"], content["sha256"])] = offset
            self._end = offset + len(line)
            self._count(request)

    def _count(self, request: RequestRecord) -> None:
        self.cost_usd += request.cost_usd or 0.0
        self.tokens_in += request.tokens_in or 0
        self.tokens_out += request.tokens_out or 0

    def _cut(self) -> None:
        """Take back half a line, so that the next is not glued to it; where that fails too, take no more."""
        try:
            os.truncate(self.path, self._end)
        except OSError:
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def read_requests(path: str | Path) -> Iterator[dict[str, Any]]:
    """Every line of a log, also while it is being written; a last line that is not finished is not there yet."""
    for number, (_, line) in enumerate(_lines(Path(path)), start=1):
        yield _parsed(Path(path), number, line)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each finished line with its offset."""
    offset = 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield offset, line
            offset += len(line)


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        content = json.loads(line)
        missing = [field for field in _FIELDS if field not in content]
    except (ValueError, TypeError):
        content, missing = None, ["all of them"]
    if not isinstance(content, dict) or missing:
        raise RunError(
            f"{path}:{number}: not a request: of {', '.join(_FIELDS)} it lacks {', '.join(missing)}. Nothing was "
            "changed; remove the line to have that request made again."
        )
    return content


def _key(episode: str, turn: int, sha256: str) -> bytes:
    return hashlib.blake2b(json.dumps([episode, turn, sha256]).encode(), digest_size=16).digest()
