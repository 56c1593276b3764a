"""What made a run: versions, commit, machine."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import wsigym

__all__ = ["git_commit", "machine", "versions"]

LIBRARIES = (
    "wsigym",
    "gymnasium",
    "numpy",
    "opencv-python-headless",
    "openslide-bin",
    "openslide-python",
    "scikit-image",
    "tiffslide",
)
"""Whose versions a run notes: those whose pixels or random numbers a score may depend on."""


def versions() -> dict[str, str]:
    """Python's version and those of the libraries that a score may depend on."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def machine() -> dict[str, str | int | None]:
    return {"platform": platform.platform(), "processor": platform.machine(), "cpus": os.cpu_count()}


def git_commit() -> str | None:
    """The commit that this code is of, with "-dirty" where files differ from it; None outside a checkout of it."""
    folder = Path(wsigym.__file__).parent
    try:
        _git(folder, "ls-files", "--error-unmatch", "__init__.py")
        return _git(folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*").strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=20
    ).stdout
