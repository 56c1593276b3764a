"""The checkout, and a copy of it to plant faults in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def project_copy(tmp_path: Path) -> Path:
    """What packaging, types and floors look at: the settings, wsigym/ with its links, and the folders linked to."""
    copy = tmp_path / "project"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    folders = ["wsigym", *(link.resolve().name for link in (ROOT / "wsigym").iterdir() if link.is_symlink())]
    for folder in folders:
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    return copy
