"""Reading a cohort's text files: what is wrong in one becomes a fault with its line, never an exception from within."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from wsigym.errors import Fault

from .models import Manifest, SlideEntry

__all__ = [
    "ITEMS",
    "ITEM_SOURCES",
    "MANIFEST",
    "NODES",
    "PATHS",
    "REFERENCES",
    "REGIONS",
    "Lines",
    "SlidePlaces",
    "digest",
    "item_files",
    "item_tasks",
    "json_fault",
    "parse_json",
    "read_lines",
    "read_manifest",
    "read_text",
    "region_files",
    "validation_faults",
]

Line = TypeVar("Line", bound=BaseModel)

MANIFEST, NODES, PATHS, REGIONS = "cohort.json", "nodes.jsonl", "paths.jsonl", "regions"
ITEMS, REFERENCES = "items", "references"

ITEM_SOURCES = ("pathview", "casescope")
"""Folders of what suites build their items from."""


@dataclass
class Lines(Generic[Line]):
    """The lines of a JSONL file: the valid ones with their 1-based numbers, and what the others hold.

    `broken` has the JSON value of each line that breaks the model, None where the line is not JSON.
    """

    valid: list[tuple[int, Line]] = field(default_factory=list)
    broken: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class SlidePlaces:
    """Where the slides of a manifest stand in `cohort.json`: their places in its list, and the lines where they begin.

    `ids` are those of all entries, also of faulty ones that are not among the slides; None where one tells no id.
    `whole` is False where a manifest was made of the valid parts of a faulty one.
    """

    indices: tuple[int, ...]
    lines: tuple[int, ...]
    ids: tuple[str, ...] | None
    whole: bool


def read_manifest(root: Path) -> tuple[Manifest | None, SlidePlaces, list[Fault]]:
    """`cohort.json`: the manifest, where its slides stand, and the faults.

    Where there are faults, the manifest is what can be made of it all the same, for finding more of them: the slides
    whose id and path are valid, without those of their other fields that are not. None where it has no list of slides.
    """
    text, faults = read_text(root / MANIFEST, MANIFEST)
    nowhere = SlidePlaces((), (), None, whole=False)
    if text is None:
        return None, nowhere, faults
    try:
        content = parse_json(text)
    except ValueError as error:
        return None, nowhere, [json_fault(error, MANIFEST, None)]
    lines = _lines_of_slides(text) if isinstance(content, dict) and isinstance(content.get("slides"), list) else []
    try:
        manifest = Manifest.model_validate(content)
    except ValidationError as error:
        found = list(validation_faults(error, MANIFEST, None, lines))
        return *_as_far_as_valid(content, lines), found
    ids = tuple(entry.slide_id for entry in manifest.slides)
    return manifest, SlidePlaces(tuple(range(len(ids))), tuple(lines), ids, whole=True), []


def _as_far_as_valid(content: Any, lines: Sequence[int]) -> tuple[Manifest | None, SlidePlaces]:
    entries: dict[int, SlideEntry] = {}
    ids: list[str] = []
    for index, fields in enumerate(content["slides"] if lines else []):
        faulty = _faulty_fields(fields)
        if "slide_id" not in faulty:
            ids.append(fields["slide_id"])
            if "path" not in faulty:
                valid = {name: value for name, value in fields.items() if name not in faulty}
                entries[index] = SlideEntry.model_validate(valid)
    told = tuple(ids) if len(ids) == len(lines) else None
    places = SlidePlaces(tuple(entries), tuple(lines[index] for index in entries), told, whole=False)
    if not lines:
        return None, places
    name = content.get("name")
    return Manifest.model_construct(
        format="wsigym-cohort/1", name=name if isinstance(name, str) else "", slides=tuple(entries.values())
    ), places


def _faulty_fields(slide: Any) -> set[str]:
    """The names of an entry's fields that are missing or not as they have to be."""
    try:
        SlideEntry.model_validate(slide)
    except ValidationError as error:
        return {str(problem["loc"][0]) if problem["loc"] else "slide_id" for problem in error.errors()}
    return set()


def read_lines(
    root: Path, name: str, model: type[Line], faults: list[Fault], alike: Sequence[str] | None = None
) -> Lines[Line]:
    """A JSONL file; what is wrong goes to `faults`. Blank lines are passed over; no file has no lines.

    `alike` names frozen fields that lines have in common: equal values are held once, and so is what else can be. A
    file of items takes 40 % of the memory then.
    """
    lines: Lines[Line] = Lines()
    if not os.path.lexists(root / name):
        return lines
    found: list[Fault] = []
    held: dict[Any, Any] = {}
    try:
        with (root / name).open(encoding="utf-8-sig") as file:  # line by line, as files of items may be large
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                content = None
                try:
                    content = parse_json(line.rstrip("\n"))
                    valid = model.model_validate(content)
                    if alike is not None:
                        _hold_once(valid, alike, held)
                    lines.valid.append((number, valid))
                except ValidationError as error:
                    lines.broken.append(content)
                    found += validation_faults(error, name, number)
                except ValueError as error:
                    lines.broken.append(None)
                    found.append(json_fault(error, name, number))
    except (OSError, UnicodeDecodeError):  # `read_text` says where: a file is read as a whole or not at all
        _, found = read_text(root / name, name)
        lines = Lines(broken=[None])
    faults += found
    return lines


def _hold_once(line: BaseModel, alike: Sequence[str], held: dict[Any, Any]) -> None:
    """Put for the values of the fields `alike`, which are frozen, equal ones that are held already; and so for the sets
    of names in which pydantic keeps what fields were given, 728 bytes each, also of the lines within this one."""
    values = line.__dict__
    for name in alike:
        values[name] = held.setdefault(values[name], values[name])
    parts = (part for value in values.values() if isinstance(value, tuple) for part in value)
    for model in (line, *(part for part in parts if isinstance(part, BaseModel))):
        given = model.model_fields_set
        object.__setattr__(model, "__pydantic_fields_set__", held.setdefault(frozenset(given), given))


def region_files(root: Path) -> list[Path]:
    """The annotated areas of each slide: `regions/<slide_id>.geojson`, by name."""
    return sorted((root / REGIONS).glob("*.geojson"))


def item_files(suite: str, task: str) -> tuple[str, str]:
    """Where the items of a task lie in a cohort, and where their references do."""
    return f"{ITEMS}/{suite}/{task}.jsonl", f"{REFERENCES}/{suite}/{task}.jsonl"


def item_tasks(root: Path) -> list[tuple[str, str]]:
    """(suite, task) of every file of items or of references, by name."""
    found = {
        (path.parent.name, path.stem) for folder in (ITEMS, REFERENCES) for path in root.glob(f"{folder}/*/*.jsonl")
    }
    return sorted(found)


def digest(root: Path) -> str:
    """sha256 over the names and bytes of all the cohort's text files; slides and images themselves are not read."""
    total = hashlib.sha256()
    evidence = sorted(path for folder in (ITEMS, REFERENCES) for path in root.glob(f"{folder}/*/*"))
    for path in [*(root / name for name in (MANIFEST, NODES, PATHS)), *region_files(root), *evidence]:
        if path.is_file():
            content = path.read_bytes()
            total.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
            total.update(content)
    return total.hexdigest()


def parse_json(text: str) -> Any:
    """The value of a JSON text. Raises `ValueError`, also for a key given twice and for what Python cannot hold."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands more than once in one object")
    return content


def json_fault(error: ValueError, file: str, line: int | None) -> Fault:
    """What `parse_json` raised, as a fault. `line` is that of a JSONL file; else the error's own, where it has one."""
    if not isinstance(error, json.JSONDecodeError):
        return Fault(file, line, "", f"not usable as JSON: {error}")
    return Fault(file, line or error.lineno, "", f"not JSON: {error.msg}, column {error.colno}")


def read_text(path: Path, name: str) -> tuple[str | None, list[Fault]]:
    """The text of a UTF-8 file, with or without a byte order mark, or None and the fault."""
    try:
        return path.read_text(encoding="utf-8-sig"), []
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return None, [
            Fault(name, line, "", f"not UTF-8 text: byte 0x{error.object[error.start]:02x}; save it as UTF-8")
        ]
    except OSError as error:
        return None, [Fault(name, None, "", f"cannot be read: {error.strerror or error}; a text file is needed")]


def _lines_of_slides(text: str) -> list[int]:
    """The 1-based line on which each element of the array "slides" begins, in a valid JSON object that has it."""
    decoder = json.JSONDecoder()
    lines: list[int] = []
    at, line = _skip(text, text.index("{") + 1, " \t\r\n,"), 1
    while text[at] != "}":
        key, at = decoder.raw_decode(text, at)
        at = _skip(text, at, " \t\r\n:")
        if key != "slides":
            _, at = decoder.raw_decode(text, at)
        else:
            counted, at = 0, _skip(text, at + 1, " \t\r\n,")
            while text[at] != "]":
                line += text.count("\n", counted, at)
                counted = at
                lines.append(line)
                _, at = decoder.raw_decode(text, at)
                at = _skip(text, at, " \t\r\n,")
            return lines
        at = _skip(text, at, " \t\r\n,")
    return lines


def _skip(text: str, at: int, characters: str) -> int:
    while text[at] in characters:
        at += 1
    return at


def validation_faults(
    error: ValidationError, file: str, line: int | None, slide_lines: Iterable[int] = ()
) -> Iterator[Fault]:
    """What pydantic found wrong in a line, as faults; in `cohort.json` each is on its slide's line of `slide_lines`."""
    lines = list(slide_lines)
    for problem in error.errors():
        place = problem["loc"]
        of_slide = len(place) > 1 and place[0] == "slides" and isinstance(place[1], int) and place[1] < len(lines)
        yield Fault(
            file,
            lines[int(place[1])] if of_slide else line,
            ".".join(str(part) for part in place),
            _message(problem["type"], problem["msg"], problem["input"]),
        )


def _message(kind: str, message: str, value: Any) -> str:
    if kind == "missing":
        return "is missing; it is required"
    found = repr(value)
    found = found if len(found) <= 120 else found[:117] + "..."
    if kind == "extra_forbidden":
        return f"no such field; remove it or mend its name; found {found}"
    return f"{message.removeprefix('Value error, ')}; found {found}"
