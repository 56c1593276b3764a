"""A run is a folder: `run.json` says what was asked of whom, `episodes.jsonl` what came of it, one line an episode.

Only the process that runs it writes, under the lock `.lock`, which the system releases when that process ends,
however it ends. Lines are only ever appended, whole; a line cut short by a kill is cut off on resume. Of several lines
with one key the last counts.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal

import filelock
from pydantic import BaseModel, ConfigDict, ValidationError

from wsigym.errors import RunError, RunWriteError, WsigymWarning

from .records import EpisodeKey, EpisodeRecord, EpisodeRecordWithoutSteps
from .task import Item

__all__ = [
    "EPISODES",
    "CohortStamp",
    "ItemsStamp",
    "Run",
    "RunConfig",
    "RunFolder",
    "items_stamp",
    "load_run",
    "references_sha256",
]

EPISODES = "episodes.jsonl"

MUST_MATCH = ("suite", "task", "cohort.sha256", "split", "subset", "items", "references_sha256", "env")
"""Fields of `run.json` that a resumed run shares with what is asked now."""

MAY_GROW = ("policies", "budgets", "seeds")

MAY_DIFFER = (
    "base_url", "timeout_s", "retries", "price_in", "price_out", "price_cached", "image_tokens", "requests_per_minute",
    "tokens_per_minute",
)  # fmt: skip
"""Fields of an endpoint that change no answer, and so may change when a run goes on."""

LINES_PER_FSYNC = 64
"""A killed process loses nothing that it wrote; a machine that loses power may lose this many episodes."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CohortStamp(_Part):
    """Which cohort. `sha256` is over its text files; `path` is where it lay."""

    path: str
    name: str
    sha256: str
    allow_outside: bool = False


class ItemsStamp(_Part):
    """Which items, in which order: `sha256` of the JSON list of [item, rotation]."""

    count: int
    sha256: str


class RunConfig(_Part):
    """`run.json`. `policies` are the names in records; `budgets` are spelled the one way that the task spells them.

    `endpoints` are the fields of each by its name (`wsigym.benchmarks.models.endpoint_stamp`), without any key.
    """

    format: Literal["wsigym-run/1"] = "wsigym-run/1"
    suite: str
    task: str
    cohort: CohortStamp
    split: str | None
    subset: str
    items: ItemsStamp
    references_sha256: str
    env: dict[str, Any]
    policies: tuple[str, ...]
    budgets: tuple[str, ...]
    seeds: tuple[int, ...]
    endpoints: dict[str, dict[str, Any]] = {}
    created: str
    version: str
    commit: str | None
    versions: dict[str, str]
    machine: dict[str, str | int | None]


@dataclass(frozen=True)
class Run:
    """A run folder as read: its configuration, and the record of each episode, the last where there are several."""

    folder: Path
    config: RunConfig
    records: tuple[EpisodeRecord, ...]

    @property
    def name(self) -> str:
        return str(self.folder)

    @property
    def items_sha256(self) -> str:
        return self.config.items.sha256


def load_run(folder: str | Path, *, steps: bool = True) -> Run:
    """Read a run folder, also while it is being written. Raises `RunError` where a file is missing or broken.

    Without `steps` the records' steps are left empty, which is five times faster; tables need none.
    """
    path = Path(folder)
    config = _read_config(path)
    kind = EpisodeRecord if steps else EpisodeRecordWithoutSteps
    records = {record.key: record for _, record in _episodes(path / EPISODES, kind)}
    return Run(path, config, tuple(records.values()))


class RunFolder:
    """A run folder held for writing: a context manager around the lock.

    `finished` are the keys that need not run again. Raises `RunError` where the folder is in use, holds something
    else, is broken, or belongs to another run; warns where the version or the commit differs.
    """

    def __init__(self, folder: str | Path, config: RunConfig) -> None:
        self.folder = Path(folder)
        self.config = config
        self.finished: set[EpisodeKey] = set()
        self._lock = filelock.FileLock(self.folder / ".lock", blocking=False)
        self._lines = 0
        self._file: BinaryIO | None = None

    def __enter__(self) -> RunFolder:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except filelock.Timeout:
            raise RunError(
                f"{self.folder} is in use by another run; wait until it has ended, or choose another --out."
            ) from None
        except OSError as error:
            raise RunError(f"{self.folder} cannot be written ({error}); choose another --out.") from None
        try:
            try:
                self._resume()
                self._file = (self.folder / EPISODES).open("ab", buffering=0)
            except OSError as error:
                raise RunError(f"{self.folder} cannot be written ({error}); choose another --out.") from None
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._file is not None
        try:
            os.fsync(self._file.fileno())
        finally:
            self._file.close()
            self._lock.release()

    def append(self, record: EpisodeRecord) -> None:
        """Write one episode; it is kept from here on, whatever happens to this process."""
        assert self._file is not None, "append() works inside the with statement"
        line = memoryview(record.model_dump_json().encode() + b"\n")
        try:
            while line:  # a disk that is nearly full takes a part, and refuses the rest
                line = line[self._file.write(line) :]
        except OSError as error:
            raise RunWriteError(
                f"{self.folder / EPISODES} cannot be written ({error.strerror}). Finished episodes are kept; the same "
                "command goes on from there."
            ) from None
        self._lines += 1
        if self._lines % LINES_PER_FSYNC == 0:
            os.fsync(self._file.fileno())

    def _resume(self) -> None:
        if (self.folder / "run.json").exists():
            earlier = _read_config(self.folder)
            _check_same(self.folder, earlier, self.config)
            _check_same_endpoints(self.folder, earlier, self.config)
            grown: dict[str, Any] = {
                name: _union(getattr(earlier, name), getattr(self.config, name)) for name in MAY_GROW
            }
            grown["endpoints"] = earlier.endpoints | self.config.endpoints
            if (earlier.version, earlier.commit) != (self.config.version, self.config.commit):
                warnings.warn(
                    f"{self.folder} was begun with wsigym {earlier.version} (commit {earlier.commit or 'unknown'}) and "
                    f"goes on with {self.config.version} (commit {self.config.commit or 'unknown'}); "
                    "each record says which.",
                    WsigymWarning,
                    stacklevel=3,
                )
            self.config = earlier.model_copy(update=grown)
        elif others := sorted(path.name for path in self.folder.iterdir() if path.name not in (".lock", *_LEFTOVERS)):
            raise RunError(
                f"{self.folder} is not empty ({others[0]}) and has no run.json; choose a new folder for --out."
            )
        _write_whole(self.folder / "run.json", self.config.model_dump_json(indent=2) + "\n")
        episodes, whole, outcomes = self.folder / EPISODES, 0, {}
        for end, record in _episodes(episodes):
            whole, outcomes[record.key] = end, record.outcome
        if episodes.exists():
            os.truncate(episodes, whole)
        self.finished = {key for key, outcome in outcomes.items() if outcome != "infrastructure_error"}


_LEFTOVERS = ("run.json.tmp",)
"""What a kill before the first episode may leave."""


def _read_config(folder: Path) -> RunConfig:
    path = folder / "run.json"
    try:
        return RunConfig.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise RunError(f"{folder} is not a run folder: it has no run.json. `wsigym run --out` makes one.") from None
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error}.") from None
    except ValidationError as error:
        raise RunError(f"{path} is broken: {_first_problem(error)}.") from None


def _episodes(path: Path, kind: type[EpisodeRecord] = EpisodeRecord) -> Iterator[tuple[int, EpisodeRecord]]:
    """Each line's record, and how many bytes there are up to its end. A last line without its end is not there yet."""
    if not path.exists():
        return
    whole = 0
    try:
        opened = path.open("rb")
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror}); a text file of episodes is needed.") from None
    with opened as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                record = kind.model_validate_json(line)
            except ValidationError as error:
                raise RunError(
                    f"{path}:{number}: not an episode: {_first_problem(error)}. Nothing was changed; "
                    "remove the line to run that episode again."
                ) from None
            whole += len(line)
            yield whole, record


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    return f"{where}: {problem['msg']}" if where else problem["msg"]


def _check_same(folder: Path, earlier: RunConfig, now: RunConfig) -> None:
    for name in MUST_MATCH:
        found, asked = (_at(config.model_dump(), name) for config in (earlier, now))
        if found != asked:
            raise RunError(
                f"{folder} holds another run: its {name} is {json.dumps(found)}, asked for is {json.dumps(asked)}. "
                "Ask for the same, or choose another --out. (Policies, budgets, seeds and endpoints may be added.)"
            )


def _check_same_endpoints(folder: Path, earlier: RunConfig, now: RunConfig) -> None:
    for name in earlier.endpoints.keys() & now.endpoints.keys():
        was, asked = earlier.endpoints[name], now.endpoints[name]
        fields = [field for field in {**was, **asked} if field not in MAY_DIFFER and was.get(field) != asked.get(field)]
        if fields:
            told = "; ".join(
                f"{field} is {json.dumps(was.get(field))}, asked for is {json.dumps(asked.get(field))}"
                for field in fields
            )
            raise RunError(
                f"{folder} holds episodes of another endpoint {name!r}: its {told}. Ask for the same, give this one "
                "another name, or choose another --out."
            )


def _at(content: Mapping[str, Any], dotted: str) -> Any:
    value: Any = content
    for part in dotted.split("."):
        value = value[part]
    return value


def _union(first: Iterable[Any], second: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys([*first, *second]))


def _write_whole(path: Path, text: str) -> None:
    """The old content or the new, never half of it."""
    aside = path.with_name(path.name + ".tmp")
    with aside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def items_stamp(items: Sequence[Item]) -> ItemsStamp:
    return ItemsStamp(count=len(items), sha256=_sha256([[item.item_id, item.rotation] for item in items]))


def references_sha256(items: Sequence[Item]) -> str:
    """sha256 over the references, so that a changed answer is noticed without keeping any."""
    return _sha256([_plain(item.reference) for item in items])


def _plain(reference: Any) -> Any:
    return reference.model_dump(mode="json") if isinstance(reference, BaseModel) else asdict(reference)


def _sha256(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
