"""What is declared, what is imported and what docs/dependencies.md says are one list."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NOT_IMPORTED = {
    "openslide-bin": "the library that openslide-python loads",
}
"""Dependencies that no module of wsigym imports, and who does."""


@pytest.fixture(scope="module")
def project(root: Path) -> Any:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names(requirements: list[str]) -> list[str]:
    return [canonicalize_name(Requirement(requirement).name) for requirement in requirements]


def documented(page: str, heading: str) -> list[str]:
    """First column of the table under a heading."""
    section = re.split(r"^## ", page, flags=re.MULTILINE)
    (table,) = (part for part in section if part.splitlines()[0].strip().replace("`", "") == heading)
    return re.findall(r"^\| (?!package|-)(\S+) \|", table, re.MULTILINE)


def imports(root: Path) -> Iterator[tuple[str, str]]:
    """(top-level module, file) of every absolute import in the package."""
    for folder in (root / "wsigym", *(link for link in (root / "wsigym").iterdir() if link.is_symlink())):
        for file in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    yield from ((alias.name.split(".")[0], str(file)) for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                    yield node.module.split(".")[0], str(file)


def test_page_lists_the_core(root: Path, project: dict[str, Any]) -> None:
    page = (root / "docs/dependencies.md").read_text(encoding="utf-8")
    assert documented(page, "Core") == sorted(names(project["dependencies"]))


def test_page_lists_every_extra(root: Path, project: dict[str, Any]) -> None:
    page = (root / "docs/dependencies.md").read_text(encoding="utf-8")
    extras = project["optional-dependencies"]
    assert re.findall(r"^## Extra `(\S+)`", page, re.MULTILINE) == list(extras)
    for extra, requirements in extras.items():
        assert documented(page, f"Extra {extra}") == sorted(names(requirements)), extra


def test_imports_are_declared_and_declared_is_imported(root: Path, project: dict[str, Any]) -> None:
    providers = importlib.metadata.packages_distributions()
    declared = set(names(project["dependencies"]))
    for extra, requirements in project["optional-dependencies"].items():
        if extra != "dev":
            declared |= set(names(requirements))

    imported: set[str] = set()
    undeclared: dict[str, str] = {}
    for module, file in imports(root):
        if module != "wsigym" and module not in sys.stdlib_module_names:
            # Several distributions may fill one namespace, as for langgraph: the declared one brings the others.
            found = {canonicalize_name(provider) for provider in providers.get(module, [module])}
            imported |= found & declared
            if not found & declared:
                undeclared[module] = file
    assert not undeclared
    assert declared - imported == set(NOT_IMPORTED)


def test_pythons_agree(root: Path, project: dict[str, Any]) -> None:
    listed = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert project["requires-python"] == f">={listed[0]},<3.{int(listed[-1].split('.')[1]) + 1}"
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    assert f"Python {listed[0]} to {listed[-1]}" in makefile
    assert f"({listed[0].replace('.', ', ')}) <= v <= ({listed[-1].replace('.', ', ')})" in makefile
