"""The wheel holds the whole tree, as files: every module, `py.typed`, the published figures, the command."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from .tools import run_tool

pytestmark = pytest.mark.slow


def tree_of(project: Path) -> set[str]:
    """Every file under wsigym/, links followed, as a wheel names it."""
    found = set()
    for folder, subfolders, names in os.walk(project / "wsigym", followlinks=True):
        subfolders[:] = [name for name in subfolders if name != "__pycache__"]
        found |= {(Path(folder) / name).relative_to(project).as_posix() for name in names}
    return found


@pytest.fixture
def wheel(project_copy: Path) -> Path:
    """Built the way a release is: the source distribution from the tree, the wheel from the source distribution."""
    done = run_tool("python", ["-m", "build", "--no-isolation"], project_copy)
    assert done.returncode == 0, done.stdout
    (sdist,) = (project_copy / "dist").glob("*.tar.gz")
    (wheel,) = (project_copy / "dist").glob("*.whl")
    assert sdist.name.startswith("wsigym-")
    assert wheel.name.endswith("-py3-none-any.whl")
    return wheel


def test_wheel_is_the_tree(project_copy: Path, wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if not name.split("/")[0].endswith(".dist-info")}
        links = [entry.filename for entry in archive.infolist() if (entry.external_attr >> 28) == 0xA]
        metadata = Parser().parsestr(
            archive.read(next(n for n in archive.namelist() if n.endswith("METADATA"))).decode()
        )
        commands = archive.read(next(n for n in archive.namelist() if n.endswith("entry_points.txt"))).decode()
        archive.extractall(tmp_path / "unpacked")

    assert held == tree_of(project_copy)
    assert not links
    assert "wsigym/py.typed" in held
    assert any(name.startswith("wsigym/benchmarks/published/") for name in held)
    assert "wsigym = wsigym.cli:main" in commands
    assert metadata["License-Expression"] == "Apache-2.0"

    # Imported from the unpacked wheel, with the checkout nowhere on the path.
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import wsigym, wsigym.cli, wsigym.slides.geometry as g; print(wsigym.__version__, g.__file__)",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "unpacked")},
        capture_output=True,
        text=True,
        check=True,
    )
    version, file = done.stdout.split(maxsplit=1)
    assert version == metadata["Version"]
    assert Path(file.strip()).is_relative_to(tmp_path / "unpacked")
