"""The request log: what is found again, what is cut off, what is refused."""

from __future__ import annotations

import errno
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from wsigym.agents.records import RequestRecord
from wsigym.agents.request_log import RequestLog, read_requests
from wsigym.errors import RunError, RunWriteError

EPISODE = '["evipath","localization","item",0,"agent:localizer","e","base",0]'
OTHER_SEED = EPISODE[:-2] + "1]"


def record(turn: int = 0, sha256: str = "a", cost_usd: float | None = 0.25) -> RequestRecord:
    return RequestRecord(
        endpoint="e",
        turn=turn,
        sha256=sha256,
        tokens_in=1,
        tokens_out=2,
        seconds=0.5,
        finish_reason="stop",
        cost_usd=cost_usd,
    )


def write(log: RequestLog, episode: str = EPISODE, turn: int = 0, sha256: str = "a", text: str = "hi") -> None:
    log.append(episode, turn, sha256, answer={"text": text}, request=record(turn, sha256), transcript=[{"t": turn}])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "requests.jsonl"


def test_found_again_by_all_three_and_by_nobody_else(path: Path) -> None:
    with RequestLog(path) as log:
        write(log)
        assert log.find(EPISODE, 0, "a") == ({"text": "hi"}, record().model_copy(update={"replayed": True}))
    with RequestLog(path) as log:
        assert log.find(EPISODE, 0, "a") == ({"text": "hi"}, record().model_copy(update={"replayed": True}))
        for other in ((OTHER_SEED, 0, "a"), (EPISODE, 1, "a"), (EPISODE, 0, "b")):
            assert log.find(*other) is None
        assert log.cost_usd == 0.25
        assert len(log) == 1


def test_a_line_holds_all_that_an_export_needs(path: Path) -> None:
    with RequestLog(path) as log:
        log.append(EPISODE, 3, "a", answer={"t": "ä\ud83d"}, request=record(3), tools=[{"n": 1}], transcript=[{"x": 1}])
        (line,) = read_requests(path)  # also while it is open
    assert line == {
        "episode": EPISODE,
        "turn": 3,
        "sha256": "a",
        "answer": {"t": "ä\ud83d"},
        "request": record(3).model_dump(mode="json"),
        "tools": [{"n": 1}],
        "transcript": [{"x": 1}],
    }


def test_a_torn_last_line_is_cut_wherever_it_is_torn(path: Path) -> None:
    with RequestLog(path) as log:
        write(log, turn=0)
        first = path.stat().st_size
        write(log, turn=1, text="ö" * 10)
    whole = path.read_bytes()
    for size in range(first, len(whole)):
        path.write_bytes(whole[:size])
        assert len(list(read_requests(path))) == 1
        with RequestLog(path) as log:
            assert log.find(EPISODE, 0, "a") is not None
            assert log.find(EPISODE, 1, "a") is None
            write(log, turn=2, text="after")
        assert [line["turn"] for line in read_requests(path)] == [0, 2]
    path.write_bytes(whole[: first // 2])
    with RequestLog(path) as log:
        assert (len(log), path.stat().st_size) == (0, 0)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"not json\n", "requests.jsonl:2: not a request"),
        (b'{"episode": "e"}\n', "it lacks turn, sha256, answer, request"),
        (b"[]\n", "not a request"),
        (b"3\n", "not a request"),
        (b"\n", "not a request"),
        (b'{"episode":"e","turn":0,"sha256":"a","answer":{},"request":{}}\n', "requests.jsonl:2: request: .*required"),
    ],
)
def test_another_line_is_refused_and_nothing_changed(path: Path, line: bytes, said: str) -> None:
    with RequestLog(path) as log:
        write(log)
    content = path.read_bytes() + line + b"torn"
    path.write_bytes(content)
    with pytest.raises(RunError, match=said), RequestLog(path):
        pass
    assert path.read_bytes() == content


def test_a_folder_in_its_place_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot be opened \(Is a directory\)"), RequestLog(tmp_path):
        pass


class NearlyFull(io.RawIOBase):
    """A file on a disk with room for `room` bytes: what fits of a line is written, the rest is refused."""

    def __init__(self, file: BinaryIO, room: int) -> None:
        self.file, self.room = file, room

    def write(self, data: Any) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = self.file.write(data[: self.room])
        self.room -= taken
        return taken

    def close(self) -> None:
        self.file.close()


def test_a_full_disk_keeps_what_was_whole(path: Path) -> None:
    with RequestLog(path) as log:
        write(log, turn=0)
        size = path.stat().st_size
        assert log._file is not None
        plain, log._file = log._file, NearlyFull(log._file, size // 2)  # type: ignore[assignment]
        with pytest.raises(RunWriteError, match=r"No space left on device.*the same command goes on") as caught:
            write(log, turn=1)
        assert not caught.value.bad_input
        assert path.stat().st_size == size
        assert log.find(EPISODE, 1, "a") is None
        assert log.cost_usd == 0.25
        log._file = plain  # room was made
        write(log, turn=1)
    assert [line["turn"] for line in read_requests(path)] == [0, 1]


def test_memory_is_an_offset_a_line(path: Path) -> None:
    """100,000 lines of some kB each would be hundreds of MB; the index takes less than 200 bytes a line."""
    lines = 10_000
    line = {
        "episode": EPISODE,
        "sha256": "a" * 64,
        "answer": {"text": "x" * 500},
        "request": record().model_dump(mode="json"),
    }
    with path.open("w") as file:
        file.writelines(json.dumps(line | {"turn": turn}) + "\n" for turn in range(lines))
    tracemalloc.start()
    try:
        with RequestLog(path) as log:
            held, most = tracemalloc.get_traced_memory()
            assert len(log) == lines
            found = log.find(EPISODE, lines - 1, "a" * 64)
    finally:
        tracemalloc.stop()
    assert found is not None
    assert held < 200 * lines
    assert most < 300 * lines
