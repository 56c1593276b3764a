"""What the pages say works: Python blocks run, commands and their options exist, links lead somewhere.

A block under `<!-- not run: reason -->` is not run; a test below lists those, so that their number is seen to grow.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from wsigym.cli import app

from .markdown import Block, blocks_of, command_lines

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCKS = [block for page in PAGES for block in blocks_of(page)]

NOT_RUN: list[str] = ["docs/clusters.md"]
"""Pages with a Python block that does not run, once a block."""


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted({block.page for block in BLOCKS if block.language == "python"}), ids=page_name)
def test_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    """A page's blocks run top to bottom in one namespace and one empty folder, without a warning."""
    script = ""
    for block in blocks_of(page):
        if block.language == "python" and block.not_run is None:
            # Blank lines before it, so that a traceback names the page's own line.
            script += "\n" * (block.line - 1 - script.count("\n")) + block.text
    file = tmp_path / f"{page.stem}.py"
    file.write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", file.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{page_name(page)}\n{done.stdout}{done.stderr}"


def test_blocks_that_are_not_run() -> None:
    assert [page_name(block.page) for block in BLOCKS if block.language == "python" and block.not_run] == NOT_RUN


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language in ("console", "bash", "sh")], ids=str)
def test_commands_exist(block: Block) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    commands = command_lines(block)
    assert commands, f"{block}: a block of commands without a command; console blocks mark them with '$ '"
    for program, *arguments in commands:
        if program == "make":
            unknown = [word for word in arguments if "=" not in word and word not in targets]
            assert not unknown, f"{block}: no such target: {unknown}"
        elif Path(program).name == "wsigym":
            parse(typer.main.get_command(app), arguments, "wsigym")


def parse(command: Any, arguments: list[str], name: str) -> None:
    """Fail where a command, an option or an argument does not exist or is missing; runs nothing, checks no file."""
    # A fresh context for each level, as the command line itself makes them.
    context = command.context_class(command, info_name=name, **command.context_settings)
    given, rest, _ = command.make_parser(context).parse_args(list(arguments))
    if hasattr(command, "commands"):
        if rest:
            assert rest[0] in command.commands, f"{name}: no command {rest[0]!r}; there are {sorted(command.commands)}"
            parse(command.commands[rest[0]], rest[1:], f"{name} {rest[0]}")
        return
    assert not rest, f"{name}: {rest} is more than it takes"
    missing = [parameter.name for parameter in command.params if parameter.required and not given.get(parameter.name)]
    assert not missing, f"{name}: {missing} missing"


@pytest.mark.parametrize(
    "line", ["wsigym nothing", "wsigym cohort check", "wsigym cohort check A B", "wsigym cohort check A --colour"]
)
def test_a_wrong_command_is_seen(line: str) -> None:
    with pytest.raises(Exception, match=r"(?i)no command|missing|more than it takes|no such option"):
        parse(typer.main.get_command(app), line.split()[1:], "wsigym")


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    linked = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    missing = [target for target in linked if target and not (page.parent / target).exists()]
    assert not missing
