"""Fenced blocks of the project's Markdown pages."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Block", "blocks_of", "command_lines"]

FENCE = re.compile(r"^```(\w*)\s*$")
NOT_RUN = re.compile(r"^<!-- not run: (.+?) -->\s*$")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, its first line's number (1-based), and why it is not run, if so."""

    page: Path
    language: str
    text: str
    line: int
    not_run: str | None

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    blocks = []
    lines = page.read_text(encoding="utf-8").splitlines()
    start: int | None = None
    language = ""
    for index, line in enumerate(lines):
        fence = FENCE.match(line)
        if fence and start is None:
            start, language = index + 1, fence[1]
        elif start is not None and line.rstrip() == "```":
            reason = NOT_RUN.match(lines[start - 2]) if start >= 2 else None
            text = "\n".join(lines[start:index]) + "\n"
            blocks.append(Block(page, language, text, start + 1, reason[1] if reason else None))
            start = None
    assert start is None, f"{page}: the block that opens on line {start} is not closed"
    return blocks


def command_lines(block: Block) -> list[list[str]]:
    """Commands of a console block (the lines after `$ `) or a bash block (every line), split as a shell splits them."""
    joined = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        joined = [line[2:] for line in joined if line.startswith("$ ")]
    commands = []
    for line in joined:
        words = shlex.split(line, comments=True)
        while words:
            end = next((index for index, word in enumerate(words) if word in ("&&", ";", "|")), len(words))
            commands.append(words[:end])
            words = words[end + 1 :]
    return [command for command in commands if command]
