"""The checks of floors and types see through the links: what is planted deep in a linked folder fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from .tools import run_tool


def plant(module: Path, lines: str) -> None:
    assert module.is_file(), f"{module} moved: choose another module to plant in"
    module.write_text(f"{module.read_text(encoding='utf-8')}\n\n{lines}\n", encoding="utf-8")


def lint_imports(project: Path) -> tuple[int, str]:
    done = run_tool("lint-imports", ["--no-logo", "--no-cache"], project)
    return done.returncode, done.stdout


def test_floors_hold(project_copy: Path) -> None:
    status, printed = lint_imports(project_copy)
    assert status == 0, printed


@pytest.mark.parametrize(
    ("module", "line", "said"),
    [
        ("slides/geometry.py", "import wsigym.envs", "wsigym.slides is not allowed to import wsigym.envs"),
        (
            "slides/backends/openslide.py",
            "from wsigym import envs",
            "wsigym.slides is not allowed to import wsigym.envs",
        ),
        ("cohorts/queries.py", "def later():\n    from wsigym.cli import app", "is not allowed to import wsigym.cli"),
        ("wsigym/errors.py", "from wsigym.slides import geometry", "wsigym.errors is not allowed to import"),
        ("wsigym/errors.py", "from wsigym import __version__", "wsigym.errors is not allowed to import wsigym:"),
    ],
)
def test_an_upward_import_is_seen(project_copy: Path, module: str, line: str, said: str) -> None:
    plant(project_copy / module, line)
    status, printed = lint_imports(project_copy)
    assert status == 1, printed
    assert said in printed


def test_a_module_outside_the_floors_is_seen(project_copy: Path) -> None:
    (project_copy / "wsigym" / "helpers.py").touch()
    status, printed = lint_imports(project_copy)
    assert status == 1, printed
    assert "wsigym.helpers" in printed


@pytest.mark.slow
def test_a_type_error_is_seen(project_copy: Path) -> None:
    clean = run_tool("mypy", [], project_copy)
    assert clean.returncode == 0, clean.stdout

    plant(project_copy / "slides/backends/openslide.py", 'planted: int = "text"')
    planted = run_tool("mypy", [], project_copy)
    assert planted.returncode == 1, planted.stdout
    assert "wsigym/slides/backends/openslide.py" in planted.stdout
    assert "Found 1 error" in planted.stdout
