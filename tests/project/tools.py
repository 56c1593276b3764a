"""Run the commands of the environment that the tests run in."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["run_tool"]


def run_tool(name: str, arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of this environment in `folder`; stdout and stderr come together as text."""
    return subprocess.run(
        [str(Path(sys.executable).with_name(name)), *arguments],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=240,
        check=False,
    )
