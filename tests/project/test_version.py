"""One version, from one place."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

import wsigym

from .tools import run_tool


def test_installed_version_is_the_packages() -> None:
    assert importlib.metadata.version("wsigym") == wsigym.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", wsigym.__version__)


def test_command_prints_it(tmp_path: Path) -> None:
    done = run_tool("wsigym", ["--version"], tmp_path)
    assert done.returncode == 0
    assert done.stdout.split()[-1] == wsigym.__version__


def test_module_is_the_command(tmp_path: Path) -> None:
    done = run_tool("python", ["-m", "wsigym", "--version"], tmp_path)
    assert done.returncode == 0
    assert done.stdout.split()[-1] == wsigym.__version__


def test_changelog_opens_with_unreleased_or_this_version(root: Path) -> None:
    headings = re.findall(r"^## (\S+)", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] in ("Unreleased", wsigym.__version__)
    assert headings.count(wsigym.__version__) <= 1
