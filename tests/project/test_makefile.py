"""`make` lists its targets and refuses a Python that it cannot use, in one clear line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # `make test` runs these tests, and tells the makes inside it of itself through MAKEFLAGS and MAKELEVEL.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False, env=env
    )


@pytest.fixture
def empty(root: Path, tmp_path: Path) -> Path:
    """A folder with what a fresh clone has of the Makefile's inputs, and no .venv."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(root / name, tmp_path)
    return tmp_path


def test_every_target_is_listed(root: Path) -> None:
    phony = re.search(r"^\.PHONY: (.+)$", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert phony
    listed = re.findall(r"^  make ([\w-]+) +\S", make(root, "help").stdout, re.MULTILINE)
    assert sorted(listed) == sorted(phony[1].split())
    assert make(root).stdout == make(root, "help").stdout


@pytest.mark.parametrize("version", ["2, 7", "3, 10", "3, 14"])
def test_an_unfit_python_is_refused(empty: Path, version: str) -> None:
    python = empty / "python"
    # Answers as that version would: the check's own code runs with another version_info.
    python.write_text(
        f'#!/bin/sh\nexec python3 -c "import sys; sys.version_info = ({version}, 0)\n$2"\n', encoding="utf-8"
    )
    python.chmod(0o755)
    done = make(empty, "demo", "PYTHON=./python")
    assert done.returncode != 0
    assert f"needs Python 3.11 to 3.13, and ./python is {version.replace(', ', '.')}" in done.stderr
    assert not (empty / ".venv").exists()


def test_a_missing_python_is_named(empty: Path) -> None:
    done = make(empty, "test", "PYTHON=no-such-python")
    assert done.returncode != 0
    assert "no 'no-such-python' on the PATH" in done.stderr


def test_demo_after_test_installs_nothing(empty: Path) -> None:
    (empty / ".venv/bin").mkdir(parents=True)
    for name in ("bin/python", "core", "dev"):
        (empty / ".venv" / name).touch()
    assert make(empty, "--dry-run", "demo").stdout.split("\n") == [".venv/bin/wsigym demo", ""]
    assert "pip" not in make(empty, "--dry-run", "test", "check").stdout

    # A changed pyproject.toml is newer than the stamps.
    later = (empty / ".venv/core").stat().st_mtime + 10
    os.utime(empty / "pyproject.toml", (later, later))
    assert "pip" in make(empty, "--dry-run", "demo").stdout
